"""A related genome whose diagonals come from an alignment to the target, not from a search in it.

A window is located in the target's own text by its visible bases. The ungapped blocks of the
alignment that overlap the located interval then become diagonals of the related genome's text, and
the chain of copies judges them as it judges those of a search. No table of k-mers is needed.

Locating. The target is searched as a memory is (`search.py`), by a model of near-identical copies,
so a few edits, such as an ALT allele, still locate. Words that are wholly visible find the place of
a whole window at once. So little effort is spent first, and all of it on windows that this leaves
without a place. Several places may be found; the blocks of each become diagonals.

The background that copies are judged against is the target's own chain, one for all genomes. A copy
begins on any of the diagonals that are offered alike, not on any base of the related genome: the
aligner has paid for that choice.

Honesty. A place depends on visible bases alone: the target's own bases at masked positions are
neither compared nor copied, and over_ies is still told by all visible bases but that of place i.
Two things are known nevertheless that a search in the related genome does not know:
1. Where the window is from. A few visible bases agree exactly with the target's text: a window of
   which nine tenths are masked is located where its homologue could not be found. Bits are those
   *given the coordinates*, as of all that reads alignments. They are lower than by a search where
   much is masked (yeast's chrV: .66 beside .75) and about the same of whole windows (.604, .616).
2. The alignment, whose author has seen the masked bases: it may have put a gap, or ended a block,
   where they say so. How much that is worth has not been measured.
So bits with an alignment are not to be set beside bits of a search.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.memory.copying import Places, SeenWindow
from genodiff.memory.memory import Intervals, Memory
from genodiff.memory.numbers import MemoryNumbers
from genodiff.memory.search import Effort
from genodiff.memory.text import Codes

LOCATED = MemoryNumbers(copies=0.5, start=0.01, end=0.001, shift=0, divergence=(0.002,), share=(1,))
"""A window is its own place, but for a few edits. Without shifts no diagonals are added."""
QUICK = Effort(scored=400, most=4, wild=4, least_odds=3.0)
THOROUGH = Effort(most=4, least_odds=3.0)
"""Effort of the first look, and of the second where the first finds nothing."""
Found = list[tuple[Places, Places]]


class AlignedBlocks(NamedTuple):
    """Ungapped blocks (N,), ascending by `target`: the places of the target's text and of the
    related genome's where each begins, its length, and 1 where the block's last place in the
    related genome is over its first in the target, as the reverse complement.
    """

    target: NDArray[np.int64]
    source: NDArray[np.int64]
    length: NDArray[np.int64]
    strand: NDArray[np.int64]

    @classmethod
    def sort(cls, rows: NDArray[np.int64]) -> "AlignedBlocks":
        """The blocks of `rows` (N, 4) in the order of the fields, each once."""
        return cls(*np.ascontiguousarray(np.unique(rows.reshape(-1, 4), axis=0).T))


class Located(NamedTuple):
    """Windows as seen beside a target, and the places of its text where each window begins, and
    where its reverse complement does.
    """

    seen: list[SeenWindow]
    places: Found


class Locator:
    """Finds windows in a target's text; the last windows are remembered, since each related genome
    asks for the same.
    """

    def __init__(self, target: Memory) -> None:
        self.memory = target.with_numbers(LOCATED)
        self._last: tuple[bytes, Located] = b"", Located([], [])

    def locate(self, windows: Codes) -> Located:
        """Find windows (B, L) of codes by their visible bases."""
        key = np.ascontiguousarray(windows).tobytes() + str(windows.shape).encode()
        asked, located = self._last
        if asked == key:
            return located
        seen, found = self.memory.with_effort(QUICK).search(windows)
        left = [i for i, pair in enumerate(found) if not any(map(len, pair))]
        if left:
            again = self.memory.with_effort(THOROUGH).find_all(windows[left])
            for i, pair in zip(left, again, strict=True):
                found[i] = pair
        self._last = key, Located(seen, found)
        return self._last[1]


@dataclass(frozen=True)
class AlignedMemory(Memory):
    """A related genome's text, and the blocks of its alignment to the target of a `locator`."""

    blocks: AlignedBlocks = field(kw_only=True)
    locator: Locator = field(kw_only=True)

    def search(
        self, windows: Codes, without: Intervals | None = None
    ) -> tuple[list[SeenWindow], Found]:
        """The windows as the model sees them, and the diagonals that the alignment gives them."""
        left_out = self._check(windows, without)
        located = self.locator.locate(windows)
        diagonals = list_diagonals(self.blocks, located.places, windows.shape[1], self._reach)
        seen = [
            one._replace(without=own, n_loci=max(sum(map(len, some)), 1), is_aligned=True)
            for one, own, some in zip(located.seen, left_out, diagonals, strict=True)
        ]
        return seen, diagonals

    @cached_property
    def _reach(self) -> NDArray[np.int64]:
        return find_reach(self.blocks)


def find_reach(blocks: AlignedBlocks) -> NDArray[np.int64]:
    """(N,): the farthest end of each block and of all before it, since blocks may overlap."""
    return np.maximum.accumulate(blocks.target + blocks.length)


def list_diagonals(
    blocks: AlignedBlocks,
    located: Sequence[tuple[Places, Places]],
    length: int,
    reach: NDArray[np.int64],
) -> Found:
    """The diagonals of each window of `length` bases, on each strand, ascending; `reach` is that of
    `find_reach`.
    """
    counts = [[len(one) for one in pair] for pair in located]
    begin = np.concatenate([one for pair in located for one in pair] or [np.zeros(0, np.int64)])
    owner = np.repeat(np.arange(2 * len(located)), np.array(counts, np.int64).reshape(-1))
    first = np.searchsorted(reach, begin, "right")
    last = np.searchsorted(blocks.target, begin + length, "left")
    n = np.maximum(last - first, 0)
    rows = np.repeat(np.arange(len(begin)), n)
    at = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n) + first[rows]
    over = blocks.target[at] + blocks.length[at] > begin[rows]
    rows, at = rows[over], at[over]
    turned = blocks.strand[at]
    shift = begin[rows] - blocks.target[at]
    place = np.where(
        turned == 1,
        blocks.source[at] + blocks.length[at] - shift - length,
        blocks.source[at] + shift,
    )
    owner = owner[rows] ^ turned
    order = np.lexsort((place, owner))
    owner, place = owner[order], place[order]
    new = np.append(True, (np.diff(owner) != 0) | (np.diff(place) != 0))[: len(owner)]
    owner, place = owner[new], place[new]
    edges = np.searchsorted(owner, np.arange(2 * len(located) + 1))
    return [
        (place[edges[i] : edges[i + 1]], place[edges[i + 1] : edges[i + 2]])
        for i in range(0, 2 * len(located), 2)
    ]


def list_diagonals_slowly(
    blocks: AlignedBlocks, located: Sequence[tuple[Places, Places]], length: int
) -> Found:
    """As `list_diagonals`, a block at a time: the definition."""
    out: Found = []
    for pair in located:
        found: tuple[set[int], set[int]] = set(), set()
        for strand, begins in enumerate(pair):
            for a in begins.tolist():
                for t, q, n, turned in zip(*(one.tolist() for one in blocks), strict=True):
                    if t >= a + length or t + n <= a:
                        continue
                    # Place i of the window is over q + (a + i − t), or, turned, over
                    # q + n − 1 − (a + i − t), which is place length − 1 − i of its complement.
                    found[strand ^ turned].add(q + n - (a - t) - length if turned else q + a - t)
        first, second = (np.array(sorted(one), np.int64) for one in found)
        out.append((first, second))
    return out
