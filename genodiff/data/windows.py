"""Windows: the rows of `seq_len` positions that a split is cut into, whatever its domain.

A window is a stretch of the store's flat ids: a start and a length, at most `seq_len`. Only
`gather` reads ids. DNA: dna_windows.py; text: text_windows.py.
"""

import copy
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from genodiff.data.recipe import ALL, SPLITS
from genodiff.data.splits import Intervals
from genodiff.data.store import Store
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


class Tiling(Protocol):
    """The windows of a split at one phase, by rank."""

    def __len__(self) -> int: ...

    def at(self, rank: Ints) -> tuple[Ints, Ints]:
        """Flat start and length of the windows of these ranks (0 .. len − 1)."""
        ...


class Windows(ABC):
    """All windows of one split of a store.

    `flat_start`, `length`, `contig_index` and `start` list the evaluation windows (phase 0).
    """

    pad_id: int
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

    @abstractmethod
    def tiling(self, phase: int) -> Tiling:
        """The windows at a phase 0 .. PHASES − 1."""

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
        if self._pieces is not None:
            start, length = self._pieces
            return (
                (start, length)
                if self._subset is None
                else (start[self._subset], length[self._subset])
            )
        tiling = self.tiling(0)
        return tiling.at(np.arange(len(tiling)) if self._subset is None else self._subset)

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
        return np.searchsorted(self.store.offsets, self.flat_start, "right") - 1

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
        other = copy.copy(self)
        for name in _OF_SUBSET:
            other.__dict__.pop(name, None)
        other._subset = np.asarray(index, np.int64) if self._subset is None else self._subset[index]
        return other

    def whole(self) -> tuple[Self, Ints]:
        """All windows that these were taken from, and the numbers of these among them."""
        if self._subset is None:
            return self, np.arange(len(self))
        other = copy.copy(self)
        for name in _OF_SUBSET:
            other.__dict__.pop(name, None)
        other._subset = None
        return other, self._subset

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
        other = copy.copy(self)
        for name in _OF_SUBSET:
            other.__dict__.pop(name, None)
        other.seq_len, other._subset = seq_len, None
        other._pieces = (
            self.flat_start[owner] + offset,
            np.minimum(self.length[owner] - offset, seq_len),
        )
        return other, owner

    def widths(self, length: Ints) -> Ints:
        """How much of a row is no padding, for windows of these lengths."""
        return length

    def bytes(self) -> NDArray[np.float64] | None:
        """Bytes of text in each window. None of DNA, whose bits are counted per base."""
        return None

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
