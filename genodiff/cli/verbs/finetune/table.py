"""Fine-tune on your own labelled sequences."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from genodiff.api.finetune import OwnSplit, TaskKind
from genodiff.cli.common import Common
from genodiff.cli.labelled_data import DropMissing, TestShare
from genodiff.cli.sweep import FitFlags, Similarity, SweepFlags, run_sweep


def table(
    *,
    train: Annotated[
        Path,
        Parameter(
            help="CSV, TSV, parquet or FASTA with labels, or a folder or zip of class folders."
        ),
    ],
    test: Annotated[
        Path | None,
        Parameter(help="The test part; not needed where --train has both, or with --test-share."),
    ] = None,
    test_share: TestShare = None,
    valid: Annotated[
        Path | None, Parameter(help="A validation part for every seed, in place of 10 % of train.")
    ] = None,
    name: Annotated[str | None, Parameter(help="What the task is called.")] = None,
    sequence: Annotated[str | None, Parameter(help="Column of sequences.")] = None,
    label: Annotated[
        list[str] | None, Parameter(help="Column of labels; several make a multi-label task.")
    ] = None,
    kind: Annotated[
        TaskKind | None,
        Parameter(help="What the labels are."),
    ] = None,
    metric: Annotated[
        str | None, Parameter(help="What chooses the epoch and heads the table.")
    ] = None,
    split: Annotated[
        OwnSplit,
        Parameter(
            help="The parts as given, without equal and overlapping sequences (dedup), or split "
            "again with alike sequences (homology) or chromosomes held apart."
        ),
    ] = "official",
    similarity: Similarity = None,
    drop_missing: DropMissing = False,
    sweep: SweepFlags = SweepFlags(),
    fit: FitFlags = FitFlags(),
    common: Common = Common(),
) -> None:
    """Fit every model to the parts that are given."""
    data = {
        "test": test, "valid": valid, "name": name, "sequence": sequence, "label": label or (),
        "kind": kind, "metric": metric, "split": split, "similarity": similarity,
        "test_share": test_share, "drop_missing": drop_missing,
    }  # fmt: skip
    run_sweep(train, data, sweep, fit, common)
