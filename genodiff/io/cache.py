"""Where genodiff keeps what it can make again, and locks for those who make it.

What lies in the cache folder: each thing, its size, its last use, and how it goes.

Only what genodiff names so is taken for its own; whatever else lies there is left alone. Links are
not followed. A thing is removed under the locks of those who make it.
"""

import errno
import logging
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from platformdirs import user_cache_path, user_config_path

from genodiff.errors import MachineError
from genodiff.io.atomic import is_leftover, remove, write_error
from genodiff.io.file_lock import HELD, FileLock, describe, hold_file

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
    try:
        while not there.exists() and there != there.parent:
            there = there.parent
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


_KEY = "[0-9a-f]{32}"
_TEMPORARY = r"\.genodiff-\d+-[0-9a-f]+\.tmp"
_LOCK = re.compile(rf"(.+)\.lock({re.escape(HELD)})?")
_FOLDER = re.compile(r"([a-z]+?)(-\d+)?")  # lines-1 is of the kind lines
_PART = re.compile(r"(train|test)(\..+)?")
_TASKS, _LOCKS, _LEFTOVERS = "tasks", "locks", "leftovers"


class CacheKind(NamedTuple):
    """A kind of things in the cache, which lie in the folder of its name."""

    name: str
    """The regular expression that the names of its things match."""
    about: str


KINDS = {
    "stores": CacheKind(_KEY, "genomes and texts, as training reads them"),
    "genomes": CacheKind(_KEY, "indexes of FASTA files, and collections of genomes"),
    "memories": CacheKind(_KEY, "memories of training genomes and of relatives"),
    "relatives": CacheKind(rf"{_KEY}\.json", "numbers of relatives, and how near they are"),
    "hashes": CacheKind(rf"{_KEY}\.json", "hashes of relatives' files"),
    "downloads": CacheKind("[0-9a-f]{12}", "fetched files"),
    "remote": CacheKind(_KEY, "copies of genomes that a URL names"),
    _TASKS: CacheKind(r"[^.].*", "data of suites of tasks"),
    "markov": CacheKind(rf"{_KEY}-(legacy-)?order\d+\.npy", "counted words of a train split"),
    "lines": CacheKind(rf"{_KEY}\.npy", "counted lines that eval compares with"),
    "seen": CacheKind(rf"{_KEY}\.npy", "which bases pretraining saw"),
    "contamination": CacheKind(rf"{_KEY}\.npy", "which test sequences pretraining saw"),
    "backgrounds": CacheKind(rf"{_KEY}\.json", "scores of random variants"),
    "spacings": CacheKind(rf"{_KEY}\.json", "distances at which bases depend on each other"),
    "matplotlib": CacheKind(r"fontlist-v\d+\.json", "matplotlib's list of fonts"),
    _LOCKS: CacheKind("[0-9a-f]{16}", "locks of what is not there"),
    _LEFTOVERS: CacheKind(_TEMPORARY, "what killed processes left"),
}


class CachedThing(NamedTuple):
    """A file or folder of the cache, with the locks beside it."""

    kind: str
    path: Path
    """Where it lies; of the kind "locks", where it would."""
    size: int
    """Bytes of its files and its locks."""
    used: float
    """When it was last read, written or locked, in seconds since 1970."""


def list_cached(folder: Path) -> tuple[list[CachedThing], list[Path]]:
    """The things of genodiff in the cache `folder`, and whatever else lies there."""
    things, foreign = [], []
    for home in _list_folder(folder):
        kind = _find_kind(home)
        if not kind:
            foreign.append(home)
            continue
        suites = [one for one in _list_folder(home) if kind == _TASKS and _is_folder(one)]
        for one in (home, *suites):
            for path in sorted({_drop_lock(path) for path in _list_folder(one)} - {*suites}):
                found = _describe(kind, path)
                if found is None:
                    foreign.append(path)
                else:
                    things.append(found)
    return things, foreign


def measure_cached(folder: Path) -> int:
    """The bytes of all files below `folder`, whoever wrote them."""
    return sum(found.st_size for _, found in _walk(folder))


def find_open(folder: Path) -> dict[Path, int]:
    """The files below `folder` that processes of this machine hold open or mapped, with a pid each.

    Empty where the system does not tell. Processes of other users may stay unseen.
    """
    root, found = os.fsencode(os.path.realpath(folder)) + b"/", {}
    for process in Path("/proc").glob("[0-9]*"):
        names: list[bytes] = []
        with suppress(OSError):
            names += re.findall(rb" (/.+)$", (process / "maps").read_bytes(), re.M)
        with suppress(OSError):
            for one in (process / "fd").iterdir():
                with suppress(OSError):
                    names.append(os.fsencode(os.readlink(one)))
        for name in names:
            if name.startswith(root):
                found[folder / os.fsdecode(name[len(root) :])] = int(process.name)
    return found


