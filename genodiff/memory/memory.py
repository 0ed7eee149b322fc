"""A memory: the training genome as text, table and numbers, and what it says of masked windows.

`Memory.find` gives the diagonals that a window may copy, `Memory.recall` what they say of each
place. The store is part of the model that uses a memory.

A memory on disk: a folder that is complete or absent, mapped when it is opened.

    planes.npy     (3, bytes): the text, as in `memory/text.py`
    start.npy      (4^k + 1,) and at.npy: where each k-mer stands
    ends.npy       and jumps.npy in place of start.npy, of a sampled table (`tables.py`)
    counts.npy     (4^order, 4): how often each base follows each context, on both strands
    manifest.json  the sources, the sizes and hashes of the files, and what the memory was made from

The fingerprint is the sha256 of the manifest. A run that uses a memory remembers it, and refuses
another one.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import DataError
from genodiff.io import atomic
from genodiff.io.file_kinds import sha256_file, sha256_json
from genodiff.memory.copying import Places, SeenWindow, list_all_diagonals, recall_window
from genodiff.memory.fast import can_recall, recall_in_c
from genodiff.memory.numbers import MemoryNumbers
from genodiff.memory.search import Effort, find_diagonals
from genodiff.memory.tables import (
    ORDER,
    Chain,
    Floats,
    KmerTable,
    SampledTable,
    build_sampled_table,
    build_table,
    choose_k,
    count_words,
    measure_evidence,
)
from genodiff.memory.text import (
    MOST_WINDOW,
    Codes,
    MemoryText,
    TextStretch,
    join_stretches,
)

NOWHERE = (0, 0)
"""An interval without a place."""

Intervals = Sequence[tuple[int, int]]


class Recalled(NamedTuple):
    """What a memory says: `background` (B, L), the weight of the denoiser, and `copy` (B, L, 4),
    the weight of each base. At each place they sum to 1.
    """

    background: Floats
    copy: Floats


@dataclass(frozen=True)
class Memory:
    """Text, table, the chain that copies are judged against, and the fitted numbers."""

    text: MemoryText
    table: KmerTable | SampledTable | None
    """None where nothing is searched in the text (`aligned.py`)."""
    chain: Chain
    numbers: MemoryNumbers = field(default_factory=MemoryNumbers)
    effort: Effort = field(default_factory=Effort)

    @classmethod
    def build(
        cls,
        stretches: Iterable[tuple[str, int, Any]],
        *,
        k: int | None = None,
        order: int = ORDER,
        numbers: MemoryNumbers | None = None,
    ) -> Self:
        """The memory of stretches, each its contig, its start there and its codes.

        `k`: of the table, by default from the number of bases. `order`: of the chain. Raises
        `DataError` where the text is too long.
        """
        text = join_stretches(stretches)
        chain = Chain(count_words(text, order))
        table = build_table(text, k or choose_k(text.n_bases))
        return cls(text, table, chain, numbers or MemoryNumbers())

    @classmethod
    def build_sampled(
        cls,
        text: MemoryText,
        *,
        k: int | None = None,
        numbers: MemoryNumbers | None = None,
        searched: bool = True,
    ) -> Self:
        """The memory of a relative's text; if it is `searched`, with a table of a quarter of its
        places.
        """
        table = build_sampled_table(text, k) if searched else None
        return cls(text, table, Chain(count_words(text, ORDER)), numbers or MemoryNumbers())

    def with_numbers(self, numbers: MemoryNumbers) -> "Memory":
        """The same memory with other numbers."""
        return replace(self, numbers=numbers)

    def with_effort(self, effort: Effort) -> "Memory":
        """The same memory, searched with another effort."""
        return replace(self, effort=effort)

    def exclude(self, contig: str, start: int, end: int) -> tuple[int, int]:
        """The interval of the text to leave out for a window of the training genome.

        It has the window's own bases and its length on either side, on both strands.
        """
        length = end - start
        return self.text.find_interval(contig, start - length, end + length)

    def prepare(self, windows: Codes, without: Intervals | None = None) -> list[SeenWindow]:
        """Windows (B, L) of codes, 4 where no base is visible, as the model sees them.

        `without`: for each window an interval of the text that counts as if it were not there.
        Raises `ValueError` for a window that is too long, or for another number of intervals.
        """
        left_out = self._check(windows, without)
        return self._see(windows, measure_evidence(windows, self.chain), left_out)

    def _see(self, windows: Codes, evidence: Floats, left_out: Intervals) -> list[SeenWindow]:
        return [
            SeenWindow(codes, known, (a, b), self.text.count_loci(a, b))
            for codes, known, (a, b) in zip(windows, evidence, left_out, strict=True)
        ]

    def find_all(
        self, windows: Codes, without: Intervals | None = None
    ) -> list[tuple[Places, Places]]:
        """The diagonals that each window may copy, of each strand."""
        return self.search(windows, without)[1]

    def search(
        self, windows: Codes, without: Intervals | None = None
    ) -> tuple[list[SeenWindow], list[tuple[Places, Places]]]:
        """`prepare` and `find_all` at once, without what is recalled."""
        if not can_recall(self):
            prepared = self.prepare(windows, without)
            return prepared, [self.find(window) for window in prepared]
        left_out = self._check(windows, without)
        said = recall_in_c(self, windows, left_out, find=True)
        return self._see(windows, said.evidence, left_out), said.diagonals

    def find(self, window: SeenWindow) -> tuple[Places, Places]:
        """The diagonals that a window may copy, of each strand."""
        first, second = (
            find_diagonals(self.text, self.table, one, self.numbers, self.effort)
            for one in (window, window.turn())
        )
        return first, second

    def recall(
        self, windows: Codes, without: Intervals | None = None, *, every: bool = False
    ) -> Recalled:
        """What the memory says of windows (B, L) of codes, 4 where no base is visible.

        With `every`, all diagonals of both strands are summed over: the truth, for small texts.
        """
        if every or not can_recall(self):
            return self.recall_slowly(windows, without, every=every)
        said = recall_in_c(self, windows, self._check(windows, without))
        return Recalled(said.background, said.copy)

    def recall_slowly(
        self, windows: Codes, without: Intervals | None = None, *, every: bool = False
    ) -> Recalled:
        """As `recall`, in NumPy: the definition, and what runs without a C library."""
        out = Recalled(np.ones(windows.shape), np.zeros((*windows.shape, 4)))
        for i, one in enumerate(self.prepare(windows, without) if len(windows) else ()):
            pair = list_all_diagonals(self.text, len(one.codes)) if every else self.find(one)
            out.background[i], out.copy[i] = recall_window(self.text, one, pair, self.numbers)
        return out

    def _check(self, windows: Codes, without: Intervals | None) -> Intervals:
        if windows.shape[1] > MOST_WINDOW:
            raise ValueError(f"a memory reads windows of at most {MOST_WINDOW:,} bases")
        if without is not None and len(without) != len(windows):
            raise ValueError(f"{len(without)} intervals for {len(windows)} windows")
        return without or [NOWHERE] * len(windows)


FORMAT = 1
MANIFEST = "manifest.json"
FILES = (
    {"planes", "start", "at", "counts"}, {"planes", "ends", "jumps", "at", "counts"},
    {"planes", "counts"},
)  # fmt: skip
"""With a table of every place, with a sampled one, and of a genome that has an alignment."""
_AGAIN = "remove the folder; it is built again from the training genome"


def write_memory(folder: str | Path, memory: Memory, made_from: dict[str, Any], **more: Any) -> str:
    """Write a memory as a new folder, at once; returns its fingerprint.

    `made_from`: what decides the memory, as JSON values; `more` stands in the manifest, too. Where
    the folder is there already, it stays. Raises `MachineError` where it cannot be written.
    """
    table = {} if memory.table is None else memory.table._asdict()
    arrays: dict[str, NDArray[Any]] = {
        "planes": memory.text.planes,
        **{name: x for name, x in table.items() if name != "k"},
        "counts": memory.chain.counts,
    }
    with atomic.atomic_directory(folder, exist_ok=True) as new:
        for name, array in arrays.items():
            np.save(new / f"{name}.npy", array, allow_pickle=False)
        manifest = {
            "format": FORMAT,
            "made_from": made_from,
            "k": table.get("k"),
            "order": memory.chain.order,
            "size": memory.text.size,
            "stretches": [list(s) for s in memory.text.sources],
            "files": {
                name: {
                    "bytes": (new / f"{name}.npy").stat().st_size,
                    "sha256": sha256_file(new / f"{name}.npy"),
                }
                for name in arrays
            },
            **more,
        }
        atomic.write_json(new / MANIFEST, manifest)
    return fingerprint_memory(folder)


def fingerprint_memory(folder: str | Path) -> str:
    """The sha256 of a memory's manifest. Raises `DataError` where it is not whole."""
    return sha256_json(read_manifest(Path(folder)), compact=True)


