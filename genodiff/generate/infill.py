"""Templates and windows: which bases are filled, and in which order in a long text.

A template is a FASTA record in which every N, n and ? is a gap; every other letter is kept as it
stands, lower case and IUPAC codes included. The network sees a kept IUPAC code as a visible N, and
a gap as a mask.

A network trained on windows of W tokens fills a longer text round by round, left to right.
`plan_rounds` says how: a round fills at most `stride` positions, so that W − stride known tokens
stand before them, and it centres its window on the gaps it fills, so that known bases
after them are seen too. On a text that is all gap this is semi-autoregressive sampling: W tokens
first, then `stride` more per round behind a clean prefix of W − stride.

Regions of a genome that are to be filled, whatever stands there; every other base is kept.

The regions are merged where they overlap or touch, so a base is filled once. The windows of a
contig are those of `rounds`, as if the contig were a template with `?` at these bases and nowhere
else. Windows that share no base are independent of one another, so only stretches of windows that
do are read: a genome is never in memory, and a record's bytes do not depend on how it is cut. A
model of blocks reads as many bases before a gap as a window of its training has.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import Alphabet
from genodiff.errors import UsageError
from genodiff.generate.block_reading import Ids, plan_blocks_of_edges
from genodiff.generate.filler import DraftPart
from genodiff.io.faidx import Genome
from genodiff.io.fasta import read_fasta
from genodiff.io.places import list_places
from genodiff.io.regions import parse_region

GAPS = b"Nn?"
_LOWER = 0x20


@dataclass(frozen=True)
class Template:
    """A named text with gaps."""

    name: str
    description: str
    text: bytes

    @property
    def gaps(self) -> NDArray[np.bool_]:
        """True where a base is to be filled in."""
        return np.isin(np.frombuffer(self.text, np.uint8), np.frombuffer(GAPS, np.uint8))

    def ids(self, alphabet: Alphabet) -> NDArray[np.uint8]:
        """What the network sees: the mask at the gaps, N for a kept ambiguity code."""
        ids = alphabet.encode(self.text.replace(b"?", b"N")).astype(np.uint8)
        ids[self.gaps] = alphabet.mask_id
        return ids

    def filled(self, ids: NDArray[np.uint8], alphabet: Alphabet) -> bytes:
        """The text with its gaps filled from `ids`, an n in lower case; other letters stay."""
        text = np.frombuffer(self.text, np.uint8).copy()
        gaps = self.gaps
        letters = np.frombuffer(alphabet.decode(ids[gaps]).encode("ascii"), np.uint8)
        text[gaps] = letters | np.where(text[gaps] == ord("n"), _LOWER, 0).astype(np.uint8)
        return text.tobytes()


def read_templates(path: str | Path) -> Iterator[Template]:
    """The records of a FASTA file as templates; `?` is allowed here.

    Raises `DataError` like every strict reader.
    """
    for record in read_fasta(path, extra=b"?"):
        yield Template(record.name, record.description, record.sequence)


def plan_rounds(gaps: NDArray[np.bool_], window: int, stride: int) -> list[tuple[int, int]]:
    """The windows (start, end) in which the gaps are filled, one round after the other.

    None is longer than `window`.

    Each gap lies in exactly one window that starts at or before it while it is still open, and
    every gap inside a window is filled in that round. `stride` (1 … window) bounds the gaps'
    stretch per round, except that what the left end of the text lacks in context is given to the
    gaps.
    """
    edges = np.flatnonzero(np.diff(gaps.astype(np.int8), prepend=0, append=0))
    starts, ends = edges[0::2].tolist(), edges[1::2].tolist()
    return plan_rounds_of_edges(starts, ends, len(gaps), window, stride)


def plan_rounds_of_edges(
    starts: Sequence[int], ends: Sequence[int], length: int, window: int, stride: int
) -> list[tuple[int, int]]:
    """The rounds of gaps given by their edges, in order, apart from one another."""
    plan: list[tuple[int, int]] = []
    run, filled = 0, 0
    while run < len(starts):
        first = max(starts[run], filled)
        reach = first + window - min(first, window - stride)
        if ends[run] > reach:
            plan.append((max(0, reach - window), reach))
            filled = reach
            continue
        last = int(np.searchsorted(ends, reach, side="right"))
        end = ends[last - 1]
        wall = starts[last] if last < len(starts) else length
        spare = window - (end - first)
        start = max(0, min(end + spare - spare // 2, wall) - window)
        plan.append((start, min(start + window, wall)))
        run = last
    return plan


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

    @property
    def windows(self) -> list[tuple[int, int]]:
        """The rounds from its own start on."""
        return [(start - self.start, end - self.start) for start, end in self.rounds]

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
        return DraftPart(number, self.start, ids, self.windows, contig=self.contig)

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
