"""Windows: the pieces of `seq_len` bases that a split's intervals are cut into.

An interval of n bases holds windows at start + offset + i·stride. The offset is 0 for evaluation.
In training each epoch has one of 16 phases that moves it, so that a base is seen at many places in
its window; windows of one epoch never share a base (as long as stride ≥ seq_len). An interval
shorter than `seq_len` is one right-padded window.

Windows with more than `max_n_fraction` of N are dropped and counted; a window without any base
always is. Runs of N are known from the store, so a genome of mostly N costs no more than its few
edges: nothing here reads sequence, and a split is held as ranges of windows rather than one by one.
"""

import logging
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import DNA, SOFT
from genodiff.data.recipe import SPLITS, Recipe
from genodiff.data.splits import Intervals, stretched
from genodiff.data.store import Store
from genodiff.errors import DataError, UsageError

log = logging.getLogger("genodiff")

PHASES = 16
_ROOMY = 32
"""Intervals of at least so many windows may give one up for a freely moving offset."""

Ints = NDArray[np.int64]

_IDS = np.arange(256, dtype=np.uint8) & ~np.uint8(SOFT)
_IS_TARGET = np.isin(_IDS, DNA.targets)


class Tokens(NamedTuple):
    """What stored windows say, each (B, L)."""

    x0: NDArray[np.int64]
    maskable: NDArray[np.bool_]
    soft: NDArray[np.bool_]
    segments: (
        NDArray[np.int64] | None
    )  # the document of each position, where windows hold several that do not see one another


@dataclass(frozen=True)
class Tiling:
    """The windows at one phase, as ranges: `kept` lists the numbers that are kept, out of `n`
    before dropping.
    """

    first: Ints  # number of each interval's first window, ascending; one more entry at the end
    start: Ints  # flat start of each interval's first window
    length: Ints  # window length, by interval
    kept: Ints  # (ranges, 2): kept numbers, half-open, ascending
    stride: int

    @cached_property
    def _before(self) -> Ints:
        return np.concatenate(([0], np.cumsum(self.kept[:, 1] - self.kept[:, 0])))

    def __len__(self) -> int:
        return int(self._before[-1])

    @property
    def dropped(self) -> int:
        """Windows left out because of their N."""
        return int(self.first[-1]) - len(self)

    def at(self, rank: Ints) -> tuple[Ints, Ints]:
        """Flat start and length of the kept windows of these ranks (0 .. len − 1)."""
        at_range = np.searchsorted(self._before, rank, "right") - 1
        number = self.kept[at_range, 0] + rank - self._before[at_range]
        interval = np.searchsorted(self.first, number, "right") - 1
        return self.start[interval] + (number - self.first[interval]) * self.stride, self.length[
            interval
        ]


