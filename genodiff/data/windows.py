"""Windows: the rows of `seq_len` positions that a split is cut into, whatever its domain.

A window is a stretch of the store's flat ids: a start and a length, at most `seq_len`. Only
`gather` reads ids. DNA: dna_windows.py; text: text_windows.py.

Tilings: the intervals of a split cut into windows of equal length.

An interval holds windows at start + offset + i·seq_len. The offset is 0 for evaluation. In training
each epoch has one of 16 phases that moves it, so that a position is seen at many places in its
window; windows of one epoch never overlap. An interval shorter than `seq_len` is one right-padded
window.

Windows with more than `max_n_fraction` of N are dropped and counted; a window without any base
always is. Runs of N are known from the store, so a genome of mostly N costs no more than its few
edges: nothing here reads sequence, and a split is held as ranges of windows rather than one by one.
"""

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from genodiff.data.recipe import ALL, SPLITS
from genodiff.data.splits import Intervals
from genodiff.data.store import Store, find_intervals
from genodiff.errors import UsageError

PHASES = 16
"""Tilings of a split that training epochs choose from."""

Ints = NDArray[np.int64]

_OF_SUBSET = ("_listed", "contig_index", "start", "per_epoch")


class Tokens(NamedTuple):
    """What stored windows say, each (B, L)."""

    x0: NDArray[np.int64]
    maskable: NDArray[np.bool_]
    soft: NDArray[np.bool_]
    segments: NDArray[np.int64] | None
    """The document of each position, where a window holds several that do not see one another."""


@dataclass(frozen=True)
class IntervalTiling:
    """The windows at one phase, as ranges of their numbers before any was dropped."""

    first: Ints  # number of each interval's first window, ascending; one more entry at the end
    start: Ints  # flat start of each interval's first window
    length: Ints  # window length, by interval
    kept: Ints  # (ranges, 2): kept numbers, half-open, ascending

    @cached_property
    def _before(self) -> Ints:
        return np.concatenate(([0], np.cumsum(self.kept[:, 1] - self.kept[:, 0])))

    def __len__(self) -> int:
        return int(self._before[-1])

    @property
    def dropped(self) -> int:
        """Windows left out because of their N."""
        return int(self.first[-1]) - len(self)

    def count_before(self, number: Ints) -> Ints:
        """How many kept windows have a smaller number, which is a rank."""
        if not len(self.kept):
            return np.zeros_like(number)
        at = np.maximum(np.searchsorted(self.kept[:, 0], number, "right") - 1, 0)
        inside = np.clip(number - self.kept[at, 0], 0, self.kept[at, 1] - self.kept[at, 0])
        return self._before[at] + inside

    def at(self, rank: Ints) -> tuple[Ints, Ints]:
        """Flat start and length of the kept windows of these ranks (0 .. len − 1)."""
        at_range = np.searchsorted(self._before, rank, "right") - 1
        number = self.kept[at_range, 0] + rank - self._before[at_range]
        interval = np.searchsorted(self.first, number, "right") - 1
        length = self.length[interval]
        return self.start[interval] + (number - self.first[interval]) * length, length


