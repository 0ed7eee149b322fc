"""Coding genes written as GFF3 and as BED12: what `read_transcripts` reads back to the same parts.

Genes are numbered in the order of the contigs. A CDS row of GFF3 has the phase of its first base:
how many bases stand before its first whole codon.
"""

from collections.abc import Iterable, Iterator, Mapping

from genodiff.annotation.gene_grammar import CodingGene

ContigGenes = Iterable[tuple[str, Iterable[CodingGene]]]
_BY = "genodiff"


def format_gff3(genes: ContigGenes, contigs: Mapping[str, int]) -> Iterator[str]:
    """The lines of GFF3, 1-based and inclusive: gene, mRNA, exon and CDS rows of each gene."""
    yield "##gff-version 3\n"
    for name, length in contigs.items():
        yield f"##sequence-region {_escape(name)} 1 {length}\n"
    number = 0
    for contig, some in genes:
        for gene in some:
            number += 1
            way, own = "+" if gene.strand > 0 else "-", f"gene{number}"

            def row(kind: str, start: int, end: int, phase: object, about: str) -> str:
                fields = (_escape(contig), _BY, kind, start + 1, end, ".", way, phase, about)  # noqa: B023
                return "\t".join(map(str, fields)) + "\n"

            first, last = gene.parts[0][0], gene.parts[-1][1]
            yield row("gene", first, last, ".", f"ID={own}")
            yield row("mRNA", first, last, ".", f"ID={own}.t1;Parent={own}")
            for start, end in gene.parts:
                yield row("exon", start, end, ".", f"Parent={own}.t1")
            for (start, end), phase in zip(gene.parts, list_phases(gene), strict=True):
                yield row("CDS", start, end, phase, f"ID={own}.cds;Parent={own}.t1")
            yield "###\n"


def format_bed12(genes: ContigGenes) -> Iterator[str]:
    """The lines of BED12, 0-based and half-open: a gene with its coding parts as blocks."""
    number = 0
    for contig, some in genes:
        for gene in some:
            number += 1
            first, last = gene.parts[0][0], gene.parts[-1][1]
            sizes = "".join(f"{end - start}," for start, end in gene.parts)
            begins = "".join(f"{start - first}," for start, _ in gene.parts)
            way = "+" if gene.strand > 0 else "-"
            fields = (contig, first, last, f"gene{number}", 0, way, first, last, 0,
                      len(gene.parts), sizes, begins)  # fmt: skip
            yield "\t".join(map(str, fields)) + "\n"


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
