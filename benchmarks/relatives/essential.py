"""Essential genes of E. coli K-12 by Salmonella and Klebsiella (AUROC).

    python benchmarks/relatives/essential.py OUT.json [RUN]

A gene's score is the mean over its bases of what relatives alone say: log p of its own base, told
by all other places; or the share of relatives that have it. Numbers are fitted on 60 windows of
MG1655; no gene's label is used. Opponents: length, GC, the nearest relative copied (the share of
its bases that Salmonella has), and with RUN the network alone: mean log p of every 16th base,
masked together in the window of 1,024 around the middle of a gene. Intervals are of 1,000 bootstrap
draws of genes, and differences are paired.
"""

import json
import sys
from pathlib import Path

import numpy as np
from paired import Draws, make_auroc, write_lines
from related import list_files
from yeast_setting import KEPT, LENGTH, SHARED, cut_codes, read_genome, read_table

from genodiff.memory.columns import combine
from genodiff.memory.relatives import Relatives
from genodiff.memory.relatives_fit import fit_relatives
from genodiff.memory.text import NONE
from genodiff.memory.tree import share_bases
from genodiff.runs.memory_fit import read_network
from genodiff.runs.model import TrainedModel, load_model
from genodiff.runs.relative_lists import list_genomes
from genodiff.runs.relatives import open_relatives

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
    opened = open_relatives(list_genomes(list_files(NAMES, "ecoli")))
    kept = KEPT / "ecoli.npz"
    if not kept.exists():
        relatives = fit_relatives([one.memory for one in opened], cut_codes(codes, 60), tell=print)
        logs, same = read_places(relatives, codes)
        np.savez(kept, logs=logs.astype(np.float32), same=same.astype(np.float32))
    logs, same = (np.load(kept)[key].astype(float) for key in ("logs", "same"))
    nearest = [one.name for one in opened].index(NAMES[0])

    def over_genes(values: np.ndarray) -> np.ndarray:
        return np.array([values[a:b].mean() for a, b in spans])

    scores = {
        "votes": over_genes(same.mean(0)), "mean log p": over_genes(logs),
        "nearest relative copied": over_genes(same[nearest]),
        "length": np.array([float(b - a) for a, b in spans]),
        "GC": over_genes(np.isin(codes, (1, 2)).astype(float)),
    }  # fmt: skip
    if len(sys.argv) > 2:
        scores["network alone"] = read_genes(load_model(Path(sys.argv[2])), codes, spans)
    draws = Draws(np.arange(len(rows)))
    figures = {name: make_auroc(score, truth) for name, score in scores.items()}
    found = draws.judge(figures, ["votes", "mean log p"])
    for name, one in found.items():
        print(name, json.dumps(one), flush=True)
    write_lines(Path(sys.argv[1]), found | {"n": [int(truth.sum()), len(rows)]})


def read_genes(model: TrainedModel, codes: np.ndarray, spans: list[tuple[int, int]]) -> np.ndarray:
    """(genes,): mean log p of the own bases by the network alone."""
    out = np.zeros(len(spans))
    for i, (a, b) in enumerate(spans):
        first = min(max((a + b - LENGTH) // 2, 0), len(codes) - LENGTH)
        masked = codes[first : first + LENGTH].copy()
        at = np.arange(max(a - first, 0), min(b - first, LENGTH), 16)
        masked[at] = NONE
        out[i] = np.log(read_network(model, masked[None])[0, at, codes[first + at]]).mean()
    return out


if __name__ == "__main__":
    main()
