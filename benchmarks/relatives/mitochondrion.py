"""Votes and likelihoods of mitogenomes on chrM's SNVs: seen in a population or not (AUROC).

    python benchmarks/relatives/mitochondrion.py [OUT.json]

Each mitogenome lies over windows of chrM, all bases visible; a place's own base is left out. With
OUT.json, the methods of `genodiff score` stand beside their opponents with intervals (95 %; places
drawn whole, 1,000 times), and differences are paired.
"""

import json
import sys
from pathlib import Path

import numpy as np
from paired import Draws, make_auroc, write_lines
from yeast_setting import KEPT, SHARED, read_genome, read_table

from genodiff.memory.alignment import fit_relative
from genodiff.memory.fast import align_in_c
from genodiff.memory.memory import Memory
from genodiff.memory.numbers import MemoryNumbers, RelativeNumbers
from genodiff.memory.relatives_fit import measure_distances
from genodiff.memory.search import Effort
from genodiff.memory.tree import (
    count_votes,
    measure_change,
    measure_kappa,
    score_heads,
    score_plainly,
    score_votes,
    weigh_relatives,
)

LENGTH, STEP = 1024, 512
SEARCH = MemoryNumbers(
    copies=0.95, start=0.02, end=0.004, shift=0.01,
    divergence=(0.02, 0.1, 0.2, 0.3), share=(0.1, 0.3, 0.3, 0.3),
)  # fmt: skip


def read_mitogenomes() -> dict[str, np.ndarray]:
    out = {}
    for file in ("primates_mt", "other_mammals_mt"):
        out |= read_genome(SHARED / "relatives" / "mt" / f"{file}.fa.gz")
    return out


