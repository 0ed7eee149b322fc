"""Files that are to be written: whether they can be, before any work is done for them.

No file is replaced that genodiff did not write. A file is genodiff's own where one of these holds:

- beside it lies a sidecar, PATH.json, that names genodiff and gives the file's size and sha256;
- it is a page whose last line names genodiff and gives the sha256 of all above it (`seal_page`);
- it is a JSON object with the version under "genodiff", as sidecars are.

Every other file is foreign, and so is our own after an edit. `--force` replaces it. An input is
never replaced, under any name. A folder that is made as a whole is never replaced, either: with
`--force` the old one gets another name.

What genodiff can make again lies in its cache (`cache_dir`), under locks for those who make it.
"""

import errno
import hashlib
import json
import logging
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path, user_config_path

from genodiff.errors import MachineError, UsageError
from genodiff.io.file_kinds import encode_text, find_elsewhere, sha256_file
from genodiff.io.file_lock import hold_file

STREAMS = ("/dev/std", "/dev/fd", "/proc/")
_SEAL = "\n<!-- genodiff wrote this page; sha256 of all above: {} -->\n"
_SEAL_LINE = re.compile(
    rb"\n<!-- genodiff wrote this page; sha256 of all above: ([0-9a-f]{64}) -->\n\Z"
)
_SEAL_SIZE = len(_SEAL.format("0" * 64))
_LARGEST_SIDECAR = 1 << 32
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def check_target(
    path: str | Path,
    *,
    force: bool = False,
    inputs: Iterable[str | Path | None] = (),
    known: Callable[[Path], bool] | None = None,
) -> None:
    """Raises where `path` must not or cannot become a file; "-" is stdout, which can.

    `UsageError` where it is one of `inputs`, under any name, or without `force` a foreign file;
    `MachineError` where it cannot be written. `known` may recognise further files as our own.
    """
    path = str(path)
    if path == "-":
        return
    refuse_elsewhere(path)
    _refuse_inputs(path, inputs)
    mode = _check_writable(path)
    if mode is None or force or is_stream(path) or is_own_file(path):
        return
    if known is None or not known(Path(path)):
        what = "is there already, and genodiff did not write it (or it was changed since)"
        raise UsageError(what, file=path, fix="give another name, or --force to replace it")


def refuse_elsewhere(path: str | Path) -> None:
    """Raises `UsageError` for a URL and whatever else names no file of this machine."""
    if elsewhere := find_elsewhere(path):
        what = f"is {elsewhere[0]}: nothing is written there"
        raise UsageError(what, file=path, fix=elsewhere[1])


def _refuse_inputs(path: str, inputs: Iterable[str | Path | None]) -> None:
    """Raises `UsageError` where `path` is one of `inputs`, under any name."""
    for source in inputs:
        if source is not None and str(source) != "-" and _same_file(path, str(source)):
            other = f" ({source})" if str(source) != path else ""
            what = f"is read and cannot be written as well{other}"
            raise UsageError(what, file=path, fix="give another name for the output")


def check_new_folder(
    path: str | Path, *, force: bool = False, inputs: Iterable[str | Path | None] = ()
) -> None:
    """Raises where `path` must not or cannot become a folder that is made as a whole.

    `UsageError` where it is one of `inputs`, and where something is there already, other than an
    empty folder, and not `force`; `MachineError` where it cannot be made.
    """
    refuse_elsewhere(path)
    target = Path(path)
    _refuse_inputs(str(path), inputs)
    if os.path.lexists(target) and not force and not _is_empty_folder(target):
        fix = "give another name, or --force to rename the old one"
        raise UsageError("exists already", file=path, fix=fix)
    _check_parent(str(path))


def set_aside(path: str | Path) -> Path | None:
    """Rename what stands at `path` to `path`.1, .2 and so on; returns its new name, if any."""
    target = Path(path)
    if not os.path.lexists(target) or _is_empty_folder(target):
        return None
    names = (Path(f"{target}.{number}") for number in count(1))
    aside = next(name for name in names if not os.path.lexists(name))
    try:
        target.rename(aside)
    except OSError as fault:
        what = f"cannot be renamed to {aside.name}: {fault.strerror}"
        raise MachineError(what, file=path, fix="rename it") from None
    return aside


def check_folder(folder: str | Path, names: Iterable[str], *, own: bool, force: bool) -> None:
    """Raises `UsageError` where a folder holds foreign files with the `names` that are to be
    written into it. `own` says that the folder is one of ours, which may hold them.
    """
    refuse_elsewhere(folder)
    if own or force:
        return
    for name in names:
        if os.path.lexists(Path(folder) / name):
            what = "is there already, and the folder is none that genodiff made"
            fix = "give another --out, or --force to replace it"
            raise UsageError(what, file=Path(folder) / name, fix=fix)


def is_stream(path: str | Path) -> bool:
    """Whether `path` is stdout, a pipe or a device, which has no sidecar."""
    if str(path) == "-" or str(path).startswith(STREAMS):
        return True
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def is_own_file(path: str | Path, sidecar: str | Path | None = None) -> bool:
    """Whether genodiff wrote these very bytes, as its sidecar, its seal or its version says."""
    is_sidecar = isinstance(read_json_object(path).get("genodiff"), str)
    return is_sidecar or _fits_sidecar(path, sidecar or f"{path}.json") or _has_seal(path)


