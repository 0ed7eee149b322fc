"""The head and the settings chosen by validation: fits that never see a test part.

Heads are fitted with seed 1 on its train rows and judged on its validation rows; where these are
few, more seeds are asked, and means are compared (`choosing`). Each head is tried for a tenth of
the epochs and the best two for a third, of at least 500 and 2,000 steps, or whole. A search for
settings asks optuna's TPE sampler, an optional extra.

What is chosen is frozen for all seeds. `search.jsonl` keeps what every trial found: a sweep that
was stopped makes the same choice, and a search asks the same questions again, for the sampler is
seeded and its next question depends on the answers alone. A whole fit of the chosen settings is the
fit of seed 1: it is made once.
"""

import json
import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from genodiff.errors import MachineError
from genodiff.finetuning import choosing
from genodiff.finetuning.choosing import (
    Choice,
    choose_candidate,
    find_shares,
    list_choosing_seeds,
    name_seeds,
    take_best,
)
from genodiff.finetuning.head import list_heads
from genodiff.finetuning.model_spec import ModelSpec
from genodiff.finetuning.protocol import PARTS, FitSettings
from genodiff.finetuning.unit import FITTED, MODEL, RESULT, Unit
from genodiff.finetuning.workers import SweepProgress, Workers, run_units
from genodiff.io import atomic
from genodiff.io.file_lock import hold_file
from genodiff.tasks.data_request import load_cached
from genodiff.tasks.metrics import HIGHER
from genodiff.tasks.suite import Task
from genodiff.tasks.task import seed_split

_log = logging.getLogger("genodiff")
FILE = "search.jsonl"
_BATCHES = (32, 64, 128, 256)


class Search:
    """The record of what was tried for one contender on one task."""

    def __init__(self, out: Path, task: Task, model: ModelSpec) -> None:
        self.path, self.task, self.model = out / FILE, task, model

    def _rows(self) -> list[dict[str, Any]]:
        if self.path.exists():
            return [json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines()]
        return []

    def try_unit(self, unit: Unit, place: Workers, *, timed: bool) -> tuple[float, float]:
        """(validation value, seconds) of a fit, made now or noted here; NaN if it failed.

        Where it is not `timed`, its seconds count as 0.
        """
        for row in self._rows():
            if row["key"] == unit.key:
                valid = math.nan if row["valid"] is None else float(row["valid"])
                return valid, float(row.get("seconds", 0.0))
        board = SweepProgress(1, {unit.key: 1.0}, set())
        try:
            (outcome,) = run_units([unit], place, board.tick)
        finally:
            board.close()
        if outcome.fault is not None:
            _log.warning("%s: %s", unit.model.name, outcome.fault)
        valid = math.nan if outcome.valid is None else outcome.valid
        seconds = outcome.seconds if timed else 0.0
        self._add(unit, valid, seconds)
        return valid, seconds

    def _add(self, unit: Unit, valid: float, seconds: float) -> None:
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

    def optimise(self, unit: Unit, trials: int, place: Workers) -> FitSettings:
        """The best of `trials` settings around those of the unit, which are the first of them.

        Raises `MachineError` without optuna.
        """
        start, place = unit.settings, place._replace(final=False)
        optuna = _optuna()
        up = HIGHER.get(self.task.metrics[0], True)
        study = optuna.create_study(
            sampler=optuna.samplers.TPESampler(seed=1), direction="maximize" if up else "minimize"
        )
        names = ("lr", "batch_size", "weight_decay", "dropout")
        study.enqueue_trial({name: getattr(start, name) for name in names})
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
            one = unit.model_copy(update={"settings": tried[-1], "setting": "tried"})
            values.append(self.try_unit(one, place, timed=False)[0])
            if math.isfinite(values[-1]):
                study.tell(trial, values[-1])
            else:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
        return take_best(tried, values, self.task.metrics[0])


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        fix = "pip install 'genodiff[search]'"
        raise MachineError("--search needs optuna, which is not installed", fix=fix) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


class Candidate(NamedTuple):
    """Settings that are tried, and what they are called."""

    name: str
    settings: FitSettings


class Selection(NamedTuple):
    """The settings that were chosen, the choice as plain values, and the seconds that it took."""

    settings: FitSettings
    choices: list[dict[str, Any]]
    seconds: float