class Windows(ABC):
    """All windows of one split of a store; the arrays list the evaluation windows (phase 0)."""

    pad_id: int
    _tiling: IntervalTiling
    intervals: Intervals
    """What of the store belongs to the split."""
    dropped: dict[str, int]
    """What of the split is in no window, and why."""

    def __init__(self, store: Store, split: str, seq_len: int) -> None:
        """Raises `UsageError` for an unknown split."""
        if split not in (*SPLITS, ALL):
            raise UsageError(f"no split '{split}'", fix=f"choose {', '.join(SPLITS)}")
        self.store, self.split, self.seq_len = store, split, seq_len
        self._subset: Ints | None = None
        self._pieces: tuple[Ints, Ints] | None = None

    def tiling(self, phase: int) -> IntervalTiling:
        """The windows at a phase 0 .. PHASES − 1; here the same at every one."""
        return self._tiling

    @abstractmethod
    def tokens(self, data: NDArray[Any], length: Ints) -> Tokens:
        """What gathered rows say: ids, what may be masked, what is soft-masked."""

    @abstractmethod
    def summary(self) -> str:
        """One line: how many windows there are and what was left out."""

    @cached_property
    def per_epoch(self) -> int:
        """Windows in a training epoch: as many as every phase has, so epochs are equally long."""
        return min(len(self.tiling(phase)) for phase in range(PHASES))

    @cached_property
    def _listed(self) -> tuple[Ints, Ints]:
        chosen = np.arange(len(self)) if self._subset is None else self._subset
        if self._pieces is None:
            return self.tiling(0).at(chosen)
        start, length = self._pieces
        return start[chosen], length[chosen]

    @property
    def flat_start(self) -> Ints:
        """Where each window begins in `store.flat`."""
        return self._listed[0]

    @property
    def length(self) -> Ints:
        """Stored positions in each window: `seq_len` or less."""
        return self._listed[1]

    @cached_property
    def contig_index(self) -> Ints:
        """The number of each window's contig in `store.names`."""
        return self.store.find_contigs(self.flat_start)

    @cached_property
    def start(self) -> Ints:
        """Each window's 0-based start on its contig."""
        return self.flat_start - self.store.offsets[self.contig_index]

    def __len__(self) -> int:
        if self._subset is not None:
            return len(self._subset)
        return len(self.tiling(0)) if self._pieces is None else len(self._pieces[0])

    def take(self, index: Ints) -> Self:
        """These windows only (numbers in 0 .. len − 1), for evaluation."""
        known = self._subset
        return self._copy_with(np.asarray(index, np.int64) if known is None else known[index])

    def _copy_with(self, subset: Ints | None) -> Self:
        other = copy.copy(self)
        for name in _OF_SUBSET:
            other.__dict__.pop(name, None)
        other._subset = subset
        return other

    def whole(self) -> tuple[Self, Ints]:
        """All windows that these were taken from, and the numbers of these among them."""
        if self._subset is None:
            return self, np.arange(len(self))
        return self._copy_with(None), self._subset

    def spread(self, n: int) -> Self:
        """At most `n` windows, evenly spread over the split."""
        return self if n >= len(self) else self.take(np.arange(n, dtype=np.int64) * len(self) // n)

    def pieces(self, seq_len: int) -> tuple[Self, Ints]:
        """These windows cut into pieces of at most `seq_len`, and the window that each is of.

        The pieces hold the same positions, for evaluation by a network of another length.
        """
        count = -(-self.length // seq_len)
        owner = np.repeat(np.arange(len(self)), count)
        offset = seq_len * (np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count))
        other = self._copy_with(None)
        length = np.minimum(self.length[owner] - offset, seq_len)
        other.seq_len, other._pieces = seq_len, (self.flat_start[owner] + offset, length)
        return other, owner

    def widths(self, length: Ints) -> Ints:
        """How much of a row is no padding, for windows of these lengths."""
        return length

    def bytes(self) -> NDArray[np.float64] | None:
        """Bytes of text in each window. None of DNA, whose bits are counted per base."""
        return self.store.bytes_of(self.flat_start, self.length)

    def gather(self, flat_start: Ints, length: Ints, pad: int) -> NDArray[Any]:
        """(B, seq_len) of what the store holds of windows, right-padded with `pad`."""
        flat, seq_len = self.store.flat, self.seq_len
        out = np.empty((len(flat_start), seq_len), flat.dtype)
        full = length == seq_len
        if full.any():
            view = np.lib.stride_tricks.sliding_window_view(np.asarray(flat), seq_len)
            out[full] = view[flat_start[full]]
        for row in np.flatnonzero(~full):
            n = int(length[row])
            out[row, :n] = flat[flat_start[row] : flat_start[row] + n]
            out[row, n:] = pad
        return out


_ROOMY = 32
"""Intervals of at least so many windows may give one up for a freely moving offset."""


class TiledWindows(Windows):
    """Windows that tile the intervals of a split."""

    units: str

    def __init__(
        self,
        store: Store,
        split: str,
        seq_len: int,
        *,
        max_n_fraction: float = 1.0,
        legacy_caduceus_tiling: bool = False,
    ) -> None:
        """Raises `UsageError` for impossible sizes, `DataError` for too little sequence."""
        super().__init__(store, split, seq_len)
        if seq_len < 1:
            what = f"a window of {seq_len} {self.units} cannot be cut"
            raise UsageError(what, fix="give 1 or more")
        self.max_n_fraction, self.legacy = max_n_fraction, legacy_caduceus_tiling
        self.shortest = max(1, seq_len // 8)
        self.intervals = find_intervals(store, split, legacy_caduceus_tiling=legacy_caduceus_tiling)
        self._tilings: dict[int, IntervalTiling] = {}
        self._refuse_short()
        size = self.intervals.end - self.intervals.start
        too_short = size < min(self.shortest, seq_len)
        tail = np.where(size >= seq_len, (size - seq_len) % seq_len, too_short * size)
        self.dropped = {
            "windows_too_much_n": self.tiling(0).dropped,
            "intervals_too_short": int(too_short.sum()),
            "tail_bases": int(tail.sum()),
        }

    @abstractmethod
    def _refuse_short(self) -> None:
        """Raises `DataError` where the split has less than one window."""

    def tiling(self, phase: int) -> IntervalTiling:
        """See `Windows.tiling`."""
        if phase not in self._tilings:
            self._tilings[phase] = self._tile(phase)
        return self._tilings[phase]

    def _tile(self, phase: int) -> IntervalTiling:
        start = self.store.offsets[self.intervals.contig] + self.intervals.start
        size = self.intervals.end - self.intervals.start
        keep = size >= min(self.shortest, self.seq_len)
        start, size = start[keep], size[keep]
        length = np.minimum(size, self.seq_len)
        count = (size - length) // self.seq_len + 1
        slack = (size - length) % self.seq_len
        roomy = (count >= _ROOMY) & (phase > 0)
        count, slack = count - roomy, slack + np.where(roomy, self.seq_len, 0)
        start = start + phase * (slack + 1) // PHASES
        first = np.concatenate(([0], np.cumsum(count)))
        runs, most = self.store.n_runs, self.max_n_fraction
        dropped = find_dropped_windows(start, length, count, first[:-1], runs, most)
        edges = np.concatenate(([0], dropped.ravel(), [first[-1]])).reshape(-1, 2)
        return IntervalTiling(first, start, length, edges[edges[:, 1] > edges[:, 0]])


def find_dropped_windows(
    start: Ints, length: Ints, count: Ints, first: Ints, runs: Ints, most: float
) -> Ints:
    """(ranges, 2): numbers of the windows with too much N, half-open, ascending, disjoint."""
    if not len(runs) or not len(start):
        return np.zeros((0, 2), np.int64)
    # Every (interval, run of N) that meet.
    last_end = start + count * length
    low = np.searchsorted(runs[:, 1], start, "right")
    high = np.searchsorted(runs[:, 0], last_end, "left")
    pairs = np.maximum(high - low, 0)
    i = np.repeat(np.arange(len(start)), pairs)
    r = np.repeat(low - np.cumsum(pairs) + pairs, pairs) + np.arange(len(i))
    a, b, size = runs[r, 0] - start[i], runs[r, 1] - start[i], length[i]
    # Windows that lie inside the run are gone; those that meet its edges are counted.
    inside = np.stack((-((-a) // size), (b - size) // size + 1), 1).clip(0, count[i][:, None])
    meet = np.stack((a // size, (b - 1) // size + 1), 1).clip(0, count[i][:, None])
    some = inside[:, 1] > inside[:, 0]
    left = np.stack((meet[:, 0], np.where(some, inside[:, 0], meet[:, 1])), 1)
    right = np.stack((np.where(some, inside[:, 1], meet[:, 1]), meet[:, 1]), 1)
    edges = np.concatenate((left + first[i][:, None], right + first[i][:, None]))
    sizes = np.maximum(edges[:, 1] - edges[:, 0], 0)
    before = np.repeat(edges[:, 0] - np.cumsum(sizes) + sizes, sizes)
    number = np.unique(before + np.arange(sizes.sum()))
    at = np.searchsorted(first, number, "right") - 1
    begin = start[at] + (number - first[at]) * length[at]
    n = count_n_before(runs, begin + length[at]) - count_n_before(runs, begin)
    bad = number[n > most * length[at]]
    ranges = np.concatenate((inside[some] + first[i][some][:, None], np.stack((bad, bad + 1), 1)))
    return ranges[np.argsort(ranges[:, 0])]


def count_n_before(runs: Ints, position: Ints) -> Ints:
    """How many N stand before each flat position."""
    before = np.concatenate(([0], np.cumsum(runs[:, 1] - runs[:, 0])))
    i = np.searchsorted(runs[:, 0], position, "right")
    inside = np.clip(position - runs[i - 1, 0], 0, runs[i - 1, 1] - runs[i - 1, 0])
    return np.where(i > 0, before[i - 1] + inside, 0)
