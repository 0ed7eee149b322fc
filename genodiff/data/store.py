"""The store: a genome as one uint8 file to map into memory, with a manifest that says what it was
made from.

A stored byte is `id | SOFT` (SOFT = 0x80 where the FASTA has lower case). Contigs stand one after
another in file order in `genome.ids`; `n_runs.npy` lists the runs of N, so that windows are chosen
without touching the sequence. A store is found again by its key, the sha256 of (format, alphabet,
content of the source, contigs left out); nothing about it depends on names, times or the recipe's
splits. The fingerprint that a run remembers adds the recipe's digest.
"""

import hashlib
import json
import logging
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import AMBIGUOUS, DNA, SOFT
from genodiff.data.fetch import fetch, forget
from genodiff.data.recipe import Recipe
from genodiff.data.splits import Splits, kept_contigs, resolve
from genodiff.data.toy import ToySource
from genodiff.errors import DataError
from genodiff.io import atomic
from genodiff.io.cache import cache_dir, lock_folder
from genodiff.io.fasta import Header, scan
from genodiff.io.identity import sha256_file, sha256_json
from genodiff.io.source import STDIN, open_source

log = logging.getLogger("genodiff")

FORMAT = 1
N_ID = DNA.tokens.index("N")

Content = str | tuple[NDArray[np.uint8], int]
"""The start of a contig (its name), or a piece of it: stored bytes, and how many of its letters
were ambiguity codes.
"""


class StoreSource(NamedTuple):
    """The file a store was made from (path None: generated); `stamp` is (size, mtime, inode) when
    it was read.
    """

    path: str | None
    size: int
    sha256: str
    stamp: tuple[int, int, int] | None = None


class Store:
    """A built genome, open for reading; picklable (a loader's worker maps the same file)."""

    def __init__(
        self, path: Path, recipe: Recipe, source: StoreSource, *, exact: bool = False
    ) -> None:
        """Open the store in folder `path`. Raises `DataError` where it is damaged or does not fit
        the recipe.
        """
        self.path, self.source = path, source
        self.manifest: dict[str, Any] = _read_manifest(path)
        self.contigs: dict[str, int] = {c["name"]: c["length"] for c in self.manifest["contigs"]}
        self.names: tuple[str, ...] = tuple(self.contigs)
        self.lengths: NDArray[np.int64] = np.array([*self.contigs.values()], np.int64)
        self.offsets: NDArray[np.int64] = np.concatenate(([0], np.cumsum(self.lengths)))
        self.splits: Splits = resolve(recipe, self.contigs, source.path or recipe.name, exact=exact)
        self.recipe_digest = recipe.digest()
        self.fingerprint: str = sha256_json(
            {"recipe": self.recipe_digest, "content": self.manifest["key"]}, compact=True
        )

    @cached_property
    def flat(self) -> NDArray[np.uint8]:
        """All contigs, one after another: uint8 `id | SOFT`, mapped from the file."""
        return (
            np.memmap(self.path / "genome.ids", np.uint8, "r")
            if self.offsets[-1]
            else np.zeros(0, np.uint8)
        )

    @cached_property
    def n_runs(self) -> NDArray[np.int64]:
        """(runs, 2): start and end of every run of N in `flat`, sorted; a run never crosses a
        contig's end.
        """
        return np.load(self.path / "n_runs.npy", allow_pickle=False)

    def ids(self, contig: str) -> NDArray[np.uint8]:
        """The contig's bases as uint8 `id | SOFT`, mapped from the file. Raises `KeyError` for an
        unknown contig.
        """
        i = self.names.index(contig) if contig in self.contigs else -1
        if i < 0:
            raise KeyError(contig)
        return self.flat[self.offsets[i] : self.offsets[i + 1]]

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("flat", "n_runs")}

    def verify(self) -> None:
        """Read all of the store and compare its sha256 with the manifest's. Raises `DataError`."""
        found = sha256_file(self.path / "genome.ids")
        if found != self.manifest["ids_sha256"]:
            raise DataError(
                f"has sha256 {found}, but was built as {self.manifest['ids_sha256']}",
                file=self.path / "genome.ids",
                fix="remove the folder; it is built again from the source",
            )

    def identity(self) -> dict[str, Any]:
        """What a run remembers of its data, as JSON values; `check_same` compares it on resume."""
        return {
            "fingerprint": self.fingerprint,
            "recipe_digest": self.recipe_digest,
            "source": self.source.path,
            "source_size": self.source.size,
            "source_sha256": self.source.sha256,
        }

    def check_same(self, remembered: dict[str, Any]) -> None:
        """Raise `DataError` naming both hashes unless this store is the data that `remembered`
        describes.
        """
        if remembered.get("fingerprint") == self.fingerprint:
            return
        refuse_changed(self.source, remembered)
        raise DataError(
            f"the splits have changed since the run began: the recipe's digest is "
            f"{self.recipe_digest}, "
            f"but was {remembered.get('recipe_digest')}",
            file=self.source.path,
            fix="use the same recipe and --bed, or begin a new run with another --out",
        )


