"""Many genomes, open for reading as one store: their contigs one after another, each genome mapped
from its own file when it is first read.

The contigs are called GENOME/CONTIG.

A folder of built genomes may be elsewhere: in object storage (s3://, gs://, az://, hf://, ...)
through fsspec, or on a web server through https. Its files come into the cache folder when they are
first read, and are believed when their sha256 is that of the manifest. The manifest is read anew
with each run, unless it is offline.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import fsspec  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import SOFT
from genodiff.data import fetch
from genodiff.data.dna_windows import DnaWindows
from genodiff.data.genomes.collection import (
    SPLITS_FILE,
    build_collection,
    find_manifest,
    read_splits,
    require_manifest,
)
from genodiff.data.genomes.listing import read_genome_list
from genodiff.data.recipe import SPLITS
from genodiff.data.splits import Intervals, Splits
from genodiff.data.store import MANIFEST, Store, StoreSource
from genodiff.data.windows import Ints
from genodiff.errors import DataError
from genodiff.io import atomic
from genodiff.io.file_kinds import sha256_file, sha256_json
from genodiff.io.file_lock import hold_file
from genodiff.io.target import cache_dir

_REFUSED = ("http", "ftp", "ftps")
_CHUNK = 1 << 22


def is_remote(where: str) -> bool:
    """Whether this names a folder by a URL."""
    return "://" in where


@dataclass(frozen=True)
class RemoteFolder:
    """A folder at a URL; its files are cached when needed (`offline`: read from the cache only)."""

    url: str
    offline: bool = False

    @property
    def local(self) -> Path:
        """The folder in the cache that its files are copied to."""
        name = hashlib.sha256(self.url.rstrip("/").encode()).hexdigest()[:32]
        return cache_dir() / "remote" / name

    def read_manifest(self) -> dict[str, Any]:
        """The manifest: as it is now, or offline as it was last. Raises `DataError`."""
        path = self.local / MANIFEST
        if not self.offline:
            self._fetch(MANIFEST, path, None)
        elif not path.is_file():
            raise self._refuse_offline(MANIFEST)
        return require_manifest(self.local, self.url)

    def fetch(self, name: str, digest: str) -> Path:
        """The local copy of a file, made where it is not there. Raises `DataError`."""
        path = self.local / name
        if not path.resolve().is_relative_to(self.local.resolve()):
            fix = "do not use it"
            raise DataError(f"names a file outside of it ({name})", file=self.url, fix=fix)
        if self.offline and not path.is_file():
            raise self._refuse_offline(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with hold_file(f"{path}.lock", "fetches the same file"):
            checked = path.with_name(f"{path.name}.sha256")
            if path.is_file() and checked.is_file() and checked.read_text() == _stamp(path, digest):
                return path
            if self.offline:
                raise self._refuse_offline(name)
            self._fetch(name, path, digest)
            atomic.write_text(checked, _stamp(path, digest))
        return path

    def _fetch(self, name: str, path: Path, digest: str | None) -> None:
        """Copy a file to `path`, where it appears when it is whole, and has this sha256."""
        try:
            fetch.bring(partial(self._copy, name), path, digest)
        except DataError as fault:
            fix = "check the address and the connection"
            raise DataError(f"{name} {fault.what}", file=self.url, fix=fix) from None

    def _copy(self, name: str, part: Path) -> None:
        scheme, where = urlsplit(self.url).scheme, f"{self.url.rstrip('/')}/{name}"
        if scheme in _REFUSED:
            what = f"{scheme}:// is not safe on its way: give https:// or object storage"
            raise DataError(f"could not be fetched ({what})")
        if scheme == "https":
            fetch.copy_https(where, part)
            return
        with fsspec.open(where, "rb") as source, open(part, "wb") as out:
            shutil.copyfileobj(source, out, _CHUNK)

    def _refuse_offline(self, name: str) -> DataError:
        what = f"{name} is not in the cache, and --offline forbids fetching it"
        return DataError(what, file=self.url, fix="go online once")


def _stamp(path: Path, digest: str) -> str:
    """What stands beside a copy that had this sha256, for as long as nobody changes it."""
    found = os.stat(path)
    return f"{digest} {found.st_size} {found.st_mtime_ns}"


try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

OpenFile = Callable[[str, str], Path]
"""(path in the folder, its sha256) -> a file of this machine that holds it."""


class JoinedIds:
    """The ids of all genomes as one array, of which slices and rows can be read.

    A slice within one genome is mapped, one over several is copied.
    """

    dtype = np.dtype(np.uint8)

    def __init__(self, offsets: Ints, open_genome: Callable[[int], NDArray[np.uint8]]) -> None:
        """`offsets` (genomes + 1): where each genome begins; `open_genome` maps one."""
        self.offsets, self._open = offsets, open_genome
        self._maps: dict[int, NDArray[np.uint8]] = {}

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def part(self, genome: int) -> NDArray[np.uint8]:
        """The ids of one genome."""
        if genome not in self._maps:
            self._maps[genome] = self._open(genome)
        return self._maps[genome]

    def find_genome(self, position: Any) -> NDArray[np.int64]:
        """The number of the genome that each flat position is of."""
        found: NDArray[np.int64] = np.searchsorted(self.offsets, position, "right") - 1
        return found

    def __getitem__(self, key: Any) -> NDArray[np.uint8]:
        if not isinstance(key, slice):
            return self._take(np.asarray(key))
        start, stop, step = key.indices(len(self))
        if start >= stop:
            return np.zeros(0, np.uint8)
        first, last = (int(self.find_genome(at)) for at in (start, stop - 1))
        begun = [(g, int(self.offsets[g])) for g in range(first, last + 1)]
        parts = [self.part(g)[max(0, start - at) : stop - at] for g, at in begun]
        return (parts[0] if len(parts) == 1 else np.concatenate(parts))[::step]

    def _take(self, at: NDArray[np.int64]) -> NDArray[np.uint8]:
        out = np.empty(at.shape, np.uint8)
        genome = self.find_genome(at)
        for g in np.unique(genome):
            mine = genome == g
            out[mine] = self.part(int(g))[at[mine] - self.offsets[g]]
        return out


class GenomesStore(Store):
    """A collection of genomes, open for reading; picklable."""

    ids_file = "genome.ids"

    def __init__(
        self, path: Path, manifest: dict[str, Any], rows: list[Any], where: str, open_file: OpenFile
    ) -> None:
        """`rows` are the intervals of train, valid and test; `where` is what a user named."""
        self.genomes: list[dict[str, Any]] = manifest["genomes"]
        self.genome_names = tuple(g["name"] for g in self.genomes)
        contigs = {f"{g['name']}/{c}": n for g in self.genomes for c, n in g["contigs"]}
        bases = sum(g["bases"] for g in self.genomes)
        source = StoreSource(where, bases, manifest["key"])
        super().__init__(path, source, manifest, contigs, sha256_json({"genomes": 1}, compact=True))
        sizes = [len(g["contigs"]) for g in self.genomes]
        self.genome_of_contig: Ints = np.repeat(np.arange(len(self.genomes)), sizes)
        ends = np.cumsum([g["bases"] for g in self.genomes])
        self.genome_offsets: Ints = np.concatenate(([0], ends)).astype(np.int64)
        named = zip(SPLITS, rows, strict=True)
        self.splits = Splits({s: Intervals.of(part) for s, part in named}, ())
        self._open_file = open_file
        allow_open_files(len(self.genomes))

    @cached_property
    def flat(self) -> Any:
        """All ids as `JoinedIds`."""
        return JoinedIds(self.genome_offsets, self.map_genome)

    def map_genome(self, number: int) -> NDArray[np.uint8]:
        """The ids of a genome, mapped from its file. Raises `DataError` where it is damaged."""
        genome = self.genomes[number]
        name = f"{genome['name']}/{self.ids_file}"
        path = self._open_file(name, genome["files"][self.ids_file])
        if path.stat().st_size != genome["bases"]:
            fix = "build the genomes again"
            raise DataError(f"does not have {genome['bases']:,} bytes", file=path, fix=fix)
        return np.memmap(path, np.uint8, "r")

    def read_ids(self, start: int, end: int) -> NDArray[np.int64]:
        """See `Store.read_ids`: without the soft mask."""
        return super().read_ids(start, end) & ~SOFT

    @cached_property
    def n_runs(self) -> Ints:  # type: ignore[override]
        """See `Store.n_runs`."""
        runs = [np.zeros((0, 2), np.int64)]
        for genome, offset in zip(self.genomes, self.genome_offsets[:-1], strict=True):
            if genome["n_runs"]:
                digest = genome["files"]["n_runs.npy"]
                path = self._open_file(f"{genome['name']}/n_runs.npy", digest)
                runs.append(np.load(path, allow_pickle=False) + offset)
        return np.concatenate(runs)

    def verify(self) -> None:
        """Read all genomes and compare their sha256 with the manifest's. Raises `DataError`."""
        for genome in self.genomes:
            for file, digest in genome["files"].items():
                path = self._open_file(f"{genome['name']}/{file}", digest)
                if sha256_file(path) != digest:
                    fix = "remove the genome's folder; it is built again"
                    raise DataError("is not what was built", file=path, fix=fix)

    def species_of_contigs(self) -> dict[str, str]:
        """The species of each contig, of genomes that have one."""
        named = [g for g in self.genomes if g["species"]]
        return {f"{g['name']}/{c}": g["species"] for g in named for c, _ in g["contigs"]}

    def species_digest(self) -> str:
        """sha256 (hex) of the genomes' species, as `read_species` gives it."""
        return _digest_species({g["name"]: g["species"] for g in self.genomes})

    def _describe_change(self, remembered: dict[str, Any]) -> DataError:
        what = "the genomes, their weights or splits have changed since the run started"
        fix = "give the same list, or start a new run with another --out"
        return DataError(what, file=self.source.path, fix=fix)


