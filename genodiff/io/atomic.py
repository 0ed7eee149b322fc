"""Atomic writes: every file that genodiff leaves behind is complete, or it is not there.

Order: temporary name in the same folder → write → fsync → rename → fsync of the folder. A full disk
or a missing permission is one `MachineError` that names the path; the former file stays.

The environment variable GENODIFF_CRASH_AT=n kills the process (SIGKILL) just before the n-th I/O
operation of this module, so that a test can try every moment at which a machine may die.
"""

import errno
import io
import json
import os
import secrets
import shutil
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal

from genodiff.errors import MachineError
from genodiff.io.file_kinds import ERRORS, encode_text
from genodiff.io.file_lock import flock
from genodiff.io.target import (
    NO_ROOM,
    STREAMS,
    refuse_elsewhere,
    set_aside,
    write_error,
)

_PREFIX, _SUFFIX = ".genodiff-", ".tmp"
_CHUNK = 1 << 20
_WRITE_FAULTS = NO_ROOM | {errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM}
_operations = 0


def crash_point() -> None:
    """Count one I/O operation; callers count here what they rename or remove themselves."""
    global _operations
    _operations += 1
    if os.environ.get("GENODIFF_CRASH_AT") == str(_operations):
        os.kill(os.getpid(), signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a whole file atomically. Raises `MachineError`."""
    with open_atomic(path) as file:
        view = memoryview(data)
        for start in range(0, len(view), _CHUNK):
            file.write(view[start : start + _CHUNK])


def write_text(path: str | Path, text: str) -> None:
    """Write a whole UTF-8 text file atomically. Raises `MachineError`."""
    write_bytes(path, encode_text(text))


def write_json(path: str | Path, value: Any) -> None:
    """Write `value` as indented JSON, atomically. Raises `ValueError` for NaN or infinity."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n")


@contextmanager
def open_atomic(path: str | Path, mode: Literal["wb", "w"] = "wb") -> Iterator[IO[Any]]:
    """A file to write: named `path` when the block ends well, removed when it raises.

    Missing parent folders are made. A link is followed. A device or a pipe (`/dev/stdout`) is
    written to directly, since renaming over it would replace it. Raises `MachineError`.
    """
    refuse_elsewhere(path)
    mode_bits = None
    with suppress(OSError):
        mode_bits = Path(path).stat().st_mode
    if mode_bits is not None and stat.S_ISDIR(mode_bits):
        raise MachineError("is a directory, not a file", file=path, fix="give the name of a file")
    is_special = mode_bits is not None and not stat.S_ISREG(mode_bits)
    direct = is_special or str(path).startswith(STREAMS)
    target = Path(path) if direct else Path(os.path.realpath(path))
    temporary = target if direct else _temporary(target)
    try:
        if not direct:
            target.parent.mkdir(parents=True, exist_ok=True)
        crash_point()
        flags = os.O_WRONLY | (0 if direct else os.O_CREAT | os.O_EXCL) | getattr(os, "O_BINARY", 0)
        raw = _Raw(os.open(temporary, flags, 0o666), path)
    except OSError as fault:
        raise write_error(path, fault) from None
    _mark(raw.fileno())
    buffered = io.BufferedWriter(raw, _CHUNK)
    file: IO[Any] = buffered
    if mode == "w":
        file = io.TextIOWrapper(buffered, encoding="utf-8", errors=ERRORS, newline="\n")
    try:
        yield file
        file.flush()
        try:
            if not direct:
                if mode_bits is not None:
                    with suppress(OSError):
                        os.chmod(temporary, stat.S_IMODE(mode_bits))
                crash_point()
                os.fsync(raw.fileno())
            raw.close()
            if not direct:
                crash_point()
                os.replace(temporary, target)
                _sync_folder(target.parent)
        except OSError as fault:
            raise write_error(path, fault) from None
    except BaseException:
        if not direct:
            with suppress(OSError):
                temporary.unlink()
        raise
    finally:
        # What is still buffered after a fault must not be tried again by the garbage collector.
        raw.abandoned = True
        with suppress(OSError, ValueError):
            file.close()
        with suppress(OSError):
            raw.close()


