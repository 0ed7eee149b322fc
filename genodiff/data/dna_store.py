"""The store of a genome, and how it is built or found again.

    genome.ids     one byte for each base: `id | SOFT` (SOFT = 0x80 where the FASTA has lower case);
                   contigs stand one after another in file order
    n_runs.npy     runs of N, so that windows are chosen without touching the sequence
    manifest.json  what it was made from

The key is the sha256 of (format, alphabet, content of the source, contigs left out).
"""

import atexit
import hashlib
import json
import logging
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import AMBIGUOUS, DNA, SOFT
from genodiff.data.fetch import fetch, forget
from genodiff.data.recipe import Recipe
from genodiff.data.splits import keeps_contig, resolve
from genodiff.data.store import (
    MANIFEST,
    Store,
    StoreSource,
    has_key,
    identify_source,
    read_manifest,
    refuse_changed,
    require_regular_file,
    stamp_file,
)
from genodiff.data.toy import ToySource
from genodiff.errors import DataError, format_count
from genodiff.io import atomic
from genodiff.io.fasta import Header, scan_fasta
from genodiff.io.file_kinds import sha256_json
from genodiff.io.input_file import GENOME_BYTES, InputFile, is_cut, is_planning, open_input
from genodiff.io.regions import say_linear
from genodiff.io.target import cache_dir, lock_folder

log = logging.getLogger("genodiff")

FORMAT = 1
N_ID = DNA.tokens.index("N")

Content = str | tuple[NDArray[np.uint8], int]
"""The name of a contig, at its start, or a piece of it: stored bytes, and the number of ambiguity
codes among its letters.
"""


def make_encoding_table() -> bytes:
    """Make a table for `bytes.translate`: ids of DNA letters, `| SOFT` in lower case, else 0xFF."""
    table = bytearray(b"\xff" * 256)
    for letter in "ACGTN" + AMBIGUOUS:
        table[ord(letter)] = int(DNA.encode(letter)[0])
        table[ord(letter.lower())] = table[ord(letter)] | SOFT
    return bytes(table)


