"""A sweep: every (task, model, setting, seed) is a unit, in a folder that can be resumed.

    OUT/results.jsonl      the rows
    OUT/tasks.json         counts, notes and audit of each task
    OUT/search.jsonl       the settings that a search tried
    OUT/units/KEY/         each unit's own folder

A unit that is done is not run again. A killed sweep goes on where each of its units was, and leaves
the same rows. One sweep writes into a folder at a time. Settings are searched by validation alone:
only the chosen ones are scored on the test part.
"""

import logging
import math
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import torch

from genodiff.errors import DataError, GenodiffError
from genodiff.finetuning.baselines import list_allowed_baselines
from genodiff.finetuning.head import choose_strands
from genodiff.finetuning.model_spec import ModelSpec, open_model
from genodiff.finetuning.predictor_files import can_keep
from genodiff.finetuning.protocol import FitSettings, Strands, list_protocol_settings
from genodiff.finetuning.scored_unit import Keep
from genodiff.finetuning.selection import choose_head, search_settings
from genodiff.finetuning.unit import PREDICTOR, RESULT, Unit, add_rows, hash_data, read_results
from genodiff.finetuning.workers import SweepProgress, Workers, run_units
from genodiff.io import atomic
from genodiff.io.file_kinds import stamp_time
from genodiff.io.process import count_usable_cores, read_processor
from genodiff.io.target import read_json_object
from genodiff.runs import lock
from genodiff.tasks.audit import audit
from genodiff.tasks.contamination import (
    Contamination,
    describe_contamination,
    describe_left_out,
    measure_contamination,
)
from genodiff.tasks.data_request import DataRequest, Exclusion, load_cached
from genodiff.tasks.examples import count_classes
from genodiff.tasks.homology import list_test_clusters
from genodiff.tasks.split_names import Level
from genodiff.tasks.suite import Task
from genodiff.tasks.task import TaskData
from genodiff.version import __version__, name_revision

TASKS, SESSIONS = "tasks.json", "sessions.json"
_LEAST_MCC = 0.1

_log = logging.getLogger("genodiff")


def measure_seen_tests(
    request: DataRequest, name: str, models: Sequence[ModelSpec], level: Level | None
) -> tuple[DataRequest, dict[str, dict[str, Any]]]:
    """The request, which from now on leaves out what pretraining saw of a test part, and what rows
    and model cards tell of that, by the model's name: `pretraining`, `left_out`.

    Without a `level` nothing is left out. Raises `DataError` where something is to be left out and
    it is not known what a model was trained on.
    """
    sequences = load_cached(request.to_json(), name).test.sequences
    found: dict[str, Contamination] = {}
    for model in models:
        if model.kind != "checkpoint":
            continue
        seen = found[model.name] = measure_contamination(open_model(str(model.path)), sequences)
        _log.info("%s: %s", name, describe_contamination(model.name, seen.to_json()))
        if level is not None and seen.shares is None:
            raise DataError(
                f"--exclude-overlap: what pretraining of {model.name} saw of the test part is "
                f"not known: {seen.reason}",
                fix="leave out --exclude-overlap, or this model",
            )
    left_out: dict[str, Any] = {}
    if level is not None:
        drop = np.zeros(len(sequences), np.bool_)
        for seen in found.values():
            drop |= seen.reaches(level)
        rows = tuple(np.flatnonzero(drop).tolist())
        excluded = request.excluded | {name: Exclusion(level=level, rows=rows)}
        request = request.model_copy(update={"excluded": excluded})
        found = {model: seen.take(~drop) for model, seen in found.items()}
        left_out = {"left_out": {"level": level, "n": len(rows), "of": len(drop)}}
    told = {model: {"pretraining": seen.to_json()} for model, seen in found.items()}
    return request, {model.name: told.get(model.name, {}) | left_out for model in models}


def describe_seen_tests(rows: Sequence[dict[str, Any]]) -> list[str]:
    """What a task's rows tell of pretraining and of examples left out: a sentence each."""
    lines = [describe_left_out(row["left_out"]) for row in rows if row.get("left_out") is not None]
    for row in rows:
        if row["kind"] == "checkpoint":
            told = row.get("pretraining", {"not_known": "not looked for"})
            lines.append(describe_contamination(row["model"], told))
    return list(dict.fromkeys(lines))


class SweepPlan(NamedTuple):
    """What a sweep does: which models, methods and seeds.

    `over` are settings that replace the protocol's; `keep` says which fits are kept for prediction.
    `choose_head` says that validation chooses the head. `exclude` says which test examples are left
    out because pretraining saw them.
    """

    request: DataRequest
    tasks: list[str]
    models: list[ModelSpec]
    methods: tuple[str, ...] = ("full",)
    seeds: int = 5
    over: dict[str, Any] = {}  # noqa: RUF012
    search: int = 0
    keep: Keep = "new"
    exclude: Level | None = None
    choose_head: bool = False

    def contenders(self) -> Iterator[tuple[ModelSpec, str]]:
        """Each model with each of its methods; a baseline has one."""
        for model in self.models:
            for method in self.methods if model.kind != "baseline" else ("baseline",):
                yield model, method