def is_own_folder(folder: str | Path, sidecar: str) -> bool:
    """Whether a folder has the files that its `sidecar` tells of, unchanged, and no other."""
    told = read_json_object(Path(folder) / sidecar)
    files = told.get("files")
    if not isinstance(told.get("genodiff"), str) or not isinstance(files, dict):
        return False
    paths = (os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)
    if {os.path.relpath(path, folder) for path in paths} != {*files, sidecar}:
        return False
    return all(describe_file(Path(folder) / name) == said for name, said in files.items())


def read_json_object(path: str | Path) -> dict[str, Any]:
    """The JSON object in a file; empty where there is none."""
    try:
        with open(path, "rb") as file:
            if file.read(1) != b"{" or os.fstat(file.fileno()).st_size > _LARGEST_SIDECAR:
                return {}
            file.seek(0)
            found = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def describe_file(path: str | Path) -> dict[str, Any]:
    """What a sidecar says of the file beside it, under "file": its size and sha256."""
    return {"bytes": os.stat(path).st_size, "sha256": sha256_file(path)}


def seal_page(text: str) -> str:
    """A page (HTML, Markdown) with a last line that names genodiff and the sha256 of `text`."""
    return text + _SEAL.format(hashlib.sha256(encode_text(text)).hexdigest())


def free_disk_space(path: str) -> int:
    """Free bytes on the disk that `path` is on, or will be."""
    return shutil.disk_usage(find_existing(Path(path).resolve().parent)).free


def find_existing(folder: Path) -> Path:
    """The folder, or the nearest above it that there is."""
    return folder if folder.exists() or folder == folder.parent else find_existing(folder.parent)


def write_error(path: str | Path, fault: OSError) -> MachineError:
    """The `MachineError` of a failed write: the reason, free bytes where they matter, a remedy."""
    reason = "Not a directory" if fault.errno == errno.EEXIST else fault.strerror or str(fault)
    what = f"cannot be written: {reason}"
    if fault.errno in NO_ROOM:
        with suppress(OSError):
            what += f" ({shutil.disk_usage(find_existing(Path(path).parent)).free:,} bytes free)"
        fix = "free some disk space (or quota), or write to another folder"
        return MachineError(what, file=path, fix=fix)
    fix = "choose a path that you may write to"
    cache = os.environ.get("GENODIFF_CACHE")
    if cache and Path(path).is_relative_to(Path(cache).expanduser()):
        fix = "set GENODIFF_CACHE to a folder that you may write to"
    return MachineError(what, file=path, fix=fix)


def format_size(n: float) -> str:
    """So many bytes as a person reads them: 512 B, 3 kB, 12 GB."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if n < 1000:
            return f"{n:,.0f} {unit}"
        n /= 1000
    return f"{n:,.0f} PB"


def _check_writable(path: str) -> int | None:
    """The mode of the file at `path`, None where there is none. Raises `MachineError`."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    except OSError as fault:
        fix = "choose another path"
        raise MachineError(f"cannot be written: {fault.strerror}", file=path, fix=fix) from None
    if mode is not None and stat.S_ISDIR(mode):
        raise MachineError("is a directory, not a file", file=path, fix="give the name of a file")
    is_device = mode is not None and (stat.S_ISCHR(mode) or stat.S_ISBLK(mode))
    if is_device and not path.startswith(("/dev/std", "/dev/fd")):
        what = "is a device: a file cannot be written there"
        raise MachineError(what, file=path, fix="give a file, or - for stdout")
    if mode is None or stat.S_ISREG(mode):
        _check_parent(path)
    elif not os.access(path, os.W_OK):
        raise _denied(path)
    return mode


def _check_parent(path: str) -> None:
    folder = find_existing(Path(path).parent)
    if not folder.is_dir():
        fix = "choose another path"
        raise MachineError(f"cannot be written: {folder} is not a directory", file=path, fix=fix)
    if not os.access(folder, os.W_OK):
        raise _denied(path)


def _denied(path: str) -> MachineError:
    fix = "choose a path that you may write to"
    return MachineError("cannot be written: permission denied", file=path, fix=fix)


def _same_file(one: str, other: str) -> bool:
    """Whether two names are one file, also through links; of files that are not there, by name."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and not any(path.iterdir())


def _fits_sidecar(path: str | Path, sidecar: str | Path) -> bool:
    told = read_json_object(sidecar)
    said = told.get("file")
    if not isinstance(told.get("genodiff"), str) or not isinstance(said, dict):
        return False
    with suppress(OSError):
        same_size = os.stat(path).st_size == said.get("bytes")
        return same_size and sha256_file(path) == said.get("sha256")
    return False


def _has_seal(path: str | Path) -> bool:
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _SEAL_SIZE))
            found = _SEAL_LINE.search(file.read())
            if found is None:
                return False
            file.seek(0)
            text = file.read(size - _SEAL_SIZE)
    except OSError:
        return False
    return hashlib.sha256(text).hexdigest().encode() == found[1]


def is_genbank(path: str | Path) -> bool:
    """Whether a file of that name is written as GenBank.

    >>> is_genbank("designs.gb"), is_genbank("designs.fa.gz")
    (True, False)
    """
    return str(path).lower().endswith((".gb", ".gbk", ".genbank"))


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
