"""Where genodiff keeps what it can make again, and locks for those who make it."""

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from platformdirs import user_cache_path

from genodiff.io.atomic import write_error
from genodiff.io.file_lock import hold_file


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
    with ExitStack() as held:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(hold_file(f"{folder}.lock", work))
        except OSError as fault:
            # Where nobody may write, nobody is writing what is there already.
            if fault.errno not in (errno.EACCES, errno.EPERM, errno.EROFS) or not folder.exists():
                raise write_error(folder, fault) from None
        yield