def choose_settings(
    plan: SweepPlan, task: Task, model: ModelSpec, method: str, n_train: int = 0
) -> tuple[str, FitSettings]:
    """(name, settings) of a model on a task: the protocol's, then what the user gave.

    `n_train` examples train, if known.

    Raises `UsageError` for settings that the network cannot have.
    """
    if model.kind == "baseline":
        return "", FitSettings()
    shape, alphabet = model.shape()
    wanted: Strands = plan.over.get("rc", "auto")
    if wanted == "auto" and task.oriented:
        wanted = "none"
    rc = choose_strands(shape, wanted, alphabet.complement is not None)
    own = list_protocol_settings(plan.request.suite, task.name, rc, n_train)
    own |= {"method": method, "rc": rc, "parts": task.parts}
    left_out = {"rc"}
    if method != "full" or model.kind != "checkpoint":
        left_out.add("adapter")  # it is for the weights of a trained network
    over = {k: v for k, v in plan.over.items() if k not in left_out}
    start = own if "head" not in over else {k: v for k, v in own.items() if k != "parts"}
    settings = FitSettings.parse(start | over)
    return "paper" if settings == FitSettings.parse(own) else "own", settings


def summarise_task(suite: str, data: TaskData) -> dict[str, Any]:
    """What a sweep and its report say about a task, the audit too."""
    task = data.task
    parts = {"train": data.train, "test": data.test}
    return {
        "suite": suite, "task": task.name, "domain": task.domain, "split": data.split,
        "kind": task.kind, "classes": list(task.classes),
        "metric": task.metrics[0], "metrics": list(task.metrics), "max_length": task.max_length,
        "notes": list(data.notes),
        "licence": task.licence, "source": task.source, "task_note": task.note,
        "data": hash_data(data),
        "published_split": data.valid_index is not None,
        **{f"n_{part}": examples.n for part, examples in parts.items()},
        **{f"classes_{part}": count_classes(x.labels,
        task.classes) if task.classes else {} for part, x in parts.items()},
        "lengths": [int(min(x.lengths.min() for x in parts.values())),
        int(max(x.lengths.max() for x in parts.values()))],
        "test_clusters": list_test_clusters(data.test, task.domain),
        "audit": audit(data), "baselines": list(list_allowed_baselines(task, data.train)),
    }  # fmt: skip


def _session(out: Path, command: str, device: str) -> None:
    """Add this session to `sessions.json`, in place of one with the same command and code."""
    path = out / SESSIONS
    if device.startswith("cuda"):
        where = torch.cuda.get_device_name()
    else:
        where = f"{read_processor()} CPU, {count_usable_cores()} cores"
    new = {
        "command": command,
        "git": name_revision(),
        "genodiff": __version__,
        "hardware": where,
        "threads": torch.get_num_threads(),
    }
    before = read_json_object(path).get("sessions", [])
    kept = [s for s in before if {k: s.get(k) for k in new} != new]
    atomic.write_json(path, {"sessions": [*kept, new | {"started": stamp_time("milliseconds")}]})


def sweep(
    plan: SweepPlan, out: Path, *, device: str = "cpu", jobs: int = 1, command: str = ""
) -> list[dict[str, Any]]:
    """Run what is not done yet, and return the rows of this plan.

    Raises `GenodiffError` at the end where a unit failed.
    """
    first = load_cached(plan.request.model_dump_json(), plan.tasks[0]).task
    for model, method in plan.contenders():  # faults come before any file
        choose_settings(plan, first, model, method)
    out.mkdir(parents=True, exist_ok=True)
    chosen: dict[str, Unit] = {}
    cost: dict[str, float] = {}
    counts: dict[str, dict[str, int]] = {}
    with lock.hold_lock(out):
        atomic.clear_leftovers(out)
        _session(out, command, device)
        place = Workers(plan.request, out, device, jobs, keep=plan.keep)
        for name in plan.tasks:
            request, seen = measure_seen_tests(place.request, name, plan.models, plan.exclude)
            place = place._replace(request=request)
            data = load_cached(request.to_json(), name)
            about = summarise_task(request.suite, data)
            _remember(out, about)
            counts[name] = about["classes_test"]
            same = {key: about[key] for key in ("suite", "task", "split", "data")}
            for model, method in plan.contenders():
                if model.kind == "baseline" and model.preset not in about["baselines"]:
                    _log.info("%s: no %s, which is not possible for these data", name, model.name)
                    continue
                setting, settings = choose_settings(plan, data.task, model, method, data.train.n)
                same |= {"model": model, "settings": settings, "setting": setting}
                unit = Unit(**same, seed=1, seen=seen[model.name])
                if plan.search:
                    unit = search_settings(unit, data.task.metrics[0], plan.search, place)
                if model.kind != "baseline" and plan.choose_head:
                    unit = choose_head(unit, data.task, place, plan.seeds)
                for seed in range(1, plan.seeds + 1):
                    one = unit.model_copy(update={"seed": seed})
                    chosen[one.key], cost[one.key] = one, _cost(one, data)
        _fit_missing(list(chosen.values()), cost, place)
    own = ((row, chosen[row["key"]]) for row in read_results(out) if row["key"] in chosen)
    # Rows of older sessions too have what was seen, and the newest choice.
    add_rows(out, [row | unit.seen | unit.tell_choice() for row, unit in own])
    found = [row for row in read_results(out) if row["key"] in chosen]
    warn_of_guesses(found, counts)
    return found