@contextmanager
def atomic_directory(
    path: str | Path, *, exist_ok: bool = False, aside: bool = False, replace: bool = False
) -> Iterator[Path]:
    """A folder to fill: named `path`, synced, when the block ends well, removed when it raises.

    Where `path` already exists, the error is `MachineError`; with `exist_ok` the older folder stays
    and the new one is dropped, which is right where the name is a fingerprint of the content. With
    `aside` the older one is renamed; with `replace` it is removed when the new one is there.
    """
    refuse_elsewhere(path)
    target = Path(os.path.realpath(path))
    temporary = _temporary(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        crash_point()
        temporary.mkdir()
    except OSError as fault:
        raise write_error(path, fault) from None
    lock = None
    with suppress(OSError):
        lock = os.open(temporary, os.O_RDONLY)
        _mark(lock)
    try:
        try:
            yield temporary
        except OSError as fault:
            if fault.errno in _WRITE_FAULTS:
                raise write_error(path, fault) from None
            raise
        try:
            for folder, _, names in os.walk(temporary):
                for name in names:
                    crash_point()
                    _sync(os.path.join(folder, name))
                _sync_folder(Path(folder))
            crash_point()
            # os.rename would put a new folder over an old empty one; to the caller that is the same
            # as no folder.
            old = set_aside(target) if aside or replace else None
            os.rename(temporary, target)
            _sync_folder(target.parent)
            if replace and old is not None:
                crash_point()
                shutil.rmtree(old, ignore_errors=True)
        except OSError as fault:
            taken = fault.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)
            if taken and os.path.lexists(target):
                if exist_ok and target.is_dir():
                    return
                fix = "choose another name or remove it"
                raise MachineError("already exists", file=path, fix=fix) from None
            raise write_error(path, fault) from None
    finally:
        if lock is not None:
            os.close(lock)
        shutil.rmtree(temporary, ignore_errors=True)


def clear_leftovers(folder: str | Path) -> list[Path]:
    """Remove the temporary files that killed processes left in `folder`; returns them."""
    removed: list[Path] = []
    for path in sorted(Path(folder).glob(f"{_PREFIX}*{_SUFFIX}")):
        if is_leftover(path):
            crash_point()
            with suppress(OSError):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
                removed.append(path)
    return removed


def is_leftover(path: Path) -> bool:
    """Whether `path` is the temporary file or folder of a process that is no more."""
    pid = path.name.removeprefix(_PREFIX).split("-")[0]
    if not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return _unlocked(path)
    except OSError:  # another user's
        pass
    return False


def remove(path: str | Path) -> None:
    """Remove a file, a folder or a link at once: what a kill leaves is a leftover beside it."""
    aside = _temporary(Path(path))
    crash_point()
    os.rename(path, aside)
    crash_point()
    shutil.rmtree(aside) if aside.is_dir() and not aside.is_symlink() else aside.unlink()


class _Raw(io.FileIO):
    """A file whose every write is counted and whose failures name the path that the user gave."""

    def __init__(self, descriptor: int, shown: str | Path) -> None:
        super().__init__(descriptor, "wb")
        self.shown = shown
        self.abandoned = False

    def write(self, data: Any, /) -> int:
        if self.abandoned:
            return len(data)
        crash_point()
        try:
            return super().write(data)
        except BrokenPipeError:  # nobody reads it: an ending of its own (128 + SIGPIPE)
            raise
        except OSError as fault:
            raise write_error(self.shown, fault) from None


def _temporary(target: Path) -> Path:
    # Not built from the target's name: that may have the 255 bytes that a name may have.
    return target.parent / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(6)}{_SUFFIX}"


def _sync(path: str | Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    # Some systems and file systems cannot open or sync a folder; then the rename is all there is.
    crash_point()
    with suppress(OSError):
        _sync(folder)


def _mark(descriptor: int) -> None:
    """Mark a temporary file or folder as being written, for as long as this process lives."""
    with suppress(OSError):
        flock(descriptor)


def _unlocked(path: Path) -> bool:
    descriptor = None
    try:
        descriptor = os.open(path, os.O_RDONLY)
        return flock(descriptor)
    except OSError:
        return False
    finally:
        if descriptor is not None:
            os.close(descriptor)
