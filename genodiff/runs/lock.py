"""One run per folder: an exclusive lock that the system frees when its holder dies.

flock(2) on `RUN/.lock`, which says who holds it. On Linux it works over NFS too, where the mount
does not say `nolock`. Imports no torch, so that a second run is refused at once.
"""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from genodiff.errors import MachineError, UsageError
from genodiff.io.atomic import write_error
from genodiff.io.identity import stamp_time

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FILE = ".lock"
_held: set[int] = set()


@contextmanager
def hold_lock(run: Path) -> Iterator[None]:
    """Hold the run's lock.

    Raises `UsageError` with the pid, host and start of its holder, or `MachineError`.
    """
    path = run / FILE
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
    except OSError as fault:
        raise write_error(path, fault) from None
    try:
        _take(run, descriptor)
        if not path.exists() or not os.path.samestat(path.stat(), os.fstat(descriptor)):
            raise UsageError("another run is just leaving this folder", file=run, fix="try again")
        about = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "started": stamp_time(),
        }
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(about).encode(), 0)
        _held.add(descriptor)
        yield
    finally:
        _held.discard(descriptor)
        os.close(descriptor)


def check_lock_free(run: Path) -> None:
    """Raises `UsageError` where another process holds the run's lock; changes nothing."""
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        descriptor = os.open(run / FILE, os.O_RDONLY)
        try:
            _take(run, descriptor)
        finally:
            os.close(descriptor)


def forget_locks() -> None:
    """In a forked child: close its copies of the locks, so that the parent's death frees them."""
    for descriptor in _held:
        with suppress(OSError):
            os.close(descriptor)
    _held.clear()


def _take(run: Path, descriptor: int) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(
            f"another run is writing here: {_holder(descriptor)}",
            file=run,
            fix="wait for it, or choose another --out",
        ) from None
    except OSError as fault:
        raise MachineError(
            f"cannot be locked ({fault.strerror})",
            file=run / FILE,
            fix="choose an --out on a local disk",
        ) from None


def _holder(descriptor: int) -> str:
    try:
        about = json.loads(os.pread(descriptor, 4096, 0))
        return (
            f"pid {int(about['pid'])} on {str(about['host'])[:80]}, started "
            f"{str(about['started'])[:40]}"
        )
    except (OSError, ValueError, KeyError, TypeError):
        return "its process is just starting"