class Windows:
    """All windows of one split of a store. `contig_index`, `start`, `length` list the evaluation
    windows (phase 0).
    """

    pad_id = DNA.pad_id

    def __init__(
        self,
        store: Store,
        recipe: Recipe,
        split: str,
        seq_len: int,
        *,
        stride: int | None = None,
        max_n_fraction: float | None = None,
        legacy_caduceus_tiling: bool = False,
    ) -> None:
        """Raises `UsageError` for sizes that cannot be meant, `DataError` where the split holds no
        usable window.
        """
        if split not in SPLITS:
            raise UsageError(f"no split '{split}'", fix=f"choose {', '.join(SPLITS)}")
        if seq_len < 1 or (stride is not None and stride < 1):
            raise UsageError(
                f"a window of {seq_len} bases with stride {stride} cannot be cut",
                fix="give 1 or more",
            )
        self.store, self.split, self.seq_len, self.stride = store, split, seq_len, stride or seq_len
        self.max_n_fraction = recipe.max_n_fraction if max_n_fraction is None else max_n_fraction
        self.shortest = max(1, seq_len // 8)
        self.legacy = legacy_caduceus_tiling
        intervals = store.splits.intervals[split]
        self.intervals: Intervals = (
            stretched(intervals, store.lengths) if legacy_caduceus_tiling else intervals
        )
        self._tilings: dict[int, Tiling] = {}
        self._subset: Ints | None = None
        self._refuse_short()
        tiling = self.tiling(0)
        size = self.intervals.end - self.intervals.start
        too_short = size < min(self.shortest, seq_len)
        self.dropped: dict[str, int] = {
            "windows_too_much_n": tiling.dropped,
            "intervals_too_short": int(too_short.sum()),
            "tail_bases": int(
                np.where(
                    size >= seq_len, (size - seq_len) % self.stride, np.where(too_short, size, 0)
                ).sum()
            ),
        }
        if not len(tiling):
            self._refuse_empty(tiling)
        log.info("%s: %s", split, self.summary())

    def tiling(self, phase: int) -> Tiling:
        """The windows at a phase 0 .. PHASES − 1."""
        if phase not in self._tilings:
            self._tilings[phase] = self._tile(phase)
        return self._tilings[phase]

    @cached_property
    def per_epoch(self) -> int:
        """Windows in a training epoch: as many as every phase has, so that epochs are equally long."""
        return min(len(self.tiling(phase)) for phase in range(PHASES))

    @cached_property
    def _listed(self) -> tuple[Ints, Ints]:
        tiling = self.tiling(0)
        return tiling.at(np.arange(len(tiling)) if self._subset is None else self._subset)

    @property
    def flat_start(self) -> Ints:
        """Where each window begins in `store.flat`."""
        return self._listed[0]

    @property
    def length(self) -> Ints:
        """Bases in each window: `seq_len`, or less where the interval is shorter."""
        return self._listed[1]

    @cached_property
    def contig_index(self) -> Ints:
        """The number of each window's contig in `store.names`."""
        return np.searchsorted(self.store.offsets, self.flat_start, "right") - 1

    @cached_property
    def start(self) -> Ints:
        """Each window's 0-based start on its contig."""
        return self.flat_start - self.store.offsets[self.contig_index]

    def __len__(self) -> int:
        return len(self.tiling(0)) if self._subset is None else len(self._subset)

    def take(self, index: Ints) -> Self:
        """These windows only (numbers in 0 .. len − 1), for evaluation."""
        other = object.__new__(type(self))
        fresh = ("_listed", "contig_index", "start", "per_epoch")
        other.__dict__.update({k: v for k, v in self.__dict__.items() if k not in fresh})
        other._subset = np.asarray(index, np.int64) if self._subset is None else self._subset[index]
        return other

    def spread(self, n: int) -> Self:
        """At most `n` windows, evenly spread over the split."""
        return self if n >= len(self) else self.take(np.arange(n, dtype=np.int64) * len(self) // n)

    def tokens(self, data: NDArray[Any], length: Ints) -> Tokens:
        """What gathered rows say: ids, what may be masked (A, C, G, T), what is soft-masked."""
        return Tokens(_IDS[data].astype(np.int64), _IS_TARGET[data], data >= SOFT, None)

    def widths(self, length: Ints) -> Ints:
        """How much of a row is no padding, for windows of these lengths."""
        return length

    def bytes(self) -> NDArray[np.float64] | None:
        """Bytes of text in each window. None of DNA, whose bits are counted per base."""
        return None

    def gather(self, flat_start: Ints, length: Ints, pad: int) -> NDArray[Any]:
        """(B, seq_len) of what the store holds (`id | SOFT`) of windows, right-padded with `pad`."""
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

    def summary(self) -> str:
        """One line: how many windows there are and what was left out."""
        words = {
            "windows_too_much_n": f"windows with more than {self.max_n_fraction:.0%} N",
            "intervals_too_short": f"intervals shorter than {self.shortest} bases",
            "tail_bases": "bases at the intervals' ends",
        }
        listed = ", ".join(
            f"{self.dropped[k]:,} {word}" for k, word in words.items() if self.dropped[k]
        )
        return f"{len(self):,} windows of {self.seq_len} bases" + (
            f"; left out: {listed}" if listed else ""
        )

    def _refuse_short(self) -> None:
        origin, longest = self.store.source.path, int(np.argmax(self.store.lengths))
        size = self.intervals.end - self.intervals.start
        needed = self.seq_len if self.split == "train" else min(self.shortest, self.seq_len)
        if not len(size):
            raise DataError(
                f"the split {self.split} is empty",
                file=origin,
                fix="give more contigs, or splits with --bed",
            )
        if self.store.lengths[longest] < needed:
            raise DataError(
                f"every contig is shorter than the seq_len of {self.seq_len}: "
                f"the longest, {self.store.names[longest]}, has "
                f"{self.store.lengths[longest]} bases",
                file=origin,
                fix=f"give --seq-len {self.store.lengths[longest]} or less",
            )
        if size.max() < needed:
            raise DataError(
                f"every interval of the split {self.split} is shorter than the seq_len of "
                f"{self.seq_len}: "
                f"the longest has {size.max()} bases",
                file=origin,
                fix=f"give --seq-len {size.max() * (1 if self.split == 'train' else 8)} or "
                f"less, or splits with --bed",
            )

    def _refuse_empty(self, tiling: Tiling) -> None:
        contigs = np.unique(self.intervals.contig)
        raise DataError(
            f"no usable window in the split {self.split}: each of the {tiling.dropped:,} windows "
            f"of {self.seq_len} bases has more than {self.max_n_fraction:.0%} N",
            file=self.store.source.path,
            record=self.store.names[int(contigs[0])] if len(contigs) == 1 else None,
            fix="give a file with more known sequence, or a smaller --seq-len",
        )

    def _tile(self, phase: int) -> Tiling:
        start = self.store.offsets[self.intervals.contig] + self.intervals.start
        size = self.intervals.end - self.intervals.start
        keep = size >= min(self.shortest, self.seq_len)
        start, size = start[keep], size[keep]
        length = np.minimum(size, self.seq_len)
        count = (size - length) // self.stride + 1
        slack = (size - length) % self.stride
        roomy = (count >= _ROOMY) & (phase > 0)
        count, slack = count - roomy, slack + np.where(roomy, self.stride, 0)
        start = start + phase * (slack + 1) // PHASES
        first = np.concatenate(([0], np.cumsum(count)))
        dropped = _dropped(
            start, length, count, first[:-1], self.stride, self.store.n_runs, self.max_n_fraction
        )
        edges = np.concatenate(([0], dropped.ravel(), [first[-1]])).reshape(-1, 2)
        return Tiling(first, start, length, edges[edges[:, 1] > edges[:, 0]], self.stride)


def _dropped(
    start: Ints, length: Ints, count: Ints, first: Ints, stride: int, runs: Ints, most: float
) -> Ints:
    """(ranges, 2): numbers of the windows with too much N, half-open, ascending, disjoint."""
    if not len(runs) or not len(start):
        return np.zeros((0, 2), np.int64)
    # Every (interval, run of N) that meet.
    last_end = start + (count - 1) * stride + length
    low = np.searchsorted(runs[:, 1], start, "right")
    high = np.searchsorted(runs[:, 0], last_end, "left")
    pairs = np.maximum(high - low, 0)
    i = np.repeat(np.arange(len(start)), pairs)
    r = np.repeat(low - np.cumsum(pairs) + pairs, pairs) + np.arange(len(i))
    a, b, size = runs[r, 0] - start[i], runs[r, 1] - start[i], length[i]
    # Windows that lie inside the run are gone; those that meet its edges are counted.
    inside = np.stack((-((-a) // stride), (b - size) // stride + 1), 1).clip(0, count[i][:, None])
    meet = np.stack(((a - size) // stride + 1, (b - 1) // stride + 1), 1).clip(0, count[i][:, None])
    some = inside[:, 1] > inside[:, 0]
    left = np.stack((meet[:, 0], np.where(some, inside[:, 0], meet[:, 1])), 1)
    right = np.stack((np.where(some, inside[:, 1], meet[:, 1]), meet[:, 1]), 1)
    edges = np.concatenate((left + first[i][:, None], right + first[i][:, None]))
    sizes = np.maximum(edges[:, 1] - edges[:, 0], 0)
    number = np.unique(
        np.repeat(edges[:, 0] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    )
    at = np.searchsorted(first, number, "right") - 1
    begin = start[at] + (number - first[at]) * stride
    n = _n_before(runs, begin + length[at]) - _n_before(runs, begin)
    bad = number[n > most * length[at]]
    ranges = np.concatenate((inside[some] + first[i][some][:, None], np.stack((bad, bad + 1), 1)))
    return ranges[np.argsort(ranges[:, 0])]


def _n_before(runs: Ints, position: Ints) -> Ints:
    """How many N stand before each flat position."""
    before = np.concatenate(([0], np.cumsum(runs[:, 1] - runs[:, 0])))
    i = np.searchsorted(runs[:, 0], position, "right")
    inside = np.clip(position - runs[i - 1, 0], 0, runs[i - 1, 1] - runs[i - 1, 0])
    return np.where(i > 0, before[i - 1] + inside, 0)
