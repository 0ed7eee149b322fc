"""The parts of a transcript that an allele touches, and the letters that are read there."""

from collections.abc import Callable, Iterator

from genodiff.io.transcript_model import (
    NO_CDS,
    SHORTEST_INTRON,
    GenePart,
    Transcript,
    join_touching,
    list_gaps,
    read_pieces,
)
from genodiff.io.variants import Allele
from genodiff.variants.codon_changes import CodingLetters, list_recoded

_SITE, _EXON_SIDE, _INTRON_SIDE = 2, 3, 8
AROUND = 120
"""Bases that are read before and behind a CDS."""

Fetch = Callable[[int, int], bytes]


def touches(allele: Allele, a: int, b: int) -> bool:
    """Whether an allele changes a base of [a:b], or stands between two of them."""
    start, end = allele.start, allele.end
    return a < end and start < b if start < end else a < start < b


def list_utrs(one: Transcript) -> tuple[list[GenePart], list[GenePart]]:
    """The parts of the exons before and behind the CDS, in the order of reading."""
    exons, coding = list(one.exons), one.coding
    if not coding:
        return [], []
    first, last = (next((i for i, exon in enumerate(exons)
                         if exon.start <= part.start and part.end <= exon.end), None)
                   for part in (coding[0], coding[-1]))  # fmt: skip
    if first is None or last is None:
        return [], []
    five, three = exons[: first + 1], exons[last:]
    five[-1] = _cut(five[-1], coding[0], before=True)
    three[0] = _cut(three[0], coding[-1], before=False)
    return [one for one in five if one.start < one.end], [x for x in three if x.start < x.end]


def _cut(exon: GenePart, part: GenePart, *, before: bool) -> GenePart:
    low = before == (exon.strand > 0)
    return exon._replace(end=part.start) if low else exon._replace(start=part.end)


def list_places(one: Transcript, allele: Allele, fetch: Fetch) -> set[str]:
    """The parts of a transcript that an allele touches, as terms; "coding" for its CDS."""
    if not any(touches(allele, a, b) for a, b in one.spans):
        return set()
    if not one.exons:
        return {"gene_variant"}
    terms = set(_list_introns(one, allele, fetch))
    inside = any(touches(allele, a, b) for a, b, _ in one.exons)
    if not one.coding:
        if one.unknown == NO_CDS:
            return terms | ({"gene_variant"} if inside or not terms else set())
        if inside:
            terms.add("non_coding_transcript_exon_variant")
        elif terms:
            terms.add("non_coding_transcript_variant")
        return terms or {"non_coding_transcript_variant"}
    if any(touches(allele, a, b) for a, b, _ in one.coding):
        terms.add("coding")
    utrs = ("5_prime_UTR_variant", "3_prime_UTR_variant")
    for term, parts in zip(utrs, list_utrs(one), strict=True):
        is_first = term == utrs[0]
        for number, (a, b, strand) in enumerate(parts):
            inner = number == (len(parts) - 1 if is_first else 0)
            border = b if is_first == (strand > 0) else a  # on the side of the CDS
            on_border = allele.start == allele.end == border and inner
            if touches(allele, a, b) or on_border:
                terms.add(term)
    return terms or {"coding_sequence_variant" if inside else "gene_variant"}


def _list_introns(one: Transcript, allele: Allele, fetch: Fetch) -> Iterator[str]:
    start, end = allele.start, allele.end
    for number, bases in list_gaps(one.exons):
        before, after = one.exons[number : number + 2][:: one.exons[number].strand]
        left, right, way = before.end, after.start, before.strand
        if bases < SHORTEST_INTRON or one.slips:
            if bases > 0 and touches(allele, left, right):
                yield "coding_sequence_variant" if one.coding else "intron_variant"
            continue
        on_border = start == end and start in (left, right)
        if touches(allele, left, right) or on_border:
            yield "intron_variant"
        sites = ("splice_donor_variant", "splice_acceptor_variant")[::way]
        hit = False
        for term, at in zip(sites, (left, right - _SITE), strict=True):
            there = touches(allele, at, at + _SITE)
            if on_border:
                beside = (start == left) == (at == left)
                there = beside and _changes_site(allele, left, right, fetch)
            if there:
                hit = True
                yield term
        near = touches(allele, left - min(_EXON_SIDE, left - before.start), left + _INTRON_SIDE)
        near |= touches(allele, right - _INTRON_SIDE, right + min(_EXON_SIDE, after.end - right))
        if near and not hit:
            yield "splice_region_variant"


def _changes_site(allele: Allele, left: int, right: int, fetch: Fetch) -> bool:
    """Whether an insertion on the border of an intron makes other letters stand at its end."""
    if allele.start == left:
        old = fetch(left, left + _SITE).decode().upper()
        return (allele.alt + old)[:_SITE] != old
    old = fetch(right - _SITE, right).decode().upper()
    return (old + allele.alt)[-_SITE:] != old


def read_around(one: Transcript, fetch: Fetch, length: int, *, goes_round: bool) -> CodingLetters:
    """The letters of a CDS with what is read before and behind it: UTRs, or else the contig."""
    five, three = list_utrs(one)
    before = _extend(one.coding[0], five, length, goes_round=goes_round, ahead=False)
    behind = _extend(one.coding[-1], three, length, goes_round=goes_round, ahead=True)
    amino = list_recoded(one)
    bases = sum(b - a for a, b, _ in one.coding)
    padding, lacking = "", (one.skip - bases) % 3
    if amino.get((bases - one.skip) // 3) == "*" and lacking:
        padding, behind = "A" * lacking, []  # its stop codon is completed by the poly(A) tail
        del amino[(bases - one.skip) // 3]
    pieces = (*before, *one.coding, *(behind if one.ends else ()))
    letters = read_pieces(fetch, length, pieces) + padding
    begin = sum(b - a for a, b, _ in before) + one.skip
    whole = join_touching(pieces)
    starts = one.starts and not one.skip
    close = begin - one.skip + bases + len(padding)
    return CodingLetters(letters, whole, begin, close, starts, amino, one.skip)


def _extend(
    edge: GenePart, utr: list[GenePart], length: int, *, goes_round: bool, ahead: bool
) -> list[GenePart]:
    """The UTR beside an end of a CDS; without one, as many bases of the contig."""
    if utr:
        return utr
    low = ahead != (edge.strand > 0)
    least, most = (-length, 2 * length) if goes_round else (0, length)
    start, end = (max(edge.start - AROUND, least), edge.start) if low else (
        edge.end, min(edge.end + AROUND, most))  # fmt: skip
    return [GenePart(start, end, edge.strand)] if start < end else []
