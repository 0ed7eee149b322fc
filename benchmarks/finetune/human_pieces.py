"""The human pieces that the benchmark pretrains on, without labels: train, valid and test by locus.

What they share with the test parts of tasks is known, and printed under every table.
"""

import gzip
from pathlib import Path

from Bio.SeqIO.FastaIO import SimpleFastaParser

PIECES = {
    "hg38_regions": {
        "chr1:": "train", "chr2:": "train", "chr10:": "train", "chr21:24985581": "test",
    },
    "hg19_regions": {
        "chr22:": "train", "chr6:995529": "train", "chrX:": "train", "chr6:112323682": "valid",
        "chr9:": "valid",
    },
}  # fmt: skip
"""Records of the shared FASTA files, by the beginning of their names, and their splits."""


def write_pieces(data: Path, out: Path) -> tuple[Path, Path]:
    """One FASTA of the pieces, and a BED that says which split each is for."""
    fasta, bed = out / "human_pieces.fa", out / "human_pieces.bed"
    with fasta.open("w") as sequences, bed.open("w") as splits:
        for name, wanted in PIECES.items():
            with gzip.open(data / "genomes" / f"{name}.fa.gz", "rt") as lines:
                for title, sequence in SimpleFastaParser(lines):
                    place = title.split()[0]
                    split = next((s for start, s in wanted.items() if place.startswith(start)), "")
                    if split:
                        record = f"{name.split('_')[0]}_{place.replace(':', '_').replace('-', '_')}"
                        sequences.write(f">{record}\n{sequence}\n")
                        splits.write(f"{record}\t0\t{len(sequence)}\t{split}\n")
    return fasta, bed
