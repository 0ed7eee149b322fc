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


class Candidate(NamedTuple):
    """Settings that are tried, and what they are called."""

    name: str
    settings: FitSettings


def _read_rows(path: Path) -> list[dict[str, Any]]:
    if path.exists():
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return []


def _try_unit(unit: Unit, metric: str, place: Workers, *, timed: bool) -> tuple[float, float]:
    """(validation value, seconds) of a fit, made now or noted in `FILE`; NaN if it failed.

    Where it is not `timed`, its seconds count as 0.
    """
    path = place.out / FILE
    for row in _read_rows(path):
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
    row = {
        "suite": unit.suite, "task": unit.task, "model": unit.model.name,
        "seed": unit.seed, "key": unit.key, "metric": metric,
        "valid": valid if math.isfinite(valid) else None, "seconds": seconds,
        "settings": unit.settings.model_dump(mode="json"),
    }  # fmt: skip
    with hold_file(path.with_name(f".{FILE}.lock")):
        rows = [r for r in _read_rows(path) if r["key"] != unit.key] + [row]
        atomic.write_text(path, "".join(json.dumps(r) + "\n" for r in rows))
    return valid, seconds


def search_settings(unit: Unit, metric: str, trials: int, place: Workers) -> Unit:
    """The unit with the best of `trials` settings around its own, which are the first of them.

    Raises `MachineError` without optuna.
    """
    try:
        import optuna
    except ImportError:
        fix = "pip install 'genodiff[search]'"
        raise MachineError("--search needs optuna, which is not installed", fix=fix) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    start, place = unit.settings, place._replace(final=False)
    study = optuna.create_study(
        sampler=optuna.samplers.TPESampler(seed=1),
        direction="maximize" if HIGHER.get(metric, True) else "minimize",
    )
    names = ("lr", "batch_size", "weight_decay", "dropout")
    study.enqueue_trial({name: getattr(start, name) for name in names})
    tried: list[Unit] = []
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
        settings = start.model_copy(update=change)
        tried.append(unit.model_copy(update={"settings": settings, "setting": "tried"}))
        values.append(_try_unit(tried[-1], metric, place, timed=False)[0])
        if math.isfinite(values[-1]):
            study.tell(trial, values[-1])
        else:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
    best = take_best(tried, values, metric)
    return best.model_copy(update={"setting": f"search-{trials}"})


def choose_head(unit: Unit, task: Task, place: Workers, seeds: int) -> Unit:
    """The unit of seed 1, of `seeds`, with the head that validation chooses, and how it did.

    Raises `Interrupted` after a signal, and `GenodiffError` where every candidate failed.
    """
    place, metric, about = (
        place._replace(final=False),
        task.metrics[0],
        f"{unit.task} {unit.model.name}",
    )
    data = load_cached(place.request.to_json(), task.name)
    judges = list_choosing_seeds(data, unit.seed, seeds)
    parts = [seed_split(data, seed) for seed in judges]
    n_train, n_valid = len(parts[0][0]), sum(len(valid) for _, valid in parts)
    heads, tried = list_head_candidates(unit.settings), dict[str, Unit]()

    def evaluate(candidate: Candidate, share: float) -> tuple[float, float]:
        """(mean validation value, seconds in all); the value is NaN where a fit failed."""
        change = {"settings": shorten(candidate.settings, share), "setting": "tried"}
        units = [unit.model_copy(update=change | {"seed": seed}) for seed in judges]
        tried.update({one.key: one for one in units})
        found = [_try_unit(one, metric, place, timed=True) for one in units]
        valid = float(np.mean([value for value, _ in found]))
        _log.info("%s: %s, %g of a fit: validation %.4f", about, candidate.name, share, valid)
        return valid, sum(seconds for _, seconds in found)

    if n_valid < choosing.FEW:
        few = f"the default; {n_valid} validation examples are too few to compare heads"
        found = Choice(0, (), few)
    else:
        found = choose_candidate(heads, evaluate, metric, find_shares(unit.settings.steps(n_train)))
    name, settings = heads[found.candidate]
    _log.info("%s: head %s (%s)", about, name, found.why)
    kept = unit.model_copy(update={"settings": settings}).key  # that fit of seed 1 is made once
    for key, one in tried.items():
        folder = one.folder(place.out)
        if key != kept and not (folder / RESULT).exists():  # one that has a row is no trial
            for file in (MODEL, FITTED):
                (folder / file).unlink(missing_ok=True)
    choice = {
        "of": "head",
        "chosen": name,
        "why": found.why,
        "by": f"validation of {name_seeds(judges)}",
        "n_valid": n_valid,
        "metric": metric,
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
    change = {
        "settings": settings,
        "setting": unit.setting if settings == unit.settings else "chosen",
        "choices": [choice],
        "choice_seconds": sum(trial.seconds for trial in found.trials),
    }
    return unit.model_copy(update=change)


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
