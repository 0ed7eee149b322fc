"""A memory: the training genome as text, table and numbers, and what it says of masked windows.

`Memory.find` gives the diagonals that a window may copy, `Memory.recall` what they say of each
place. The store is part of the model that uses a memory.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from genodiff.memory.copying import Places, SeenWindow, list_all_diagonals, recall_window
from genodiff.memory.evidence import ORDER, Chain, Floats, count_words, measure_evidence
from genodiff.memory.fast import Asked, can_recall, recall_in_c
from genodiff.memory.numbers import MemoryNumbers
from genodiff.memory.search import Effort, find_diagonals
from genodiff.memory.tables import (
    KmerTable,
    SampledTable,
    build_sampled_table,
    build_table,
    choose_k,
)
from genodiff.memory.text import MOST_WINDOW, Codes, MemoryText, join_stretches, turn_codes

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
    table: KmerTable | SampledTable
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
        cls, text: MemoryText, *, k: int | None = None, numbers: MemoryNumbers | None = None
    ) -> Self:
        """The memory of a relative's text, with a table of a quarter of its places."""
        chain = Chain(count_words(text, ORDER))
        return cls(text, build_sampled_table(text, k), chain, numbers or MemoryNumbers())

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
        evidence = measure_evidence(windows, self.chain)
        return [
            SeenWindow(codes, known, (a, b), self._count_loci(a, b))
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
        if not can_recall(self.chain, self.numbers):
            prepared = self.prepare(windows, without)
            return prepared, [self.find(window) for window in prepared]
        left_out = self._check(windows, without)
        loci = [self._count_loci(a, b) for a, b in left_out]
        asked = Asked(self.text, self.table, self.chain, self.numbers, self.effort)
        said = recall_in_c(asked, windows, left_out, loci, find=True)
        rows = zip(windows, said.evidence, left_out, loci, strict=True)
        return [SeenWindow(x, e, (a, b), n) for x, e, (a, b), n in rows], said.diagonals

    def find(self, window: SeenWindow) -> tuple[Places, Places]:
        """The diagonals that a window may copy, of each strand."""
        turned = window._replace(
            codes=turn_codes(window.codes), evidence=np.ascontiguousarray(window.evidence[::-1])
        )
        first, second = (
            find_diagonals(self.text, self.table, one, self.numbers, self.effort)
            for one in (window, turned)
        )
        return first, second

    def recall(
        self, windows: Codes, without: Intervals | None = None, *, every: bool = False
    ) -> Recalled:
        """What the memory says of windows (B, L) of codes, 4 where no base is visible.

        With `every`, all diagonals of both strands are summed over: the truth, for small texts.
        """
        if every:
            prepared = self.prepare(windows, without)
            all_ = list_all_diagonals(self.text, windows.shape[1])
            return self._sum_paths(prepared, [all_] * len(prepared))
        return self._recall(windows, without)[0]

    def recall_slowly(self, windows: Codes, without: Intervals | None = None) -> Recalled:
        """As `recall`, in NumPy: the definition, and what runs without a C library."""
        prepared = self.prepare(windows, without)
        return self._sum_paths(prepared, [self.find(window) for window in prepared])

    def _recall(
        self, windows: Codes, without: Intervals | None
    ) -> tuple[Recalled, list[tuple[Places, Places]]]:
        if can_recall(self.chain, self.numbers):
            left_out = self._check(windows, without)
            loci = [self._count_loci(a, b) for a, b in left_out]
            asked = Asked(self.text, self.table, self.chain, self.numbers, self.effort)
            said = recall_in_c(asked, windows, left_out, loci)
            return Recalled(said.background, said.copy), said.diagonals
        prepared = self.prepare(windows, without)
        found = [self.find(window) for window in prepared]
        return self._sum_paths(prepared, found), found

    def _sum_paths(
        self, prepared: Sequence[SeenWindow], found: Sequence[tuple[Places, Places]]
    ) -> Recalled:
        parts = [
            recall_window(self.text, window, diagonals, self.numbers)
            for window, diagonals in zip(prepared, found, strict=True)
        ]
        length = len(prepared[0].codes) if prepared else 0
        background, copy = np.ones((len(parts), length)), np.zeros((len(parts), length, 4))
        for i, (w0, copied) in enumerate(parts):
            background[i], copy[i] = w0, copied
        return Recalled(background, copy)

    def _check(self, windows: Codes, without: Intervals | None) -> Intervals:
        if windows.shape[1] > MOST_WINDOW:
            raise ValueError(f"a memory reads windows of at most {MOST_WINDOW:,} bases")
        if without is not None and len(without) != len(windows):
            raise ValueError(f"{len(without)} intervals for {len(windows)} windows")
        return without or [NOWHERE] * len(windows)

    def _count_loci(self, start: int, end: int) -> int:
        return 2 * (self.text.n_bases - self.text.count_bases(start, end))
