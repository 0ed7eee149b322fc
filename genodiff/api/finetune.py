"""Fine-tuning on tasks of a suite, or on one's own labelled sequences: `genodiff.finetune`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from genodiff.errors import DataError, UsageError, printable
from genodiff.io.target import check_folder, check_target, read_json_object, set_aside
from genodiff.jobs.machine import choose_device
from genodiff.kernels.defaults import own_defaults
from genodiff.runs.run_paths import check_input, find_model_folder
from genodiff.statistics.margin import check_margin
from genodiff.tasks.split_names import Level as Level
from genodiff.tasks.split_names import OwnSplit as OwnSplit
from genodiff.tasks.split_names import (
    Split,
    check_similarity,
    choose_split,
    refuse_single_table,
)

if TYPE_CHECKING:
    from genodiff.tasks.data_request import DataRequest

TaskKind = Literal["binary", "multiclass", "multilabel", "regression"]
ReverseComplement = Literal["auto", "conjoin", "average", "augment", "none"]
Method = Literal["full", "frozen", "probe"]

_FILES = ("results.jsonl", "tasks.json", "sessions.json", "units")


@own_defaults()
def finetune(
    what: str | Path,
    *,
    task: str = "all",
    split: Split = "official",
    similarity: float | None = None,
    exclude_overlap: Level | None = None,
    data: str | Path | None = None,
    reference: Mapping[str, str] | None = None,
    test: str | Path | None = None,
    valid: str | Path | None = None,
    name: str | None = None,
    sequence: str | None = None,
    label: Sequence[str] = (),
    kind: TaskKind | None = None,
    metric: str | None = None,
    test_share: float | None = None,
    drop_missing: bool = False,
    model: str | Sequence[str] = ("baselines", "scratch"),
    method: Method | Sequence[Method] = "full",
    max_train: int | None = None,
    seeds: int = 5,
    jobs: int = 1,
    out: str | Path | None = None,
    protocol: Literal["paper", "mdlm"] = "paper",
    grid: bool = False,
    search: int = 0,
    rc: ReverseComplement | None = None,
    epochs: int | None = None,
    max_steps: int | None = None,
    batch_size: int | None = None,
    lr: float | None = None,
    weight_decay: float | None = None,
    head: str | None = None,
    parts: int | None = None,
    shift: int | None = None,
    budget: float | None = None,
    dropout: float | None = None,
    mask_share: float | None = None,
    patience: int | None = None,
    ema: float | None = None,
    adapter: str | None = None,
    adapt: int | None = None,
    precision: Literal["fp32", "bf16"] | None = None,
    max_length: int | None = None,
    keep_weights: bool | None = None,
    margin: float | None = None,
    device: str = "auto",
    offline: bool = False,
    plan: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Fit every model to every task with every seed; what was found, as plain values.

    `what` is a suite (genomic-benchmarks, gue, nt, glue, ...), or your own labelled sequences: a
    table or FASTA with its `test` (and `valid`) part, or a folder or zip with both. `task`, `data`
    (the folder of a suite's files) and `reference` (NAME → FASTA) are for suites; `name`,
    `sequence`, `label`, `kind` and `metric` for your own. Of one table, `test_share` tests, in
    clusters of sequences that are alike, always the same ones. `drop_missing` leaves out, and
    counts, rows without a label, a sequence or a position. `model` names runs, `scratch`,
    `scratch:PRESET` and baselines; `adapted:RUN` goes on with pretraining on the task's own train
    sequences (`adapt` steps, without labels) before each fit. `similarity` is the threshold of the
    split homology.
    `exclude_overlap` leaves out, for all models, the test examples of whose 24-mers pretraining saw
    some, half or all. Settings of a fit that are None are the protocol's. Validation on seed 1
    chooses the `head` where it is None or "auto", on more seeds where it has few examples; with a
    `budget` in minutes for each model and task it chooses learning rate, epochs, weight decay,
    dropout and augmentation too.

    The folder `out` (default: runs/finetune-NAME) is resumed where it exists. Returned are `out`,
    `rows` (those of its results.jsonl that belong to this plan), `files` (RESULTS.md and
    report.html) and `comparisons`: of each task, paired differences with 95 % intervals over seeds
    and test examples, Holm's corrected p values, and a verdict. Models are called equivalent only
    where their difference is shown to be within ±`margin`. `ensembles` are rows too: the mean of
    the predictions of a line's seeds, as one answer.

    `adapter` (`"lora:r=8"`, `"dora"`) trains few weights in the place of all, where `model` is a
    trained one and `method` is full; what is kept is merged.

    `keep_weights`: None keeps each new fit for `genodiff.predict`, True fits those
    again that are done without, False keeps none. With `plan` nothing is trained or written, and
    units, seconds and bytes are returned. Raises `UsageError`, `DataError`, `CheckpointError`,
    `GenodiffError` where a unit failed.
    """
    for flag, value in (("seeds", seeds), ("jobs", jobs)):
        if value < 1:
            raise UsageError(f"--{flag} {value} is below 1", fix="give 1 or more")
    check_margin(margin)
    if max_train is not None and max_train < 10:
        raise UsageError(f"--max-train {max_train} is below 10", fix="give 10 or more")
    if search < 0 or (search and grid):
        raise UsageError(
            "--search takes a number of trials, and cannot be used with --grid",
            fix="give one of them",
        )
    over = {
        "rc": rc, "epochs": epochs, "max_steps": max_steps, "batch_size": batch_size, "lr": lr,
        "weight_decay": weight_decay, "head": head, "parts": parts, "dropout": dropout,
        "shift": shift, "mask_share": mask_share, "patience": patience, "ema": ema,
        "adapter": adapter, "adapt": adapt,
        "precision": precision, "max_length": max_length,
    }  # fmt: skip
    over = {key: value for key, value in over.items() if value is not None}
    words = [model] if isinstance(model, str) else list(model)
    _check_adapt(adapt, words)
    choose_head = over.get("head", "auto") == "auto" and parts is None
    if over.get("head") == "auto":
        del over["head"]
    if budget is not None and budget <= 0:
        raise UsageError(f"--budget {budget:g} is no time", fix="give minutes above 0")
    own = {
        "test": test, "valid": valid, "name": name, "sequence": sequence,
        "labels": tuple(label), "kind": kind, "metric": metric, "max_length": max_length,
        "test_share": test_share, "drop_missing": drop_missing,
    }  # fmt: skip
    _check_task(what, task)
    request = _request(what, split, data, reference or {}, own, offline)
    check_similarity(request.split, similarity)
    request = request.model_copy(update={"max_train": max_train, "similarity": similarity})
    target = Path(out) if out is not None else Path("runs") / f"finetune-{_name_of(request)}"
    tasks = _check(request, task, words, over)
    _check_out(target, force, plan=plan)
    device = choose_device(device)
    from genodiff.finetuning.model_spec import parse_models
    from genodiff.finetuning.model_words import list_baselines
    from genodiff.finetuning.sweep import SweepPlan, sweep

    sweep_plan = SweepPlan(
        request,
        tasks,
        parse_models(words, list_baselines(request.domain), request.domain),
        (method,) if isinstance(method, str) else tuple(method),
        seeds,
        protocol,
        over,
        search,
        grid,
        "new" if keep_weights is None else "all" if keep_weights else "none",
        budget=budget,
        exclude=exclude_overlap,
        choose_head=choose_head,
    )
    if exclude_overlap and not any(m.kind == "checkpoint" for m in sweep_plan.models):
        raise UsageError(
            "--exclude-overlap needs a pretrained model, and none is named",
            fix="give --model RUN, or leave it out",
        )
    if plan:
        from genodiff.finetuning.estimate import estimate

        return estimate(sweep_plan, device, jobs)
    rows = sweep(sweep_plan, target, device=device, jobs=jobs, command=_command())
    from genodiff.reports.benchmark import write_benchmark

    written, keys = write_benchmark(target, margin), {row["key"] for row in rows}
    return {
        "out": str(target),
        "rows": rows,
        "files": [str(path) for path in written.files],
        "comparisons": written.comparisons,
        "ensembles": [row for row in written.ensembles if keys & set(row["keys"])],
    }


