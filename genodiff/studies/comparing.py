"""Runs side by side: the work of `compare`."""

from typing import Any

from genodiff.io.progress import ProgressDisplay
from genodiff.jobs.machine import choose_device
from genodiff.runs.run_paths import check_run
from genodiff.studies import compare as trials
from genodiff.studies.compare_page import write_page
from genodiff.studies.compare_request import CompareRequest
from genodiff.studies.run_comparison import compare_runs, open_comparison, plan_comparison
from genodiff.training.estimate import estimate


def compare(asked: CompareRequest) -> dict[str, Any]:
    """What `genodiff.compare` returns."""
    device = choose_device(asked.device)
    found = _compare_rows(asked, device) if asked.is_specification else _compare_runs(asked, device)
    return {**found, "folder": str(asked.folder)}


def _compare_runs(asked: CompareRequest, device: str) -> dict[str, Any]:
    runs = dict(zip(asked.names, map(check_run, asked.paths), strict=True))
    comparison = open_comparison(runs, asked.options, device=device)
    if asked.plan:
        return plan_comparison(comparison)
    with ProgressDisplay() as display:
        return compare_runs(
            comparison, asked.folder, against=asked.against, margin=asked.margin,
            progress=display.show_batches,
        )  # fmt: skip


def _compare_rows(asked: CompareRequest, device: str) -> dict[str, Any]:
    file, out, offline = asked.paths[0], asked.folder, asked.offline
    spec = trials.read_spec(file, asked.over)
    if asked.plan:
        found = [
            {"name": row.name, "seed": seed, **estimate(config, out, device)}
            for row, seed, config in trials.plan(spec, file)
        ]
        return {
            "runs": found, "seconds": sum(one["seconds"] or 0 for one in found), "device": device,
        }  # fmt: skip
    with ProgressDisplay() as display:
        entries = trials.run_comparison(
            spec, file, out, device=device, offline=offline, progress=display.show_batches
        )
    schedules = trials.compare_schedules(spec, entries, device=device, offline=offline)
    return {"title": spec.title, "rows": write_page(spec, entries, schedules, out, asked.margin)}
