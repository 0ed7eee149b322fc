"""Coding genes of both strands as a path of thirteen states, one for each base.

    between        outside coding sequences and their introns
    exon p         base p of a codon, p = 0, 1, 2, of each strand
    intron p       an intron behind base p of a codon, of each strand

On the forward strand, read from left to right:

    between → exon 0 → exon 1 → exon 2 → exon 0 …       exon 2 → between
    exon p → intron p → intron p …                      intron p → exon p + 1

Of the reverse strand the same holds from right to left. So a path has whole codons alone, an intron
keeps the phase, and no gene lies in another. Genes that touch are apart only where `between` is:
two neighbours without a base between them cannot be written, nor one inside another's intron.

Genes are written as GFF3 and as BED12, which `read_transcripts` reads back to the same parts. They
are numbered in the order of the contigs. A CDS row of GFF3 has the phase of its first base: how
many bases stand before its first whole codon.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.io.transcript_model import Part, Transcript, list_gaps

BETWEEN, EXON, INTRON = 0, 1, 4
"""The first state of each kind on the forward strand; those of the reverse stand `STRAND` on."""
STRAND = 6
N_STATES = 1 + 2 * STRAND
STATES = (
    "between",
    *(
        f"{kind}{phase}{strand}"
        for strand in "+-"
        for kind in ("exon", "intron")
        for phase in range(3)
    ),
)
"""The names of the states, such as `exon0+`."""
UNKNOWN = -1
"""The label of a base that nothing is said of."""

_SHORTEST = 3  # a gap of one or two bases shifts the frame and is no intron
_FIRST = (EXON, EXON + 2 + STRAND)  # states that a gene may begin with, from left to right
_LAST = (EXON + 2, EXON + STRAND)


class CodingGene(NamedTuple):
    """The coding sequence of a gene: its parts in the order of the contig, 0-based, half-open."""

    strand: int
    parts: tuple[tuple[int, int], ...]

    @property
    def length(self) -> int:
        """Bases of the coding sequence."""
        return sum(end - start for start, end in self.parts)


def allow_steps() -> NDArray[np.bool_]:
    """Which state may follow which, from left to right: (from, to).

    >>> bool(allow_steps()[STATES.index("exon2+"), STATES.index("exon0+")])
    True
    >>> bool(allow_steps()[STATES.index("exon0+"), STATES.index("exon2+")])
    False
    """
    found = np.zeros((N_STATES, N_STATES), bool)
    found[BETWEEN, BETWEEN] = found[BETWEEN, EXON] = found[EXON + 2, BETWEEN] = True
    for phase in range(3):
        exon, intron, following = EXON + phase, INTRON + phase, EXON + (phase + 1) % 3
        found[exon, following] = found[exon, intron] = True
        found[intron, intron] = found[intron, following] = True
    other = np.array(mirror_states())
    return found | found.T[np.ix_(other, other)]


def list_introns(phases: Collection[int]) -> list[int]:
    """The intron states of both strands of some phases."""
    return [INTRON + p + turned for turned in (0, STRAND) for p in sorted(phases)]


def mirror_states() -> tuple[int, ...]:
    """The state of a base when the contig is read as its reverse complement."""
    forward = range(1, 1 + STRAND)
    return (BETWEEN, *(s + STRAND for s in forward), *forward)


def label_genes(
    genes: Iterable[CodingGene],
    length: int,
    partial: Iterable[Part] = (),
    *,
    circular: bool = False,
) -> tuple[NDArray[np.int8], int]:
    """The path of a contig with these genes, and how many of them are left out.

    Left out are coding sequences that are no whole codons, lie beyond the contig, or overlap or
    touch one that begins before them; their bases are `UNKNOWN` where no other gene has them. So
    are those of the `partial` spans, of which no more is known than that a gene is there. A gene
    of a `circular` contig may cross its origin.
    """
    path = np.zeros(length, np.int8)
    left_out, end_before = 0, -1
    unsure = list(partial)
    for gene in sorted(genes, key=lambda one: (one.parts[0][0], -one.parts[-1][1])):
        first, last = gene.parts[0][0], gene.parts[-1][1]
        there = np.arange(first, last) % length
        crosses = circular and 0 <= first < length < last < first + length
        free = first > end_before
        if crosses:  # the genes behind the origin are there already
            free &= not (path[there] > BETWEEN).any() and path[last % length] <= BETWEEN
        beyond = (first < 0 or last > length) and not crosses
        if beyond or gene.length % 3 or not gene.length or not free:
            left_out += 1
            unsure.append((first, last))
            continue
        path[there] = _label_one(gene)
        end_before = last
    for first, last in unsure:  # nothing is known of it where no gene is
        there = np.arange(first, last)
        there = there % length if circular else there[(there >= 0) & (there < length)]
        path[there[path[there] == BETWEEN]] = UNKNOWN
    return path, left_out


def _label_one(gene: CodingGene) -> NDArray[np.int8]:
    """The states of a gene from its first base to its last."""
    first, last = gene.parts[0][0], gene.parts[-1][1]
    read = np.zeros(last - first, bool)
    for start, end in gene.parts:
        read[start - first : end - first] = True
    if gene.strand < 0:
        read = read[::-1]
    number = np.cumsum(read) - 1  # of the last coding base that was read
    states = np.where(read, EXON, INTRON) + number % 3
    if gene.strand < 0:
        states = states[::-1] + STRAND
    return states.astype(np.int8)


def list_genes(path: NDArray[np.integer]) -> list[CodingGene]:
    """The genes of a path, in its order; one that an end cuts off is left out.

    >>> list_genes(np.array([0, 1, 2, 3, 0]))
    [CodingGene(strand=1, parts=((1, 4),))]
    """
    inside = np.concatenate([[False], path > BETWEEN, [False]])
    found = []
    for first, last in np.flatnonzero(inside[1:] != inside[:-1]).reshape(-1, 2).tolist():
        states = path[first:last]
        if states[0] not in _FIRST or states[-1] not in _LAST:
            continue
        read = np.concatenate([[False], (states - 1) % STRAND < INTRON - EXON, [False]])
        parts = np.flatnonzero(read[1:] != read[:-1]).reshape(-1, 2) + first
        strand = 1 if states[0] <= STRAND else -1
        found.append(CodingGene(strand, tuple((a, b) for a, b in parts.tolist())))
    return found


class ContigGenes(NamedTuple):
    """The coding genes of a contig, and the spans of those that have no path."""

    whole: list[CodingGene]
    partial: list[Part]


def as_coding_genes(transcripts: Sequence[Transcript]) -> dict[str, ContigGenes]:
    """The longest coding sequence of each gene, by contig; a gene may have several apart.

    A transcript whose CDS is not known from its first codon to its last, or is not read along one
    strand with introns alone in between, is partial: a gene is there, and no more is known.
    """
    found: dict[str, ContigGenes] = {}
    genes: dict[tuple[str, str], list[CodingGene]] = {}
    for one in transcripts:
        there = found.setdefault(one.contig, ContigGenes([], []))
        if one.unknown or (one.coding and not has_path(one)):
            there.partial.extend(one.spans)
        elif one.coding:
            parts = tuple(sorted((a, b) for a, b, _ in one.coding))
            gene = CodingGene(one.coding[0].strand, parts)
            genes.setdefault((one.contig, one.gene or one.name), []).append(gene)
    for (contig, _), some in genes.items():
        taken: list[CodingGene] = []
        for gene in sorted(some, key=lambda one: -one.length):  # stable: the first of equals
            first, last = gene.parts[0][0], gene.parts[-1][1]
            if all(last <= x.parts[0][0] or x.parts[-1][1] <= first for x in taken):
                taken.append(gene)
        found[contig].whole.extend(taken)
    return {contig: one for contig, one in found.items() if one.whole or one.partial}


def has_path(one: Transcript) -> bool:
    """Whether the states can write a CDS: whole, on one strand, of exons and introns."""
    steps = dict(list_gaps(one.coding))
    introns = len(steps) == len(one.coding) - 1 and min(steps.values(), default=_SHORTEST)
    whole = one.starts and one.ends and not one.skip
    return whole and not one.slips and introns >= _SHORTEST


ListedGenes = Iterable[tuple[str, Iterable[CodingGene]]]


def format_gff3(genes: ListedGenes, contigs: Mapping[str, int]) -> Iterator[str]:
    """The lines of GFF3, 1-based and inclusive: gene, mRNA, exon and CDS rows of each gene."""
    yield "##gff-version 3\n"
    for name, length in contigs.items():
        yield f"##sequence-region {_escape(name)} 1 {length}\n"
    for number, (contig, gene) in enumerate(_flatten(genes), 1):
        way, own = "+" if gene.strand > 0 else "-", f"gene{number}"
        first, last, child = gene.parts[0][0], gene.parts[-1][1], f"Parent={own}.t1"
        rows: list[tuple[Any, ...]] = [("gene", first, last, ".", f"ID={own}")]
        rows.append(("mRNA", first, last, ".", f"ID={own}.t1;Parent={own}"))
        rows += [("exon", start, end, ".", child) for start, end in gene.parts]
        phased = zip(gene.parts, list_phases(gene), strict=True)
        rows += [("CDS", *part, phase, f"ID={own}.cds;{child}") for part, phase in phased]
        for kind, start, end, phase, about in rows:
            fields = (_escape(contig), "genodiff", kind, start + 1, end, ".", way, phase, about)
            yield "\t".join(map(str, fields)) + "\n"
        yield "###\n"


def format_bed12(genes: ListedGenes) -> Iterator[str]:
    """The lines of BED12, 0-based and half-open: a gene with its coding parts as blocks."""
    for number, (contig, gene) in enumerate(_flatten(genes), 1):
        first, last = gene.parts[0][0], gene.parts[-1][1]
        sizes = "".join(f"{end - start}," for start, end in gene.parts)
        begins = "".join(f"{start - first}," for start, _ in gene.parts)
        way = "+" if gene.strand > 0 else "-"
        fields = (contig, first, last, f"gene{number}", 0, way, first, last, 0,
                  len(gene.parts), sizes, begins)  # fmt: skip
        yield "\t".join(map(str, fields)) + "\n"


def _flatten(genes: ListedGenes) -> Iterator[tuple[str, CodingGene]]:
    return ((contig, gene) for contig, some in genes for gene in some)


def list_phases(gene: CodingGene) -> list[int]:
    """Of each part, the bases before its first whole codon, in its direction of reading.

    >>> list_phases(CodingGene(1, ((0, 4), (10, 15))))
    [0, 2]
    """
    found, read = [], 0
    for start, end in gene.parts[:: gene.strand]:
        found.append(-read % 3)
        read += end - start
    return found[:: gene.strand]


def _escape(name: str) -> str:
    """A contig's name as GFF3 writes it."""
    kept = set(".:^*$@!+_?-|")
    return "".join(c if c.isalnum() or c in kept else f"%{ord(c):02X}" for c in name)