def build_store(
    recipe: Recipe,
    fasta: str | Path | None = None,
    *,
    offline: bool = False,
    force: bool = False,
    remembered: dict[str, Any] | None = None,
) -> Store:
    """The store of `recipe`, from `fasta` in place of the recipe's source where given; built once,
    then found again.

    Safe to call from many processes at once. `force` builds it again. With the `identity` that a
    run remembered, a source that has changed since is refused before it is read. What the splits
    had to leave out or make up is logged. Raises `DataError`: the source is missing, is no exact
    FASTA, or is not the recipe's genome.
    """
    contents: Iterator[Content]
    fetched = fasta is None and recipe.generator is None
    paths: list[Path] = []
    if fasta is not None or fetched:
        paths = fetch(recipe, offline=offline) if fetched else [_regular(Path(str(fasta)))]
        source, contents = source_of(paths), _from_files(paths, recipe)
    else:
        toy = ToySource()
        source, contents = StoreSource(None, 0, toy.fingerprint()), _from_toy(toy)
    if remembered is not None:
        refuse_changed(source, remembered)
    key = sha256_json(
        {
            "format": FORMAT,
            "alphabet": DNA.fingerprint(),
            "source": source.sha256,
            "ignore": recipe.ignore,
        },
        compact=True,
    )
    folder = cache_dir() / "stores" / key[:32]
    with lock_folder(folder, "builds the same store"):
        try:
            if force or not _is_whole(folder, key):
                if folder.exists():
                    log.info("building again: %s", folder)
                    shutil.rmtree(folder)
                atomic.clear_leftovers(folder.parent)
                _build(folder, key, contents, source)
                if paths and _stamp(paths[0]) != source.stamp:
                    shutil.rmtree(folder)
                    raise DataError(
                        "changed while it was read",
                        file=source.path,
                        fix="try again when it is complete",
                    )
            store = Store(folder, recipe, source, exact=fetched)
        except DataError:
            if fetched:
                forget(recipe)
            raise
    for note in store.splits.notes:
        log.warning("%s: %s", source.path or recipe.name, note)
    return store


def refuse_changed(source: StoreSource, remembered: dict[str, Any]) -> None:
    """Raise `DataError` naming both hashes where the source is not the one that a run remembered."""
    if remembered.get("source_sha256") != source.sha256:
        raise DataError(
            f"the file has changed since the run began: its sha256 is {source.sha256} "
            f"({source.size} bytes), "
            f"but was {remembered.get('source_sha256')} ({remembered.get('source_size')} bytes)",
            file=source.path or "the generated genome",
            fix="bring the old file back, or begin a new run with another --out",
        )


def encoding_table() -> bytes:
    """256 bytes: a letter's `id | SOFT`; 0xFF for what is no letter of DNA. For `bytes.translate`."""
    table = bytearray(b"\xff" * 256)
    for letter in "ACGTN" + AMBIGUOUS:
        table[ord(letter)] = int(DNA.encode(letter)[0])
        table[ord(letter.lower())] = table[ord(letter)] | SOFT
    return bytes(table)


def runs_of_n(ids: NDArray[np.uint8]) -> NDArray[np.int64]:
    """(runs, 2): start and end of every run of N in stored bytes."""
    is_n = np.concatenate(([False], (ids & ~np.uint8(SOFT)) == N_ID, [False]))
    return np.flatnonzero(is_n[1:] != is_n[:-1]).reshape(-1, 2)


