"""Locks between processes: one at a time does a piece of work, whatever the file system can do.

Where the file system has `flock`, the system frees a lock when its holder ends. Elsewhere (Lustre
without `-o flock`, some network mounts, Windows) a second file stands for the lock: PATH.held. It
names its holder's host and process, and the holder touches it every few seconds. It is believed no
longer, and removed with a line, when that process is gone, or when nobody has touched it for a
minute. Its age is told by the clock of the file system, which all nodes share.
"""

import json
import logging
import os
import secrets
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from genodiff.io.file_kinds import stamp_time

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

HELD = ".held"
"""What follows the name of a lock in the name of the file that stands for it without `flock`."""

_BEAT, _STALE = 5.0, 60.0  # seconds between two touches, and without one until nobody holds it
_log = logging.getLogger("genodiff")


class FileLock:
    """The lock at `path`, in a folder that is there; an empty or foreign file is nobody's lock."""

    def __init__(self, path: str | Path) -> None:
        self.path, self._held = Path(path), Path(f"{path}{HELD}")
        self.descriptor: int | None = None
        self._ours: dict[str, Any] = {}
        self._pid = os.getpid()
        self._done = threading.Event()

    def take(self) -> bool:
        """Take the lock; False where another holds it. Raises `OSError` where none can be made."""
        while True:
            if self.descriptor is None:
                flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
                self.descriptor = os.open(self.path, flags, 0o666)
            try:
                flocked = flock(self.descriptor)
            except BlockingIOError:
                return False
            with suppress(OSError):
                there = os.stat(self.path)
                if not flocked or os.path.samestat(there, os.fstat(self.descriptor)):
                    break
            self.release()  # its last holder removed the file, and another may be there by now
        if not (self._is_free() if flocked else self._make_held()):
            self.release()
            return False
        with suppress(OSError):  # for people, and for `holder`
            os.ftruncate(self.descriptor, 0)
            os.write(self.descriptor, json.dumps(_describe_process()).encode())
        return True

    def is_taken(self) -> bool:
        """Whether another process holds the lock; nothing is made. Raises `OSError`."""
        with suppress(FileNotFoundError):
            descriptor = os.open(self.path, os.O_RDWR)
            try:
                flock(descriptor)
            except BlockingIOError:
                return True
            finally:
                os.close(descriptor)
        return not self._is_free()

    def holder(self) -> dict[str, Any]:
        """What the holder wrote of itself ("pid", "host", "started"); empty where unknown."""
        return _read(self._held) or _read(self.path)

    def release(self) -> None:
        """Let go of the lock. In a forked child the holder's lock stays."""
        self._done.set()
        if self._ours and self._pid == os.getpid() and _read(self._held) == self._ours:
            with suppress(OSError):
                self._held.unlink()
        self._ours = {}
        if self.descriptor is not None:
            with suppress(OSError):
                os.close(self.descriptor)
            self.descriptor = None

    def _make_held(self) -> bool:
        if not self._is_free():
            return False
        try:
            descriptor = os.open(self._held, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            return False
        about = _describe_process() | {"token": secrets.token_hex(8)}
        try:
            os.write(descriptor, json.dumps(about).encode())
        finally:
            os.close(descriptor)
        self._ours, self._pid, self._done = about, os.getpid(), threading.Event()
        threading.Thread(target=self._touch, args=(self._done,), daemon=True).start()
        return True

    def _touch(self, done: threading.Event) -> None:
        while not done.wait(_BEAT):
            with suppress(OSError):
                os.utime(self._held)

    def _is_free(self) -> bool:
        """Whether no file stands for the lock. One that is nobody's any more is removed."""
        try:
            seen, about = self._held.stat(), _read(self._held)
        except FileNotFoundError:
            return True
        age, gone = _read_clock(self.path.parent) - seen.st_mtime, _is_gone(about)
        if gone is False or (gone is None and age < _STALE):
            return False
        # Renamed first, so that of two who judged it only one removes it, and none a newer one.
        aside = self._held.with_name(f".{secrets.token_hex(8)}{HELD}")
        try:
            os.rename(self._held, aside)
            if os.path.samestat(aside.stat(), seen):
                why = "has ended" if gone else f"has not been heard of for {age:,.0f} s"
                who = f"pid {about.get('pid')} on {about.get('host')}"
                _log.warning("%s: a lock whose holder (%s) %s; removed", self._held, who, why)
            else:
                os.link(aside, self._held)
            aside.unlink()
        except (FileNotFoundError, FileExistsError):
            return False
        return True


def flock(descriptor: int) -> bool:
    """Lock an open file for this process; False where its file system has no such locks.

    Raises `BlockingIOError` where another holds it.
    """
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True


@contextmanager
def hold_file(path: str | Path, work: str = "writes the same file") -> Iterator[None]:
    """Hold the lock at `path`, waiting for another process that does the same `work`.

    The folder must be there. Raises `OSError` where no lock can be made.

    >>> with hold_file("/tmp/results.lock"):
    ...     pass
    """
    lock, pause, waited = FileLock(path), 0.01, 0.0
    try:
        while not lock.take():
            if waited < 1 <= waited + pause:
                _log.info("waiting for another process that %s: %s", work, describe(lock.holder()))
            time.sleep(pause)
            waited, pause = waited + pause, min(2 * pause, 0.5)
        yield
    finally:
        lock.release()


def describe(about: dict[str, Any]) -> str:
    """The holder of a lock in words."""
    try:
        started = str(about["started"])[:40]
        return f"pid {int(about['pid'])} on {str(about['host'])[:80]}, started {started}"
    except (KeyError, TypeError, ValueError):
        return "its process is just starting"


def _read(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        about = json.loads(path.read_bytes())
        return about if isinstance(about, dict) else {}
    return {}


def _read_clock(folder: Path) -> float:
    """The time of the clock that dates the files of `folder`; this machine's where none can be."""
    with suppress(OSError), tempfile.TemporaryFile(dir=folder) as probe:
        return os.fstat(probe.fileno()).st_mtime
    return time.time()


def _describe_process() -> dict[str, Any]:
    pid = os.getpid()
    known = {"pid": pid, "host": socket.gethostname(), "started": stamp_time()}
    return known | {"system": _find_system(), "born": _find_birth(pid)}


def _is_gone(about: dict[str, Any]) -> bool | None:
    """Whether the process of `about` has ended; None where that cannot be told from here."""
    here = _find_system()
    if not here or (about.get("host"), about.get("system")) != (socket.gethostname(), here):
        return None
    return _find_birth(about.get("pid")) != about.get("born")


def _find_system() -> str:
    """The numbering of processes that this one lives in: this boot's, or that of a container."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    return ""


def _find_birth(pid: object) -> str:
    """When a process began, in ticks since this system did; empty where there is no such one."""
    with suppress(OSError, IndexError):
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if state == "Z" else rest[18]
    return ""