def open_memory(
    folder: str | Path,
    *,
    made_from: dict[str, Any] | None = None,
    fingerprint: str | None = None,
    verify: bool = False,
) -> Memory:
    """The memory in a folder, mapped from its files, with the default numbers.

    Raises `DataError` where it is not whole, was made from something else than `made_from`, or has
    another `fingerprint`. With `verify`, all files are read and compared with their hashes.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    if made_from is not None and manifest["made_from"] != made_from:
        both = manifest["made_from"], made_from
        there, wanted = (sha256_json(one, compact=True)[:12] for one in both)
        raise DataError(
            f"is the memory of other data: it was made from {there}, not from {wanted}",
            file=folder,
            fix="use the memory of the model's own training genome",
        )
    found = sha256_json(manifest, compact=True)
    if fingerprint is not None and found != fingerprint:
        raise DataError(
            f"is another memory: its fingerprint is {found}, but was {fingerprint}",
            file=folder,
            fix="restore the old memory, or start a new run",
        )
    arrays = {}
    for name in manifest["files"]:
        path = folder / f"{name}.npy"
        if verify and (read := sha256_file(path)) != manifest["files"][name]["sha256"]:
            raise DataError(
                f"has sha256 {read}, but was written as {manifest['files'][name]['sha256']}",
                file=path,
                fix=_AGAIN,
            )
        try:
            # Copy-on-write: the C library asks for memory that may be written, and never writes.
            arrays[name] = np.load(path, mmap_mode="c", allow_pickle=False)
        except (OSError, ValueError):
            raise DataError("is not an array", file=path, fix=_AGAIN) from None
    try:
        sources = tuple(TextStretch(*row) for row in manifest["stretches"])
        planes, counts = arrays.pop("planes"), arrays.pop("counts")
        text = MemoryText(planes, manifest["size"], sources)
        kind = KmerTable if "start" in arrays else SampledTable
        table = kind(manifest["k"], **arrays) if arrays else None
        if table is not None and not table.is_whole:
            raise ValueError
    except (TypeError, ValueError):
        raise DataError("is not a whole memory", file=folder, fix=_AGAIN) from None
    return Memory(text, table, Chain(counts))


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a memory. Raises `DataError` where it does not fit the files beside it."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        sizes = {one: (folder / f"{one}.npy").stat().st_size for one in manifest["files"]}
        if (
            manifest["format"] == FORMAT
            and {*sizes} in FILES
            and all(manifest["files"][name]["bytes"] == n for name, n in sizes.items())
        ):
            manifest["made_from"], manifest["stretches"], manifest["size"], manifest["k"]
            return manifest
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise DataError("is not a whole memory", file=folder, fix=_AGAIN)


def identify_memory(told: dict[str, Any]) -> dict[str, Any]:
    """Return what of a memory's description decides every bit: all but its location."""
    return {name: value for name, value in told.items() if name not in ("folder", "source")}
