"""A sweep's RESULTS.md and report.html; nothing is run again."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from genodiff.io import atomic
from genodiff.io.file_kinds import hide_folders
from genodiff.io.progress import say_slow
from genodiff.io.target import seal_page
from genodiff.reports import benchmark_tables as tables
from genodiff.reports.chart import (
    TALL,
    WIDE,
    Axis,
    Trace,
    draw_both_widths,
    draw_chart,
    make_rows,
    show,
)
from genodiff.reports.shapes import Shape, find_frame, move
from genodiff.reports.sweep_results import ModelResult, TaskResult, read_sessions, read_sweep
from genodiff.reports.template import render_template
from genodiff.tasks import metrics

RESULTS, PAGE = "RESULTS.md", "report.html"
_DRAWN = 5  # models in a figure of one task
_COLOURS = ("model", "source", "markov", "bad", "real", "ink")
_DASHES: tuple[tuple[float, ...], ...] = ((), (6, 3), (6, 2, 1, 2), (1, 2))
_ROLES = {"model": "model", "scratch": "source", "baseline": "markov"}


def write_benchmark(out: Path, margin: float | None = None) -> dict[str, list[Any]]:
    """Write OUT/RESULTS.md and OUT/report.html: `files`, with their `comparisons` and `ensembles`
    of seeds as plain values.

    Models whose difference is within `margin` are called equivalent.
    """
    with say_slow(f"drawing {out / PAGE}"):
        panels, sessions = read_sweep(out, margin), read_sessions(out)
        text = hide_folders("\n".join(tables.format_markdown(panels, sessions)) + "\n")
        page = render_page(panels, sessions, out.resolve().name)
    atomic.write_text(out / RESULTS, seal_page(text))
    atomic.write_text(out / PAGE, seal_page(page))
    return {
        "files": [out / RESULTS, out / PAGE], "comparisons": tables.list_comparisons(panels),
        "ensembles": tables.list_ensembles(panels),
    }  # fmt: skip


def render_page(panels: Sequence[TaskResult], sessions: Sequence[dict[str, Any]], name: str) -> str:
    """report.html as text."""
    shown = [_shown(p, i) for i, p in enumerate(panels)]
    context = {"name": name, "panels": shown, "sessions": list(sessions), "how": tables.HOW}
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
        "rows": tables.make_table_rows(panel), "comparisons": tables.make_comparison_rows(panel),
        "compared": tables.describe_comparisons(panel),
        "audit": tables.audit_text(panel), "cuts": tables.cut_notes(panel),
        "choices": tables.choice_notes(panel),
        "figures": _figures(panel, networks, drawn),
        "confusions": _confusions(panel, [n for n in drawn if n in panel.predictions][:3]),
        "classes": panel.about["classes"], "official": panel.split == "official",
    }  # fmt: skip


def _figures(panel: TaskResult, networks: list[ModelResult], drawn: list[str]) -> dict[str, str]:
    metric, kind = panel.about["metric"], panel.about["kind"]
    found = dict.fromkeys(("dots", "learning", "calibration", "length"), "")
    dots = [
        Dot(
            x.name, x.mean, x.ci95 and tables.clip_interval(x.ci95, metric),
            [row["value"] for row in x.rows if row["value"] is not None], x.role,
        )
        for x in panel.lines
        if np.isfinite(x.mean)
    ]  # fmt: skip
    if dots:
        dots += [
            Dot(v.name, v.mean, None, [v.mean], "published")
            for v in sorted(panel.published, key=lambda v: v.mean)
            if not v.metric
        ]
        found["dots"] = draw_dots(metric, dots)
    curves = {
        x.name: [u["history"] for u in x.units if u.get("history")] for x in networks[:_DRAWN]
    }
    curves = {k: v for k, v in curves.items() if v}
    if curves:
        found["learning"] = draw_learning(metric, curves)
    seen = {k: panel.predictions[k] for k in drawn if k in panel.predictions}
    if seen and kind in ("binary", "multiclass"):
        found["calibration"] = draw_reliability(
            {k: metrics.measure_calibration(truth, p) for k, (p, truth, _) in seen.items()}
        )
    if seen:

        def group(p: Any, truth: Any, lengths: Any) -> list[dict[str, Any]]:
            return metrics.measure_by_length(
                lengths, lambda index: metrics.measure(metric, kind, truth[index], p[index])
            )

        groups = {k: group(*answer) for k, answer in seen.items()}
        if max(len(g) for g in groups.values()) > 1:
            found["length"] = draw_by_length(metric, groups, panel.domain.size_units)
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


class Dot(NamedTuple):
    """A model's place on a task: mean, interval, single seeds."""

    name: str
    mean: float
    ci95: tuple[float, float] | None
    seeds: Sequence[float]
    role: str


