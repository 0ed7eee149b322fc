"""Scores along a genome, in bins that grow with what is read: memory has a bound.

A bin has a number of bases, the same in all contigs. Where there are more than `MOST` bins, two
become one. Contigs stand in the order in which they come; after the first `CONTIGS` none is added.
"""

from typing import NamedTuple

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
