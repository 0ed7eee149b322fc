"""The share of G and C: of the whole interval, or of windows of it.

G and C in windows: the state is the count of each window in progress that may still go wrong.

A window is settled once no completion can bring it out of its limits. What is kept, and how many
edits are left, bound how far its count may still move. A settled window is forgotten. So few edits
need few states, even where a window begins at every base.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from genodiff.constraints.constraint import (
    DEAD,
    OTHER,
    Automaton,
    Constraint,
    CountAutomaton,
    DesignSpace,
    EditLimit,
    Mask,
    Span,
    States,
)
from genodiff.errors import UsageError

_EDGE = 1e-9  # a share times a length that is a whole number but for rounding


@dataclass(frozen=True)
class GcContent(Constraint):
    """G and C are `low` to `high` (0 to 1) of the interval, or of each window of `window` bases.

    Windows lie within the interval and begin every `step` bases from its start; those of an
    interval that is shorter than a window are the interval.
    """

    low: float
    high: float
    window: int | None = None
    step: int = 1
    span: Span = None

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high <= 1:
            fix = "give two shares from 0 to 1, in order"
            raise UsageError(f"GC from {self.low:g} to {self.high:g}", fix=fix)
        if self.window is not None and self.window < 1:
            raise UsageError(f"GC windows of {self.window} bases", fix="give 1 or more")
        if self.step < 1 or (self.window is not None and self.step > self.window):
            fix = "give 1 up to the window's size"
            raise UsageError(f"GC windows every {self.step} bases", fix=fix)

    def automata(self, space: DesignSpace) -> list[Automaton]:
        start, end = space.find_interval(self.span)
        if start == end:
            return []
        window = min(self.window or end - start, end - start)
        least = math.ceil(self.low * window - _EDGE)
        most = math.floor(self.high * window + _EDGE)
        if window == end - start:
            counted = np.broadcast_to(IS_GC.astype(bool), (window, 5))
            return [CountAutomaton(start, counted, least, most)]
        return [GcWindowAutomaton(space, start, end, window, self.step, least, most)]

    def __str__(self) -> str:
        where = "" if self.window is None else f" in windows of {self.window}"
        where += f" every {self.step}" if self.window is not None and self.step > 1 else ""
        return f"GC {100 * self.low:g}-{100 * self.high:g} %{where}"


IS_GC = np.array([0, 1, 1, 0, 0], np.int64)
MOST_NUMBERS = 1 << 25
"""Counts of all states of a position: 128 MB."""
_SETTLED = -1
Rows = NDArray[np.int32]


class GcWindowAutomaton(Automaton):
    """`least` to `most` G and C in each window that lies within start … end.

    Windows begin every `step` bases. Positions are read in order, once: a state is a row of the
    position's table, the edits so far and then the counts.
    """

    def __init__(
        self,
        space: DesignSpace,
        start: int,
        end: int,
        window: int,
        step: int,
        least: int,
        most: int,
    ) -> None:
        self._step, self._window, self._least, self._most = step, window, least, most
        self._number = (end - start - window) // step + 1
        self._slots = math.ceil(window / step)
        self._mix = np.random.default_rng(0).integers(1 << 62, size=1 + self._slots)
        self.first = start
        self.last = start + (self._number - 1) * step + window
        # The strictest limit of edits that counts any of these positions; else none counts.
        limits = [one for one in space.limits if one.counted[self.first : self.last].any()]
        none = EditLimit(np.zeros((len(space.letters), 5), bool), 0)
        self._limit = min(limits, key=lambda one: one.most, default=none)
        kept = space.symbols[:, None] == np.arange(5)
        self._allowed: Mask = np.where(space.free[:, None], np.arange(5) < OTHER, kept)
        self._bounds = _sum_bounds(self._allowed, self._limit.counted)
        self._rows: Rows = np.full((1, 1 + self._slots), _SETTLED, np.int32)
        self._rows[0, 0] = 0
        self.size = 1

    def step(self, position: int, states: States) -> States:
        here, places = np.unique(states, return_inverse=True)
        symbols = np.flatnonzero(self._allowed[position])
        numbers = len(here) * len(symbols) * (1 + self._slots)
        if numbers > MOST_NUMBERS:
            raise UsageError(
                f"GC in windows of {self._window} every {self._step} needs more than "
                f"{len(here):,} states for one base, {numbers:,} counts in all",
                fix="give a larger step, such as half a window, or fewer edits",
            )
        rows = self._rows[here]
        begun, fresh = divmod(position - self.first, self._step)
        if not fresh and begun < self._number:
            rows[:, 1 + begun % self._slots] = 0
        after = np.repeat(rows[:, None], len(symbols), 1)
        after[..., 0] += self._limit.counted[position, symbols]
        left = self._limit.most - after[..., 0].astype(np.int64)
        alive: Mask = left >= 0
        for number in range(max(0, begun - self._slots + 1), min(begun + 1, self._number)):
            stop = self.first + number * self._step + self._window
            if stop <= position:
                continue
            counts = after[..., 1 + number % self._slots]
            active = counts != _SETTLED
            counts += active * IS_GC[symbols].astype(np.int32)
            low, high, down, up = (sums[stop] - sums[position + 1] for sums in self._bounds)
            lowest = counts + low - np.minimum(left, down)
            highest = counts + high + np.minimum(left, up)
            alive &= ~active | (highest >= self._least) & (lowest <= self._most)
            counts[(lowest >= self._least) & (highest <= self._most)] = _SETTLED
        reached = np.full((len(here), 5), DEAD, np.int64)
        kept, ids = _merge_rows(after[alive], self._mix)
        self._rows, self.size = kept, max(1, len(kept))
        mine = np.full(alive.shape, DEAD, np.int64)
        mine[alive] = ids
        reached[:, symbols] = mine
        return reached[places]


def _sum_bounds(allowed: Mask, counted: Mask) -> list[NDArray[np.int64]]:
    """Sums up to each position of the least and the most G and C without an edit, and of the
    positions where an edit lowers the one or raises the other.
    """

    def bound(those: Mask) -> tuple[Mask, Mask]:
        return ~np.any(those & (IS_GC == 0), axis=1), np.any(those & (IS_GC == 1), axis=1)

    (low, high), (lowest, highest) = bound(allowed & ~counted), bound(allowed)
    each = (low, high, low & ~lowest, highest & ~high)
    return [np.concatenate([[0], one.cumsum()]) for one in each]


def _merge_rows(rows: Rows, mix: NDArray[np.int64]) -> tuple[Rows, NDArray[np.int64]]:
    """The rows, each once, and the number of each row."""
    if not len(rows):
        return rows, np.zeros(0, np.int64)
    key = rows.astype(np.int64) @ mix
    _, first, ids = np.unique(key, return_index=True, return_inverse=True)
    if (rows[first[ids]] == rows).all():
        return rows[first], ids
    # Two rows share a number, which hardly happens: compare them whole.
    key = np.ascontiguousarray(rows).view([("", np.int32)] * rows.shape[1])[:, 0]
    _, first, ids = np.unique(key, return_index=True, return_inverse=True)
    return rows[first], ids
