"""Measured effects beside what relatives say, and beside trivial opponents.

    python benchmarks/relatives/truth_sets.py OUT.json ubiquitin YEAST_RUN
    python benchmarks/relatives/truth_sets.py OUT.json promoters YEAST_RUN
    python benchmarks/relatives/truth_sets.py OUT.json footprints ECOLI_RUN

ubiquitin: growth of amino-acid changes (Spearman), residues drawn whole. A change's score is the
log of its codons' chance less that of the wild type's, the codon masked, mean over the six copies.
promoters: two scans of benchmarks/variants with a place in yeast (Spearman), edited copies drawn; a
copy's score is the sum over its changes. footprints: the places of E. coli promoters with the
greatest 5 % of information on expression (AUROC), promoters drawn whole; a place's score is how
likely its own base is. Directions were written down before anything was scored.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from Bio.Align import substitution_matrices
from paired import Draws, Figure, make_auroc, make_spearman, write_lines
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
from yeast_setting import LENGTH, NONE, read_genome, read_table

sys.path.append(str(Path(__file__).resolve().parent.parent / "variants"))

from variant_measures import gc_change
from variant_sets import CONTEXT, find_wild, read_core_promoters, read_scan, read_trna
from yeast_laws import CODE

from genodiff.io.faidx import Genome
from genodiff.memory.relatives_fit import measure_distances
from genodiff.memory.tree import count_votes, weigh_relatives
from genodiff.runs.memory_fit import read_network

UBIQUITIN = [("chrXII", 498946, 499405, 1, 0)] + [
    ("chrXII", 64061, 65207, -1, 76 * i) for i in range(5)
]  # contig, start, end, strand, first codon
CONDITIONS = ("DMSO", "Caffeine", "DTT", "HU", "MG132")
SCANS: dict[str, tuple[Callable, str, str, int]] = {
    "core_promoters": (read_core_promoters, "Shai_2015_promoter", "chrV", 167569),
    "trna": (read_trna, "Domingo_2018_tRNA", "chrX", 538554),
}
ECOLI = ("Salmonella_LT2", "Klebsiella_ATCC13883")
HEXAMERS = (80, 105)  # the -35 and -10 regions of a promoter's 160 bases
SHARE = 0.05


def main() -> None:
    target, what, run = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    measure = {
        "ubiquitin": measure_ubiquitin, "promoters": measure_scans, "footprints": measure_footprints
    }[what]  # fmt: skip
    known = json.loads(target.read_text()) if target.exists() else {}
    known[what] = measure(run)
    write_lines(target, known)


def show(title: str, judged: dict) -> dict:
    for name, one in judged.items():
        print(title, name, json.dumps(one), flush=True)
    return judged


def measure_ubiquitin(run: str) -> dict:
    related = open_related(run, FOUR)
    codes = read_genome(SHARED / "genomes" / "sacCer3.fa.gz")
    rows = [
        r
        for r in read_table(SHARED / "relatives" / "truth" / "ubiquitin_dms.tsv.gz")
        if r["mut"] != "*" and r["mut"] != r["wt"]
    ]
    residue = np.array([int(r["aa_pos"]) for r in rows])
    tables = [read_codons(related, codes[c], a, b, s, k) for c, a, b, s, k in UBIQUITIN]
    blosum = substitution_matrices.load("BLOSUM62")
    wild = tables[0][0]
    assert all(CODE[wild[r - 1]] == row["wt"] for r, row in zip(residue, rows, strict=True))
    scores = {
        way: np.mean([
            [by[way][row["mut"]][r - 1] - by[way][row["wt"]][r - 1]
             for r, row in zip(residue, rows, strict=True)]
            for _, by in tables
        ], 0)
        for way in tables[0][1]
    }  # fmt: skip
    scores["BLOSUM62"] = np.array([float(blosum[r["wt"]][r["mut"]]) for r in rows])
    scores["codon distance"] = -np.array([
        min(sum(x != y for x, y in zip(wild[k - 1], codon, strict=True))
            for codon in CODE if CODE[codon] == row["mut"])
        for k, row in zip(residue, rows, strict=True)
    ], float)  # fmt: skip
    out = {}
    for condition in CONDITIONS:
        told = np.array([float(r[condition] or "nan") for r in rows])
        ok = np.isfinite(told)
        figures = {way: make_spearman(s[ok], told[ok]) for way, s in scores.items()}
        draws = Draws(residue[ok])
        out[condition] = show(condition, draws.judge(figures, ["likelihood", "votes"]))
        out[condition]["n"] = int(ok.sum())
    return out


def mask_codons(
    codes: np.ndarray, start: int, end: int, strand: int, first: int
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """The 76 codons of a copy, windows with one of them masked, and where its bases stand there."""
    at = np.arange(start, end)[::strand].reshape(-1, 3)[first : first + 76]
    turn = (lambda c: c) if strand > 0 else (lambda c: 3 - c)
    wild = ["".join("ACGT"[i] for i in turn(codes[codon])) for codon in at]
    windows, inside = [], []
    for codon in at:
        a = int(codon.min()) - LENGTH // 2
        window = codes[a : a + LENGTH].copy()
        window[codon - a] = NONE
        windows.append(window)
        inside.append(codon - a)
    return wild, np.stack(windows), np.stack(inside)


def read_codons(
    related: Related, codes: np.ndarray, start: int, end: int, strand: int, first: int
) -> tuple[list[str], dict[str, dict[str, np.ndarray]]]:
    """The 76 codons of a copy, and by each way ln P (76,) of each amino acid, the codon masked."""
    wild, masked, where = mask_codons(codes, start, end, strand, first)
    row = np.arange(len(masked))[:, None]
    network = read_network(related.network, masked)
    over = related.relatives.align(masked)
    joint = network * related.choose(related.names).weigh(masked, network)
    weights = weigh_relatives(measure_distances(related.over_fit, related.fit))
    votes = count_votes(over, weights) + 0.1 * weights.sum()
    plain = count_votes(over, np.ones(len(over))) + 0.5
    ways = {"network alone": network, "likelihood": joint, "votes": votes, "votes, plain": plain}
    out: dict[str, dict[str, np.ndarray]] = {}
    for way, p in ways.items():
        logs = np.log((p / p.sum(-1, keepdims=True))[row, where])  # (76, 3, 4)
        logs = logs if strand > 0 else logs[..., ::-1]
        by_acid: dict[str, np.ndarray] = {}
        for codon, acid in CODE.items():
            chance = np.exp(sum(logs[:, j, "ACGT".index(b)] for j, b in enumerate(codon)))
            by_acid[acid] = by_acid.get(acid, 0) + chance
        out[way] = {acid: np.log(chance) for acid, chance in by_acid.items()}
    return wild, out


def measure_scans(run: str) -> dict:
    from run import Counting  # of benchmarks/variants

    counting = Counting(Path(run))
    related = open_related(run, FOUR)
    genome_codes = read_genome(SHARED / "genomes" / "sacCer3.fa.gz")
    out = {}
    for name, (read, file, contig, near) in SCANS.items():
        found = read(SHARED, Path("."), 1500, 1)
        _, _, wild = read_scan(SHARED / "dms" / f"{file}.csv.gz")
        with Genome(SHARED / "genomes/sacCer3.fa.gz") as genome:
            contig, start, strand = find_wild(genome, wild, contig, near)
        codes = genome_codes[contig]
        places = np.arange(start, start + len(found.before[0]) - 2 * CONTEXT)
        by = score_places(related, codes, places)
        scores = {way: np.zeros(len(found)) for way in by}
        for i, (old, new) in enumerate(zip(found.before, found.after, strict=True)):
            for j, (a, b) in enumerate(zip(old, new, strict=True)):
                if a != b:
                    k = j - CONTEXT if strand > 0 else len(places) - 1 - (j - CONTEXT)
                    base = "ACGT".index(b) if strand > 0 else 3 - "ACGT".index(b)
                    for way, by_base in by.items():
                        scores[way][i] += by_base[k, base]
        scores["GC change"] = (-1 if name == "core_promoters" else 1) * gc_change(
            found.before, found.after
        )
        scores["changes"] = -np.array([
            sum(a != b for a, b in zip(old, new, strict=True))
            for old, new in zip(found.before, found.after, strict=True)
        ], float)  # fmt: skip
        scores |= counting.score_pairs(found.before, found.after)
        figures = {way: make_spearman(s, found.truth) for way, s in scores.items()}
        draws = Draws(np.arange(len(found)))
        out[name] = show(name, draws.judge(figures, ["likelihood", "votes"])) | {"n": len(found)}
    return out


def score_places(related: Related, codes: np.ndarray, places: np.ndarray) -> dict:
    """(P, 4): log-ratio to the reference, by each way."""
    ref = codes[places]
    over, kept = align_places(related.relatives, codes, places)
    rows = list(range(len(related.names)))
    logs = read_places(related.network, codes, places)
    factors = weigh_places(related.choose(related.names), rows, codes, places, kept)
    both = join(logs, factors)
    return {
        "network alone": compare(logs, ref), "likelihood": compare(both, ref),
        **vote(related, rows, over, (codes, places, kept)),
    }  # fmt: skip


def measure_footprints(run: str) -> dict:
    related = open_related(run, ECOLI, "ecoli")
    (codes,) = read_genome(SHARED / "genomes" / "ecoli_K12_MG1655.fa.gz").values()
    rows = read_table(SHARED / "relatives" / "truth" / "ecoli_regseq_footprints.tsv.gz")
    places = np.array([int(r["pos_MG1655"]) - 1 for r in rows])
    own = np.array(["ACGT".index(r["ref_plus_strand"]) for r in rows])
    assert (codes[places] == own).all()
    promoter = np.array([r["gene"] for r in rows])
    index = np.array([int(r["index"]) for r in rows])
    unique, where = np.unique(places, return_inverse=True)
    by = score_places(related, codes, unique)
    others = np.arange(4) != codes[unique][:, None]
    scores = {way: -(np.where(others, s, 0).sum(1) / 3)[where] for way, s in by.items()}
    scores |= {
        f"{way}, mean of 5 places": smooth(score, promoter)
        for way, score in list(scores.items())
        if way in ("likelihood", "votes")
    }
    scores["GC"] = np.isin(own, (1, 2)).astype(float)
    scores["nearness to -35, -10"] = (
        -np.abs(index[:, None] - np.array(HEXAMERS)).min(1).astype(float)
    )
    out = {}
    for column in ("info_mean", "info_max"):
        told = np.array([float(r[column]) for r in rows])
        top = told >= np.quantile(told, 1 - SHARE)
        figures: dict[str, Figure] = {way: make_auroc(s, top) for way, s in scores.items()}
        out[column] = show(column, Draws(promoter).judge(figures, ["likelihood", "votes"]))
        out[column]["n"] = [int(top.sum()), len(top)]
    return out


def smooth(score: np.ndarray, promoter: np.ndarray) -> np.ndarray:
    """The mean of five neighbours within each promoter."""
    out = np.empty(len(score))
    for name in np.unique(promoter):
        mine = np.flatnonzero(promoter == name)
        padded = np.pad(score[mine], 2, mode="edge")
        out[mine] = np.convolve(padded, np.ones(5) / 5, "valid")
    return out


if __name__ == "__main__":
    main()