class HeadSelector:
    """Chooses the head of one model on one task. `unit` is its unit of seed 1, of `seeds`."""

    def __init__(self, unit: Unit, task: Task, place: Workers, seeds: int) -> None:
        self.unit, self.task, self.place = unit, task, place._replace(final=False)
        self.log = Search(place.out, task, unit.model)
        self.tried: dict[str, Unit] = {}
        data = load_cached(place.request.to_json(), task.name)
        self.seeds = list_choosing_seeds(data, unit.seed, seeds)
        parts = [seed_split(data, seed) for seed in self.seeds]
        self.n_train, self.n_valid = len(parts[0][0]), sum(len(valid) for _, valid in parts)

    def select(self) -> Selection:
        """The settings to take in place of the unit's.

        Raises `Interrupted` after a signal, and `GenodiffError` where every candidate failed.
        """
        heads = list_head_candidates(self.unit.settings)
        found = self._choose(heads)
        chosen = heads[found.candidate]
        name = f"{self.task.name} {self.unit.model.name}"
        _log.info("%s: head %s (%s)", name, chosen.name, found.why)
        self._clear(chosen.settings)
        spent = sum(trial.seconds for trial in found.trials)
        return Selection(chosen.settings, [self._describe(heads, found)], spent)

    def _clear(self, chosen: FitSettings) -> None:
        """Remove the weights of trials, except those of the fit that is seed 1's."""
        kept = self.unit.model_copy(update={"settings": chosen}).key
        for key, unit in self.tried.items():
            folder = unit.folder(self.place.out)
            if key != kept and not (folder / RESULT).exists():  # one that has a row is no trial
                for name in (MODEL, FITTED):
                    (folder / name).unlink(missing_ok=True)

    def _choose(self, heads: Sequence[Candidate]) -> Choice:
        if self.n_valid < choosing.FEW:
            few = f"the default; {self.n_valid} validation examples are too few to compare heads"
            return Choice(0, (), few)

        def evaluate(candidate: Candidate, share: float) -> tuple[float, float]:
            """(mean validation value, seconds in all); the value is NaN where a fit failed."""
            change = {"settings": shorten(candidate.settings, share), "setting": "tried"}
            units = [self.unit.model_copy(update=change | {"seed": seed}) for seed in self.seeds]
            self.tried |= {unit.key: unit for unit in units}
            tried = [self.log.try_unit(unit, self.place, timed=True) for unit in units]
            valid = float(np.mean([value for value, _ in tried]))
            what = f"{self.task.name} {self.unit.model.name}: {candidate.name}"
            _log.info("%s, %g of a fit: validation %.4f", what, share, valid)
            return valid, sum(seconds for _, seconds in tried)

        shares = find_shares(self.unit.settings.steps(self.n_train))
        return choose_candidate(heads, evaluate, self.task.metrics[0], shares)

    def _describe(self, heads: Sequence[Candidate], found: Choice) -> dict[str, Any]:
        return {
            "of": "head",
            "chosen": heads[found.candidate].name,
            "why": found.why,
            "by": f"validation of {name_seeds(self.seeds)}",
            "n_valid": self.n_valid,
            "metric": self.task.metrics[0],
            "trials": [
                {
                    "candidate": heads[t.candidate].name,
                    "epochs": shorten(heads[t.candidate].settings, t.share).epochs,
                    "share": t.share,
                    "valid": t.valid if np.isfinite(t.valid) else None,
                }
                for t in found.trials
            ],
        }


def shorten(settings: FitSettings, share: float) -> FitSettings:
    """The settings of a fit of a share of the epochs (or steps), at least one."""
    change: dict[str, Any] = {"epochs": max(1, round(share * settings.epochs))}
    if settings.max_steps is not None:
        change["max_steps"] = max(1, round(share * settings.max_steps))
    return settings.model_copy(update=change)


def list_head_candidates(start: FitSettings) -> list[Candidate]:
    """A candidate for each head that can be fitted, the simplest first."""
    found = []
    for name in list_heads():
        label, parts = name, 1
        if name == "parts":
            parts = start.parts if start.parts > 1 else PARTS
            label = f"parts {parts}"
        found.append(Candidate(label, start.model_copy(update={"head": name, "parts": parts})))
    return found
