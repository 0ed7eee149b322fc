"""Yeast's ORFs as BED12 for `genodiff constraint --genes`: those that are one open reading frame.

    python benchmarks/relatives/orfs_bed12.py OUT.bed

An ORF with an intron has no frame in this annotation and is left out. UTRs are those of the
transcript of the same name.
"""

import gzip
import os
import sys
from pathlib import Path

from Bio.Seq import Seq

from genodiff.io.faidx import Genome

DATA = Path(os.environ["GENODIFF_SHARED"]) / "data" / "genomes"
ORFS = "sacCer3_nondubious_ORFs_and_blocked_reading_frames.bed.gz"
TRANSCRIPTS = "sacCer3_polIItranscripts-adjustedTSS.bed.gz"


def read(name: str) -> list[list[str]]:
    with gzip.open(DATA / "annotation" / name, "rt") as file:
        return [line.rstrip("\n").split("\t") for line in file]


def main(out: Path) -> None:
    around = {(f[0], f[3]): (int(f[1]), int(f[2])) for f in read(TRANSCRIPTS)}
    rows, left = [], 0
    with Genome(DATA / "sacCer3.fa.gz") as genome:
        for contig, first, last, name, _, strand, *_ in read(ORFS):
            start, end = int(first), int(last)
            text = genome.fetch(contig, start, end).decode().upper()
            text = text if strand == "+" else str(Seq(text).reverse_complement())
            protein = str(Seq(text).translate(table=3 if contig == "chrM" else 1))
            if len(text) % 3 or protein.count("*") != 1 or protein[-1] != "*":
                left += 1
                continue
            low, high = around.get((contig, name), (start, end))
            low, high = min(low, start), max(high, end)
            fields = (contig, low, high, name, 0, strand, start, end, 0, 1, high - low, 0)
            rows.append("\t".join(map(str, fields)))
    out.write_text("\n".join(rows) + "\n")
    print(f"{len(rows):,} ORFs, {left:,} left out")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
