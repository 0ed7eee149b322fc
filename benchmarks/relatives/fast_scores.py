"""Scores with relatives, one pass for all sites of a window, beside each site masked by itself.

    python benchmarks/relatives/fast_scores.py RUN sacCer3.fa.gz LIST.tsv OUT.json

How far apart the two are on natural SNVs of yeast (chrV, chrXIV) that are drawn at random, and how
many are scored in a second of one core. 10,000 are drawn from the whole genome, and in their order
1,000 follow one another; both ways are timed in turns.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from yeast_setting import SHARED, read_table

from genodiff.io.faidx import Genome
from genodiff.io.variants import Allele
from genodiff.models.opening import open_language
from genodiff.runs.folder import find_git_revision
from genodiff.scoring.methods import ScoreOptions
from genodiff.scoring.variant_scores import score_alleles

COMPARED, DRAWN, TIMED, TIMED_EXACT = 400, 10_000, 1_000, 60


def list_alleles(contigs: tuple[str, ...] = ()) -> list[Allele]:
    rows = read_table(SHARED / "relatives" / "truth" / "yeast_natural_snvs.tsv.gz")
    rows = [r for r in rows if not contigs or r["chrom"] in contigs]
    chosen = {(r["chrom"], int(r["pos"]) - 1, r["ref"], r["alt"]) for r in rows}
    return [Allele(*one) for one in sorted(chosen)]


def summarise(apart: np.ndarray) -> dict[str, float]:
    far = np.abs(apart)
    told = {f"p{q}": round(float(np.percentile(far, q)), 4) for q in (50, 90, 99, 100)}
    return told | {"mean": round(float(apart.mean()), 4)}


def main() -> None:
    torch.set_num_threads(1)
    run, fasta, listed, out = sys.argv[1:5]
    began = time.process_time()
    model = open_language(run, "cpu", [listed])
    told: dict[str, object] = {"commit": find_git_revision()}
    told["open_s"] = round(time.process_time() - began, 2)
    rng = np.random.default_rng(1)
    with Genome(fasta) as genome:

        def score(alleles: list[Allele], **options: object) -> tuple[np.ndarray, float]:
            began = time.process_time()
            found = list(score_alleles(model, genome, alleles, ScoreOptions(**options)))  # type: ignore[arg-type]
            spent = time.process_time() - began
            return np.array([(one.value, one.votes) for one in found], float), spent

        near = list_alleles(("chrV", "chrXIV"))
        near = [near[i] for i in np.sort(rng.choice(len(near), COMPARED, replace=False))]
        fast, exact = (score(near, method="llr", exact=exact)[0] for exact in (False, True))
        for i, what in enumerate(("likelihood", "votes")):
            told[what] = summarise(fast[:, i] - exact[:, i]) | {
                "deviation": round(float(exact[:, i].std()), 3),
                "correlation": round(float(np.corrcoef(fast[:, i], exact[:, i])[0, 1]), 5),
            }
        print(json.dumps(told, indent=1), flush=True)
        every = list_alleles()
        every = [every[i] for i in np.sort(rng.choice(len(every), DRAWN, replace=False))]
        speed: dict[str, list[float]] = {}
        for turn in range(2):
            for method in ("llr", "votes"):
                some = every[turn * TIMED : (turn + 1) * TIMED]
                spent = score(some, method=method)[1]
                speed.setdefault(f"{method}, fast", []).append(round(len(some) / spent, 1))
                slow = some[:: len(some) // TIMED_EXACT]
                spent = score(slow, method=method, exact=True)[1]
                speed.setdefault(f"{method}, exact", []).append(round(len(slow) / spent, 1))
                print(json.dumps(speed), flush=True)
        told["variants_a_second"] = speed
    print(json.dumps(told, indent=1))
    Path(out).write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
