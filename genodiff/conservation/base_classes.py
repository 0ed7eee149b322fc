"""Assign a class to each base from an annotation: codon position, UTR, intron, or intergenic.

Where transcripts overlap, coding takes precedence over UTR, UTR over other exons, and those over
introns; a base at two codon positions is `coding_several_frames`. A fourfold degenerate site is a
third codon position at which every base encodes the same amino acid, in all transcripts there.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from Bio.Seq import Seq
from numpy.typing import NDArray

from genodiff.io.big_bed import BedRow
from genodiff.io.faidx import Genome
from genodiff.io.transcript_model import (
    SHORTEST_INTRON,
    GenePart,
    Transcript,
    list_gaps,
    read_pieces,
)
from genodiff.variants.consequences import Consequences
from genodiff.variants.transcript_places import list_utrs

CLASSES = (
    "intergenic", "intron", "other_exon", "three_prime_UTR", "five_prime_UTR",
    "coding_frame_unknown", "codon_position_1", "codon_position_2", "codon_position_3",
    "coding_several_frames", "not_annotated",
)  # fmt: skip
TOTALS = {"CDS": CLASSES[5:10], "exon": CLASSES[2:10]}  # rows that sum several classes
GENE_FIELDS = (
    "string name", "uint score", "char[1] strand", "uint thickStart", "uint thickEnd",
    "uint reserved", "int blockCount", "int[blockCount] blockSizes", "int[blockCount] chromStarts",
)  # fmt: skip
_INTRON, _EXON, _THREE, _FIVE, _CODING, _FIRST, _SEVERAL, _NOWHERE = 1, 2, 3, 4, 5, 6, 9, 10

Labels = NDArray[np.uint8]
Sites = NDArray[np.int64]


class _Labelled(NamedTuple):
    """The class of each base of a contig, and whether it is a fourfold site."""

    labels: Labels
    fourfold: NDArray[np.bool_]


class BaseClasses:
    """The classes of a genome's bases; one contig is in memory at a time.

    Raises the errors of `Consequences`.
    """

    def __init__(self, path: str | Path, genome: Genome) -> None:
        self._genome, self._annotation = genome, Consequences(path, genome)
        self._label = lru_cache(1)(self._label_contig)

    def read(self, contig: str, start: int, end: int) -> Labels:
        """Return the classes of contig[start:end] as indices into `CLASSES`, (n,)."""
        return self._label(contig).labels[start:end]

    def find_fourfold(self) -> Mapping[str, Sites]:
        """Find the fourfold sites of each contig that has any, in ascending order."""
        found = {}
        for contig in self._genome.contigs:
            sites = np.flatnonzero(self._label(contig).fourfold)
            if len(sites):
                found[contig] = sites
        return found

    def list_rows(self, names: Mapping[str, str]) -> Iterator[BedRow]:
        """Yield the transcripts as BED12, contigs by `names`, except those across an origin."""
        for contig, length in self._genome.contigs.items():
            for one in self._annotation.list_transcripts(contig) or ():
                blocks = sorted({(a, b) for a, b, _ in one.exons or one.coding})
                blocks = blocks or [(one.start, one.end)]
                start, end = blocks[0][0], max(b for _, b in blocks)
                if end > length:
                    continue
                thick = [at for a, b, _ in one.coding for at in (a, b)] or [start]
                sizes = "".join(f"{b - a}," for a, b in blocks)
                starts = "".join(f"{a - start}," for a, _ in blocks)
                more = (one.name or one.gene or ".", 0, "-.+"[one.strand + 1], min(thick),
                        max(thick), 0, len(blocks), sizes, starts)  # fmt: skip
                yield BedRow(names[contig], start, end, more)

    def _label_contig(self, contig: str) -> _Labelled:
        length = self._genome.contigs[contig]
        labels = np.zeros(length, np.uint8)
        fourfold, other = np.zeros((2, length), np.bool_)
        transcripts = self._annotation.list_transcripts(contig)
        if transcripts is None:
            labels[:] = _NOWHERE
        for one in transcripts or ():
            for number, places in _list_parts(one):
                at = _list_bases(places, length)
                labels[at] = np.maximum(labels[at], number)
            if not one.coding:
                continue
            at = _list_bases(one.coding, length)
            if one.unknown:
                labels[at] = np.maximum(labels[at], _CODING)
                other[at] = True
                continue
            for position in range(3):  # in turn: slippage reads a base at two positions
                bases, new = at[(one.skip + position) % 3 :: 3], _FIRST + position
                before = labels[bases]
                labels[bases] = np.where((before < _FIRST) | (before == new), new, _SEVERAL)
            letters = read_pieces(lambda a, b: self._genome.fetch(contig, a, b), length, one.coding)
            is_fourfold = _find_fourfold(letters, one.skip, self._annotation.find_table(one))
            fourfold[at] |= is_fourfold
            other[at[~is_fourfold]] = True
        return _Labelled(labels, fourfold & ~other)


def _list_parts(one: Transcript) -> Iterator[tuple[int, Iterable[GenePart]]]:
    """Yield each class of a transcript except coding, with its intervals."""
    exons = list(one.exons)
    yield _EXON, [] if one.coding else exons or [GenePart(one.start, one.end, 1)]
    gaps = [(exons[i], bases) for i, bases in list_gaps(exons) if bases >= SHORTEST_INTRON]
    introns = [(a.end, a.end + n) if a.strand > 0 else (a.start - n, a.start) for a, n in gaps]
    yield _INTRON, [GenePart(start, end, 1) for start, end in introns]
    five, three = list_utrs(one)
    yield _THREE, three
    yield _FIVE, five


def _list_bases(parts: Iterable[GenePart], length: int) -> Sites:
    """List the contig positions of parts in reading order."""
    found = [np.arange(a, b)[::strand] % length for a, b, strand in parts]
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def _find_fourfold(letters: str, skip: int, table: int | None) -> NDArray[np.bool_]:
    """Return whether each base of a coding sequence is a fourfold site, (n,)."""
    found = np.zeros(len(letters), np.bool_)
    prefixes = _list_fourfold(table)
    for at in range(skip, len(letters) - 2, 3):
        found[at + 2] = letters[at : at + 2] in prefixes
    return found


@cache
def _list_fourfold(table: int | None) -> frozenset[str]:
    """List the first two bases of fourfold degenerate codons; none where no code is known."""
    if table is None:
        return frozenset()
    pairs = (a + b for a in "ACGT" for b in "ACGT")
    return frozenset(
        pair for pair in pairs
        if len({str(Seq(pair + c).translate(table=table)) for c in "ACGT"}) == 1
    )  # fmt: skip
