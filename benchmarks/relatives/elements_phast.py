"""Conserved elements beside phastCons on the same columns.

    python benchmarks/relatives/elements_phast.py FOLDER WORK [TRNAS]

FOLDER and WORK as for constraint_phast.py, which has to run first: WORK/aligned.fa and neutral.mod
are the columns and the neutral model. phastCons estimates rho, its target coverage and the expected
length by maximum likelihood. Of both sets of elements: bases, and the share of the bases of ORFs
(codons read), of snoRNAs, of tRNAs (TRNAS: what `aragorn -t -i -w -gcstd` prints of the genome),
and of none of these that lie in them. A base counts only where a related genome lies.
"""

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
from Bio import AlignIO

ANNOTATION = Path(os.environ["GENODIFF_SHARED"]) / "data" / "genomes" / "annotation"
ORFS = "sacCer3_nondubious_ORFs_and_blocked_reading_frames.bed.gz"
TRANSCRIPTS = "sacCer3_polIItranscripts-adjustedTSS.bed.gz"


def mark(rows: list[tuple[int, int]], length: int) -> np.ndarray:
    out = np.zeros(length, bool)
    for start, end in rows:
        out[start:end] = True
    return out


def read_annotation(name: str, contig: str, prefix: str = "") -> list[tuple[int, int]]:
    with gzip.open(ANNOTATION / name, "rt") as file:
        fields = [line.rstrip("\n").split("\t") for line in file]
    return [(int(f[1]), int(f[2])) for f in fields if f[0] == contig and f[3].startswith(prefix)]


def read_trnas(path: Path, contig: str) -> list[tuple[int, int]]:
    """Intervals of one contig in ARAGORN's list."""
    block = path.read_text().split(f">{contig}\n")[1].split(">")[0]
    places = re.findall(r"tRNA-\S+\s+c?\[(\d+),(\d+)\]", block)
    return [(int(start) - 1, int(end)) for start, end in places]


def run_phastcons(work: Path) -> list[tuple[int, int]]:
    """Elements in columns of aligned.fa, the strongest first."""
    words = ["phastCons", "--estimate-trees", "fit", "--no-post-probs", "aligned.fa", "neutral.mod"]
    subprocess.run(words, check=True, capture_output=True, cwd=work)
    words = ["phastCons", "--most-conserved", "elements.bed", "--no-post-probs", "--score"]
    words += ["aligned.fa", "fit.cons.mod,fit.noncons.mod"]
    subprocess.run(words, check=True, capture_output=True, cwd=work)
    lines = (work / "elements.bed").read_text().splitlines()
    rows = sorted((line.split("\t") for line in lines), key=lambda f: -float(f[4]))
    return [(int(f[1]), int(f[2])) for f in rows]


def main(folder: Path, work: Path, trnas: Path | None = None) -> None:
    blocks = list(AlignIO.parse(folder / "alignment.maf", "maf"))
    contig, length = blocks[0][0].id.split(".", 1)[1], blocks[0][0].annotations["srcSize"]
    place = np.concatenate([
        np.arange(start := one[0].annotations["start"], start + one.get_alignment_length())
        for one in blocks
    ])  # fmt: skip
    frame = pl.read_parquet(folder / "tracks.parquet").drop_nans("rs").drop_nulls("rs")
    scored = np.zeros(length, bool)
    scored[frame["pos"].to_numpy() - 1] = True
    ours = [line.split("\t") for line in (folder / "elements.bed").read_text().splitlines()[1:]]
    mine = mark([(int(f[1]), int(f[2])) for f in ours], length)
    theirs, strongest = np.zeros((2, length), bool)
    for start, end in run_phastcons(work):
        theirs[place[start:end]] = True
        if strongest.sum() < mine.sum():
            strongest[place[start:end]] = True
    sets = {"genodiff": mine, "phastCons": theirs, "phastCons, strongest": strongest}
    coding = mark(read_annotation(ORFS, contig), length)
    snorna = mark(read_annotation(TRANSCRIPTS, contig, "SNR"), length)
    trna = mark([] if trnas is None else read_trnas(trnas, contig), length)
    kinds = {"ORFs": coding, "snoRNAs": snorna, "tRNAs": trna}
    kinds["none of these"] = ~(coding | snorna | trna)
    told = {"contig": contig, "scored": int(scored.sum())}
    for name, inside in sets.items():
        inside &= scored
        told[name] = {
            "bases": int(inside.sum()),
            "coding_share": round(float((inside & coding).sum() / inside.sum()), 4),
            **{kind: round(float((inside & at & scored).sum() / max((at & scored).sum(), 1)), 4)
               for kind, at in kinds.items()},
        }  # fmt: skip
    both = (sets["genodiff"] & sets["phastCons"]).sum()
    told["jaccard"] = round(float(both / (sets["genodiff"] | sets["phastCons"]).sum()), 4)
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
