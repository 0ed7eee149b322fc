"""Stores: the ids of a data set in one file to map into memory, whatever its domain.

A store is a folder with the ids and a manifest that says what they were made from. It is found
again by its key, the sha256 of all that decides its content. Names, times and the recipe's splits
do not enter the key. The fingerprint that a run remembers adds the recipe's digest.
DNA: dna_store.py; text: text_store.py. A split of DNA is read as codes, piece by piece.
"""

import json
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import encode_bases
from genodiff.data.recipe import ALL
from genodiff.data.splits import Intervals, Splits, stretch_intervals
from genodiff.errors import DataError
from genodiff.io.file_kinds import is_descriptor, sha256_file, sha256_json
from genodiff.io.input_file import GENOME_BYTES, STDIN, is_planning, open_input

log = logging.getLogger("genodiff")

MANIFEST = "manifest.json"


class StoreSource(NamedTuple):
    """The file of a store (path None: generated); `stamp`: (size, mtime, inode) as it was read."""

    path: str | None
    size: int
    sha256: str
    stamp: tuple[int, int, int] | None = None

    def describe(self) -> dict[str, Any]:
        """As a manifest has it."""
        return {"path": self.path, "size": self.size, "sha256": self.sha256}


class Store(ABC):
    """A built data set, open for reading; picklable (a loader's worker maps the same file)."""

    ids_file: str
    """File of the ids in the store's folder."""
    splits: Splits

    def __init__(
        self,
        path: Path,
        source: StoreSource,
        manifest: dict[str, Any],
        contigs: dict[str, int],
        recipe_digest: str,
    ) -> None:
        """`contigs`: name and length of each stretch of ids, in their order."""
        self.path, self.source, self.manifest = path, source, manifest
        self.contigs = contigs
        self.names: tuple[str, ...] = tuple(contigs)
        self.lengths: NDArray[np.int64] = np.array([*contigs.values()], np.int64)
        self.offsets: NDArray[np.int64] = np.concatenate(([0], np.cumsum(self.lengths)))
        self.recipe_digest = recipe_digest
        content = {"recipe": recipe_digest, "content": manifest["key"]}
        self.fingerprint = sha256_json(content, compact=True)

    @cached_property
    def flat(self) -> NDArray[Any]:
        """All ids, one contig after another, mapped from the file."""
        dtype = np.dtype(self.manifest.get("dtype", "uint8"))
        if not self.offsets[-1]:
            return np.zeros(0, dtype)
        return np.memmap(self.path / self.ids_file, dtype, "r")

    def ids(self, contig: str) -> NDArray[Any]:
        """The contig's ids, mapped from the file. Raises `KeyError` for an unknown contig."""
        if contig not in self.contigs:
            raise KeyError(contig)
        i = self.names.index(contig)
        return self.flat[self.offsets[i] : self.offsets[i + 1]]

    def intervals_of(self, split: str) -> Intervals:
        """The intervals of a split; of "all", every contig from end to end."""
        if split != ALL:
            return self.splits.intervals[split]
        return Intervals.of([(i, 0, n) for i, n in enumerate(self.lengths.tolist())])

    def read_ids(self, start: int, end: int) -> NDArray[np.int64]:
        """The ids of flat positions `start` to `end`, without what a store adds to them."""
        return np.asarray(self.flat[start:end]).astype(np.int64)

    def find_contigs(self, position: Any) -> NDArray[np.int64]:
        """The number of the contig, in `names`, that each flat position is on."""
        return np.asarray(np.searchsorted(self.offsets, position, "right") - 1)

    def bytes_of(self, start: Any, length: Any) -> NDArray[np.float64] | None:
        """Bytes of text in the `length` tokens from each flat `start`; None of DNA."""
        return None

    @property
    def n_runs(self) -> NDArray[np.int64]:
        """(runs, 2): start and end of every run of N in `flat`, sorted; empty for text."""
        return np.zeros((0, 2), np.int64)

    def __getstate__(self) -> dict[str, Any]:
        kind = type(self)
        is_mapped = {k: isinstance(getattr(kind, k, None), cached_property) for k in self.__dict__}
        return {k: v for k, v in self.__dict__.items() if not is_mapped[k]}

    def verify(self) -> None:
        """Read all of the store and compare its sha256 with the manifest's. Raises `DataError`."""
        found = sha256_file(self.path / self.ids_file)
        if found != self.manifest["ids_sha256"]:
            what = f"has sha256 {found}, but was built as {self.manifest['ids_sha256']}"
            fix = "remove the folder; it is rebuilt from the source"
            raise DataError(what, file=self.path / self.ids_file, fix=fix)

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
        """Raises `DataError` naming both hashes where `remembered` describes other data."""
        if remembered.get("fingerprint") != self.fingerprint:
            refuse_changed(self.source, remembered)
            raise self._describe_change(remembered)

    @abstractmethod
    def _describe_change(self, remembered: dict[str, Any]) -> DataError:
        """What differs from the remembered data though the source is the same."""


