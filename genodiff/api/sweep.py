"""What is read of a sweep of fine-tuning: its pages, its table and its plan."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from genodiff.errors import DataError
from genodiff.io.target import check_target
from genodiff.runs.run_paths import locate
from genodiff.statistics.margin import check_margin
from genodiff.studies.sweep_request import PAGES
from genodiff.studies.sweep_request import FitFlags as FitFlags
from genodiff.studies.sweep_request import OwnData as OwnData
from genodiff.studies.sweep_request import SuiteData as SuiteData
from genodiff.studies.sweep_request import SweepOptions as SweepOptions
from genodiff.studies.sweep_request import TaskKind as TaskKind
from genodiff.tasks.split_names import Split as Split


def report_sweep(
    out: str | Path, *, margin: float | None = None, force: bool = False
) -> list[Path]:
    """Write RESULTS.md and report.html of a sweep again; returns their paths.

    `margin` is as in `finetune`. Raises `DataError` for a folder that is no sweep's, `UsageError`.
    """
    check_margin(margin)
    out = locate(out, there=False)
    if not (out / "results.jsonl").exists():
        raise DataError("holds no results.jsonl", file=out, fix="give the folder of a sweep")
    for name in PAGES:
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
