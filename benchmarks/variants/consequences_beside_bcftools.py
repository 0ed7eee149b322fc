"""Consequences of random variants beside those of `bcftools csq`, with the disagreements by kind.

    python benchmarks/variants/consequences_beside_bcftools.py genome.fa genes.gff3 -n 5000
    python benchmarks/variants/consequences_beside_bcftools.py genome.fa orfs.bed.gz --orfs

SNVs, insertions and deletions are drawn within and around the genes, where the genome has letters.
With `--orfs` rows of BED are whole reading frames without introns, of which a GFF3 is made. Needs
bcftools (Debian has it). Each transcript that both name is compared by its most severe term.
"""

import argparse
import random
import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from genodiff.io.bed import parse_bed_lines
from genodiff.io.faidx import Genome
from genodiff.io.text_lines import read_text_lines
from genodiff.io.transcripts import read_transcripts
from genodiff.io.variants import Allele, VariantRecord, anchor_allele, judge_record
from genodiff.variants.consequences import TERMS, Consequences

NAMES = {"non_coding": "non_coding_transcript_exon_variant", "5_prime_utr": "5_prime_UTR_variant",
         "3_prime_utr": "3_prime_UTR_variant", "start_retained": "start_retained_variant",
         "coding_sequence": "coding_sequence_variant"}  # fmt: skip


def write_orfs(bed: str, genome: Genome, out: Path) -> None:
    """A GFF3 as Ensembl writes it, of rows of BED that are reading frames."""
    with out.open("w") as file:
        rows = parse_bed_lines(bed, read_text_lines(bed, "BED"))
        for n, (row, _) in enumerate(rows):
            contig, start, end, name, _, strand, _ = row
            if (end - start) % 3 or contig not in genome.contigs:
                continue
            at = f"{contig}\tx\t%s\t{start + 1}\t{end}\t.\t{strand}\t%s\t"
            for kind, phase, told in (
                ("gene", ".", f"ID=gene:G{n};Name={name};biotype=protein_coding"),
                ("mRNA", ".", f"ID=transcript:T{n};Parent=gene:G{n};biotype=protein_coding"),
                ("exon", ".", f"Parent=transcript:T{n}"),
                ("CDS", "0", f"ID=CDS:P{n};Parent=transcript:T{n}"),
            ):
                file.write(at % (kind, phase) + told + "\n")


def draw(genome: Genome, gff: Path, n: int) -> list[Allele]:
    """Random alleles in normal form, half of them within 40 bases of an exon."""
    chance, some = random.Random(1), read_transcripts(gff, genome.contigs).transcripts
    found: dict[Allele, None] = {}
    for _ in range(200 * n):
        if len(found) >= n:
            break
        one = chance.choice(some)
        span = (one.start, one.end)
        if one.exons and chance.random() < 0.8:
            a, b, _ = chance.choice(one.coding or one.exons)
            span = (
                (a - 40, b + 40)
                if chance.random() < 0.5
                else chance.choice([(a - 9, a + 9), (b - 9, b + 9)])
            )
        at = chance.randrange(max(span[0], 1), max(span[1], 2))
        width = chance.choice((1, 1, 1, 2, 3, 4, 6))
        if at + width >= genome.contigs[one.contig]:
            continue
        ref = genome.fetch(one.contig, at, at + width).decode().upper()
        alt = "".join(chance.choices("ACGT", k=1 if chance.random() < 0.7 else 4))
        judged = judge_record(VariantRecord(0, one.contig, at + 1, ".", ref, (alt,)), genome)[0]
        if isinstance(judged, Allele):
            found[judged] = None
    return sorted(found, key=lambda x: (x.chrom, anchor_allele(x, genome)[0]))


def ask_bcftools(fasta: str, gff: Path, alleles: list[Allele], genome: Genome) -> list[str]:
    """BCSQ of each allele."""
    with tempfile.TemporaryDirectory() as folder:
        vcf = Path(folder) / "in.vcf"
        lines = ["##fileformat=VCFv4.2"]
        lines += [f"##contig=<ID={name},length={n}>" for name, n in genome.contigs.items()]
        lines.append("#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO")
        for number, one in enumerate(alleles):
            pos, ref, alt = anchor_allele(one, genome)
            lines.append(f"{one.chrom}\t{pos}\t{number}\t{ref}\t{alt}\t.\t.\t.")
        vcf.write_text("\n".join(lines) + "\n")
        told = subprocess.run(
            ["bcftools", "csq", "-l", "-f", fasta, "-g", str(gff), "--force", str(vcf)],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
    rows = [line.split("\t") for line in told.splitlines() if not line.startswith("#")]
    by_id = {int(row[2]): row[7] for row in rows}
    return [
        next((x[5:] for x in by_id.get(i, "").split(";") if x.startswith("BCSQ=")), "")
        for i in range(len(alleles))
    ]


def severest(terms: str) -> str:
    """The most severe term of bcftools, by our names."""
    full = []
    for term in terms.replace("*", "").split("&"):
        some = (NAMES.get(term, term), f"{term}_variant", term)
        full.append(next((x for x in some if x in TERMS), term))
    return min(full, key=lambda x: TERMS.index(x) if x in TERMS else 99)


def main() -> None:
    """Compare, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fasta")
    parser.add_argument("genes")
    parser.add_argument("-n", type=int, default=3000)
    parser.add_argument("--orfs", action="store_true")
    asked = parser.parse_args()
    with Genome(asked.fasta) as genome, tempfile.TemporaryDirectory() as folder:
        gff = Path(asked.genes)
        if asked.orfs:
            gff = Path(folder) / "orfs.gff3"
            write_orfs(asked.genes, genome, gff)
        alleles = draw(genome, gff, asked.n)
        ours = Consequences(gff, genome)
        same, other = Counter[str](), Counter[tuple[str, str, str]]()
        shown: dict[tuple[str, str, str], tuple[Allele, str, str]] = {}
        aminos = Counter[bool]()
        for one, told in zip(alleles, ask_bcftools(asked.fasta, gff, alleles, genome), strict=True):
            mine = {x.transcript: x for x in ours.find(one)}
            theirs: dict[str, list[list[str]]] = {}  # a transcript may have several items
            for item in told.split(",") if told else ():
                fields = item.split("|")
                if not item.startswith("@") and len(fields) > 2 and fields[2] in mine:
                    theirs.setdefault(fields[2], []).append(fields)
            for name, items in theirs.items():
                here = mine[name]
                there = severest("&".join(fields[0] for fields in items))
                if here.terms[0] == there:
                    same[there] += 1
                    for fields in items:
                        change = re.fullmatch(r"(\d+)([A-Z*])>\1([A-Z*])", (fields[5:] or [""])[0])
                        if change and there in ("missense_variant", "stop_gained"):
                            aminos[here.protein == f"{change[2]}{change[1]}{change[3]}"] += 1
                else:
                    key = (str(one.kind), here.terms[0], there)
                    other[key] += 1
                    shown.setdefault(key, (one, str(here), "|".join(items[0])))
    print(f"{len(alleles):,} alleles; {same.total():,} transcripts agree, {other.total():,} do not")
    print(f"amino acids: {aminos[True]:,} agree, {aminos[False]:,} do not")
    print("agree:", dict(same.most_common()))
    for key, n in other.most_common(40):
        print(n, *key, "e.g.", *shown[key])


if __name__ == "__main__":
    main()
