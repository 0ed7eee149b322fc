"""Coding exons of human chr21 at each base, learned on four genes and tested on another, APP.

    python benchmarks/bases/human.py WORK OUT.jsonl --seeds 0 1 2

Of chr21:24,985,581-26,000,306 (hg38) with Ensembl's CDS rows: learned on 25,550,000-25,800,000
(MRPL39, JAM2, ATP5J, GABPA), tested on 25,850,000-26,000,000 (APP). `human-pieces` has chr21 held
out. The classes are CDS+ and CDS-; the measure is AUPRC, whose chance level is a class's share.
"""

import argparse
import gzip
import json
import os
import time
from pathlib import Path

import genodiff
from genodiff.io.faidx import Genome

DATA = Path(os.environ["GENODIFF_SHARED"]) / "data/genomes"
PIECE, FIRST = "chr21:24985581-26000306", 24_985_580
TRAIN, TEST = (25_550_000, 25_800_000), (25_850_000, 26_000_000)
ROWS = {
    "pretrained": {},
    "scratch": {"scratch": True},
    "probe": {"method": "frozen", "head": "linear"},
}


def write_files(work: Path) -> None:
    """The piece as `chr21`, its CDS rows, and what is known: both parts alone."""
    with Genome(DATA / "hg38_regions.fa.gz") as genome:
        length = genome.contigs[PIECE]
        text = genome.fetch(PIECE, 0, length).decode()
    (work / "piece.fa").write_text(f">chr21\n{text}\n")
    raw = gzip.decompress((DATA / "annotation/hg38_chr21_ensembl.gff3.gz").read_bytes())
    rows = []
    for line in raw.decode().splitlines():
        row = line.split("\t")
        if len(row) == 9 and row[2] == "CDS":
            start, end = (int(place) - FIRST for place in row[3:5])
            if start > 0 and end <= length:
                rows.append("\t".join(["chr21", *row[1:3], str(start), str(end), *row[5:]]) + "\n")
    (work / "cds.gff3").write_text("##gff-version 3\n" + "".join(rows))
    spans = (f"chr21\t{a - FIRST}\t{b - FIRST}\n" for a, b in (TRAIN, TEST))
    (work / "known.bed").write_text("".join(spans))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--rows", nargs="+", default=[*ROWS])
    asked = parser.parse_args()
    asked.work.mkdir(parents=True, exist_ok=True)
    write_files(asked.work)
    valid = [f"chr21:{TRAIN[1] - FIRST - 8191}-{TRAIN[1] - FIRST}"]  # of one epoch: chooses nothing
    test = [f"chr21:{TEST[0] - FIRST + 1}-{TEST[1] - FIRST}"]
    for seed in asked.seeds:
        for row in asked.rows:
            begun = time.process_time()
            told = genodiff.finetune_bases(
                "human-pieces", asked.work / "piece.fa", classes=asked.work / "cds.gff3",
                types=["CDS"], stranded=True, mask_shared=True, within=asked.work / "known.bed",
                valid=valid, test=test, class_power=0.5, core=4096, context=512, batch_size=1,
                epochs=1, lr=2e-3, seed=seed, out=asked.work / f"{row}-{seed}", **ROWS[row],
            )  # fmt: skip
            line = {"row": row, "seed": seed, "auprc": told["measured"]["test"],
                    "seconds": round(time.process_time() - begun)}  # fmt: skip
            with asked.out.open("a") as file:
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