def draw_dots(metric: str, rows: Sequence[Dot]) -> Markup:
    """One line per model, the last on top: its seeds as ticks, the mean with its interval.

    Published means are open diamonds.
    """
    rows, traces = rows[::-1], list[Trace]()
    for i, row in enumerate(rows):
        colour, ends = _ROLES.get(row.role, "muted"), [] if row.ci95 is None else [row.ci95]
        if row.role == "published":
            traces.append(Trace([row.mean], [i], colour, mark="D", hollow=True))
            continue
        seeds, at = list(row.seeds), [i] * len(row.seeds)
        traces.append(Trace(seeds, at, colour, width=0, mark="|", opacity=0.6))
        traces.append(Trace([row.mean], [i], colour, mark="o", ends=ends, sideways=True))
    names = make_rows(row.name for row in rows)
    title = f"{metric}: " + ", ".join(f"{row.name} {row.mean:.3f}" for row in reversed(rows))
    height = 17 * len(rows)
    return draw_both_widths(title, lambda w: draw_chart(traces, Axis(metric), names, w, height))


def draw_learning(
    metric: str, models: Mapping[str, Sequence[Sequence[Mapping[str, Any]]]]
) -> Markup:
    """Losses (training dashed) and the validation metric by epoch, a line for each seed."""
    losses, metrics = list[Trace](), list[Trace]()
    for i, (model, seeds) in enumerate(models.items()):
        colour = _COLOURS[i % len(_COLOURS)]
        for seed, epochs in enumerate(seeds):
            at, name = [e["epoch"] + 1 for e in epochs], model if seed == 0 else ""
            train, valid, value = (
                [np.nan if e[key] is None else float(e[key]) for e in epochs]
                for key in ("train_loss", "valid_loss", "valid")
            )
            losses.append(Trace(at, train, colour, width=0.9, dash=(4, 2), opacity=0.7))
            losses.append(Trace(at, valid, colour, name, 1.2))
            metrics.append(Trace(at, value, colour, width=1.2, mark="o", radius=1.4))
    x = Axis("epoch", form=lambda v: f"{v:g}" if v == int(v) else "")

    def draw(width: float) -> list[Shape]:
        narrow = width < WIDE
        each = width if narrow else width / 2 - 5
        left = draw_chart(losses, x, Axis("loss (training dashed)"), each)
        right = draw_chart(metrics, x, Axis(f"validation {metric}"), each)
        frame = find_frame(left)
        return left + (move(right, 0, TALL + 45) if narrow else move(right, frame.width + 20, 0))

    return draw_both_widths("Learning curves of " + ", ".join(models), draw)


def _plot_model(i: int, label: str, x: Sequence[float], y: Sequence[float]) -> Trace:
    """Model number `i` as a line of its own colour and dashes."""
    colour, dash = _COLOURS[i % len(_COLOURS)], _DASHES[i % len(_DASHES)]
    return Trace(x, y, colour, label, dash=dash, mark="o", radius=1.7)


def draw_reliability(models: Mapping[str, Mapping[str, Any]]) -> Markup:
    """Share of right decisions by confidence; a calibrated model lies on the diagonal."""
    low = min((min(found["confidence"], default=0.5) for found in models.values()), default=0.5)
    low = max(0.0, low - 0.05)
    traces = [Trace([low, 1], [low, 1], "muted", width=0.8, dash=(1, 2))]
    for i, (model, found) in enumerate(models.items()):
        label = f"{model} (error {found['ece']:.3f})"
        traces.append(_plot_model(i, label, found["confidence"], found["accuracy"]))
    axes = Axis("confidence", low, 1.02), Axis("accuracy", 0, 1.05)
    return show("Calibration of " + ", ".join(models), draw_chart(traces, *axes, WIDE / 2))


def draw_by_length(
    metric: str, models: Mapping[str, Sequence[Mapping[str, Any]]], unit: str = "bases"
) -> Markup:
    """The metric in groups of sequences of like length, which is in `unit`."""
    traces = [
        _plot_model(i, model, [(g["from"] + g["to"]) / 2 for g in groups],
                    [g["value"] for g in groups])
        for i, (model, groups) in enumerate(models.items())
    ]  # fmt: skip
    axes = Axis(f"length, {unit}"), Axis(metric)
    title = f"{metric} by length of " + ", ".join(models)
    return show(title, draw_chart(traces, *axes, WIDE / 2))