def _check_adapt(adapt: int | None, words: list[str]) -> None:
    """Raises `UsageError` for steps of adapting that no model has."""
    from genodiff.finetuning.model_words import ADAPTED

    if adapt is None:
        return
    if adapt < 1:
        raise UsageError(f"--adapt {adapt} is below 1", fix="give 1 or more")
    parts = [part for word in words for part in (word, word.partition("=")[2])]
    if not any(part.startswith(ADAPTED) for part in parts):
        raise UsageError(
            "--adapt is for adapted models, and none is named",
            fix=f"give --model {ADAPTED}RUN too",
        )


def _command() -> str:
    return shlex.join(["genodiff", *sys.argv[1:]])


def _check_task(what: str | Path, task: str) -> None:
    """Raises `UsageError` for an unknown task of a suite, before rooms that take long to import."""
    from genodiff.tasks.suite_files import list_suite_files

    if isinstance(what, str) and what in list_suite_files():
        from genodiff.tasks.suite import choose_tasks

        choose_tasks(what, task)


def _request(
    what: str | Path,
    split: Split,
    data: str | Path | None,
    references: Mapping[str, str],
    own: dict[str, Any],
    offline: bool,
) -> DataRequest:
    """Which data are meant. Raises `UsageError` for what does not go together."""
    from genodiff.tasks.suite_files import list_suite_files

    if isinstance(what, str) and what in list_suite_files():
        from genodiff.tasks.data_request import DataRequest

        extra = [key for key, value in own.items() if value and key != "max_length"]
        if extra:
            raise UsageError(
                f"{extra[0]} is for your own data, and '{what}' is a suite", fix="leave it out"
            )
        values = {
            "suite": what, "split": split, "data": None if data is None else str(data),
            "references": dict(references), "offline": offline,
        }  # fmt: skip
        request = DataRequest.parse(values)
        if request.domain == "text" and references:
            raise UsageError(
                "--reference is for DNA tasks, and these are text tasks", fix="leave it out"
            )
        return request
    if data is not None or references:
        raise UsageError("data and reference are for suites", fix="leave them out")
    path, chosen = Path(what), choose_split(split, own["test_share"])
    refuse_single_table(path, own["test"], own["valid"], own["test_share"])
    for file in (path, own["test"], own["valid"]):
        check_input(file)
    from genodiff.tasks.data_request import DataRequest
    from genodiff.tasks.own_data import SUITE

    table = {key: str(value) if isinstance(value, Path) else value for key, value in own.items()}
    table |= {"train": str(what), "name": own["name"] or printable(path.name.split(".")[0])}
    return DataRequest.parse(
        {
            "suite": SUITE,
            "split": "own" if chosen == "official" else chosen,
            "table": table,
            "offline": offline,
        }
    )


