"""Essential genes of E. coli K-12 by Salmonella and Klebsiella (AUROC).

    python benchmarks/relatives/essential.py

A gene's score is the mean over its bases of what relatives alone say: log p of its own base, told
by all other places; or the share of relatives that have it. Numbers are fitted on 60 windows of
MG1655; no gene's label is used. Intervals are of 2,000 bootstrap draws of genes.
"""

import json

import numpy as np
from mitochondrion import auroc
from yeast_setting import LENGTH, SHARED, cut_codes, open_relative, read_genome, read_table

from genodiff.memory.columns import combine
from genodiff.memory.relatives import Relatives
from genodiff.memory.relatives_fit import fit_relatives
from genodiff.memory.tree import share_bases

NAMES = ("Salmonella_LT2", "Klebsiella_ATCC13883")
STEP, BATCH = LENGTH // 2, 64


def read_places(relatives: Relatives, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(L,): log p of the own base, and (G, L) the chance that each relative has it."""
    columns, n = relatives.columns, len(codes)
    assert columns is not None
    bases = share_bases(columns.gc)
    logs, same = np.zeros(n), np.zeros((len(relatives.genomes), n))
    starts = np.minimum(np.arange(0, n, STEP), n - LENGTH)
    for first in range(0, len(starts), BATCH):
        some = starts[first : first + BATCH]
        windows = np.stack([codes[a : a + LENGTH] for a in some])
        over = relatives.align(windows)
        p = combine(over, windows, np.broadcast_to(bases, (*windows.shape, 4)), columns) * bases
        p /= p.sum(-1, keepdims=True)
        own = windows[..., None].astype(int)
        mine = np.log(np.take_along_axis(p, own, -1)[..., 0])
        agrees = np.take_along_axis(over, np.broadcast_to(own, (len(over), *own.shape)), -1)[..., 0]
        for i, a in enumerate(some.tolist()):
            lo = 0 if a == 0 else STEP // 2
            logs[a + lo : a + LENGTH], same[:, a + lo : a + LENGTH] = (
                mine[i, lo:],
                agrees[:, i, lo:],
            )
    return logs, same


def main() -> None:
    (codes,) = read_genome(SHARED / "genomes" / "ecoli_K12_MG1655.fa.gz").values()
    rows = read_table(SHARED / "relatives" / "truth" / "ecoli_essential_genes.tsv.gz")
    truth = np.array([r["essential"] == "1" for r in rows])
    spans = [(int(r["start"]) - 1, int(r["end"])) for r in rows]
    memories = [open_relative(name) for name in NAMES]
    fit = cut_codes(codes, 60)
    scores = {"length": np.array([float(b - a) for a, b in spans])}
    for names in (NAMES,):
        relatives = fit_relatives([memories[NAMES.index(name)] for name in names], fit)
        logs, same = read_places(relatives, codes)
        shown = " and ".join(name.split("_")[0] for name in names)
        scores[f"{shown}: mean log p"] = np.array([logs[a:b].mean() for a, b in spans])
        scores[f"{shown}: votes"] = np.array([same[:, a:b].mean() for a, b in spans])
    rng = np.random.default_rng(1)
    draws = [rng.integers(0, len(rows), len(rows)) for _ in range(2000)]
    for name, score in scores.items():
        drawn = np.quantile([auroc(score[d], truth[d]) for d in draws], (0.025, 0.975))
        line = {"score": name, "auroc": round(auroc(score, truth), 4), "n": len(rows)}
        print(json.dumps(line | {"ci95": drawn.round(4).tolist()}), flush=True)


if __name__ == "__main__":
    main()
