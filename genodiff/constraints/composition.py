"""The share of G and C: of the whole interval, or of windows of it."""

import math
from dataclasses import dataclass

import numpy as np

from genodiff.constraints.constraint import (
    Automaton,
    CountAutomaton,
    DesignSpace,
    SingleConstraint,
    Span,
)
from genodiff.constraints.gc_windows import IS_GC, GcWindowAutomaton
from genodiff.errors import UsageError

_EDGE = 1e-9  # a share times a length that is a whole number but for rounding


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
            counted = np.broadcast_to(IS_GC.astype(bool), (window, 5))
            return [CountAutomaton(start, counted, least, most)]
        return [GcWindowAutomaton(space, start, end, window, self.step, least, most)]

    def __str__(self) -> str:
        where = "" if self.window is None else f" in windows of {self.window}"
        where += f" every {self.step}" if self.window is not None and self.step > 1 else ""
        return f"GC {100 * self.low:g}-{100 * self.high:g} %{where}"
