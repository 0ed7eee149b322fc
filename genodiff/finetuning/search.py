"""The search for settings by validation alone: a paper's grid, or optuna's TPE sampler.

Optuna is an optional extra.

`search.jsonl` keeps what every trial found, so a search that is killed asks the same questions
again and is told the answers that are known: the sampler is seeded, and its next question depends
on the answers alone.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from genodiff.errors import MachineError
from genodiff.finetuning.choosing import take_best
from genodiff.finetuning.model_spec import ModelSpec
from genodiff.finetuning.protocol import FitSettings
from genodiff.finetuning.unit import Unit
from genodiff.io import atomic
from genodiff.io.file_lock import hold_file
from genodiff.tasks.metrics import HIGHER
from genodiff.tasks.suite import Task

FILE = "search.jsonl"
_BATCHES = (32, 64, 128, 256)


class Search:
    """The record of what was tried for one contender on one task."""

    def __init__(self, out: Path, task: Task, model: ModelSpec) -> None:
        self.path, self.task, self.model = out / FILE, task, model

    def known(self) -> dict[str, float]:
        """The validation value of every unit that was tried here, by key; NaN if it failed."""
        return {
            row["key"]: math.nan if row["valid"] is None else float(row["valid"])
            for row in self._rows()
        }

    def _rows(self) -> list[dict[str, Any]]:
        return (
            [json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines()]
            if self.path.exists()
            else []
        )

    def find(self, unit: Unit) -> tuple[float, float] | None:
        """(validation value, seconds) of a unit that was tried here; None where it was not."""
        for row in self._rows():
            if row["key"] == unit.key and "seconds" in row:
                valid = math.nan if row["valid"] is None else float(row["valid"])
                return valid, float(row["seconds"])
        return None

    def add(self, unit: Unit, valid: float, seconds: float = 0.0) -> None:
        """Note a unit's validation value, and how long its fit took."""
        row = {
            "suite": unit.suite, "task": unit.task, "model": unit.model.name,
            "seed": unit.seed, "key": unit.key,
            "metric": self.task.metrics[0], "valid": valid if math.isfinite(valid) else None,
            "seconds": seconds,
            "settings": unit.settings.model_dump(mode="json"),
        }  # fmt: skip
        with hold_file(self.path.with_name(f".{FILE}.lock")):
            rows = [r for r in self._rows() if r["key"] != unit.key] + [row]
            atomic.write_text(self.path, "".join(json.dumps(r) + "\n" for r in rows))

    def optimise(
        self, start: FitSettings, trials: int, value: Callable[[FitSettings], float]
    ) -> FitSettings:
        """The best of `trials` settings around `start`, which is the first of them.

        Raises `MachineError` without optuna.
        """
        optuna = _optuna()
        up = HIGHER.get(self.task.metrics[0], True)
        study = optuna.create_study(
            sampler=optuna.samplers.TPESampler(seed=1), direction="maximize" if up else "minimize"
        )
        study.enqueue_trial(
            {
                "lr": start.lr,
                "batch_size": start.batch_size,
                "weight_decay": start.weight_decay,
                "dropout": start.dropout,
            }
        )
        tried: list[FitSettings] = []
        values: list[float] = []
        sizes = sorted({*_BATCHES, start.batch_size})
        for _ in range(trials):
            trial = study.ask()
            change = {
                "lr": trial.suggest_float("lr", 1e-4, 1e-2, log=True),
                "batch_size": trial.suggest_categorical("batch_size", sizes),
                "weight_decay": trial.suggest_float("weight_decay", 1e-3, 0.3, log=True),
                "dropout": trial.suggest_float("dropout", 0.0, 0.3),
            }
            tried.append(start.model_copy(update=change))
            values.append(value(tried[-1]))
            failed = not math.isfinite(values[-1])
            study.tell(
                trial,
                None if failed else values[-1],
                state=optuna.trial.TrialState.FAIL if failed else None,
            )
        return take_best(tried, values, self.task.metrics[0])


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise MachineError(
            "--search needs optuna, which is not installed",
            fix="pip install 'genodiff[search]', or use --grid",
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