def _name_of(request: DataRequest) -> str:
    return request.suite if request.table is None else request.table.name


def _check(request: DataRequest, task: str, words: list[str], over: dict[str, Any]) -> list[str]:
    """The tasks that are meant. Raises `UsageError` for all that needs no network to be judged."""
    from genodiff.backbones.settings import PRESETS
    from genodiff.errors import did_you_mean
    from genodiff.finetuning.model_words import ADAPTED, SCRATCH, list_baselines, split_words
    from genodiff.finetuning.protocol import FitSettings
    from genodiff.tasks.class_folders import refuse_archive

    if request.data is not None:
        refuse_archive(request.data)
    tasks = request.names(task)
    FitSettings.parse(over)
    if over.get("adapter") is not None:
        from genodiff.finetuning.adapters.adapter import parse_adapter  # it loads torch

        parse_adapter(over["adapter"])
    for _, given in split_words(words, list_baselines(request.domain)):
        word = given.removeprefix(ADAPTED)
        preset = word.removeprefix(f"{SCRATCH}:")
        if preset != word and preset not in PRESETS:
            raise UsageError(f"unknown preset '{preset}'; {did_you_mean(preset, PRESETS)}")
    return tasks


def _check_out(out: Path, force: bool, *, plan: bool) -> None:
    """Raises `UsageError` where the sweep would overwrite what genodiff did not write."""
    ours = isinstance(read_json_object(out / "sessions.json").get("sessions"), list)
    check_folder(out, _FILES, own=ours, force=force)
    if force and not ours and not plan:
        for name in _FILES:
            set_aside(out / name)
    for name in ("RESULTS.md", "report.html"):
        check_target(out / name, force=force)


def report_sweep(
    out: str | Path, *, margin: float | None = None, force: bool = False
) -> list[Path]:
    """Write RESULTS.md and report.html of a sweep again; returns their paths.

    `margin` is as in `finetune`. Raises `DataError` for a folder that is no sweep's, `UsageError`.
    """
    check_margin(margin)
    out = find_model_folder(out)
    if not (out / "results.jsonl").exists():
        raise DataError("holds no results.jsonl", file=out, fix="give the folder of a sweep")
    for name in ("RESULTS.md", "report.html"):
        check_target(out / name, force=force)
    from genodiff.reports.benchmark import write_benchmark

    return write_benchmark(out, margin).files


def summarise_rows(
    rows: list[dict[str, Any]],
    comparisons: Sequence[dict[str, Any]] = (),
    ensembles: Sequence[dict[str, Any]] = (),
) -> list[str]:
    """The table of a sweep's rows, with ensembles and comparisons, for a person to read."""
    from genodiff.reports.sweep_results import format_summary

    return format_summary(rows, comparisons, ensembles)


def describe_plan(found: dict[str, Any]) -> list[str]:
    """The plan that `finetune` returned, for a person to read."""
    from genodiff.finetuning.estimate import format_estimate

    return format_estimate(found)