def refuse_changed(source: StoreSource, remembered: dict[str, Any]) -> None:
    """Raises `DataError` naming both hashes where the source is not the remembered one."""
    if remembered.get("source_sha256") != source.sha256:
        now = f"{source.sha256} ({source.size} bytes)"
        was = f"{remembered.get('source_sha256')} ({remembered.get('source_size')} bytes)"
        what = f"the file has changed since the run started: its sha256 is {now}, but was {was}"
        fix = "restore the old file, or start a new run with another --out"
        raise DataError(what, file=source.path or "the generated genome", fix=fix)


def require_regular_file(path: Path) -> Path:
    """`path`. Raises `DataError` where it is a stream, which cannot be read again."""
    with open_input(path) as opened:
        if str(path) == STDIN or is_descriptor(path):
            fix = "give a file: a run that is resumed reads it again"
            raise DataError("is a stream", file=opened.shown, fix=fix)
    return path


def identify_source(paths: list[Path]) -> StoreSource:
    """The files of a store, named by the first and by the hash of all."""
    stamp, size = stamp_file(paths[0]), sum(p.stat().st_size for p in paths)
    hashes = [
        sha256_json(stamp_file(p)) if is_planning() and p.stat().st_size > GENOME_BYTES
        else sha256_file(p) for p in paths
    ]  # fmt: skip
    digest = hashes[0] if len(paths) == 1 else sha256_json({"files": hashes}, compact=True)
    return StoreSource(str(paths[0]), size, digest, stamp)


def stamp_file(path: Path) -> tuple[int, int, int]:
    """Size, time of change and inode of a file."""
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns, found.st_ino


def read_manifest(folder: Path, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The manifest of the store in `folder`. Raises `DataError` unless it `fits` its files."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if fits(manifest):
            return manifest
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        pass
    fix = "remove the folder; it is rebuilt from the source"
    raise DataError("is not a whole store", file=folder, fix=fix)


def has_key(read: Callable[[Path], dict[str, Any]], folder: Path, key: str) -> bool:
    """Whether `folder` holds the whole store of this key."""
    try:
        return bool(read(folder)["key"] == key)
    except DataError:
        return False


Codes = NDArray[np.uint8]


class Coded:
    """A long stretch of a store's bytes that turns into codes piece by piece, as it is read."""

    def __init__(self, ids: NDArray[np.uint8]) -> None:
        self.ids = ids

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, part: slice) -> Codes:
        return encode_bases(self.ids[part])


Stretch = Codes | Coded


def split_stretches(
    store: Store, split: str, *, legacy_caduceus_tiling: bool = False
) -> list[Coded]:
    """The intervals of a split as a model saw them in training, as codes, read one by one."""
    legacy = legacy_caduceus_tiling
    return read_stretches(store, find_intervals(store, split, legacy_caduceus_tiling=legacy))


def find_intervals(store: Store, split: str, *, legacy_caduceus_tiling: bool = False) -> Intervals:
    """The intervals of a split as a model saw them in training."""
    intervals = store.intervals_of(split)
    return stretch_intervals(intervals, store.lengths) if legacy_caduceus_tiling else intervals


def read_stretches(store: Store, intervals: Intervals) -> list[Coded]:
    """Intervals of a store as codes, read one by one."""
    start = store.offsets[intervals.contig] + intervals.start
    end = store.offsets[intervals.contig] + intervals.end
    return [Coded(store.flat[a:b]) for a, b in zip(start.tolist(), end.tolist(), strict=True)]
