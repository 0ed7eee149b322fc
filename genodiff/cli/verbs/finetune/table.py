"""Fine-tune on your own labelled sequences."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from genodiff.cli.common import Common
from genodiff.cli.sweep import FitFlags, SweepFlags, run_sweep
from genodiff.tasks.data_request import DataRequest
from genodiff.tasks.own_data import SUITE


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
    """Fit every model to the parts that are given."""
    called = name or train.name.split(".")[0]
    values = {
        "name": called, "train": str(train), "test": None if test is None else str(test),
        "valid": None if valid is None else str(valid),
        "sequence": sequence, "labels": tuple(label or ()), "kind": kind, "metric": metric,
        "max_length": fit.max_length,
    }  # fmt: skip
    request = DataRequest.parse(
        {
            "suite": SUITE,
            "split": "own" if split == "official" else split,
            "table": values,
            "offline": common.offline,
        }
    )
    run_sweep(request, "all", sweep, fit, common, called)