def find_use(thing: CachedThing, opened: dict[Path, int]) -> str:
    """Who uses a thing now, in words; empty for nobody. `opened` is of `find_open`."""
    if thing.kind == _LEFTOVERS:
        return "" if is_leftover(thing.path) else "it is being written"
    for path, pid in opened.items():
        if path == thing.path or thing.path in path.parents:
            return f"pid {pid} has it open"
    for lock in _find_locks(thing):
        try:
            if lock.is_taken():
                return f"held by {describe(lock.holder())}"
        except OSError as fault:
            return f"its lock cannot be read: {fault.strerror}"
    return ""


def remove_cached(thing: CachedThing, opened: dict[Path, int]) -> str:
    """Remove a thing with its locks; why it stays, or an empty string where it is gone."""
    use = find_use(thing, opened)
    if use:
        return use
    locks = _find_locks(thing)
    try:
        with ExitStack() as held:
            for lock in locks:
                held.callback(lock.release)
                if not lock.take():
                    return f"held by {describe(lock.holder())}"
            if thing.kind != _LOCKS:
                remove(thing.path)
            for lock in locks:
                lock.path.unlink(missing_ok=True)
    except FileNotFoundError:
        return "" if not os.path.lexists(thing.path) else "it is changing"
    except OSError as fault:
        return f"cannot be removed: {fault.strerror}"
    return ""


def remove_empty(folder: Path) -> None:
    """Remove the kinds' folders that hold nothing any more, and the cache folder then."""
    ours = [home for home in _list_folder(folder) if _find_kind(home)]
    suites = [one for home in ours if home.name == _TASKS for one in _list_folder(home)]
    for one in (*suites, *ours, folder):
        with suppress(OSError):
            one.rmdir()


def _find_kind(home: Path) -> str:
    """The kind of what lies in a folder of the cache; empty for a foreign one, and for a link."""
    name = _FOLDER.fullmatch(home.name)
    return name[1] if name and name[1] in KINDS and _is_folder(home) else ""


def _drop_lock(path: Path) -> Path:
    lock = _LOCK.fullmatch(path.name)
    return path.with_name(lock[1]) if lock else path


def _describe(kind: str, path: Path) -> CachedThing | None:
    """The thing at `path`, without its locks' endings; None where it is not genodiff's."""
    beside = [Path(f"{path}.lock"), Path(f"{path}.lock{HELD}")]
    there = os.path.lexists(path)
    if re.fullmatch(_TEMPORARY, path.name):
        kind = _LEFTOVERS
    elif not re.fullmatch(KINDS[kind].name, path.name) or path.is_symlink():
        return None
    elif not there:
        kind = _LOCKS
    elif kind == _LOCKS or (kind == _TASKS and not _is_task(path)):
        return None
    elif kind == "downloads" and all(_LOCK.fullmatch(file.name) for file, _ in _walk(path)):
        kind = _LOCKS  # the fetch failed
    files = [s for one in (path, *beside) for _, s in _walk(one)]
    used = max((max(s.st_atime, s.st_mtime) for s in files), default=0.0)
    if not files:  # an empty folder
        with suppress(OSError):
            used = path.lstat().st_mtime
    return CachedThing(kind, path, sum(s.st_size for s in files), used)


def _is_task(path: Path) -> bool:
    inside = _list_folder(path) if _is_folder(path) else []
    return bool(inside) and all(_PART.fullmatch(one.name) for one in inside)


def _find_locks(thing: CachedThing) -> list[FileLock]:
    """The lock of a thing, and of the files of what is fetched."""
    if thing.kind == _LEFTOVERS:
        return []
    inside = thing.path.parent.name in ("downloads", "remote")
    below = sorted(one for one, _ in _walk(thing.path) if one.suffix == ".lock") if inside else []
    return [FileLock(f"{thing.path}.lock"), *map(FileLock, below)]


def _list_folder(folder: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(folder.iterdir())
    return []


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _walk(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The regular files at or below `path`, without following links."""
    with suppress(OSError):
        found = path.lstat()
        if stat.S_ISREG(found.st_mode):
            yield path, found
        elif stat.S_ISDIR(found.st_mode):
            for one in _list_folder(path):
                yield from _walk(one)