def _fit_missing(units: list[Unit], cost: dict[str, float], place: Workers) -> None:
    """Fit what has no row, and add the rows. Raises `GenodiffError` where a unit failed."""
    out, faults = place.out, list[str]()
    rows = {row["key"] for row in read_results(out)}
    done = [unit for unit in units if unit.key in rows or (unit.folder(out) / RESULT).exists()]
    kept = (unit for unit in done if can_keep(unit.method, unit.model.preset))
    without = [unit for unit in kept if not (unit.folder(out) / PREDICTOR).exists()]
    if without and place.keep == "new":
        what = "%d of %d units were done without what `genodiff predict` needs; give "
        _log.info(what + "--keep-weights to fit them again", len(without), len(units))
    board = SweepProgress(len(units), cost, {unit.key for unit in done})
    try:
        no_row = [unit for unit in done if unit.key not in rows]
        for outcome in run_units(no_row, place._replace(jobs=1, keep="new")):
            add_rows(out, [outcome.row] if outcome.row is not None else [])
        todo = [unit for unit in units if unit not in done]
        again = without if place.keep == "all" else []
        for outcome in chain(*(run_units(some, place, board.tick) for some in (again, todo))):
            if outcome.fault is not None:
                faults.append(f"{outcome.unit.title}: {outcome.fault}")
                _log.error("%s", faults[-1])
            if outcome.unit not in done:
                add_rows(out, [outcome.row | outcome.unit.seen] if outcome.row is not None else [])
                board.done(outcome.unit, outcome.row)
    finally:
        board.close()
    if faults:
        what = f"{len(faults)} of {len(units)} units failed: {'; '.join(faults[:3])}"
        raise GenodiffError(what, fix="the others are done and saved")


def warn_of_guesses(rows: list[dict[str, Any]], counts: dict[str, dict[str, int]]) -> None:
    """Name the networks that are right on the test part no more often than its commonest class."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        if row["kind"] != "baseline" and "mcc" in row["metrics"]:  # one class an example
            groups.setdefault((row["task"], row["model"]), []).append(row["metrics"])
    for (task, model), some in groups.items():
        found, mcc = (fmean(one[name] or 0.0 for one in some) for name in ("accuracy", "mcc"))
        common, n = max(counts[task].items(), key=lambda one: one[1])
        share = n / sum(counts[task].values())
        if found <= share and mcc < _LEAST_MCC:
            _log.warning(
                "%s %s: accuracy %.3f on the test part, and '%s' for every sequence has %.3f: "
                "nothing was learned; give more examples, more --epochs or another --lr",
                task, model, found, common, share,
            )  # fmt: skip


def _cost(unit: Unit, data: TaskData) -> float:
    """The cost of a unit in arbitrary units, the same for all networks; 0 for baselines."""
    if unit.model.kind == "baseline":
        return 0.0
    settings, alphabet = unit.model.shape()
    bases = data.train.lengths.clip(max=data.task.max_length).sum()
    per_epoch = math.ceil(data.train.n / unit.settings.batch_size)
    epochs = unit.settings.steps(data.train.n) / per_epoch
    share = 1.0 if unit.method == "full" else 0.4  # a pass forward alone
    return float(bases * epochs * share * settings.n_parameters(alphabet.padded_size) ** 0.5)


def _remember(out: Path, about: dict[str, Any]) -> None:
    """Keep what is known of a task in `tasks.json`, by suite, task, split and data."""
    known = read_tasks(out)
    name = f"{about['suite']} {about['task']} {about['split']} {about['data']}"
    if known.get(name) != about:
        atomic.write_json(out / TASKS, known | {name: about})


def read_tasks(out: Path) -> dict[str, dict[str, Any]]:
    """What `tasks.json` says, by "suite task split data"; nothing without a sound file."""
    return read_json_object(out / TASKS)
