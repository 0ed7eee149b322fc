"""The exact likelihood of a run's windows by order, beside the bound on the same windows.

    python benchmarks/likelihood/orders.py RUN [--fasta FASTA] [--windows 16] -o orders.json
        [--only ORDER ...] [--relatives FASTA ...]

RUN may be the name of a ready model, which needs its genome. `--relatives` are read beside it.

Fixed orders are scored at `--evaluations` of their steps in each of 8 x `--windows` windows of the
test split. Orders that read the network are walked in `--windows` windows, in as many steps as are
named. Each row has bits per base, its interval, the paired difference from the bound on the same
windows, the evaluations of the network for each window, and the CPU seconds of them all. A one-way
network's figure stands in `benchmarks/objectives/RESULTS.md`.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch

import genodiff
from genodiff.runs.folder import find_git_revision

FIXED: list[tuple[str, dict[str, float]]] = [
    ("left-to-right", {}),
    ("left-to-right", {"at_once": 4.0}),
    ("both-ends", {}),
    ("random", {}),
    ("ancestral", {"steps": 64.0}),
]
READ: list[tuple[str, dict[str, float]]] = [
    ("confidence", {"steps": 64.0}),
    ("confidence", {"steps": 256.0}),
    ("entropy-bounded", {"bound": 0.5}),
    ("entropy-bounded", {"bound": 2.0}),
    ("entropy-bounded", {"bound": 4.0}),
    ("entropy-bounded", {"bound": 20.0}),
]


def measure(run: str, order: str, options: dict[str, float], **how: Any) -> dict[str, Any]:
    """One row of the table."""
    begun = time.process_time()
    found = genodiff.evaluate(
        run, order=order, order_options=options, baselines=False, keep=False, **how
    )
    told = found["order"]
    keys = ("name", "options", "steps", "evaluations", "complete", "bits", "ci95")
    return {
        **{key: told[key] for key in keys},
        "minus_bound": told["minus_model_bits"],
        "bound": found["bits_per_base"],
        "windows": found["windows"],
        "checkpoint": found["checkpoint"],
        "step": found["step"],
        "cpu_s": round(time.process_time() - begun, 1),
    }


def write_order(name: str, options: dict[str, float]) -> str:
    """An order as `--only` names it, such as confidence,steps=64."""
    return ",".join([name, *(f"{key}={value:g}" for key, value in options.items())])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run")
    parser.add_argument("--fasta", help="the genome, where the run does not know it")
    parser.add_argument("--windows", type=int, default=16, help="of orders that are walked")
    parser.add_argument("--evaluations", type=int, default=16, help="of each window, fixed orders")
    parser.add_argument("--repeats", type=int, default=4, help="masks of each window")
    parser.add_argument("--only", nargs="+", help="orders, as left-to-right or confidence,steps=64")
    parser.add_argument("--relatives", nargs="+", default=(), help="genomes of related species")
    parser.add_argument("-o", "--output", type=Path, required=True)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    asked_for = FIXED + READ
    if asked.only:
        asked_for = [one for one in asked_for if {one[0], write_order(*one)} & {*asked.only}]
        if not asked_for:
            parser.error(f"--only: choose {', '.join(write_order(*one) for one in FIXED + READ)}")
    rows = []
    for order, options in asked_for:
        fixed = (order, options) in FIXED
        rows.append(
            measure(
                asked.run, order, options, fasta=asked.fasta, repeats=asked.repeats,
                max_windows=asked.windows * (8 if fixed else 1),
                order_evaluations=asked.evaluations if fixed else None, relatives=asked.relatives,
            )
        )  # fmt: skip
        print(json.dumps(rows[-1]), flush=True)
    told = {"run": Path(asked.run).name, "commit": find_git_revision(), "rows": rows}
    asked.output.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