class GenomesWindows(DnaWindows):
    """All windows of one split of many genomes."""

    store: GenomesStore

    def genome_ranks(self, phase: int) -> Ints:
        """(genomes + 1): the rank of the first window of each genome, at a phase."""
        tiling = self.tiling(phase)
        interval = np.searchsorted(tiling.start, self.store.genome_offsets)
        return tiling.count_before(tiling.first[interval])

    @property
    def genome_index(self) -> Ints:
        """The number of each evaluation window's genome."""
        return self.store.genome_of_contig[self.contig_index]

    def gather(self, flat_start: Ints, length: Ints, pad: int) -> NDArray[Any]:
        """See `Windows.gather`: rows of each genome are read from its own file."""
        flat: JoinedIds = self.store.flat
        out = np.full((len(flat_start), self.seq_len), pad, np.uint8)
        genome = flat.find_genome(flat_start)
        start = flat_start - flat.offsets[genome]
        rows = zip(out, genome.tolist(), start.tolist(), length.tolist(), strict=True)
        for row, g, a, n in rows:
            row[:n] = flat.part(g)[a : a + n]
        return out


def open_genomes(
    where: str | Path,
    *,
    jobs: int = 1,
    offline: bool = False,
    remembered: dict[str, Any] | None = None,
) -> GenomesStore:
    """The genomes of a list, of a folder that was built of one, or of such a folder elsewhere.

    What a list names is built in the cache folder, where it is not there. With the `identity` that
    a run remembers, what was built then is used as it is. Raises `DataError`, `MachineError`.
    """
    name = str(where)
    if is_remote(name):
        remote = RemoteFolder(name, offline)
        manifest = remote.read_manifest()
        remote.fetch(SPLITS_FILE, manifest["splits"])
        rows = read_splits(remote.local, manifest)
        return GenomesStore(remote.local, manifest, rows, name, remote.fetch)
    folder = Path(name)
    if not folder.is_dir():
        folder = find_built_folder(name)
        known = find_manifest(folder)
        if known is None or remembered is None or known["key"] != remembered.get("source_sha256"):
            build_collection(read_genome_list(name), folder, jobs=jobs, offline=offline)
    manifest = require_manifest(folder, folder)
    rows = read_splits(folder, manifest)
    return GenomesStore(folder, manifest, rows, name, partial(_find_file, folder))


