"""What a page says of scored variants, counted row by row; memory does not grow with their number.

Scores are counted on a grid of `STEP`, percentiles on one of 0.5. Of the rows themselves only the
least likely ones are held.

Scores along a genome, in bins that grow with what is read: memory has a bound.

A bin has a number of bases, the same in all contigs. Where there are more than `MOST` bins, two
become one. Contigs stand in the order in which they come; after the first `CONTIGS` none is added.
"""

import heapq
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.variants.background_draws import SizeClass, find_class
from genodiff.variants.scored_file import ScoredRow

MOST, CONTIGS = 1024, 64


class PlaceBin(NamedTuple):
    """Scores of one bin: where it begins and ends, how many, their mean and the lowest."""

    contig: str
    start: int
    end: int
    n: int
    mean: float
    least: float


class ScoredPlaces:
    """Scores by place. `width`: bases of a bin; `ends`: the last place that was seen, by contig."""

    def __init__(self, width: int = 64) -> None:
        self.width = width
        self.ends: dict[str, int] = {}
        self.left_out = 0
        """Scores on contigs after the first `CONTIGS`."""
        self._bins: dict[tuple[str, int], tuple[int, float, float]] = {}

    def add(self, contig: str, place: int, score: float) -> None:
        """A score at a place, from 0."""
        if contig not in self.ends and len(self.ends) >= CONTIGS:
            self.left_out += 1
            return
        self.ends[contig] = max(self.ends.get(contig, 0), place + 1)
        self._put((contig, place // self.width), 1, score, score)
        while len(self._bins) > MOST and self.width < 1 << 40:
            held, self._bins, self.width = self._bins, {}, 2 * self.width
            for (name, number), (n, total, least) in held.items():
                self._put((name, number // 2), n, total, least)

    def list_bins(self) -> list[PlaceBin]:
        """The bins that hold a score, contig by contig, in order."""
        order = {name: i for i, name in enumerate(self.ends)}
        keys = sorted(self._bins, key=lambda one: (order[one[0]], one[1]))
        w = self.width
        return [
            PlaceBin(name, i * w, min((i + 1) * w, self.ends[name]), n, total / n, least)
            for name, i in keys
            for n, total, least in [self._bins[name, i]]
        ]

    def _put(self, key: tuple[str, int], n: int, total: float, least: float) -> None:
        known = self._bins.get(key, (0, 0.0, least))
        self._bins[key] = (known[0] + n, known[1] + total, min(known[2], least))


STEP = 0.02
"""Width of a bin of scores, in the file's unit."""
PERCENT_BINS = 200
_Held = tuple[tuple[float, ...], int, ScoredRow]


@dataclass
class ClassScores:
    """The scores of one class (`snv`, `del1`), per base where the class compares them so."""

    size: SizeClass
    n: int = 0
    ranked: int = 0
    grid: Counter[int] = field(default_factory=Counter)

    def list_scores(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Middles of the bins that are not empty, in order, and their counts."""
        return list_grid(self.grid)


def list_grid(grid: Mapping[int, int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Middles of the bins of a grid that are not empty, in order, and their counts."""
    bins = sorted(grid)
    return (np.array(bins) + 0.5) * STEP, np.array([grid[one] for one in bins], float)


class ScoredTally:
    """Counts over the rows of scored variants; `top` is how many rows it holds."""

    def __init__(self, top: int = 20) -> None:
        self.rows = 0
        self.scored: Counter[str] = Counter()
        """ALTs with a score, by kind."""
        self.unscored: Counter[str] = Counter()
        """ALTs without, by reason."""
        self.notes: Counter[str] = Counter()
        """Flags of ALTs with a score."""
        self.methods: Counter[str] = Counter()
        self.ranked = 0
        self.classes: dict[SizeClass, ClassScores] = {}
        self.percentiles: dict[str, NDArray[np.float64]] = {}
        """Counts in `PERCENT_BINS` bins, by kind; each ALT counts 1 in all."""
        self.consequences: dict[str, Counter[int]] = {}
        """Scores of SNVs on the grid, by the first term of their consequence."""
        self.places = ScoredPlaces()
        self._top = top
        self._least: list[_Held] = []

    def add(self, row: ScoredRow) -> None:
        """Count one row."""
        self.rows += 1
        if row.score is None:
            self.unscored[row.flags[0]] += 1
            return
        self.scored[row.kind] += 1
        self.methods[row.method] += 1
        self.notes.update(row.flags)
        self._add_to_class(row, row.score)
        self.places.add(row.chrom, row.pos - 1, row.score)
        if row.consequence and row.kind == "snv":
            grid = self.consequences.setdefault(row.consequence.partition("&")[0], Counter())
            grid[int(row.score // STEP)] += 1
        if row.percentile is not None:
            self.ranked += 1
            counts = self.percentiles.setdefault(row.kind, np.zeros(PERCENT_BINS))
            _spread(counts, row.percentile, row.n_background)
        self._hold(row, row.score)

    def _add_to_class(self, row: ScoredRow, score: float) -> None:
        size = find_class(row.ref_bases, row.alt_bases)
        if size is None:
            return
        known = self.classes.setdefault(size, ClassScores(size))
        known.n += 1
        known.ranked += row.percentile is not None
        value = score / max(row.ref_bases, row.alt_bases) if size.per_base else score
        known.grid[int(value // STEP)] += 1

    def _hold(self, row: ScoredRow, score: float) -> None:
        order = (row.percentile is None, row.percentile or 0.0, row.z or 0.0, score)
        # A heap drops its least item, and the likeliest row is to go: so keys are negative
        _push(self._least, (tuple(-one for one in order), -self.rows, row), self._top)

    @property
    def n_scored(self) -> int:
        """ALTs with a score."""
        return sum(self.scored.values())

    def list_least(self) -> list[ScoredRow]:
        """The rows of the lowest percentiles, then of the lowest z and score."""
        return [row for *_, row in sorted(self._least, key=lambda one: one[:2], reverse=True)]


def _spread(counts: NDArray[np.float64], percentile: float, n: int) -> None:
    """Count 1 over the stretch that a rank among `n` stands for: 1 of n + 1 equal parts."""
    bins = len(counts)
    middle, half = percentile / 100 * bins, bins / (n + 1) / 2
    low, high = max(0.0, middle - half), min(float(bins), middle + half)
    first, last = min(int(low), bins - 1), min(int(high), bins - 1)
    for one in range(first, last + 1):
        counts[one] += (min(high, one + 1) - max(low, one)) / (high - low)


def _push(heap: list[_Held], item: _Held, size: int) -> None:
    if len(heap) < size:
        heapq.heappush(heap, item)
    elif size:
        heapq.heappushpop(heap, item)


def measure_ks(counts: NDArray[np.floating[Any]] | NDArray[np.integer[Any]]) -> tuple[float, float]:
    """The largest distance of percentiles, counted in equal bins, from the uniform law.

    And what 1 in 20 random sets of so many exceeds: 1.358 / √n.
    """
    n = float(counts.sum())
    if not n:
        return 0.0, 1.0
    steps = np.cumsum(counts) / n
    even = np.arange(1, len(counts) + 1) / len(counts)
    return float(np.abs(steps - even).max()), 1.358 / n**0.5
