"""Flags and run of a fine-tuning sweep, for `genodiff finetune table` and every suite."""

import json as json_module
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from genodiff.api.finetune import (
    Level,
    Method,
    ReverseComplement,
    Split,
    describe_plan,
    finetune,
    summarise_rows,
)
from genodiff.cli.common import (
    OUTPUT,
    Common,
    Force,
    Margin,
    convert_whole_number,
    parse_references,
)
from genodiff.errors import UsageError

_log = logging.getLogger("genodiff")


@Parameter(name="*")
@dataclass(frozen=True)
class FitFlags:
    """Settings of a fit. The protocol gives the value of those left out."""

    rc: Annotated[
        ReverseComplement | None,
        Parameter(
            help="Reverse complement. auto: none for oriented tasks, conjoin for networks of both "
            "strands (PS), else average."
        ),
    ] = None
    epochs: Annotated[
        int | None, Parameter(converter=convert_whole_number, help="Passes over the train part.")
    ] = None
    max_steps: Annotated[
        int | None,
        Parameter(
            converter=convert_whole_number, help="Maximum number of steps, in place of epochs."
        ),
    ] = None
    batch_size: Annotated[
        int | None, Parameter(converter=convert_whole_number, help="Examples per step.")
    ] = None
    lr: Annotated[
        float | None,
        Parameter(name=["--lr", "--learning-rate"], help="Highest learning rate."),
    ] = None
    weight_decay: Annotated[float | None, Parameter(help="AdamW's weight decay.")] = None
    head: Annotated[
        str | None,
        Parameter(
            help="How the features of positions are pooled: mean, parts, attention, conv, or auto, "
            "which validation chooses once for all seeds [auto]."
        ),
    ] = None
    parts: Annotated[
        int | None,
        Parameter(help="Head parts: the number of stretches whose means are read [7]."),
    ] = None
    shift: Annotated[
        int | None,
        Parameter(
            converter=convert_whole_number,
            help="Training leaves out up to this many bases at each end, drawn anew each epoch.",
        ),
    ] = None
    dropout: Annotated[
        float | None, Parameter(help="Share of pooled features dropped in training.")
    ] = None
    mask_share: Annotated[
        float | None,
        Parameter(help="Training hides this share of the bases, drawn anew each epoch."),
    ] = None
    patience: Annotated[
        int | None,
        Parameter(
            converter=convert_whole_number,
            help="Stop after this many epochs without a better validation.",
        ),
    ] = None
    ema: Annotated[
        float | None,
        Parameter(
            help="Decay of an average of the weights over steps, such as 0.998; validation judges "
            "it, and it is kept."
        ),
    ] = None
    adapter: Annotated[
        str | None,
        Parameter(
            help="Train few weights of a trained network in the place of all: lora, dora, or with "
            "options, lora:r=8,alpha=16,on=in_proj+out_proj."
        ),
    ] = None
    adapt: Annotated[
        int | None,
        Parameter(
            converter=convert_whole_number,
            help="Models adapted:RUN: steps of masked diffusion on the task's train sequences, "
            "without labels, before each fit [500].",
        ),
    ] = None
    precision: Annotated[
        Literal["fp32", "bf16"] | None, Parameter(help="Number format; bf16 uses autocast.")
    ] = None
    max_length: Annotated[
        int | None,
        Parameter(
            converter=convert_whole_number,
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
            help="Repeatable: RUN or NAME=RUN, scratch, scratch:PRESET, adapted:RUN, a baseline's "
            "name, or baselines [baselines, scratch]."
        ),
    ] = None
    method: Annotated[
        list[Method] | None,
        Parameter(
            help="What is trained: all weights (full), the head alone (frozen), or a regression on "
            "frozen features (probe); repeatable [full]."
        ),
    ] = None
    max_train: Annotated[
        int | None,
        Parameter(
            converter=convert_whole_number,
            help="Train on at most this many examples, drawn once and the same for all models.",
        ),
    ] = None
    seeds: Annotated[
        int,
        Parameter(
            converter=convert_whole_number,
            help="Run seeds 1 to N; each has its own 90/10 split and order.",
        ),
    ] = 5
    jobs: Annotated[
        int,
        Parameter(
            converter=convert_whole_number,
            help="Fits that run in parallel, on the CPU cores or the GPUs.",
        ),
    ] = 1
    out: Annotated[
        Path | None,
        OUTPUT,
        Parameter(
            help="Folder of the sweep (default: runs/finetune-SUITE); an existing one is resumed."
        ),
    ] = None
    protocol: Annotated[
        Literal["paper", "mdlm"],
        Parameter(help="The Caduceus paper's settings, or MDLM's 16,000 steps."),
    ] = "paper"
    margin: Margin = None
    force: Force = False
    grid: Annotated[
        bool,
        Parameter(negative="", help="Try the paper's grid; choose by validation over all seeds."),
    ] = False
    search: Annotated[
        int,
        Parameter(
            converter=convert_whole_number,
            help="Let optuna try this many settings on the first seed's validation part.",
        ),
    ] = 0
    exclude_overlap: Annotated[
        list[Level] | None,
        Parameter(
            negative="",
            consume_multiple=True,
            help="Leave out, for all models alike, the test sequences that pretraining saw: some, "
            "half [half, where no word follows] or all of their 24-mers.",
        ),
    ] = None
    budget: Annotated[
        float | None,
        Parameter(
            help="Minutes for choosing the settings of each model on each task by validation: "
            "head, learning rate, epochs, weight decay, dropout, strands and shifts."
        ),
    ] = None
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


