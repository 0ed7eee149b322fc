"""Where genodiff keeps what it can make again, and locks for those who make it."""

import errno
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from platformdirs import user_cache_path, user_config_path

from genodiff.errors import MachineError
from genodiff.io.atomic import write_error
from genodiff.io.file_lock import hold_file
from genodiff.io.target import find_existing

log = logging.getLogger("genodiff")
_told: set[Path] = set()


def cache_dir() -> Path:
    """The cache folder: `$GENODIFF_CACHE`, else the user's cache folder of this system.

    Where the home of this user cannot be written, or there is none, it is a folder of this user's
    own among the temporary files, and a line says so once. Raises `MachineError` where that folder
    is another's.
    """
    chosen = os.environ.get("GENODIFF_CACHE")
    usual = user_cache_path("genodiff")
    if chosen or can_be_written(usual):
        return Path(chosen).expanduser() if chosen else usual
    folder = _find_temporary()
    if folder not in _told:
        _told.add(folder)
        log.warning("%s cannot be written: cached in %s; GENODIFF_CACHE sets it", usual, folder)
    return folder


def can_be_written(path: Path) -> bool:
    """Whether this user may make or fill the folder `path`."""
    try:
        there = find_existing(path)
        return path.is_absolute() and there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    except PermissionError:  # a folder above it may not be entered
        return False


def place_library_caches() -> None:
    """Give matplotlib a folder for what it keeps, where it would complain that it has none."""
    own = (user_config_path("matplotlib"), user_cache_path("matplotlib"))
    if "MPLCONFIGDIR" not in os.environ and not all(map(can_be_written, own)):
        with suppress(MachineError):
            chosen = os.environ.get("GENODIFF_CACHE")
            home = Path(chosen).expanduser() if chosen else _find_temporary()
            os.environ["MPLCONFIGDIR"] = str(home / "matplotlib")


def _find_temporary() -> Path:
    user = os.getuid() if hasattr(os, "getuid") else 0  # Windows: all own all, to Python
    folder = Path(tempfile.gettempdir()) / f"genodiff-{user}"
    with suppress(OSError):
        folder.mkdir(mode=0o700)
    if folder.is_symlink() or not folder.is_dir() or folder.stat().st_uid != user:
        fix = "set GENODIFF_CACHE to a folder of your own"
        raise MachineError("is not yours, and your home cannot be written", file=folder, fix=fix)
    return folder


@contextmanager
def lock_folder(folder: Path, work: str) -> Iterator[None]:
    """Hold the lock of `folder`, as `hold_file`. Raises `MachineError` where none can be made."""
    with ExitStack() as held:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(hold_file(f"{folder}.lock", work))
        except OSError as fault:
            # Where nobody may write, nobody is writing what is there already.
            if fault.errno not in (errno.EACCES, errno.EPERM, errno.EROFS) or not folder.exists():
                raise write_error(folder, fault) from None
        yield