def joined(runs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Runs of one contig, found piece by piece, with those that touch as one."""
    apart = runs[1:, 0] != runs[:-1, 1]
    first, last = np.concatenate(([True], apart)), np.concatenate((apart, [True]))
    return np.column_stack(
        (runs[first[: len(runs)], 0], runs[last[-len(runs) :] if len(runs) else [], 1])
    )


class _Writer:
    """The bytes of a store in the making, and what the manifest says of each contig."""

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
        runs = runs_of_n(ids)
        self._open.append(runs + self.bases)
        self.bases += len(ids)
        contig = self.contigs[-1]
        contig["length"] += len(ids)
        contig["n"] += int((runs[:, 1] - runs[:, 0]).sum())
        contig["soft"] += int(np.count_nonzero(ids >= SOFT))
        contig["ambiguous"] += ambiguous

    def end(self) -> None:
        if self._open:
            self.runs.append(joined(np.concatenate(self._open)))
            self._open = []


def _build(folder: Path, key: str, contents: Iterable[Content], source: StoreSource) -> None:
    with atomic.atomic_directory(folder) as temporary:
        with open(temporary / "genome.ids", "wb") as file:
            writer = _Writer(file)
            for piece in contents:
                if isinstance(piece, str):
                    writer.begin(piece)
                else:
                    writer.add(*piece)
            writer.end()
        if not writer.bases:
            raise DataError(
                "holds no sequence",
                file=source.path,
                fix="give a FASTA file with at least one base",
            )
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
            "source": {"path": source.path, "size": source.size, "sha256": source.sha256},
        }
        (temporary / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    ambiguous = sum(c["ambiguous"] for c in writer.contigs)
    n_contigs = len(writer.contigs)
    log.info(
        "built the store of %s: %d contigs, %d bases",
        source.path or "the toy genome",
        n_contigs,
        writer.bases,
    )
    if ambiguous:
        log.warning("%s: %d ambiguity codes (R, Y, …) are read as N", source.path, ambiguous)


def _from_files(paths: list[Path], recipe: Recipe) -> Iterator[Content]:
    """The contigs that the recipe keeps, in pieces as the strict reader judges them: memory for one
    block.
    """
    table, exact = encoding_table(), b"ACGTNacgtn\r\n"
    for path in paths:
        with open_source(path) as opened:
            kept = True
            for event in scan(opened):
                if isinstance(event, Header):
                    kept = kept_contigs(recipe, event.name)
                    if kept:
                        yield event.name
                elif kept:
                    ids = np.frombuffer(event.data.translate(table, b"\r\n"), np.uint8)
                    yield ids, len(event.data.translate(None, exact))


def _from_toy(toy: ToySource) -> Iterator[Content]:
    for name, ids in toy.contigs():
        yield name
        yield ids, 0


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads(
            (folder / "manifest.json").read_text(encoding="utf-8")
        )
        whole = (
            (folder / "genome.ids").stat().st_size
            == manifest["bases"]
            == sum(c["length"] for c in manifest["contigs"])
        )
        rows = np.load(folder / "n_runs.npy", mmap_mode="r", allow_pickle=False).shape[0]
        if whole and manifest["format"] == FORMAT and rows == manifest["n_runs"]:
            return manifest
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        pass
    raise DataError(
        "is not a whole store",
        file=folder,
        fix="remove the folder; it is built again from the source",
    )


def _is_whole(folder: Path, key: str) -> bool:
    try:
        return bool(_read_manifest(folder)["key"] == key)
    except DataError:
        return False


def _regular(path: Path) -> Path:
    with open_source(path) as opened:
        if str(path) == STDIN or not stat.S_ISREG(opened.stat.st_mode):
            raise DataError(
                "is a stream",
                file=opened.shown,
                fix="give a file: a run that is resumed reads it again",
            )
    return path


def source_of(paths: list[Path]) -> StoreSource:
    """The files of a store, named by the first and by the hash of all."""
    stamp, size = _stamp(paths[0]), sum(p.stat().st_size for p in paths)
    hashes = [sha256_file(p) for p in paths]
    return StoreSource(
        str(paths[0]),
        size,
        hashes[0] if len(paths) == 1 else sha256_json({"files": hashes}, compact=True),
        stamp,
    )


def _stamp(path: Path) -> tuple[int, int, int]:
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns, found.st_ino
