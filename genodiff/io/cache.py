"""Where genodiff keeps what it can make again, and locks for those who make it."""

import io
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray
from platformdirs import user_cache_path

from genodiff.errors import MachineError
from genodiff.io.atomic import write_bytes, write_error
from genodiff.io.identity import sha256_json

log = logging.getLogger("genodiff")


def cache_dir() -> Path:
    """The cache folder: `$GENODIFF_CACHE`, else the user's cache folder of this system.

    It is not created here; The functions of `atomic` create it when they write.
    """
    chosen = os.environ.get("GENODIFF_CACHE")
    return Path(chosen).expanduser() if chosen else user_cache_path("genodiff")


def keep_array(
    kind: str, made_from: Any, shape: tuple[int, ...], make: Callable[[], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """The float64 array of `shape` that `make` gives, kept in the cache and read there again.

    `made_from` is all that decides it, as values of JSON; `kind` is the folder in the cache.
    """
    path = _find_array(kind, made_from)
    try:
        kept = np.load(path, allow_pickle=False)
        if kept.shape == shape and kept.dtype == np.float64:
            return np.asarray(kept)
    except (OSError, ValueError, EOFError):
        pass
    found = make()
    buffer = io.BytesIO()
    np.save(buffer, found)
    try:
        write_bytes(path, buffer.getvalue())
    except MachineError as fault:
        log.warning("%s; it will be counted again", fault)
    return found


def is_kept(kind: str, made_from: Any) -> bool:
    """Whether `keep_array` has an array that it need not make again."""
    return _find_array(kind, made_from).exists()


def _find_array(kind: str, made_from: Any) -> Path:
    return cache_dir() / kind / f"{sha256_json(made_from, compact=True)[:32]}.npy"


@contextmanager
def lock_folder(folder: Path, work: str) -> Iterator[None]:
    """Hold the lock of `folder`, waiting for another process that does the same `work`.

    Raises `MachineError` where no lock can be made.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(f"{folder}.lock", poll_interval=0.01)
        try:
            lock.acquire(timeout=1)
        except Timeout:
            log.info("waiting for another process that %s", work)
            lock.acquire()
    except OSError as fault:
        raise write_error(folder, fault) from None
    except NotImplementedError:
        raise MachineError(
            "cannot be locked on this file system", file=folder, fix="set GENODIFF_CACHE"
        ) from None
    try:
        yield
    finally:
        lock.release()
