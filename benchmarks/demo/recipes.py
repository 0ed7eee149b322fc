"""What the demo's training costs and reaches under other recipes, one after another in one process.

    python benchmarks/demo/recipes.py OUT.jsonl [--seeds 1,2,3] [--only NAME ...]

A recipe is what it changes of the demo's own settings. Work is process time of training on one
thread, without imports and evaluation; recipes take turns within each seed. `closed` is the share
of the gap between the order-0 line and the source that the bound on the held-out contig closes.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from genodiff.evaluation.evaluate import evaluate
from genodiff.evaluation.evaluation_file import write_evaluation
from genodiff.reports.findings import measure_gap_closed
from genodiff.reports.folder import read_folder
from genodiff.runs.model import load_model
from genodiff.studies.demo import SETTINGS, make_demo_config
from genodiff.training.run import train

RECIPES: dict[str, dict[str, dict[str, Any]]] = {
    "now": {},
    "before": {
        "backbone": {"n_layer": 6, "d_state": 16},
        "optim": {"lr": 7e-3},
        "train": {"batch_size": 4, "max_steps": 5500},
    },
    "before, a third": {
        "backbone": {"n_layer": 6, "d_state": 16},
        "optim": {"lr": 7e-3},
        "train": {"batch_size": 4, "max_steps": 1800},
    },
    "half": {"train": {"max_steps": 725}},
    "twice": {"train": {"max_steps": 2900}},
}


def measure(name: str, seed: int, folder: Path) -> dict[str, Any]:
    """One recipe with one seed: its work, what it reaches, and the curve of validation."""
    changes = RECIPES[name]
    settings = {
        key: {**value, **changes.get(key, {})} if isinstance(value, dict) else value
        for key, value in SETTINGS.items()
    }
    steps = settings["train"]["max_steps"]
    settings["train"] |= {"validate_every": max(1, steps // 8), "checkpoint_every": steps}
    began = time.process_time()
    train(make_demo_config(seed=seed, settings=settings), folder)
    work = time.process_time() - began
    model = load_model(folder)
    write_evaluation(folder, evaluate(model, "test", repeats=16, batch_size=64, seed=seed))
    found = next(iter(read_folder(folder).evaluations.values()))
    rows = [line.split(",") for line in (folder / "metrics.csv").read_text().splitlines()]
    step, valid = (rows[0].index(column) for column in ("step", "valid_bits"))
    return {
        "recipe": name, "seed": seed, "steps": steps, "cpu_seconds": round(work, 1),
        "bits": found.bits_per_base, "ci95": found.ci95_bits, "source": found.source_bits,
        "closed": measure_gap_closed(found),
        "curve": [(int(row[step]), float(row[valid])) for row in rows[1:] if row[valid]],
    }  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, help="JSON lines, a row for each recipe and seed")
    parser.add_argument("--seeds", default="1", help="such as 1,2,3")
    parser.add_argument("--only", action="append", choices=sorted(RECIPES), help="of the recipes")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    for seed in map(int, asked.seeds.split(",")):
        for name in asked.only or RECIPES:
            with tempfile.TemporaryDirectory() as scratch:
                row = json.dumps(measure(name, seed, Path(scratch) / "run"))
            print(row, flush=True)
            with asked.out.open("a") as file:
                file.write(row + "\n")
