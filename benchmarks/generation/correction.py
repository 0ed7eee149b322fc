"""Samplers that take bases back, and correction by leave-one-out, at equal evaluations.

    python benchmarks/generation/correction.py yeast sacCer3.fa.gz --out FOLDER [--n 128]

Each way spends about 32 evaluations of the network on a sequence of 128 bases; `--only` names some
of them. `leave-one-out` spends 16 on drawing, 8 on p(base | the others), every eighth base at a
time, and 8 on the sixteenth part of bases that are least likely by it, which are drawn again. `any
bases` draws again as many that are chosen by chance, which is the control. The sequences of all
seeds are one set, measured as `genodiff scorecard` does against the held-out split. Sets that are
in FOLDER are not drawn again.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import genodiff
from genodiff.alphabet import DNA
from genodiff.counter import Purpose, generator
from genodiff.data.dna_windows import DnaWindows
from genodiff.evaluation.eval_data import open_data
from genodiff.evaluation.request import EvalOptions
from genodiff.io.fasta import read_fasta
from genodiff.models.opening import open_language
from genodiff.quality.real_sequence import RealSequence, open_real_of_run
from genodiff.quality.sample_quality import Measures, measure_sets
from genodiff.runs.folder import find_git_revision

LENGTH, STEPS, EVERY, AGAIN = 128, 32, 8, 8
DRAWN: dict[str, tuple[str, dict[str, float]]] = {
    "ancestral": ("ancestral", {}),
    "remdm-cap": ("remdm-cap", {}),
    "remdm-rescale": ("remdm-rescale", {}),
    "remdm-loop": ("remdm-loop", {}),
    **{f"p2, eta {eta:g}": ("p2", {"eta": eta}) for eta in (0.0, 1.0, 2.0)},
    **{
        f"p2 without noise, eta {eta:g}": ("p2", {"eta": eta, "noise": 0.0})
        for eta in (0.0, 0.1, 1.0, 10.0)
    },
    "confidence": ("confidence", {}),
}
CORRECTED = ("leave-one-out", "any bases")
WAYS = (*DRAWN, *CORRECTED)


def correct(model: Any, way: str, n: int, seed: int) -> list[tuple[str, float]]:
    """(letters, evaluations) of sequences whose bases are drawn again in part."""
    steps = STEPS - EVERY - AGAIN if way == "leave-one-out" else STEPS - AGAIN
    drawn = model.sample(n, length=LENGTH, steps=steps, seed=seed, records=True)
    letters = np.array([list(one.sequence) for one in drawn])
    if way == "leave-one-out":
        chance = model.predict([one.sequence for one in drawn], leave_one_out=True, every=EVERY)
        column = np.searchsorted(list("ACGT"), letters)
        score = np.take_along_axis(np.stack(chance), column[..., None], 2)[..., 0]
    else:
        score = generator(seed, Purpose.BASELINE, 1).random(letters.shape)
    worst = np.argsort(score, 1)[:, : LENGTH // 16]
    np.put_along_axis(letters, worst, "N", 1)
    gaps = ["".join(row) for row in letters]
    filled = model.infill(gaps, steps=AGAIN, seed=seed + 1000, records=True)
    spent = EVERY if way == "leave-one-out" else 0
    pairs = zip(drawn, filled, strict=True)
    return [(b.sequence, a.nfe + b.nfe + spent) for a, b in pairs]


def draw(model: Any, way: str, n: int, seed: int) -> list[tuple[str, float]]:
    if way in CORRECTED:
        return correct(model, way, n, seed)
    sampler, options = DRAWN[way]
    drawn = model.sample(
        n, length=LENGTH, steps=STEPS, seed=seed, sampler=sampler, sampler_options=options,
        records=True,
    )  # fmt: skip
    return [(one.sequence, one.nfe) for one in drawn]


def open_held_out(name: str, fasta: str, n: int) -> RealSequence:
    """The held-out split; nobody searches the train split for copies."""
    model = open_language(name, "cpu")
    section = model.config.data.model_copy(update={"seq_len": LENGTH})
    model = model._replace(config=model.config.model_copy(update={"data": section}))
    windows = open_data(model, EvalOptions(fasta=fasta)).windows
    assert isinstance(windows, DnaWindows)
    return open_real_of_run(windows, n)._replace(train=None)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("fasta")
    parser.add_argument("--n", type=int, default=128, help="sequences of each seed")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=WAYS, default=WAYS, metavar="WAY")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    model, spent = genodiff.load(asked.model), {}
    for seed in range(1, asked.seeds + 1):
        for way in asked.only:
            path = asked.out / f"{way.replace(' ', '_')}-{seed}.fa"
            if not path.exists():
                begun = time.process_time()
                drawn = draw(model, way, asked.n, seed)
                used = time.process_time() - begun
                text = "".join(f">{i}\n{letters}\n" for i, (letters, _) in enumerate(drawn))
                each = [nfe for _, nfe in drawn]
                path.with_suffix(".json").write_text(json.dumps([float(np.mean(each)), used]))
                path.write_text(text)
                print(path.name, f"{np.mean(each):.1f} evaluations, {used:.0f} s", flush=True)
    sets: dict[str, Any] = {}
    for way in asked.only:
        paths = sorted(asked.out.glob(f"{way.replace(' ', '_')}-*.fa"))
        told = np.array([json.loads(path.with_suffix(".json").read_text()) for path in paths])
        spent[way] = told[:, 0].mean(), told[:, 1].sum()
        sets[way] = [DNA.encode(one.sequence) for path in paths for one in read_fasta(path)]
    real = open_held_out(asked.model, asked.fasta, len(next(iter(sets.values()))))
    found = measure_sets({**sets, "real": real.floor, **real.markov}, real, Measures())
    rows = {
        name: {**one, **dict(zip(("evaluations", "cpu_s"), spent.get(name, (0, 0)), strict=True))}
        for name, one in found.items()
    }
    told = {"commit": find_git_revision(), "n": asked.n, "seeds": asked.seeds, "rows": rows}
    (asked.out / "correction.json").write_text(json.dumps(told, indent=1) + "\n")
    for name, row in rows.items():
        words = [f"{row['js'][k]['value']:.4f} ± {1.96 * row['js'][k]['se']:.4f}" for k in "346"]
        area = row["auroc"]["kmers"]
        print(
            f"| {name} | {row['evaluations']:.1f} | {row['cpu_s']:.0f} | {' | '.join(words)} "
            f"| {area['value']:.3f} ± {1.96 * area['se']:.3f} | {100 * row['gc']:.1f} "
            f"| {100 * row['gc_sd']:.1f} | {row['cpg']:.3f} | {100 * row['long_runs']:.2f} "
            f"| {row['open_frame']['mean']:.1f} ± {1.96 * row['open_frame']['se']:.1f} |"
        )


if __name__ == "__main__":
    main()
