"""A model of transcripts, independent of annotation format and verb.

Parts of a transcript are in reading order, each with its strand. A part that crosses the origin of
a circular contig ends beyond the contig's length, as do the parts after it. A coding sequence is
the concatenation of its parts as annotated: parts that overlap by a base, or leave a few bases out,
are ribosomal slippage. `unknown` is why a protein does not follow from the letters.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from Bio.Data.CodonTable import unambiguous_dna_by_id
from Bio.Seq import Seq

from genodiff.io.gene_words import Recoded
from genodiff.io.regions import read_round

SHORTEST_INTRON = 10
"""A shorter gap between two parts is ribosomal slippage."""
PSEUDO, BEYOND = "pseudogene", "beyond its contig"
NO_CDS, NO_ORDER = "no CDS is annotated", "the order of its parts is not known"
NO_STRAND, ON_BOTH = "no strand is annotated", "on both strands without trans-splicing"
NO_PLACE, NO_PHASE = "its place is not exact", "its phases contradict its parts"

Part = tuple[int, int]


class GenePart(NamedTuple):
    """contig[start:end], read along `strand`: 1, or -1 for its reverse complement."""

    start: int
    end: int
    strand: int


class Transcript(NamedTuple):
    """A transcript at contig[start:end], 0-based and half-open; `strand` is 1 or -1, 0 for none.

    `exons` and `coding` (the CDS) are in reading order; `exons` are () if unknown. `skip` bases of
    the CDS precede its first whole codon. `table` is NCBI's number of the annotated genetic code,
    0 of an organelle whose code is not said, None where nothing is. `starts` and `ends` state
    whether the first and the last codon of the protein are annotated. With `slips` gaps of the CDS
    are not introns. `apart` are the positions of a transcript whose parts are far from one another;
    start and end are the outermost. `unknown` is why the protein is not known, or "".
    """

    contig: str
    start: int
    end: int
    strand: int
    gene: str
    name: str
    exons: tuple[GenePart, ...] = ()
    coding: tuple[GenePart, ...] = ()
    skip: int = 0
    table: int | None = None
    starts: bool = True
    ends: bool = True
    slips: bool = False
    any_start: bool = False
    """The first codon is a start codon, whatever the genetic code says."""
    recoded: tuple[Recoded, ...] = ()
    apart: tuple[Part, ...] = ()
    unknown: str = ""
    guessed: bool = False
    """The order of its parts, or that they are one CDS, is not said by the file."""

    @property
    def spans(self) -> tuple[Part, ...]:
        """The intervals of the contig that it covers."""
        return self.apart or ((self.start, self.end),)


def lay_transcript(
    one: Transcript, length: int, *, circular: bool, trans: bool = False
) -> Transcript | None:
    """A transcript on a contig of `length` bases, None where no base of it is there.

    Parts of one that crosses the origin are moved behind the contig's end, and parts that touch are
    joined. `trans`: its parts are spliced from several RNAs.
    """
    ends = [(a, b) for a, b, *_ in (*one.exons, *one.coding, *one.apart)]
    ends = ends or [(one.start, one.end)]
    crosses = circular and all(0 <= a < 2 * length and b - a <= length for a, b in ends)
    if not crosses and any(a < 0 or b > length for a, b in ends):
        clipped = {(max(a, 0), min(b, length)) for a, b in (*one.spans, *ends)}
        kept = sorted((a, b) for a, b in clipped if a < b)
        if not kept:
            return None
        return one._replace(start=kept[0][0], end=max(b for _, b in kept), exons=(), coding=(),
                            apart=tuple(kept), unknown=BEYOND)  # fmt: skip
    exons, coding = one.exons, one.coding
    if circular and not trans:
        # what is wholly behind the origin is counted from the contig's start on
        exons, coding = (tuple(_move(piece, -length * (piece.start // length)) for piece in some)
                         for some in (exons, coding))  # fmt: skip
        exons = unroll(exons, length)
        moved = tuple(_move_into(piece, exons, length) for piece in coding)
        coding = moved if covers(exons, moved) else unroll(coding, length)
    coding = join_touching(coding)
    exons = join_touching(exons if covers(exons, coding) else coding)
    if not exons:
        return one
    spans = _list_spans(exons, one.apart)
    whole = not circular or one.end - one.start <= length // 2
    if len(spans) == 1 and whole and (spans[0][1] <= length or one.end > length):
        spans = [(min(one.start, spans[0][0]), max(one.end, spans[0][1]))]
    return one._replace(
        exons=exons, coding=coding, start=spans[0][0], end=max(b for _, b in spans),
        apart=tuple(spans) if len(spans) > 1 else (), strand=exons[0].strand,
    )  # fmt: skip


def order_on_circle(pieces: Sequence[GenePart], length: int) -> list[GenePart]:
    """Pieces of one strand in the order of reading, along the shortest arc of a circle."""
    some = sorted(pieces)
    gaps = [after.start - before.end for before, after in pairwise(some)]
    around = some[0].start + length - max(one.end for one in some) if some else 0
    if gaps and max(gaps) > around:
        at = gaps.index(max(gaps)) + 1
        some = some[at:] + some[:at]
    return some[::-1] if some and some[0].strand < 0 else some


def unroll(pieces: tuple[GenePart, ...], length: int) -> tuple[GenePart, ...]:
    """Pieces that cross the origin in their shortest order, those behind it moved by `length`."""
    if len({one.strand for one in pieces}) != 1 or list(pieces) != order_on_circle(pieces, length):
        return pieces
    way, shift, found = pieces[0].strand, 0, list[GenePart]()
    for one in pieces[::way]:
        shift += length * bool(found and one.start + shift < found[-1].start)
        found.append(_move(one, shift))
    return tuple(found[::way])


def _move(piece: GenePart, bases: int) -> GenePart:
    return GenePart(piece.start + bases, piece.end + bases, piece.strand)


def _move_into(piece: GenePart, exons: Sequence[GenePart], length: int) -> GenePart:
    other = _move(piece, length)
    return other if not covers(exons, [piece]) and covers(exons, [other]) else piece


def covers(exons: Iterable[GenePart], coding: Iterable[GenePart]) -> bool:
    """Whether each piece of a CDS lies within one of the exons."""
    spans = list(exons)
    return all(any(a <= c and d <= b for a, b, _ in spans) for c, d, _ in coding)


def join_touching(pieces: Sequence[GenePart]) -> tuple[GenePart, ...]:
    """Pieces in the order of reading, those that touch as one."""
    found: list[GenePart] = []
    for one in pieces:
        last = found[-1] if found else None
        if last and last.strand == one.strand == 1 and last.end == one.start:
            found[-1] = last._replace(end=one.end)
        elif last and last.strand == one.strand == -1 and last.start == one.end:
            found[-1] = last._replace(start=one.start)
        else:
            found.append(one)
    return tuple(found)


def list_gaps(pieces: Sequence[GenePart]) -> Iterator[tuple[int, int]]:
    """(i, bases) of each step from pieces[i] to the next that goes on along the same strand.

    Bases are negative where the two overlap. Steps to another strand, or back, are left out.
    """
    for i, (one, other) in enumerate(pairwise(pieces)):
        if one.strand == other.strand:
            ahead = other.start > one.start if one.strand > 0 else other.end < one.end
            if ahead:
                yield i, other.start - one.end if one.strand > 0 else one.start - other.end


def _list_spans(exons: Sequence[GenePart], more: Iterable[Part]) -> list[Part]:
    """Spans of pieces, with the gaps between those that follow one another along the contig."""
    steps = dict(list_gaps(exons))
    spans: list[Part] = [exons[0][:2]]
    for i, one in enumerate(exons[1:]):
        if i in steps:
            low, high = spans[-1]
            spans[-1] = (min(low, one.start), max(high, one.end))
        else:
            spans.append(one[:2])
    found: list[Part] = []
    for a, b in sorted([*spans, *more]):
        if found and a <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], b))
        else:
            found.append((a, b))
    return found


def read_pieces(fetch: Callable[[int, int], bytes], length: int, pieces: Iterable[GenePart]) -> str:
    """The letters of pieces one behind the other; `fetch` gives those of the contig."""
    found = []
    for start, end, strand in pieces:
        text = read_round(fetch, length, start, end).decode("latin-1").upper()
        found.append(text if strand > 0 else turn(text))
    return "".join(found)


_COMPLEMENT = str.maketrans("ACGT", "TGCA")


def turn(text: str) -> str:
    """The reverse complement of upper-case letters."""
    return text.translate(_COMPLEMENT)[::-1]


def check_guess(one: Transcript, letters: str) -> bool:
    """Whether the letters of a guessed CDS are a frame: a start, no stop inside, a stop."""
    number = 1 if one.table is None else one.table
    table = unambiguous_dna_by_id.get(number)
    if table is None:
        return False
    codons = letters[one.skip : one.skip + (len(letters) - one.skip) // 3 * 3]
    protein = str(Seq(codons).translate(table=number))
    begins = not one.starts or one.skip > 0 or one.any_start or codons[:3] in table.start_codons
    closes = not one.ends or (protein.endswith("*") and (len(letters) - one.skip) % 3 == 0)
    return begins and closes and "*" not in protein[:-1]
