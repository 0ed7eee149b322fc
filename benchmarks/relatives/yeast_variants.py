"""Natural SNVs of yeast against matched controls, by relatives and no strain (AUROC).

    python benchmarks/relatives/yeast_variants.py chrV chrXIV [Spar_CBS432 ...]

The likelihood ratio of the tree and the votes, of one pass over windows with all bases visible: a
place's own base is left out. Numbers are fitted on chrXVI. Each AUROC stands with its interval and
that of its difference from plain votes (95 %, the variants drawn anew).
"""

import json
import sys

import numpy as np
from mitochondrion import auroc
from yeast_setting import FOUR, KEPT, LENGTH, SHARED, cut, open_relative, read_genome, read_table

from genodiff.memory.columns import combine
from genodiff.memory.relatives import Relatives
from genodiff.memory.relatives_fit import fit_relatives, measure_distances
from genodiff.memory.text import NONE
from genodiff.memory.tree import share_bases
from genodiff.memory.votes import (
    count_votes,
    measure_change,
    measure_kappa,
    score_plainly,
    score_votes,
    weigh_relatives,
)

STEP = LENGTH // 2
DRAWS = 500
STRETCH = 0.6  # chosen on chrII and chrVII


def read_contig(relatives: Relatives, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """over (G, L, 4) and the tree's log p (L, 4), from the middles of windows that overlap."""
    columns = relatives.columns
    assert columns is not None
    n = len(codes)
    starts = np.minimum(np.arange(0, n, STEP), n - LENGTH)
    over, logs = np.zeros((len(relatives.genomes), n, 4)), np.zeros((n, 4))
    bases = share_bases(columns.gc)
    for first in range(0, len(starts), 64):
        some = starts[first : first + 64]
        windows = np.stack([codes[a : a + LENGTH] for a in some])
        found = relatives.align(windows)
        p = combine(found, windows, np.broadcast_to(bases, (*windows.shape, 4)), columns) * bases
        for i, a in enumerate(some.tolist()):
            lo = 0 if a == 0 else STEP // 2
            at = slice(a + lo, a + LENGTH)
            over[:, at], logs[at] = found[:, i, lo:], np.log(p[i, lo:])
    return over, logs


def main() -> None:
    genome = read_genome(SHARED / "genomes" / "sacCer3.fa.gz")
    fit = cut("chrXVI", 60)
    contigs = [given for given in sys.argv[1:] if given.startswith("chr")]
    names = [given for given in sys.argv[1:] if given not in contigs] or list(FOUR)
    relatives = fit_relatives([open_relative(name) for name in names], fit)
    distances = measure_distances(relatives.align(fit), fit)
    print("distances", distances[0].round(3).tolist(), flush=True)
    rows = read_table(SHARED / "relatives" / "truth" / "yeast_natural_snvs.tsv.gz")
    scores: dict[str, list[float]] = {}
    natural, kind = [], []
    for contig in contigs:
        codes = genome[contig]
        over, logs = read_contig(relatives, codes)
        np.savez(
            KEPT / f"snv-{len(names)}-{contig}.npz",
            over=over.astype(np.float32),
            logs=logs,
            distances=distances,
        )
        ref_codes = np.minimum(codes, 3)
        weights = weigh_relatives(distances)
        votes, kappa = count_votes(over, weights), measure_kappa(over, np.minimum(codes, NONE))
        total, alone = float(weights.sum()), np.ones(len(over))
        change, around = (
            measure_change(over[:, None], codes[None], some)[0] for some in (weights, alone)
        )
        plain = score_plainly(count_votes(over, alone), ref_codes)
        likely = logs - np.take_along_axis(logs, ref_codes[:, None].astype(int), 1)
        of = {
            "likelihood ratio": likely,
            "votes": score_votes(votes, ref_codes, change, total=total, kappa=kappa),
            "votes, plain": plain,
            "votes, plain, and the stretch": plain + STRETCH * np.log(around)[:, None],
            "likelihood and votes, plain": (likely / likely.std() + plain / plain.std()) / 2,
        }
        for r in rows:
            if r["chrom"] == contig:
                at, alt = int(r["pos"]) - 1, "ACGT".index(r["alt"])
                natural.append(r["natural"] == "1")
                kind.append(r["kind"])
                for name, by_base in of.items():
                    scores.setdefault(name, []).append(by_base[at, alt])
    truth, kinds = np.array(natural), np.array(kind)
    rng = np.random.default_rng(1)
    for name, values in scores.items():
        line: dict[str, object] = {"score": name, "n": len(values)}
        for k in ("", "missense", "synonymous", "intergenic"):
            some = np.flatnonzero(np.char.startswith(kinds, k))
            s, beside, t = (np.array(x)[some] for x in (values, scores["votes, plain"], truth))
            drawn = [rng.integers(0, len(some), len(some)) for _ in range(DRAWS)]
            found = [(auroc(s[d], t[d]), auroc(beside[d], t[d])) for d in drawn]
            own, apart = (np.quantile(x, (0.025, 0.975)).round(3).tolist() for x in
                          zip(*((a, a - b) for a, b in found), strict=True))  # fmt: skip
            line[k or "all"] = [round(auroc(s, t), 4), own, apart]
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
