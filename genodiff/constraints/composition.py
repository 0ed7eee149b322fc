"""The share of G and C: of the whole interval, or of windows of it.

Windows begin every `step` bases. The state holds the counts of the last blocks of `step` bases, as
many as a window spans: at most (step + 1)^ceil(window / step) states. With step 1 it is the window
itself, 2^window: exact for windows of up to about 17 free bases. Windows of 50 bases every 25 need
676 states. What needs too many is refused when it is compiled.
"""

import math
from dataclasses import dataclass

import numpy as np

from genodiff.constraints.automaton import DEAD, Automaton, CountAutomaton, States
from genodiff.constraints.constraint import SingleConstraint, Span
from genodiff.constraints.space import DesignSpace
from genodiff.errors import UsageError

_IS_GC = np.array([0, 1, 1, 0, 0], np.int64)
_EDGE = 1e-9  # a share times a length that is a whole number but for rounding


class GcWindowAutomaton(Automaton):
    """`least` to `most` G and C in each window that lies within start … end."""

    def __init__(self, start: int, end: int, window: int, step: int, least: int, most: int) -> None:
        self._step, self._window, self._least, self._most = step, window, least, most
        self._blocks = math.ceil(window / step)
        if self._blocks * math.log2(step + 1) > 61:
            raise UsageError(
                f"GC in windows of {window} bases every {step} has more than 2^61 states",
                fix="give a larger step, such as half a window",
            )
        self._radix = (step + 1) ** np.arange(self._blocks, dtype=np.int64)
        self._starts = end - start - window  # the last place where a window may begin
        self.first = start
        self.last = start + self._starts // step * step + window
        self.size = (step + 1) ** self._blocks

    def step(self, position: int, states: States) -> States:
        at = position - self.first
        block, inside = divmod(at, self._step)
        if not inside and at:
            states = states * (self._step + 1) % self.size
        # Digit i is the count of block − i; the counts of windows in progress are their sums.
        found = states[:, None] + _IS_GC
        counts = (found[..., None] // self._radix % (self._step + 1)).cumsum(-1)
        doomed = np.zeros(found.shape, bool)
        for back in range(min(self._blocks, block + 1)):
            begin = (block - back) * self._step
            left = begin + self._window - at - 1
            if begin <= self._starts and left >= 0:
                here = counts[..., back]
                doomed |= (here > self._most) | (here + left < self._least)
        return np.where(doomed, DEAD, found)


@dataclass(frozen=True)
class GcContent(SingleConstraint):
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
            raise UsageError(
                f"GC from {self.low:g} to {self.high:g}",
                fix="give two shares from 0 to 1, in order",
            )
        if self.window is not None and self.window < 1:
            raise UsageError(f"GC windows of {self.window} bases", fix="give 1 or more")
        if self.step < 1 or (self.window is not None and self.step > self.window):
            raise UsageError(
                f"GC windows every {self.step} bases", fix="give 1 up to the window's size"
            )

    def automata(self, space: DesignSpace) -> list[Automaton]:
        start, end = space.find_interval(self.span)
        if start == end:
            return []
        window = min(self.window or end - start, end - start)
        least = math.ceil(self.low * window - _EDGE)
        most = math.floor(self.high * window + _EDGE)
        if window == end - start:
            counted = np.broadcast_to(_IS_GC.astype(bool), (window, 5))
            return [CountAutomaton(start, counted, least, most)]
        return [GcWindowAutomaton(start, end, window, self.step, least, most)]

    def __str__(self) -> str:
        where = "" if self.window is None else f" in windows of {self.window}"
        where += f" every {self.step}" if self.window is not None and self.step > 1 else ""
        return f"GC {100 * self.low:g}-{100 * self.high:g} %{where}"
