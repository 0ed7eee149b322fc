"""Where genodiff keeps what it can make again, and locks for those who make it."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from genodiff.errors import MachineError
from genodiff.io.atomic import write_error

log = logging.getLogger("genodiff")


def cache_dir() -> Path:
    """The cache folder: `$GENODIFF_CACHE`, else the user's cache folder of this system.

    It is not created here; The functions of `atomic` create it when they write.
    """
    chosen = os.environ.get("GENODIFF_CACHE")
    return Path(chosen).expanduser() if chosen else user_cache_path("genodiff")


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