def align_all(target: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Names, and over (G, L, 4): windows with half an overlap, the middle of each is taken."""
    path = KEPT / "mt.npz"
    if path.exists():
        z = np.load(path)
        return z["names"].tolist(), z["over"].astype(float)
    round_ = np.concatenate([target, target[:LENGTH]])
    starts = np.arange(0, len(target), STEP)
    windows = np.stack([round_[a : a + LENGTH] for a in np.minimum(starts, len(target))])
    genomes = read_mitogenomes()
    numbers, out, names = None, [], []
    for name, codes in genomes.items():
        circle = np.concatenate([codes, codes[:LENGTH]])
        memory = Memory.build([(name, 0, circle)], numbers=SEARCH).with_effort(Effort(most=64))
        prepared, found = memory.prepare(windows), memory.find_all(windows)
        if numbers is None:  # of the first, a chimpanzee; then of each its own would be better
            first = fit_relative(memory.text, prepared, found, RelativeNumbers(), rounds=3)
            numbers = RelativeNumbers(turns=first.turns)
        over = align_in_c(memory.text, prepared, found, numbers)[0].sum(2)
        flat = np.zeros((len(target), 4))
        for a, row in zip(starts, over, strict=True):
            at = (a + np.arange(STEP // 2, STEP // 2 + STEP)) % len(target)
            flat[at] = row[STEP // 2 : STEP // 2 + STEP]
        out.append(flat)
        names.append(name)
    np.savez(path, names=np.array(names), over=np.array(out, np.float32))
    return names, np.array(out)


def auroc(score: np.ndarray, seen: np.ndarray) -> float:
    from scipy.stats import rankdata

    n = seen.sum()
    ranks = rankdata(score)
    return float((ranks[seen].sum() - n * (n + 1) / 2) / (n * (~seen).sum()))


def read_truth(target: np.ndarray) -> dict[str, np.ndarray]:
    rows = read_table(SHARED / "relatives" / "truth" / "chrM_population.tsv.gz")
    rows = [r for r in rows if r["ref"] in "ACGT" and r["alt"] in "ACGT"]
    pos = np.array([int(r["pos"]) - 1 for r in rows])
    ref, alt = (np.array(["ACGT".index(r[k]) for r in rows]) for k in ("ref", "alt"))
    assert (target[pos] == ref).all()
    hom = [int(r["gnomad_AC_hom"]) + int(r["helix_hom"]) for r in rows]
    return {
        "pos": pos, "ref": ref, "alt": alt, "seen": np.array(hom) > 0,
        "transition": (ref ^ alt) == 2,
        "missense": np.array([r["effect"].startswith("missense") for r in rows]),
        "synonymous": np.array([r["effect"].startswith("syn") for r in rows]),
        "phylop": -np.array([float(r["phyloP100way"] or "nan") for r in rows]),
        "class": np.array([r["effect"].split(":")[0] for r in rows]),
    }  # fmt: skip


def judge(name: str, by_base: np.ndarray, truth: dict) -> None:
    score = by_base[truth["pos"], truth["alt"]]
    ok = np.isfinite(score)
    line = {"score": name}
    for what, of in (
        ("all", ok), ("missense ts", ok & truth["missense"] & truth["transition"]),
        ("missense", ok & truth["missense"]), ("synonymous", ok & truth["synonymous"]),
        ("tRNA", ok & (truth["class"] == "tRNA")), ("transitions", ok & truth["transition"]),
    ):  # fmt: skip
        if of.any():
            line[what] = round(auroc(score[of], truth["seen"][of]), 4)
    print(json.dumps(line), flush=True)


def judge_all(truth: dict, out: Path, ways: dict[str, np.ndarray]) -> None:
    """Every way beside every other, on the SNVs of which all say something."""
    scores = {way: by_base[truth["pos"], truth["alt"]] for way, by_base in ways.items()}
    known = np.isfinite(list(scores.values())).all(0)
    found: dict[str, object] = {}
    for title, of in (
        ("all", known), ("missense", known & truth["missense"]),
        ("missense transitions", known & truth["missense"] & truth["transition"]),
        ("tRNA", known & (truth["class"] == "tRNA")),
    ):  # fmt: skip
        figures = {way: make_auroc(score[of], truth["seen"][of]) for way, score in scores.items()}
        judged = Draws(truth["pos"][of]).judge(figures, ["votes", "headcount"])
        found[title] = judged | {"n": int(of.sum())}
        for way, one in judged.items():
            print(title, way, json.dumps(one), flush=True)
    write_lines(out, found)


def main() -> None:
    target = read_genome(SHARED / "genomes" / "hg38_regions.fa.gz")["chrM:1-16569"]
    truth = read_truth(target)
    names, over = align_all(target)
    ref = np.minimum(target, 3)
    phylop = np.full((len(target), 4), np.nan)
    phylop[truth["pos"], truth["alt"]] = truth["phylop"]
    judge("phyloP", phylop, truth)
    moved = np.where((ref[:, None] ^ np.arange(4)) == 2, 1.0, 0.0)
    judge("transition", moved, truth)
    sure = over.sum(-1)
    same = np.take_along_axis(over, ref[None, :, None], -1)[..., 0].sum(1) / sure.sum(1)
    print(len(names), "relatives; identity", np.quantile(same, [0, 0.25, 0.5, 0.75, 1]).round(3))
    judge("votes, plain", score_plainly(count_votes(over, np.ones(len(names))), ref), truth)
    primates = (np.arange(len(names)) < 144) * 1.0
    judge("votes of primates, plain", score_plainly(count_votes(over, primates), ref), truth)
    to_target = measure_distances(over[:, None], target[None])
    kappa = measure_kappa(over, target)
    for reaches in (0.03, 0.05, 0.1, 0.2, 1e6):
        for added in (0.1, 0.3):
            weights = weigh_relatives(to_target, reaches=reaches)
            votes = count_votes(over, weights)
            of = {"total": float(weights.sum()), "kappa": kappa, "added": added}
            by_base = score_votes(votes, ref, **of)
            judge(f"votes, reaches {reaches}, added {added}", by_base, truth)
    if sys.argv[1:]:
        alone = np.ones(len(names))
        change = measure_change(over[:, None], target[None])[0]
        weights = weigh_relatives(to_target)
        of = {"total": float(weights.sum()), "kappa": kappa}
        judge_all(truth, Path(sys.argv[1]), {
            "votes": score_votes(count_votes(over, weights), ref, **of),
            "headcount": score_heads(over, ref, change),
            "votes, plain": score_plainly(count_votes(over, alone), ref),
            "phyloP100way": phylop, "transition": moved,
            "GC change": np.isin(np.arange(4), (1, 2)) * 1.0 - np.isin(ref, (1, 2))[:, None],
            "nearest relative copied": over[int(np.argmax(same))],
        })  # fmt: skip
        return
    sizes = np.argsort(-same, kind="stable")
    for n in (4, 24, 67):  # the nearest only
        some = sizes[:n]
        weights = weigh_relatives(to_target[np.ix_([0, *(some + 1)], [0, *(some + 1)])])
        of = {"total": float(weights.sum()), "kappa": kappa}
        by_base = score_votes(count_votes(over[some], weights), ref, **of)
        judge(f"votes of the nearest {n}", by_base, truth)


if __name__ == "__main__":
    main()
