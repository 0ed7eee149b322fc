"""Where genodiff keeps what it can make again, and locks for those who make it."""

from __future__ import annotations

import errno
import io
import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from platformdirs import user_cache_path, user_config_path

from genodiff.errors import MachineError
from genodiff.io.atomic import write_bytes, write_error
from genodiff.io.file_lock import hold_file
from genodiff.io.identity import sha256_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

log = logging.getLogger("genodiff")
_told: set[Path] = set()


def cache_dir() -> Path:
    """The cache folder: `$GENODIFF_CACHE`, else the user's cache folder of this system.

    Where the home of this user cannot be written, or there is none, it is a folder of this user's
    own among the temporary files, and a line says so once. It is not created here, but by the
    functions of `atomic` when they write. Raises `MachineError` where that folder is another's.
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
    there = path
    while not there.exists() and there != there.parent:
        there = there.parent
    return path.is_absolute() and there.is_dir() and os.access(there, os.W_OK | os.X_OK)


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


def keep_array(
    kind: str, made_from: Any, shape: tuple[int, ...], make: Callable[[], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """The float64 array of `shape` that `make` gives, kept in the cache and read there again.

    `made_from` is all that decides it, as values of JSON; `kind` is the folder in the cache.
    """
    import numpy as np

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
    with ExitStack() as held:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(hold_file(f"{folder}.lock", work))
        except OSError as fault:
            # Where nobody may write, nobody is writing what is there already.
            if fault.errno not in (errno.EACCES, errno.EPERM, errno.EROFS) or not folder.exists():
                raise write_error(folder, fault) from None
        yield
