"""Classes at each base: coding exons of human chr21, and transcripts of yeast, by AUPRC.

    python benchmarks/bases/classes.py human|transcripts WORK OUT.jsonl --seeds 0 1 2 3 4

human        CDS+ and CDS- of chr21:24,985,581-26,000,306 (hg38, Ensembl): learned on
             25,550,000-25,800,000 (MRPL39, JAM2, ATP5J, GABPA), tested on 25,850,000-26,000,000
             (APP). `human-pieces` has chr21 held out.
transcripts  mRNA+ and mRNA-, from the start to the end of transcripts, other bases `none`: learned
             on chrV:1-300,000, tested on chrXIV:300,001-600,000 of sacCer3. `yeast` has chrXIV
             held out.

A class's share is what chance has. One epoch, so nothing is chosen. A row that is in OUT is not
made again. Of one row and seed in a process, `peak_mb` is its own.
"""

import argparse
import gzip
import json
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from yeast_genes import DATA, GENOME, TEST, TRAIN

import genodiff
from genodiff.io.faidx import Genome

PIECE, FIRST = "chr21:24985581-26000306", 24_985_580
LEARNED, TESTED = (25_550_000, 25_800_000), (25_850_000, 26_000_000)
ROWS: dict[str, dict[str, Any]] = {
    "pretrained": {},
    "scratch": {"scratch": True},
    "lora": {"adapter": "lora:r=4"},
    "probe": {"method": "frozen", "head": "linear"},
}
HOW: dict[str, Any] = {
    "stranded": True, "mask_shared": True, "core": 4096, "context": 512, "batch_size": 1,
    "epochs": 1, "lr": 2e-3,
}  # fmt: skip


def read_lines(name: str) -> list[str]:
    return gzip.decompress((DATA / "annotation" / name).read_bytes()).decode().splitlines()


def prepare_human(work: Path) -> dict[str, Any]:
    """The piece as `chr21`, its CDS rows, and what is known: both parts alone."""
    with Genome(DATA / "hg38_regions.fa.gz") as genome:
        length = genome.contigs[PIECE]
        text = genome.fetch(PIECE, 0, length).decode()
    (work / "piece.fa").write_text(f">chr21\n{text}\n")
    rows = []
    for line in read_lines("hg38_chr21_ensembl.gff3.gz"):
        row = line.split("\t")
        if len(row) == 9 and row[2] == "CDS":
            start, end = (int(place) - FIRST for place in row[3:5])
            if start > 0 and end <= length:
                rows.append("\t".join(["chr21", *row[1:3], str(start), str(end), *row[5:]]) + "\n")
    (work / "labels.gff3").write_text("##gff-version 3\n" + "".join(rows))
    spans = [("chr21", a - FIRST, b - FIRST) for a, b in (LEARNED, TESTED)]
    return {
        "run": "human-pieces", "fasta": work / "piece.fa", "classes": work / "labels.gff3",
        "types": ["CDS"], "class_power": 0.5, **name_parts(work, *spans),
    }  # fmt: skip


def prepare_transcripts(work: Path) -> dict[str, Any]:
    rows = []
    for line in read_lines("sacCer3_polIItranscripts-adjustedTSS.bed.gz"):
        contig, start, end, _, _, strand = line.split()[:6]
        rows.append(f"{contig}\t{start}\t{end}\tmRNA\t0\t{strand}\n")
    (work / "labels.bed").write_text("".join(rows))
    return {
        "run": "yeast", "fasta": GENOME, "classes": work / "labels.bed",
        **name_parts(work, TRAIN, TEST),
    }  # fmt: skip


def name_parts(work: Path, train: Any, test: Any) -> dict[str, Any]:
    """What is known, with the last 8,192 bases that are learned on as what chooses nothing."""
    spans = (f"{c}\t{a}\t{b}\n" for c, a, b in (train, test))
    (work / "known.bed").write_text("".join(spans))
    (contig, _, end), (other, first, last) = train, test
    return {
        "within": work / "known.bed",
        "valid": [f"{contig}:{end - 8191}-{end}"],
        "test": [f"{other}:{first + 1}-{last}"],
    }


TASKS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "human": prepare_human,
    "transcripts": prepare_transcripts,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("work", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--rows", nargs="+", default=[*ROWS])
    asked = parser.parse_args()
    work = asked.work / asked.task
    work.mkdir(parents=True, exist_ok=True)
    given = TASKS[asked.task](work)
    there = asked.out.read_text().splitlines() if asked.out.exists() else []
    done = {(one["task"], one["row"], one["seed"]) for one in map(json.loads, there)}
    for seed in asked.seeds:
        for row in asked.rows:
            if (asked.task, row, seed) in done:
                continue
            begun, out = time.process_time(), work / f"{row}-{seed}"
            told = genodiff.finetune_bases(seed=seed, out=out, **given, **(HOW | ROWS[row]))
            line = {
                "task": asked.task, "row": row, "seed": seed, "auprc": told["measured"]["test"],
                "trained": told["trained"], "seconds": round(time.process_time() - begun),
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            }  # fmt: skip
            with asked.out.open("a") as file:
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
