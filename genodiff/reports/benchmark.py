"""A sweep's RESULTS.md and report.html; nothing is run again."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from genodiff.io import atomic
from genodiff.io.file_kinds import hide_folders
from genodiff.io.progress import say_slow
from genodiff.io.target import seal_page
from genodiff.reports import benchmark_figures as figures
from genodiff.reports.benchmark_tables import (
    HOW,
    audit_text,
    choice_notes,
    clip_interval,
    cut_notes,
    describe_comparisons,
    format_markdown,
    list_comparisons,
    list_ensembles,
    make_comparison_rows,
    make_table_rows,
)
from genodiff.reports.sweep_results import ModelResult, TaskResult, read_sessions, read_sweep
from genodiff.reports.template import render_template
from genodiff.tasks import metrics

RESULTS, PAGE = "RESULTS.md", "report.html"
_DRAWN = 5  # models in a figure of one task


class WrittenBenchmark(NamedTuple):
    """What `write_benchmark` wrote; its comparisons and ensembles of seeds are plain values."""

    files: list[Path]
    comparisons: list[dict[str, Any]]
    ensembles: list[dict[str, Any]]


def write_benchmark(out: Path, margin: float | None = None) -> WrittenBenchmark:
    """Write OUT/RESULTS.md and OUT/report.html.

    Models whose difference is within `margin` are called equivalent.
    """
    with say_slow(f"drawing {out / PAGE}"):
        panels, sessions = read_sweep(out, margin), read_sessions(out)
        text = hide_folders("\n".join(format_markdown(panels, sessions)) + "\n")
        page = render_page(panels, sessions, out.resolve().name)
    atomic.write_text(out / RESULTS, seal_page(text))
    atomic.write_text(out / PAGE, seal_page(page))
    files = [out / RESULTS, out / PAGE]
    return WrittenBenchmark(files, list_comparisons(panels), list_ensembles(panels))


def render_page(panels: Sequence[TaskResult], sessions: Sequence[dict[str, Any]], name: str) -> str:
    """report.html as text."""
    shown = [_shown(p, i) for i, p in enumerate(panels)]
    context = {"name": name, "panels": shown, "sessions": list(sessions), "how": HOW}
    return render_template("benchmark.html.jinja", context)


def _shown(panel: TaskResult, number: int) -> dict[str, Any]:
    """What the template shows of a task."""
    best = sorted(panel.lines, key=lambda line: -line.mean)
    networks = [line for line in best if line.role != "baseline"]
    baselines = [line for line in best if line.role == "baseline"]
    drawn = [line.name for line in (networks + baselines)[:_DRAWN]]
    return {
        "id": f"task-{number}", "title": panel.task, "suite": panel.suite, "split": panel.split,
        "metric": panel.about["metric"],
        "seen": panel.list_seen_tests(),
        "rows": make_table_rows(panel), "comparisons": make_comparison_rows(panel),
        "compared": describe_comparisons(panel),
        "audit": audit_text(panel), "cuts": cut_notes(panel),
        "choices": choice_notes(panel),
        "figures": _figures(panel, networks, drawn),
        "confusions": _confusions(panel, [n for n in drawn if n in panel.predictions][:3]),
        "classes": panel.about["classes"], "official": panel.split == "official",
    }  # fmt: skip


def _figures(panel: TaskResult, networks: list[ModelResult], drawn: list[str]) -> dict[str, str]:
    metric, kind = panel.about["metric"], panel.about["kind"]
    found = dict.fromkeys(("dots", "learning", "calibration", "length"), "")
    dots = [
        figures.Dot(
            x.name, x.mean, x.ci95 and clip_interval(x.ci95, metric),
            [row["value"] for row in x.rows if row["value"] is not None], x.role,
        )
        for x in panel.lines
        if np.isfinite(x.mean)
    ]  # fmt: skip
    if dots:
        dots += [
            figures.Dot(v.name, v.mean, None, [v.mean], "published")
            for v in sorted(panel.published, key=lambda v: v.mean)
            if not v.metric
        ]
        found["dots"] = figures.draw_dots(metric, dots)
    curves = {
        x.name: [u["history"] for u in x.units if u.get("history")] for x in networks[:_DRAWN]
    }
    curves = {k: v for k, v in curves.items() if v}
    if curves:
        found["learning"] = figures.draw_learning(metric, curves)
    seen = {k: panel.predictions[k] for k in drawn if k in panel.predictions}
    if seen and kind in ("binary", "multiclass"):
        found["calibration"] = figures.draw_reliability(
            {k: metrics.measure_calibration(truth, p) for k, (p, truth, _) in seen.items()}
        )
    if seen:

        def group(p: Any, truth: Any, lengths: Any) -> list[dict[str, Any]]:
            return metrics.measure_by_length(
                lengths, lambda index: metrics.measure(metric, kind, truth[index], p[index])
            )

        groups = {k: group(*answer) for k, answer in seen.items()}
        if max(len(g) for g in groups.values()) > 1:
            found["length"] = figures.draw_by_length(metric, groups, panel.domain.size_units)
    return found


def _confusions(panel: TaskResult, names: Sequence[str]) -> list[dict[str, Any]]:
    """Tables of truth (rows) against decisions (columns), with the shares of each row."""
    if panel.about["kind"] not in ("binary", "multiclass"):
        return []
    found = []
    for name in names:
        predicted, truth, _ = panel.predictions[name]
        counts = metrics.count_confusions(truth, predicted.argmax(1), predicted.shape[1])
        shares = counts / np.maximum(1, counts.sum(1, keepdims=True))
        cells = [
            [(f"{n:,}", f"{100 * s:.0f}") for n, s in zip(row, part, strict=True)]
            for row, part in zip(counts, shares, strict=True)
        ]
        found.append({"name": name, "rows": list(zip(panel.about["classes"], cells, strict=True))})
    return found