def read_species(where: str | Path) -> tuple[tuple[str, ...], str]:
    """The sorted species of a list or of built genomes, and their digest. Raises `DataError`."""
    name = str(where)
    if is_remote(name):
        genomes = RemoteFolder(name).read_manifest()["genomes"]
        named = {g["name"]: g["species"] for g in genomes}
    elif Path(name).is_dir():
        named = {g["name"]: g["species"] for g in require_manifest(Path(name), name)["genomes"]}
    else:
        named = {row.name: row.species for row in read_genome_list(name).rows}
    return tuple(sorted({s for s in named.values() if s})), _digest_species(named)


def _digest_species(named: dict[str, str]) -> str:
    return sha256_json(sorted(named.items()), compact=True)


def find_built_folder(listed: str | Path) -> Path:
    """The cache folder of a list's genomes, by its content and place. Raises `DataError`."""
    place = {"list": sha256_file(listed), "folder": os.path.dirname(os.path.abspath(listed))}
    return cache_dir() / "genomes" / sha256_json(place, compact=True)[:32]


def allow_open_files(n: int) -> None:
    """Raise this process's limit of open files so that `n` more can be mapped, where it may."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = n + 512
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _find_file(folder: Path, name: str, digest: str) -> Path:
    path = folder / name
    if not path.is_file():
        fix = "build the genomes again: what is there stays"
        raise DataError("is missing", file=path, fix=fix)
    return path
