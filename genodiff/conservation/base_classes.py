"""The class of each base by an annotation: codon position, UTR, intron, or intergenic.

Where several transcripts lie over a base, coding goes before UTR, UTR before other exons, and those
before introns; a base with two codon positions is `coding_several_frames`. A fourfold site is a
third codon position at which every base gives the same amino acid, in each transcript over it.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from Bio.Data.CodonTable import unambiguous_dna_by_id
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
    """Of a contig: the class of each base, and the fourfold sites."""

    labels: Labels
    fourfold: NDArray[np.bool_]


class BaseClasses:
    """The classes of a genome's bases; one contig is held at a time.

    Raises as `Consequences`.
    """

    def __init__(self, path: str | Path, genome: Genome) -> None:
        self._genome, self._annotation = genome, Consequences(path, genome)
        self._held: tuple[str, _Labelled] | None = None

    def read(self, contig: str, start: int, end: int) -> Labels:
        """(n,): the numbers in `CLASSES` of contig[start:end]."""
        return self._label(contig).labels[start:end]

    def find_fourfold(self) -> Mapping[str, Sites]:
        """The fourfold sites of each contig, ascending."""
        found = {}
        for contig in self._genome.contigs:
            sites = np.flatnonzero(self._label(contig).fourfold)
            if len(sites):
                found[contig] = sites
        return found

    def list_rows(self, names: Mapping[str, str]) -> Iterator[BedRow]:
        """The transcripts as BED12, with the `names` of contigs; not those across an origin."""
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

    def _label(self, contig: str) -> _Labelled:
        if self._held is None or self._held[0] != contig:
            self._held = contig, self._label_contig(contig)
        return self._held[1]

    def _label_contig(self, contig: str) -> _Labelled:
        length = self._genome.contigs[contig]
        labels = np.zeros(length, np.uint8)
        fourfold, refused = np.zeros((2, length), np.bool_)
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
            table = None if one.unknown else self._annotation.find_table(one)
            if one.unknown:
                labels[at] = np.maximum(labels[at], _CODING)
                refused[at] = True
                continue
            place = (np.arange(len(at)) - one.skip) % 3
            new, before = _FIRST + place, labels[at]
            labels[at] = np.where((before < _FIRST) | (before == new), new, _SEVERAL)
            letters = read_pieces(lambda a, b: self._genome.fetch(contig, a, b), length, one.coding)
            is_fourfold = _find_fourfold(letters, one.skip, table)
            fourfold[at] |= is_fourfold
            refused[at[~is_fourfold]] = True
        return _Labelled(labels, fourfold & ~refused)


def _list_parts(one: Transcript) -> Iterator[tuple[int, Iterable[GenePart]]]:
    exons = list(one.exons)
    yield _EXON, [] if one.coding else exons or [GenePart(one.start, one.end, 1)]
    gaps = [(exons[i], bases) for i, bases in list_gaps(exons) if bases >= SHORTEST_INTRON]
    yield (
        _INTRON,
        [
            GenePart(a.end, a.end + n, 1) if a.strand > 0 else GenePart(a.start - n, a.start, 1)
            for a, n in gaps
        ],
    )
    five, three = list_utrs(one)
    yield _THREE, three
    yield _FIVE, five


def _list_bases(parts: Iterable[GenePart], length: int) -> Sites:
    """The positions of parts in the order of reading, on the contig."""
    found = [np.arange(a, b)[::strand] % length for a, b, strand in parts]
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def _find_fourfold(letters: str, skip: int, table: int | None) -> NDArray[np.bool_]:
    """(n,): which bases of a coding sequence are fourfold sites."""
    found = np.zeros(len(letters), np.bool_)
    if table is None:
        return found
    prefixes = _list_fourfold(table)
    for at in range(skip, len(letters) - 2, 3):
        found[at + 2] = letters[at : at + 2] in prefixes
    return found


@cache
def _list_fourfold(table: int) -> frozenset[str]:
    """The first two bases of codons whose third is of no account."""
    assert table in unambiguous_dna_by_id
    pairs = (a + b for a in "ACGT" for b in "ACGT")
    return frozenset(
        pair for pair in pairs
        if len({str(Seq(pair + c).translate(table=table)) for c in "ACGT"}) == 1
    )  # fmt: skip
