"""The settings of a tuned baseline: chosen once on validation rows, kept for all seeds.

Seed 1's rows choose, or those of more seeds where they are few, as for networks.

    OUT/choices/KEY.json    what was chosen for one baseline on one task, and what it took

The first unit that needs a choice makes it; the others wait and read it. No test part is read.
"""

import json
from pathlib import Path
from typing import Any

from genodiff.finetuning.baselines import make_given
from genodiff.finetuning.choosing import list_choosing_seeds, name_seeds
from genodiff.finetuning.tuned_baselines import Given, choose_options
from genodiff.finetuning.unit import Unit
from genodiff.io import atomic
from genodiff.io.file_lock import hold_file
from genodiff.io.identity import sha256_json
from genodiff.tasks.task import TaskData, seed_split

CHOICES = "choices"
SEED = 1
"""The first seed whose validation rows choose."""


def find_choice(unit: Unit, data: TaskData, out: Path) -> dict[str, Any]:
    """What was chosen, in the form of a row's `choices`, and its `options` and `seconds`.

    It is read from `out`, or made there. Raises `GenodiffError` where no candidate can be fitted.
    """
    what = {
        "suite": unit.suite, "task": unit.task, "split": unit.split, "data": unit.data,
        "baseline": unit.model.preset,
    }  # fmt: skip
    path = out / CHOICES / f"{sha256_json(what)[:16]}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with hold_file(path.with_name(f".{path.stem}.lock"), "makes the same choice"):
        try:
            known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return known["choice"]
        except (OSError, ValueError, KeyError):
            pass
        seeds = list_choosing_seeds(data, SEED)
        given = [_take_parts(data, seed) for seed in seeds]
        found = choose_options(str(unit.model.preset), given)
        choice = {
            "of": "settings", **found._asdict(), "metric": data.task.metrics[0],
            "n_valid": sum(len(one.valid.labels) for one in given),
            "by": f"validation of {name_seeds(seeds)}",
        }  # fmt: skip
        atomic.write_json(path, {**what, "seed": SEED, "choice": choice})
        return choice


def _take_parts(data: TaskData, seed: int) -> Given:
    train, valid = (data.train.take(rows) for rows in seed_split(data, seed))
    return make_given(data.task, train, valid, seed)