def find_runs_of_n(ids: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Find the start and end of each run of N in stored bytes, (runs, 2)."""
    is_n = np.concatenate(([False], (ids & ~np.uint8(SOFT)) == N_ID, [False]))
    return np.flatnonzero(is_n[1:] != is_n[:-1]).reshape(-1, 2)


def join_runs(runs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Join runs of one contig that touch because a piece ended between them."""
    if not len(runs):
        return runs
    apart = runs[1:, 0] != runs[:-1, 1]
    first, last = np.concatenate(([True], apart)), np.concatenate((apart, [True]))
    return np.column_stack((runs[first, 0], runs[last, 1]))


class GenomeWriter:
    """Write the bytes of a store, and count each contig's bases for the manifest."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.sha, self.bases = file, hashlib.sha256(), 0
        self.contigs: list[dict[str, Any]] = []
        self.runs: list[NDArray[np.int64]] = []
        self._open: list[NDArray[np.int64]] = []

    def begin(self, name: str) -> None:
        self.end()
        self.contigs.append({"name": name, "length": 0, "n": 0, "soft": 0, "ambiguous": 0})

    def add(self, ids: NDArray[np.uint8], ambiguous: int) -> None:
        self.file.write(ids.data)
        self.sha.update(ids.data)
        runs = find_runs_of_n(ids)
        self._open.append(runs + self.bases)
        self.bases += len(ids)
        contig = self.contigs[-1]
        contig["length"] += len(ids)
        contig["n"] += int((runs[:, 1] - runs[:, 0]).sum())
        contig["soft"] += int(np.count_nonzero(ids >= SOFT))
        contig["ambiguous"] += ambiguous

    def end(self) -> None:
        if self._open:
            self.runs.append(join_runs(np.concatenate(self._open)))
            self._open = []

    def write_contigs(self, contents: Iterable[Content]) -> None:
        """Write all contigs: for each its name, then its pieces."""
        for piece in contents:
            if isinstance(piece, str):
                self.begin(piece)
            else:
                self.add(*piece)
        self.end()


def build_folder(folder: Path, key: str, contents: Iterable[Content], source: StoreSource) -> None:
    """Write the store of `contents` to `folder` atomically. Raises `DataError` if it is empty."""
    with atomic.atomic_directory(folder) as temporary:
        with open(temporary / "genome.ids", "wb") as file:
            writer = GenomeWriter(file)
            writer.write_contigs(contents)
        if not writer.bases:
            fix = "give a FASTA file with at least one base"
            raise DataError("holds no sequence", file=source.path, fix=fix)
        runs = np.concatenate(writer.runs)
        np.save(temporary / "n_runs.npy", runs)
        manifest = {
            "format": FORMAT,
            "key": key,
            "alphabet": DNA.fingerprint(),
            "ids_sha256": writer.sha.hexdigest(),
            "bases": writer.bases,
            "n_runs": len(runs),
            "contigs": writer.contigs,
            "source": source.describe(),
        }
        (temporary / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    size = f"{format_count(len(writer.contigs), 'contig')}, {format_count(writer.bases, 'base')}"
    log.info("built the store of %s: %s", source.path or "the toy genome", size)
    if ambiguous := sum(c["ambiguous"] for c in writer.contigs):
        log.warning("%s: %d ambiguity codes (R, Y, …) are read as N", source.path, ambiguous)


def read_file_contents(paths: list[Path], recipe: Recipe) -> Iterator[Content]:
    """Yield the contigs that the recipe selects, in pieces; one block of a file is in memory."""
    for path in paths:
        with open_input(path) as opened:
            yield from encode_contents(
                opened, lambda one: keeps_contig(recipe, one.name), lambda: is_cut(opened)
            )
            if is_cut(opened):
                return


def encode_contents(
    source: InputFile, keeps: Callable[[Header], bool], stops: Callable[[], bool]
) -> Iterator[Content]:
    """Yield the contigs that `keeps` selects, in pieces, until `stops` behind one of them."""
    table, exact = make_encoding_table(), b"ACGTNacgtn\r\n"
    is_selected, circular = True, list[str]()
    for event in scan_fasta(source):
        if isinstance(event, Header):
            if is_selected := keeps(event):
                circular += [event.name] if event.is_circular else []
                yield event.name
            continue
        if is_selected:
            ids = np.frombuffer(event.data.translate(table, b"\r\n"), np.uint8)
            yield ids, len(event.data.translate(None, exact))
        if stops():
            return
    say_linear(source.shown, circular)


def make_toy_contents(toy: ToySource) -> Iterator[Content]:
    """Yield the contigs of the toy genome, each in one piece."""
    for name, ids in toy.contigs():
        yield name
        yield ids, 0


def read_dna_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of the store in `folder`. Raises `DataError` if a file is missing."""

    def fits(manifest: dict[str, Any]) -> bool:
        size = (folder / "genome.ids").stat().st_size
        rows = np.load(folder / "n_runs.npy", mmap_mode="r", allow_pickle=False).shape[0]
        whole = size == manifest["bases"] == sum(c["length"] for c in manifest["contigs"])
        return bool(whole and manifest["format"] == FORMAT and rows == manifest["n_runs"])

    return read_manifest(folder, fits)


class DnaStore(Store):
    """A built genome, open for reading."""

    ids_file = "genome.ids"
    share = 1.0
    """The part of the genome that it holds; less than 1 in a plan alone."""

    def __init__(
        self, path: Path, recipe: Recipe, source: StoreSource, *, exact: bool = False
    ) -> None:
        """Open the store in `path`. Raises `DataError` unless it is whole and fits the recipe."""
        manifest = read_dna_manifest(path)
        contigs = {c["name"]: c["length"] for c in manifest["contigs"]}
        super().__init__(path, source, manifest, contigs, recipe.digest())
        self.splits = resolve(recipe, contigs, source.path or recipe.name, exact=exact)

    def read_ids(self, start: int, end: int) -> NDArray[np.int64]:
        """See `Store.read_ids`: without the soft mask."""
        return super().read_ids(start, end) & ~SOFT

    @cached_property
    def n_runs(self) -> NDArray[np.int64]:  # type: ignore[override]
        """See `Store.n_runs`; a run never crosses a contig's end."""
        return np.load(self.path / "n_runs.npy", allow_pickle=False)

    def _describe_change(self, remembered: dict[str, Any]) -> DataError:
        what = "the splits have changed since the run started: the recipe's digest is "
        what += f"{self.recipe_digest}, but was {remembered.get('recipe_digest')}"
        fix = "use the same recipe and --bed, or start a new run with another --out"
        return DataError(what, file=self.source.path, fix=fix)


def _find_place(recipe: Recipe, source_sha256: str) -> tuple[str, Path]:
    """The key of the store of a source, and its folder."""
    decisive = {"format": FORMAT, "alphabet": DNA.fingerprint(), "source": source_sha256}
    key = sha256_json(decisive | {"ignore": recipe.ignore}, compact=True)
    return key, cache_dir() / "stores" / key[:32]


def find_dna_store(recipe: Recipe, remembered: dict[str, Any]) -> DnaStore | None:
    """The store that a run remembers by its `identity`, if it is in the cache, or None.

    Its source is not read. Raises `DataError` where the recipe's splits are not those of then.
    """
    sha256 = str(remembered.get("source_sha256"))
    key, folder = _find_place(recipe, sha256)
    if not has_key(read_dna_manifest, folder, key):
        return None
    path, size = remembered.get("source"), remembered.get("source_size")
    source = StoreSource(None if path is None else str(path), int(size or 0), sha256)
    store = DnaStore(folder, recipe, source)
    store.check_same(remembered)
    return store


def _build_head(
    recipe: Recipe, key: str, contents: Iterator[Content], source: StoreSource
) -> DnaStore:
    """The store that a plan reads: of a genome's beginning, in a temporary folder."""
    home = tempfile.TemporaryDirectory(prefix="genodiff-")
    atexit.register(home.cleanup)
    folder = Path(home.name) / "store"
    build_folder(folder, key, contents, source)
    store = DnaStore(folder, recipe, source)
    store.share = min(1.0, max(1, GENOME_BYTES) / max(1, source.size))
    return store


def build_dna_store(
    recipe: Recipe,
    fasta: str | Path | None = None,
    *,
    offline: bool = False,
    force: bool = False,
    remembered: dict[str, Any] | None = None,
    tell_splits: bool = True,
) -> DnaStore:
    """The store of `recipe`, from `fasta` in place of the recipe's source where given; built once,
    then found again.

    Safe to call from many processes at once. `force` builds it again. With the `identity` that a
    run remembered, a source that has changed since is refused before it is read. What the splits
    had to leave out or make up is logged, with `tell_splits`. Raises `DataError`: the source is
    missing, is no exact FASTA, or is not the recipe's genome.
    """
    fetched = fasta is None and recipe.generator is None
    paths = [] if fasta is None else [require_regular_file(Path(fasta))]
    if fetched:
        paths = fetch(recipe, offline=offline)
    if paths:
        source, contents = identify_source(paths), read_file_contents(paths, recipe)
    else:
        toy = ToySource()
        source, contents = StoreSource(None, 0, toy.fingerprint()), make_toy_contents(toy)
    if remembered is not None:
        refuse_changed(source, remembered)
    key, folder = _find_place(recipe, source.sha256)
    if is_planning() and not has_key(read_dna_manifest, folder, key):
        return _build_head(recipe, key, contents, source)
    with lock_folder(folder, "builds the same store"):
        try:
            if force or not has_key(read_dna_manifest, folder, key):
                if folder.exists():
                    log.info("building again: %s", folder)
                    shutil.rmtree(folder)
                atomic.clear_leftovers(folder.parent)
                build_folder(folder, key, contents, source)
                if paths and stamp_file(paths[0]) != source.stamp:
                    shutil.rmtree(folder)
                    fix = "try again when it is complete"
                    raise DataError("changed while it was read", file=source.path, fix=fix)
            store = DnaStore(folder, recipe, source, exact=fetched)
        except DataError:
            if fetched:
                forget(recipe)
            raise
    for note in store.splits.notes if tell_splits else ():
        log.warning("%s: %s", source.path or recipe.name, note)
    return store
