"""A contig as a line that regions are designed on. A circular one is cut, and goes on at both ends.

A circle of L bases is cut in the middle of its longest stretch without a region. Where regions are
all of it, it is cut where they begin. The line then has the kept bases beside the cut at both of
its ends, up to the next free base: only kept bases stand twice, and what crosses the cut is read
whole on one of the two sides. Places on the line are those of the contig plus a multiple of L.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.generate.infill import Gap, merge_gaps

Interval = tuple[int, int]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ContigLine:
    """Bases low … high of a contig of `length` bases, and the regions there, from left to right."""

    contig: str
    length: int
    regions: list[Interval]
    low: int
    high: int
    cut: int = 0
    free: Mask | None = None
    """Which bases (L,) of a circle may change; None for a linear contig."""

    @property
    def is_circle(self) -> bool:
        return self.free is not None

    @property
    def is_whole_circle(self) -> bool:
        """Whether the region is all of a circle."""
        start, end = self.regions[0]
        return self.is_circle and end - start == self.length

    @property
    def overlap(self) -> int:
        """How many kept bases stand at both ends."""
        return self.high - self.low - self.length

    def name(self, start: int, end: int) -> str:
        """An interval as samtools writes it, `pX:290-10` where it crosses the origin."""
        if self.is_circle:
            start, end = start % self.length, (end - 1) % self.length + 1
        return Gap(self.contig, start, end).name

    def copy(self, rule: Any) -> list[Any]:
        """A constraint at places of its own, wherever these stand on the line."""
        exons: tuple[Interval, ...] = getattr(rule, "exons", ())
        span: Interval | None = getattr(rule, "span", None)
        places = (span,) if span else exons
        if not self.is_circle or not places:
            return [rule]
        copies = []
        for by in range(-3 * self.length, 4 * self.length, self.length):
            if places[0][0] + by < self.high and places[-1][1] + by > self.low:
                moved = tuple((a + by, b + by) for a, b in places)
                copies.append(replace(rule, **({"span": moved[0]} if span else {"exons": moved})))
        return copies


def lay_out(contig: str, length: int, gaps: Sequence[Interval]) -> ContigLine:
    """A linear contig."""
    return ContigLine(contig, length, _merge(contig, gaps), 0, length)


def lay_out_round(
    contig: str, length: int, gaps: Sequence[Interval], may_change: Callable[[Mask], Mask]
) -> ContigLine:
    """A circular contig; of the bases (L,) of its regions, `may_change` gives the free ones."""
    inside = np.zeros(length, bool)
    for start, end in gaps:
        inside[np.arange(start, end) % length] = True
    if inside.all():
        cut = next((start for start, end in gaps if end - start == length), 0)
        regions = [(cut, cut + length)]
    else:
        places = np.flatnonzero(inside)
        room = np.diff(places, append=places[0] + length) - 1
        widest = int(room.argmax())
        cut = int(places[widest] + 1 + room[widest] // 2) % length
        starts = [cut + (start - cut) % length for start, _ in gaps]
        laid = [(at, at + b - a) for at, (a, b) in zip(starts, gaps, strict=True)]
        regions = _merge(contig, laid)
    free = may_change(inside)
    places = np.flatnonzero(np.roll(free, -cut))
    before, after = (length - 1 - places[-1], places[0]) if len(places) else (0, length)
    return ContigLine(
        contig, length, regions, cut - int(before), cut + length + int(after), cut, free
    )


def _merge(contig: str, gaps: Sequence[Interval]) -> list[Interval]:
    return merge_gaps(Gap(contig, *gap) for gap in gaps)[contig]
