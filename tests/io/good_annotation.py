"""Good files of annotation, with the places and the genes that stand in them."""

import re
from pathlib import Path
from typing import Any

from genodiff.io.annotation_rows import read_annotation
from genodiff.io.genes import Gene, read_genes
from tests.io.good_files import READERS, GoodTable, Kind, Reader, Rng, Row, name

CONTIGS = {f"chr{i}": 3_000_000_000 for i in range(1, 6)}
GFF_KINDS: tuple[Kind, ...] = ("contig", "other", "name", "position", "position", "other",
                               "strand", "other", "text")  # fmt: skip


def place(rng: Rng) -> tuple[str, int, int, str]:
    """A contig, the first and the last base from 1, and a strand."""
    first = 1 + int(rng.integers(0, 300_000)) * int(rng.choice([1, 100]))
    last = first + int(rng.choice([int(rng.integers(100, 9000)), 99_999]))
    return f"chr{rng.integers(1, 6)}", first, last, str(rng.choice(["+", "-"]))


def make_annotation(rng: Rng, gtf: bool) -> GoodTable:
    above = str(rng.choice(["", "#!genome-build x\n"])) if gtf else "##gff-version 3\n"
    about = 'gene_id "id{}"; gene_name "{}"; note "two words";' if gtf else (
        "ID=id{};Name={};Note=two words")  # fmt: skip
    rows = []
    for i in range(int(rng.integers(3, 8))):
        contig, first, last, strand = place(rng)
        kind = ["gene", "exon"][i % 2]
        told = about.format(i, name(rng, i))
        rows.append([contig, "made", kind, str(first), str(last), ".", strand, ".", told])

    def content(rows: list[Row]) -> Any:
        titles = [re.split('[="; ]+', row[8])[3] for row in rows]
        return [(r[0], int(r[3]) - 1, int(r[4]), title, r[6], r[2])
                for r, title in zip(rows, titles, strict=True)]  # fmt: skip

    return GoodTable(GFF_KINDS, rows, content, above=above, needed=(0, 2, 3, 4, 6, 8))


def make_saf(rng: Rng) -> GoodTable:
    rows = []
    for i in range(int(rng.integers(3, 8))):
        contig, first, last, strand = place(rng)
        rows.append([name(rng, i), contig, str(first), str(last), strand])
    above = str(rng.choice(["", "GeneID\tChr\tStart\tEnd\tStrand\n"]))
    kinds: tuple[Kind, ...] = ("text", "contig", "position", "position", "strand")
    return GoodTable(kinds, rows, lambda rows: [(r[1], int(r[2]) - 1, int(r[3]), r[0], r[4], "")
                                                for r in rows],
                     above=above, needed=(0, 1, 2, 3, 4))  # fmt: skip


def load_annotation(path: Path) -> Any:
    return [(r.contig, r.start, r.end, r.name, r.strand, r.type)
            for r in read_annotation(path, CONTIGS)]  # fmt: skip


def gene(rng: Rng, i: int) -> Gene:
    """A gene of two exons; 9 bases at either end are not coding."""
    contig, first, last, strand = place(rng)
    start, length = first - 1, last - first + 1
    exons = ((start, start + length // 3), (start + length // 2, start + length))
    coding = ((start + 9, exons[0][1]), (exons[1][0], start + length - 9))
    turned = 1 if strand == "+" else -1
    return Gene(contig, start, start + length, turned, name(rng, i), exons, coding)


def make_genes(rng: Rng, gtf: bool) -> GoodTable:
    genes = [gene(rng, i) for i in range(int(rng.integers(1, 4)))]
    rows = []
    for i, one in enumerate(genes):
        own, part = f"ID=g{i};Name={one.name}", f"Parent=t{i}"
        script = f"ID=t{i};Parent=g{i}"
        if gtf:
            own = f'gene_id "g{i}"; gene_name "{one.name}";'
            part = script = f'gene_id "g{i}"; transcript_id "t{i}"; gene_name "{one.name}";'
        parts = [("gene", one[1:3], own), ("transcript" if gtf else "mRNA", one[1:3], script)]
        parts += [("exon", pair, part) for pair in one.exons]
        parts += [("CDS", pair, part) for pair in one.coding]
        for kind, (start, end), about in parts:
            strand = "+" if one.strand > 0 else "-"
            rows.append(
                [one.contig, "made", kind, str(start + 1), str(end), ".", strand, ".", about]
            )
    above = "" if gtf else "##gff-version 3\n"
    return GoodTable(GFF_KINDS, rows, lambda rows: set(genes), above=above,
                     needed=(0, 2, 3, 4, 6, 8))  # fmt: skip


def make_bed12(rng: Rng) -> GoodTable:
    genes = [gene(rng, i) for i in range(int(rng.integers(2, 6)))]
    rows = []
    for one in genes:
        sizes = ",".join(str(end - start) for start, end in one.exons)
        starts = ",".join(str(start - one.start) for start, _ in one.exons)
        strand = "+" if one.strand > 0 else "-"
        thick = [str(one.coding[0][0]), str(one.coding[1][1])]
        rows.append([one.contig, str(one.start), str(one.end), one.name, "0", strand, *thick,
                     "0", "2", sizes, starts])  # fmt: skip
    kinds: tuple[Kind, ...] = (
        "contig", "position", "position", "text", "other", "strand", "position", "position",
        "other", "position", "other", "other",
    )  # fmt: skip
    return GoodTable(kinds, rows, lambda rows: set(genes), needed=(0, 1, 2, 3, 5, 6, 7, 9, 10, 11))


def load_genes(path: Path) -> Any:
    return set(read_genes(path, CONTIGS))


READERS |= {
    "GTF": Reader(".gtf", lambda rng: make_annotation(rng, True), load_annotation),
    "GFF3": Reader(".gff3", lambda rng: make_annotation(rng, False), load_annotation),
    "SAF": Reader(".saf", make_saf, load_annotation),
    "genes of GTF": Reader(".gtf", lambda rng: make_genes(rng, True), load_genes),
    "genes of GFF3": Reader(".gff3", lambda rng: make_genes(rng, False), load_genes),
    "genes of BED12": Reader(".bed", make_bed12, load_genes),
}
