"""What lies in the cache folder: each thing, its size, its last use, and how it goes.

Only what genodiff names so is taken for its own; whatever else lies there is left alone. Links are
not followed. A thing is removed under the locks of those who make it.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from genodiff.io.atomic import is_leftover, remove
from genodiff.io.file_lock import HELD, FileLock, describe

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
    inside = thing.kind in ("downloads", "remote")
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
