"""What constraints cost in sampling: a run of templates with and without them, taking turns.

    python benchmarks/design/cost.py RUN

Each round samples N designs of L free bases three times, with the same seed: by `sample`, by
`redesign` without constraints and by `redesign` with ten words of six bases on both strands. Times
are CPU seconds of this process on one thread. Compiling the automaton is part. The first and the
last are done as well with a network that costs nothing: their difference is what constraints cost,
without the noise of the network's time. So is a protein kept over all whole codons, its codons
weighed by their use in E. coli. The result is written to cost.json. `--naive` makes the draws in
NumPy, as without the C library.
"""

import argparse
import json
import random
import sys
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
from Bio.Data.CodonTable import unambiguous_dna_by_id

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from commands import cpu  # noqa: E402
from violations import Uniform  # noqa: E402

import genodiff  # noqa: E402
from genodiff.generate import constrained  # noqa: E402
from genodiff.runs.folder import find_git_revision  # noqa: E402

WORDS = ("GATTCC", "AGGTAC", "TTAGCA", "CCTGAA", "ACGTCA", "GTTGCA", "TGACTC", "CAGGAA", "AATCGT",
         "GCTACA")  # fmt: skip
SENSE = sorted(unambiguous_dna_by_id[1].forward_table)
OUT = HERE / "cost.json"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--n", type=int, default=8)
    parser.add_argument("--length", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--naive", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.naive:
        constrained.is_loaded = lambda: False  # type: ignore[attr-defined]
    model = genodiff.load(asked.run)
    how = {"seed": asked.seed, "steps": asked.steps}

    free = type(model)(model.trained._replace(network=Uniform()))

    def sample(model: Any) -> None:
        assert len(list(model.sample(asked.n, length=asked.length, **how))) == asked.n

    def redesign(model: Any, rules: dict[str, Any]) -> None:
        found = model.redesign("N" * asked.length, asked.n, rules=rules, **how)
        assert len(found) == asked.n

    def recode(model: Any) -> None:
        codons = random.Random(asked.seed).choices(SENSE, k=asked.length // 3)
        rules = {"protein": ["forward"], "codon_usage": "e_coli"}
        where = {"regions": [(0, 3 * len(codons))], "rules": rules}
        assert len(model.redesign("".join(codons), asked.n, **where, **how)) == asked.n

    ways = {
        "sample": partial(sample, model),
        "redesign": partial(redesign, model, {}),
        "redesign with ten words": partial(redesign, model, {"avoid": WORDS}),
        "sample, no network": partial(sample, free),
        "redesign with ten words, no network": partial(redesign, free, {"avoid": WORDS}),
        "redesign with codon usage, no network": partial(recode, free),
    }
    for way in ways.values():  # what is loaded at first does not count
        way()
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(asked.rounds):
        for name, way in ways.items():
            began = time.process_time()
            way()
            seconds[name].append(round(time.process_time() - began, 3))
        print(turn, {name: some[-1] for name, some in seconds.items()}, flush=True)
    added = {
        name: round(median(b / a - 1 for a, b in zip(seconds["sample"], some, strict=True)), 4)
        for name, some in seconds.items()
        if name.startswith("redesign") and "no network" not in name
    }
    bare = seconds["sample, no network"]
    for what in ("ten words", "codon usage"):
        some = seconds[f"redesign with {what}, no network"]
        extra = median(b - a for a, b in zip(bare, some, strict=True))
        share = extra / median(seconds["sample"])
        added[f"{what}, without the network's noise"] = round(share, 4)
    row = {
        "seconds": seconds, "added": added, "n": asked.n, "length": asked.length,
        "steps": asked.steps, "rounds": asked.rounds, "seed": asked.seed, "run": asked.run.name,
        "naive": asked.naive, "cpu": cpu(), "threads": 1,
        "genodiff": find_git_revision(), "torch": torch.__version__,
    }  # fmt: skip
    print(added)
    rows = json.loads(OUT.read_text()) if OUT.exists() else {}
    rows["naive" if asked.naive else "native"] = row
    OUT.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
