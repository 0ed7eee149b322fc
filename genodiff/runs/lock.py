"""One run per folder: an exclusive lock that says who holds it, and is free when its holder dies.

It stands at `RUN/.lock`. Imports no torch, so that a second run is refused at once.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from genodiff.errors import UsageError
from genodiff.io.file_lock import HELD, FileLock, describe
from genodiff.io.target import write_error

FILE = ".lock"
FILES = {FILE, f"{FILE}{HELD}"}
"""The names that the lock may have in a folder."""

_held: set[FileLock] = set()


@contextmanager
def hold_lock(run: Path) -> Iterator[None]:
    """Hold the run's lock. Raises `UsageError` with its holder's pid, host and start, or
    `MachineError`.
    """
    lock = FileLock(run / FILE)
    try:
        try:
            if not lock.take():
                raise _refuse(run, lock)
        except FileNotFoundError:
            fix = "try again"
            raise UsageError("another run is just leaving this folder", file=run, fix=fix) from None
        except OSError as fault:
            raise write_error(lock.path, fault) from None
        _held.add(lock)
        yield
    finally:
        _held.discard(lock)
        lock.release()


def check_lock_free(run: Path) -> None:
    """Raises `UsageError` where another process holds the run's lock; makes nothing."""
    lock = FileLock(run / FILE)
    with suppress(OSError):
        if lock.is_taken():
            raise _refuse(run, lock)


def forget_locks() -> None:
    """In a forked child: close its copies of the locks, so that the parent's death frees them."""
    for lock in _held:
        lock.release()
    _held.clear()


def _refuse(run: Path, lock: FileLock) -> UsageError:
    what = f"another run is writing here: {describe(lock.holder())}"
    return UsageError(what, file=run, fix="wait for it, or choose another --out")
