"""Natural SNVs of yeast against matched controls, by relatives and no strain (AUROC).

    python benchmarks/relatives/yeast_variants.py RUN OUT.json chrV chrXIV

RUN was trained without the contigs that are named. All scores are of one pass over windows with
all bases visible: a place's own base is left out; those of the network are of every 16th base
masked at a time. Each figure stands with its interval and that of its difference from every other
one (95 %; the variants drawn anew, 1,000 times).

Opponents: the consequence (between genes, synonymous, missense, stop), BLOSUM62 within missense,
counted 11-mers of the other contigs, the nearest relative copied, the network alone, and with the
memory of its own genome (each window's own locus left out). Controls have the bases of their
variants, so no score of the two bases alone (transition, GC) tells anything here. What is scored is
kept.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from Bio.Align import substitution_matrices
from paired import Draws, make_auroc, write_lines
from related import (
    FOUR,
    SHARED,
    Related,
    align_places,
    compare,
    join,
    open_related,
    read_places,
    vote,
    weigh_places,
)
from yeast_setting import KEPT, read_genome, read_table

import genodiff

FASTA = SHARED / "genomes" / "sacCer3.fa.gz"
REACH = 5  # bases on either side that are counted with the middle one
OWN_METHODS = ("headcount", "votes", "likelihood")


def count_middles(genome: dict[str, np.ndarray], without: set[str]) -> np.ndarray:
    """(4 ** 10, 4): how often each base stands between 5 and 5 others, on both strands."""
    table = np.zeros((4 ** (2 * REACH), 4))
    for contig, codes in genome.items():
        if contig in without or contig == "chrM":
            continue
        for strand in (codes, np.where(codes < 4, 3 - codes, 4)[::-1]):
            flank, middle = name_flanks(strand)
            known = flank >= 0
            np.add.at(table, (flank[known], middle[known]), 1)
    return table


def name_flanks(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each place a number of its flanks, -1 where one is not known, and its own base."""
    padded = np.pad(codes, REACH, constant_values=4).astype(np.int64)
    flank, known = np.zeros(len(codes), np.int64), codes < 4
    for shift in (*range(-REACH, 0), *range(1, REACH + 1)):
        there = padded[REACH + shift : REACH + shift + len(codes)]
        flank, known = 4 * flank + there, known & (there < 4)
    return np.where(known, flank, -1), codes.astype(np.int64)


def score_contig(
    related: Related,
    contig: str,
    rows: list[dict[str, str]],
    counted: np.ndarray,
    codes: np.ndarray,
) -> dict[str, np.ndarray]:
    """The score of each row by each way."""
    at = np.array([int(r["pos"]) - 1 for r in rows])
    alt = np.array(["ACGT".index(r["alt"]) for r in rows])
    places, where = np.unique(at, return_inverse=True)
    ref, some = codes[places], related.rows(FOUR)
    over, kept = align_places(related.relatives, codes, places)
    logs = read_places(related.network, codes, places)
    both = join(logs, weigh_places(related.choose(FOUR), some, codes, places, kept))
    near = over[related.rows(FOUR[:1])[0]]
    flank = name_flanks(codes)[0][places]
    ways = {
        "likelihood": compare(both, ref), "network alone": compare(logs, ref),
        "nearest relative copied": compare(near, ref),
        "counted 11-mers": compare(np.log(counted[flank] + 0.5), ref),
        **vote(related, some, over, (codes, places, kept)),
    }  # fmt: skip
    return {way: by_base[where, alt] for way, by_base in ways.items()}


def score_by_own(run: str, rows: list[dict[str, str]]) -> np.ndarray:
    """By the network with the memory of its own genome."""
    own = genodiff.load(run, device="cpu", memory="on")
    given = [(r["chrom"], int(r["pos"]), r["ref"], r["alt"]) for r in rows]
    frame = own.score_variants(given, fasta=FASTA, method="llr")
    return np.asarray(frame["score"].cast(float).to_numpy())


def rank_consequences(rows: list[dict[str, str]]) -> dict[str, np.ndarray]:
    """How mild a change is taken to be: by its kind, and of missense by BLOSUM62."""
    blosum = substitution_matrices.load("BLOSUM62")
    kind, acids = np.zeros(len(rows)), np.zeros(len(rows))
    for i, row in enumerate(rows):
        acid = row["effect"].rpartition(":")[2]
        if row["kind"] == "missense":
            kind[i], acids[i] = -2, float(blosum[acid[0]][acid[-1]])
        elif row["kind"] != "intergenic":
            kind[i] = -1 if row["kind"] == "synonymous" else -3
    return {"consequence": kind, "BLOSUM62": acids}


def main() -> None:
    begun, run, target = time.time(), sys.argv[1], Path(sys.argv[2])
    contigs = sys.argv[3:]
    related, genome = open_related(run, FOUR), read_genome(FASTA)
    every = read_table(SHARED / "relatives" / "truth" / "yeast_natural_snvs.tsv.gz")
    rows, parts = [], []
    counted = count_middles(genome, set(contigs))
    for contig in contigs:
        mine = [r for r in every if r["chrom"] == contig]
        kept = KEPT / f"snv-{contig}.npz"
        if not kept.exists():
            np.savez(kept, **score_contig(related, contig, mine, counted, genome[contig]))
        with np.load(kept) as scored:
            parts.append(dict(scored))
        rows += mine
        print(contig, len(mine), round(time.time() - begun), "s", flush=True)
    for contig, part in zip(contigs, parts, strict=True):
        kept = KEPT / f"snv-{contig}-own.npy"
        if not kept.exists():
            np.save(kept, score_by_own(run, [r for r in rows if r["chrom"] == contig]))
        part["own genome's memory"] = np.load(kept)
        print(contig, "own", round(time.time() - begun), "s", flush=True)
    scores = {way: np.concatenate([part[way] for part in parts]) for way in parts[0]}
    scores |= rank_consequences(rows)
    truth, kind = np.array([r["natural"] == "1" for r in rows]), [r["kind"] for r in rows]
    out: dict[str, object] = {"contigs": contigs, "seconds": 0}
    for title in ("all", "missense", "synonymous", "intergenic"):
        some = np.flatnonzero([title == "all" or one.startswith(title) for one in kind])
        draws = Draws(np.arange(len(some)))
        figures = {way: make_auroc(s[some], truth[some]) for way, s in scores.items()}
        out[title] = draws.judge(figures, OWN_METHODS) | {"n": len(some)}
        for way, one in out[title].items():  # type: ignore[union-attr]
            print(title, way, json.dumps(one), flush=True)
    out["seconds"] = round(time.time() - begun)
    write_lines(target, out)


if __name__ == "__main__":
    main()
