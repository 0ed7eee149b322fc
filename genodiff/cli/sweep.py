"""Flags and run of a fine-tuning sweep, for `genodiff finetune table` and every suite."""

import json as json_module
import logging
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from genodiff.cli.common import Common, Force, parse_references, whole
from genodiff.errors import UsageError
from genodiff.io.target import check_folder, check_target, read_json_object, set_aside

_log = logging.getLogger("genodiff")


@Parameter(name="*")
@dataclass(frozen=True)
class FitFlags:
    """Settings of a fit. The protocol gives the value of those left out."""

    rc: Annotated[
        Literal["auto", "conjoin", "average", "augment", "none"] | None,
        Parameter(
            help="Reverse complement. auto: none for oriented tasks, conjoin for networks of both "
            "strands (PS), else average."
        ),
    ] = None
    epochs: Annotated[
        int | None, Parameter(converter=whole, help="Passes over the train part.")
    ] = None
    max_steps: Annotated[
        int | None, Parameter(converter=whole, help="Maximum number of steps, in place of epochs.")
    ] = None
    batch_size: Annotated[int | None, Parameter(converter=whole, help="Examples per step.")] = None
    lr: Annotated[float | None, Parameter(help="Highest learning rate.")] = None
    weight_decay: Annotated[float | None, Parameter(help="AdamW's weight decay.")] = None
    parts: Annotated[
        int | None,
        Parameter(
            help="Split a sequence into this many parts; the head reads the mean of each "
            "(default: the task's, mostly 1)."
        ),
    ] = None
    dropout: Annotated[
        float | None, Parameter(help="Share of pooled features dropped in training.")
    ] = None
    patience: Annotated[
        int | None,
        Parameter(converter=whole, help="Stop after this many epochs without a better validation."),
    ] = None
    precision: Annotated[
        Literal["fp32", "bf16"] | None, Parameter(help="Number format; bf16 uses autocast.")
    ] = None
    max_length: Annotated[
        int | None,
        Parameter(
            converter=whole,
            help="Read at most this many bases, or tokens of text (default: the task's).",
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """The settings that were given, by name."""
        return {
            f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None
        }


@Parameter(name="*")
@dataclass(frozen=True)
class SweepFlags:
    """Models, methods, seeds and output folder of a sweep."""

    model: Annotated[
        list[str] | None,
        Parameter(
            help="Repeatable: RUN or NAME=RUN, scratch, scratch:PRESET, a baseline's name, or "
            "baselines [baselines, scratch]."
        ),
    ] = None
    method: Annotated[
        list[Literal["full", "probe"]] | None,
        Parameter(help="Train all weights, or a probe on frozen weights; repeatable [full]."),
    ] = None
    max_train: Annotated[
        int | None,
        Parameter(
            converter=whole,
            help="Train on at most this many examples, drawn once and the same for all models.",
        ),
    ] = None
    seeds: Annotated[
        int,
        Parameter(
            converter=whole, help="Run seeds 1 to N; each has its own 90/10 split and order."
        ),
    ] = 5
    jobs: Annotated[
        int,
        Parameter(converter=whole, help="Fits that run in parallel, on the CPU cores or the GPUs."),
    ] = 1
    out: Annotated[
        Path | None,
        Parameter(
            help="Folder of the sweep (default: runs/finetune-SUITE); an existing one is resumed."
        ),
    ] = None
    protocol: Annotated[
        Literal["paper", "mdlm"],
        Parameter(help="The Caduceus paper's settings, or MDLM's 16,000 steps."),
    ] = "paper"
    force: Force = False
    grid: Annotated[
        bool,
        Parameter(negative="", help="Try the paper's grid; choose by validation over all seeds."),
    ] = False
    search: Annotated[
        int,
        Parameter(
            converter=whole,
            help="Let optuna try this many settings on the first seed's validation part.",
        ),
    ] = 0
    keep_weights: Annotated[
        bool | None,
        Parameter(
            name="--keep-weights",
            negative="--no-keep",
            help="Keep each fit for `genodiff predict` [every new one]; when given, one that is "
            "done without is fitted again. --no-keep keeps none.",
        ),
    ] = None
    plan: Annotated[bool, Parameter(negative="", help="Say what would be done, and stop.")] = False
    json: Annotated[
        bool,
        Parameter(negative="", help="One JSON object per row on stdout in place of the table."),
    ] = False


def make_suite_verb(suite: str) -> Callable[..., None]:
    """Make the function behind `genodiff finetune SUITE`."""

    def verb(
        *,
        task: Annotated[
            str, Parameter(help="Name of a task, several with commas, or all.")
        ] = "all",
        split: Annotated[
            Literal["official", "chrom-holdout", "dedup", "local", "partial"],
            Parameter(
                help="Which split is used; local and partial are not comparable with "
                "published numbers."
            ),
        ] = "official",
        data: Annotated[Path | None, Parameter(help="Folder with the suite's data.")] = None,
        reference: Annotated[
            list[str] | None,
            Parameter(help="NAME=FASTA of a genome; repeatable: --reference hg38=hg38.fa."),
        ] = None,
        sweep: SweepFlags = SweepFlags(),
        fit: FitFlags = FitFlags(),
        common: Common = Common(),
    ) -> None:
        """Fine-tune on tasks of a suite."""
        from genodiff.tasks.data_request import DataRequest

        request = DataRequest(
            suite=suite,
            split=split,
            data=None if data is None else str(data),
            references=parse_references(reference),
            offline=common.offline,
        )
        run_sweep(request, task, sweep, fit, common)

    return verb


def run_sweep(
    request: Any,
    task: str,
    flags: SweepFlags,
    fit: FitFlags,
    common: Common,
    name: str | None = None,
) -> None:
    """Run the sweep, print its rows and write its report.

    With `--plan`, only print what it would cost. Raises `UsageError` for flags that do not fit.
    """
    out = flags.out or Path("runs") / f"finetune-{name or request.suite}"
    _check_folder(out, flags.force, plan=flags.plan)
    device = common.apply()
    from genodiff.finetuning.baselines import baseline_names
    from genodiff.finetuning.model_spec import parse_models
    from genodiff.finetuning.protocol import FitSettings
    from genodiff.finetuning.sweep import SweepPlan, sweep

    if request.domain == "text" and request.references:
        raise UsageError(
            "--reference is for DNA tasks, and these are text tasks", fix="leave it out"
        )
    if flags.max_train is not None:
        if flags.max_train < 10:
            raise UsageError(f"--max-train {flags.max_train} is below 10", fix="give 10 or more")
        request = request.model_copy(update={"max_train": flags.max_train})
    for flag, value in (("seeds", flags.seeds), ("jobs", flags.jobs)):
        if value < 1:
            raise UsageError(f"--{flag} {value} is below 1", fix="give 1 or more")
    if flags.search < 0 or (flags.search and flags.grid):
        raise UsageError(
            "--search takes a number of trials, and cannot be used with --grid",
            fix="give one of them",
        )
    FitSettings.parse(fit.given())
    known = parse_models(
        flags.model or ["baselines", "scratch"], baseline_names(request.domain), request.domain
    )
    methods = tuple(flags.method or ["full"])
    over = fit.given()
    plan = SweepPlan(
        request,
        request.names(task),
        known,
        methods,
        flags.seeds,
        flags.protocol,
        over,
        flags.search,
        flags.grid,
        "new" if flags.keep_weights is None else "all" if flags.keep_weights else "none",
    )
    if flags.plan:
        from genodiff.finetuning.estimate import estimate, plan_lines

        found = estimate(plan, device, flags.jobs)
        print(json_module.dumps(found, indent=2) if flags.json else "\n".join(plan_lines(found)))
        return
    rows = sweep(
        plan, out, device=device, jobs=flags.jobs, command=shlex.join(["genodiff", *sys.argv[1:]])
    )
    from genodiff.reports.benchmark import write_benchmark
    from genodiff.reports.sweep_results import summary_lines

    if flags.json:
        for row in rows:
            print(json_module.dumps(row))
    else:
        print("\n".join(summary_lines(rows)))
    sys.stdout.flush()
    for path in write_benchmark(out):
        _log.info("%s", path)


def _check_folder(out: Path, force: bool, *, plan: bool) -> None:
    """Raises `UsageError` where the sweep would overwrite what genodiff did not write."""
    ours = isinstance(read_json_object(out / "sessions.json").get("sessions"), list)
    names = ("results.jsonl", "tasks.json", "sessions.json", "units")
    check_folder(out, names, own=ours, force=force)
    if force and not ours and not plan:
        for name in names:
            set_aside(out / name)
    for name in ("RESULTS.md", "report.html"):
        check_target(out / name, force=force)
