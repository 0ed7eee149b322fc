"""Regions of a genome that are to be filled, whatever stands there; every other base is kept.

The regions are merged where they overlap or touch, so a base is filled once. The windows of a
contig are those of `rounds`, as if the contig were a template with `?` at these bases and nowhere
else. Windows that share no base are independent of one another, so only stretches of windows that
do are read: a genome is never in memory, and a record's bytes do not depend on how it is cut. A
model of blocks reads as many bases before a gap as a window of its training has.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import Alphabet
from genodiff.errors import UsageError
from genodiff.generate.block_reading import plan_blocks_of_edges
from genodiff.generate.filler import DraftPart
from genodiff.generate.infill import plan_rounds_of_edges
from genodiff.generate.samples import Ids
from genodiff.io.faidx import Genome
from genodiff.io.places import list_places
from genodiff.io.regions import parse_region

_LOWER = 0x20


class Gap(NamedTuple):
    """Bases of a contig, 0-based and half-open."""

    contig: str
    start: int
    end: int

    @property
    def name(self) -> str:
        """As samtools writes it: 1-based, inclusive."""
        return f"{self.contig}:{self.start + 1}-{self.end}"


class Stretch(NamedTuple):
    """Bases start … end of a contig: windows that overlap, and the gaps in them."""

    contig: str
    start: int
    end: int
    gaps: list[tuple[int, int]]
    rounds: list[tuple[int, int]]

    def mask(self) -> NDArray[np.bool_]:
        """True where a base is filled."""
        mask = np.zeros(self.end - self.start, bool)
        for start, end in self.gaps:
            mask[start - self.start : end - self.start] = True
        return mask

    def piece(self, number: int, genome: Genome, alphabet: Alphabet) -> DraftPart:
        """What the network is to fill, as part of record `number`."""
        letters = genome.fetch(self.contig, self.start, self.end)
        ids = alphabet.encode(letters).astype(np.uint8)
        ids[self.mask()] = alphabet.mask_id
        inside = [(start - self.start, end - self.start) for start, end in self.rounds]
        return DraftPart(number, self.start, ids, inside, contig=self.contig)

    def filled(self, ids: Ids, genome: Genome, alphabet: Alphabet) -> Iterator[tuple[int, bytes]]:
        """(start, letters) of each gap; where lower case stood, in lower case."""
        for start, end in self.gaps:
            new = alphabet.decode(ids[start - self.start : end - self.start]).encode("ascii")
            case = np.frombuffer(genome.fetch(self.contig, start, end), np.uint8) & _LOWER
            yield start, (np.frombuffer(new, np.uint8) | case).tobytes()


def read_gaps(
    genome: Genome, bed: str | None, regions: Sequence[str], circular: Collection[str] = ()
) -> list[Gap]:
    """The rows of a BED file and then the region strings, in their order, each once.

    Region strings of `circular` contigs may cross the origin. The strand of a row is not used.

    Raises `DataError` for a row and `UsageError` for a region that is not within the genome.
    """
    found = [Gap(*parse_region(text, genome.contigs, circular)) for text in regions]
    if bed is not None:
        along = "bases are filled in place, along the genome"
        rows = list_places(genome.contigs, (), bed, along=along)
        found = [Gap(*row[:3]) for row in rows] + found
    for gap in found:
        if gap.start == gap.end:
            raise UsageError(f"region '{gap.contig}' holds no base", fix="leave it out")
    return list(dict.fromkeys(found))


def merge_gaps(gaps: Iterable[Gap]) -> dict[str, list[tuple[int, int]]]:
    """Contig → its gaps in order, those that overlap or touch as one."""
    merged: dict[str, list[tuple[int, int]]] = {}
    for contig, start, end in sorted(gaps):
        some = merged.setdefault(contig, [])
        if some and start <= some[-1][1]:
            some[-1] = (some[-1][0], max(some[-1][1], end))
        else:
            some.append((start, end))
    return merged


def split_contig(
    contig: str,
    gaps: Sequence[tuple[int, int]],
    length: int,
    window: int,
    stride: int,
    block: int | None = None,
) -> Iterator[Stretch]:
    """The stretches of a contig of `length` bases, from left to right.

    They are of blocks of `block` bases, each with `window` bases before it, where that is given.
    """
    starts, ends = [start for start, _ in gaps], [end for _, end in gaps]
    held: list[tuple[int, int]] = []
    at = reach = 0
    before = 0 if block is None else window

    def close() -> Stretch:
        nonlocal at
        inside = []
        while at < len(gaps) and gaps[at][0] < reach:
            inside.append(gaps[at])
            at += 1
        return Stretch(contig, max(0, held[0][0] - before), reach, inside, list(held))

    if block is None:
        plan = plan_rounds_of_edges(starts, ends, length, window, stride)
    else:
        plan = plan_blocks_of_edges(starts, ends, length, block)
    for start, end in plan:
        if held and start - before >= reach:
            yield close()
            held.clear()
        held.append((start, end))
        reach = max(reach, end)
    if held:
        yield close()
