"""Where an insertion or deletion in a repeat may stand: all of its spellings of one sequence."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from genodiff.io.faidx import Genome
from genodiff.io.regions import read_round
from genodiff.io.variants import Allele

_STEP = 64  # letters read at a time


@dataclass(frozen=True)
class Placements:
    """An allele moved by `low` to `high` bases, of which each is the same change of the contig."""

    allele: Allele
    low: int = 0
    high: int = 0

    @property
    def start(self) -> int:
        """Where the leftmost begins."""
        return self.allele.start + self.low

    @property
    def end(self) -> int:
        """Where the rightmost ends."""
        return self.allele.end + self.high

    def at(self, step: int) -> Allele:
        """The allele moved by a number of bases to the right."""
        one = self.allele
        ref, alt = (text[step % len(text) :] + text[: step % len(text)] if text else ""
                    for text in (one.ref, one.alt))  # fmt: skip
        return Allele(one.chrom, one.start + step, ref, alt) if step else one

    def move(self, shift: int) -> "Placements":
        """The same on coordinates that are `shift` higher."""
        one = self.allele
        moved = Allele(one.chrom, one.start + shift, one.ref, one.alt)
        return Placements(moved, self.low, self.high) if shift else self

    def list_beside(self, borders: Iterable[int]) -> Iterator[Allele]:
        """The outermost placements, and those on each side of borders, from left to right."""
        steps = {self.low, 0, self.high}
        for border in borders if self.low < self.high else ():
            for at in (border - 1, border, border + 1):
                steps |= {at - self.allele.start, at - self.allele.end}
        return (self.at(step) for step in sorted(steps) if self.low <= step <= self.high)


def place_allele(allele: Allele, genome: Genome, *, goes_round: bool = False) -> Placements:
    """The placements of an allele; on a contig that `goes_round` also across its origin."""
    unit = allele.ref or allele.alt
    if (allele.ref and allele.alt) or not unit:
        return Placements(allele)
    length, n = genome.contigs[allele.chrom], len(unit)
    least, most = (-length, 2 * length) if goes_round else (0, length)

    def fetch(start: int, end: int) -> str:
        letters = read_round(lambda a, b: genome.fetch(allele.chrom, a, b), length, start, end)
        return letters.decode("latin-1").upper()

    high, at, ahead = 0, allele.end, ""
    while at < most and high < length:
        ahead = ahead or fetch(at, min(at + _STEP, most))
        if ahead[0] != unit[high % n]:
            break
        high, at, ahead = high + 1, at + 1, ahead[1:]
    low, at, behind = 0, allele.start, ""
    while at > least and -low < length:
        behind = behind or fetch(max(at - _STEP, least), at)
        if behind[-1] != unit[(low - 1) % n]:
            break
        low, at, behind = low - 1, at - 1, behind[:-1]
    return Placements(allele, low, high)