Similarity = Annotated[
    float | None,
    Parameter(
        help="With --split homology: sequences are alike from this share of 24-mers on [0.5]."
    ),
]


def read_level(words: list[Level] | None) -> Level | None:
    """The level of --exclude-overlap: half where no word follows. Raises `UsageError`."""
    if words is not None and len(words) > 1:
        raise UsageError("--exclude-overlap takes one word", fix="give some, half or all")
    return None if words is None else words[0] if words else "half"


def make_suite_verb(suite: str) -> Callable[..., None]:
    """Make the function behind `genodiff finetune SUITE`."""

    def verb(
        *,
        task: Annotated[
            str, Parameter(help="Name of a task, several with commas, or all.")
        ] = "all",
        split: Annotated[
            Split,
            Parameter(
                help="Which split is used: as published, without equal and overlapping sequences "
                "(dedup), or with alike sequences (homology) or chromosomes held apart; local and "
                "partial are not comparable with published numbers."
            ),
        ] = "official",
        similarity: Similarity = None,
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
        given = {
            "split": split,
            "similarity": similarity,
            "data": data,
            "reference": parse_references(reference),
        }
        run_sweep(suite, {"task": task, **given}, sweep, fit, common)

    return verb


def run_sweep(
    what: str | Path, data: dict[str, Any], flags: SweepFlags, fit: FitFlags, common: Common
) -> None:
    """Run the sweep, print its rows and write its report; with `--plan`, print what it would cost.

    `data` are the options of `genodiff.finetune` that say which data are meant.
    """
    common.prepare()
    found = finetune(
        what,
        **data,
        **fit.given(),
        model=flags.model or ["baselines", "scratch"],
        method=flags.method or ["full"],
        max_train=flags.max_train,
        seeds=flags.seeds,
        jobs=flags.jobs,
        out=flags.out,
        protocol=flags.protocol,
        grid=flags.grid,
        search=flags.search,
        exclude_overlap=read_level(flags.exclude_overlap),
        budget=flags.budget,
        keep_weights=flags.keep_weights,
        margin=flags.margin,
        device=common.device,
        offline=common.offline,
        plan=flags.plan,
        force=flags.force,
    )
    if flags.plan:
        lines = [json_module.dumps(found, indent=2)] if flags.json else describe_plan(found)
    elif flags.json:
        lines = [json_module.dumps(row) for row in [*found["rows"], *found["ensembles"]]]
    else:
        lines = summarise_rows(found["rows"], found["comparisons"], found["ensembles"])
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
    for path in found.get("files", ()):
        _log.info("%s", path)
