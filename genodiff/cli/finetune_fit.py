"""`genodiff finetune genomic-benchmarks|gue|nt|glue|table|report`: fine-tune, measure on the test
part, and print the table.
"""

import json as json_module
import logging
import shlex
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from genodiff.cli.common import Common, whole
from genodiff.errors import DataError, UsageError

log = logging.getLogger("genodiff")

_SUITES = {
    "genomic-benchmarks": "The nine Genomic Benchmarks, by the protocol of the Caduceus paper.",
    "gue": "GUE, the benchmark of DNABERT-2; its dev part validates.",
    "nt": "The 18 tasks of the Nucleotide Transformer.",
    "nt-revised": "The 18 tasks of the Nucleotide Transformer, revised set.",
    "idna-ms": "iDNA-MS: DNA methylation in windows of 41 bases, 16 tasks.",
    "ienhancer": "iEnhancer-2L: human enhancers of 200 bases.",
    "glue": "GLUE for text runs: SST-2, CoLA, RTE, WNLI; the official dev part tests, "
    "validation is carved from train.",
}


@Parameter(name="*")
@dataclass(frozen=True)
class FitFlags:
    """Settings of a fit; what is left out is the protocol's."""

    rc: Annotated[
        Literal["auto", "conjoin", "average", "augment", "none"] | None,
        Parameter(
            help="Reverse complement: auto is conjoin for networks of both strands (PS), else "
            "average; none for oriented tasks."
        ),
    ] = None
    epochs: Annotated[
        int | None, Parameter(converter=whole, help="Passes over the train part.")
    ] = None
    max_steps: Annotated[
        int | None, Parameter(converter=whole, help="Steps at most, in place of epochs.")
    ] = None
    batch_size: Annotated[int | None, Parameter(converter=whole, help="Examples per step.")] = None
    lr: Annotated[float | None, Parameter(help="Highest learning rate.")] = None
    weight_decay: Annotated[float | None, Parameter(help="AdamW's weight decay.")] = None
    parts: Annotated[
        int | None,
        Parameter(
            help="Stretches of a sequence that the head reads the means of (default: the "
            "task's, mostly 1)."
        ),
    ] = None
    dropout: Annotated[
        float | None, Parameter(help="Share of pooled features dropped in training.")
    ] = None
    patience: Annotated[
        int | None,
        Parameter(converter=whole, help="Stop after so many epochs without a better validation."),
    ] = None
    precision: Annotated[Literal["fp32", "bf16"] | None, Parameter(help="bf16: autocast.")] = None
    max_length: Annotated[
        int | None,
        Parameter(
            converter=whole,
            help="Bases, or tokens of a text, that are read, if fewer than the task's.",
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """What was given."""
        return {
            f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None
        }


@Parameter(name="*")
@dataclass(frozen=True)
class SweepFlags:
    """Who takes part, how often, and where it goes."""

    model: Annotated[
        list[str] | None,
        Parameter(
            help="Repeatable: RUN or NAME=RUN, scratch, scratch:PRESET, a baseline's name, or "
            "baselines [baselines, scratch]."
        ),
    ] = None
    method: Annotated[
        list[Literal["full", "probe"]] | None,
        Parameter(help="All weights, or a frozen probe; repeatable [full]."),
    ] = None
    max_train: Annotated[
        int | None,
        Parameter(
            converter=whole,
            help="Train examples at most, drawn once; what is left out stays out for all models.",
        ),
    ] = None
    seeds: Annotated[
        int,
        Parameter(converter=whole, help="Seeds 1 to N: each has its own 90/10 split and order."),
    ] = 5
    jobs: Annotated[
        int, Parameter(converter=whole, help="Units side by side, on the cores or over the GPUs.")
    ] = 1
    out: Annotated[
        Path | None,
        Parameter(help="Folder of the sweep (default: runs/finetune-SUITE); the same one goes on."),
    ] = None
    protocol: Annotated[
        Literal["paper", "mdlm"],
        Parameter(help="The Caduceus paper's settings, or MDLM's 16,000 steps."),
    ] = "paper"
    grid: Annotated[
        bool,
        Parameter(
            negative="", help="Try the paper's grid, and choose by validation over all seeds."
        ),
    ] = False
    search: Annotated[
        int,
        Parameter(
            converter=whole,
            help="Let optuna try so many settings on the first seed's validation part.",
        ),
    ] = 0
    plan: Annotated[bool, Parameter(negative="", help="Say what would be done, and stop.")] = False
    json: Annotated[
        bool,
        Parameter(negative="", help="One JSON object per row on stdout in place of the table."),
    ] = False


def register(app: App) -> None:
    """Add the verbs that fit to `genodiff finetune`."""
    for suite, text in _SUITES.items():
        app.command(_verb(suite, text), name=suite, help=text)
    app.command(table)
    app.command(report)


def _verb(suite: str, text: str) -> Any:
    def verb(
        *,
        task: Annotated[str, Parameter(help="A task's name, several with commas, or all.")] = "all",
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
            Parameter(help="NAME=FASTA of a genome, repeatable: --reference hg38=hg38.fa."),
        ] = None,
        sweep: SweepFlags = SweepFlags(),
        fit: FitFlags = FitFlags(),
        common: Common = Common(),
    ) -> None:
        """See the app."""
        from genodiff.tasks.request import Request

        request = Request(
            suite=suite,
            split=split,
            data=None if data is None else str(data),
            references=_references(reference),
            offline=common.offline,
        )
        _run(request, task, sweep, fit, common)

    verb.__doc__ = text
    return verb


def table(
    *,
    train: Annotated[
        Path,
        Parameter(
            help="CSV, TSV, parquet or FASTA with labels, or a folder or zip of class folders."
        ),
    ],
    test: Annotated[
        Path | None, Parameter(help="The test part; not needed where --train has both.")
    ] = None,
    valid: Annotated[
        Path | None, Parameter(help="A validation part for every seed, in place of 10 % of train.")
    ] = None,
    name: Annotated[str | None, Parameter(help="What the task is called.")] = None,
    sequence: Annotated[str | None, Parameter(help="Column of sequences.")] = None,
    label: Annotated[
        list[str] | None, Parameter(help="Column of labels; several make a multi-label task.")
    ] = None,
    kind: Annotated[
        Literal["binary", "multiclass", "multilabel", "regression"] | None,
        Parameter(help="What the labels are."),
    ] = None,
    metric: Annotated[
        str | None, Parameter(help="What chooses the epoch and heads the table.")
    ] = None,
    split: Annotated[
        Literal["official", "chrom-holdout", "dedup"],
        Parameter(help="The parts as given, or without what test shares with train."),
    ] = "official",
    sweep: SweepFlags = SweepFlags(),
    fit: FitFlags = FitFlags(),
    common: Common = Common(),
) -> None:
    """Your own labelled sequences."""
    from genodiff.tasks.own import SUITE
    from genodiff.tasks.request import Request

    called = name or train.name.split(".")[0]
    values = {
        "name": called, "train": str(train), "test": None if test is None else str(test),
        "valid": None if valid is None else str(valid),
        "sequence": sequence, "labels": tuple(label or ()), "kind": kind, "metric": metric,
        "max_length": fit.max_length,
    }  # fmt: skip
    request = Request.parse(
        {
            "suite": SUITE,
            "split": "own" if split == "official" else split,
            "table": values,
            "offline": common.offline,
        }
    )
    _run(request, "all", sweep, fit, common, called)


def report(
    out: Annotated[Path, Parameter(help="Folder of a sweep.")],
    *,
    common: Common = Common(),
) -> None:
    """Write RESULTS.md and report.html of a sweep again."""
    common.apply()
    from genodiff.report.benchmark import write_benchmark

    if not (out / "results.jsonl").exists():
        raise DataError("holds no results.jsonl", file=out, fix="give the folder of a sweep")
    for path in write_benchmark(out):
        log.info("%s", path)


def shown(argv: list[str]) -> str:
    """The command as a person would type it again."""
    return shlex.join(["genodiff", *argv[1:]])


def _references(words: list[str] | None) -> dict[str, str]:
    found = {}
    for word in words or ():
        name, equals, path = word.partition("=")
        if not equals or not name or not path:
            raise UsageError(
                f"--reference {word}: not NAME=FASTA", fix="give --reference hg38=hg38.fa.gz"
            )
        found[name] = path
    return found


def _run(
    request: Any,
    task: str,
    flags: SweepFlags,
    fit: FitFlags,
    common: Common,
    name: str | None = None,
) -> None:
    device = common.apply()
    from genodiff.finetune.baselines import baseline_names
    from genodiff.finetune.contender import contenders
    from genodiff.finetune.protocol import FitSettings
    from genodiff.finetune.sweep import Plan, sweep

    if request.domain == "text" and request.references:
        raise UsageError(
            "--reference names genomes, and these tasks are of text", fix="leave it out"
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
            "--search takes a number of trials, and excludes --grid", fix="give one of them"
        )
    FitSettings.parse(fit.given())
    known = contenders(
        flags.model or ["baselines", "scratch"], baseline_names(request.domain), request.domain
    )
    methods = tuple(flags.method or ["full"])
    over = fit.given()
    plan = Plan(
        request,
        request.names(task),
        known,
        methods,
        flags.seeds,
        flags.protocol,
        over,
        flags.search,
        flags.grid,
    )
    if flags.plan:
        from genodiff.finetune.estimate import estimate, lines

        found = estimate(plan, device, flags.jobs)
        print(json_module.dumps(found, indent=2) if flags.json else "\n".join(lines(found)))
        return
    out = flags.out or Path("runs") / f"finetune-{name or request.suite}"
    rows = sweep(plan, out, device=device, jobs=flags.jobs, command=shown(sys.argv))
    from genodiff.report.benchmark import summary, write_benchmark

    if flags.json:
        for row in rows:
            print(json_module.dumps(row))
    else:
        print("\n".join(summary(rows)))
    sys.stdout.flush()
    for path in write_benchmark(out):
        log.info("%s", path)
