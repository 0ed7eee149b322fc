"""RESULTS.md and the pictures of benchmarks/finetune: a table of all tasks, and every line."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from genodiff.reports.blocks import describe_duration
from genodiff.reports.svg import MARKOV, MODEL, MUTED, PAPER, SOURCE, open_canvas, to_svg
from genodiff.reports.sweep_results import ModelResult, TaskResult
from genodiff.statistics.seeds import JointEstimate
from genodiff.tasks.published_scores import PublishedValue

COLOURS = {"model": MODEL, "scratch": SOURCE, "baseline": MARKOV}


class Line(NamedTuple):
    """One model on one task, over its seeds."""

    name: str
    role: str
    mean: float
    estimate: JointEstimate | None
    valid: float
    minutes: float
    choosing: float
    weights: float | None
    seeds: int


def read_line(line: ModelResult) -> Line:
    """The means over seeds; minutes are of one fit, and of the choice of settings once."""
    rows = line.rows
    valid = [np.nan if row["valid"] is None else row["valid"] for row in rows]
    return Line(
        line.name, line.role, line.mean, line.estimate, float(np.mean(valid)),
        float(np.mean([row["seconds"] for row in rows])) / 60,
        max(row.get("choice_seconds", 0.0) for row in rows) / 60,
        rows[0].get("parameters"), len(rows),
    )  # fmt: skip


def pick_by_validation(lines: list[Line], roles: tuple[str, ...]) -> Line | None:
    """The line of these roles with the best validation value."""
    some = [line for line in lines if line.role in roles and np.isfinite(line.valid)]
    return max(some, key=lambda line: line.valid) if some else None


def pick_published(panel: TaskResult) -> PublishedValue | None:
    """The best published value of the task's own metric."""
    return max((v for v in panel.published if not v.metric), key=lambda v: v.mean, default=None)


def compare(panels: list[TaskResult]) -> list[str]:
    """The table of all tasks: ours and the best baseline by validation, the best published."""
    text = [
        "| task | metric | train and dev | best published, fine-tuned | network, by validation "
        "| its fit | network − published | baseline, by validation | its fit |",
        "|" + "---|" * 9,
    ]
    for panel in panels:
        lines = [read_line(line) for line in panel.lines if not line.ensemble]
        ours = pick_by_validation(lines, ("model", "scratch"))
        other = pick_by_validation(lines, ("baseline",))
        known = pick_published(panel)
        published = "none checked" if known is None else f"{known.name} {known.mean:.3f}"
        cells = [panel.task, panel.about["metric"], f"{panel.about.get('n_train', 0):,}", published]
        cells += [_cell(ours), _time(ours), _gap(ours, known), _cell(other), _time(other)]
        text.append(f"| {' | '.join(cells)} |")
    return text


def _cell(line: Line | None) -> str:
    if line is None:
        return ""
    return f"{line.name} {line.mean:.3f}{_interval(line.estimate, 0.0)} ({line.seeds})"


def _interval(estimate: JointEstimate | None, less: float) -> str:
    if estimate is None or estimate.ci95 is None:
        return ""
    low, high = (value - less for value in estimate.ci95)
    return f" [{low:.3f}, {high:.3f}]"


def _gap(ours: Line | None, known: PublishedValue | None) -> str:
    if ours is None or known is None:
        return ""
    return f"{ours.mean - known.mean:+.3f}{_interval(ours.estimate, known.mean)}"


def _time(line: Line | None) -> str:
    if line is None:
        return ""
    choosing = f" + {describe_duration(60 * line.choosing)} of choosing" if line.choosing else ""
    return describe_duration(60 * line.minutes) + choosing


def draw(panels: list[TaskResult], of: str, title: str) -> str:
    """Score against `minutes` of a fit or `weights`, a field per task; published ones diamonds.

    A published point has weights only. Against minutes it is a line over the whole width.
    """
    columns = min(5, len(panels))
    rows = -(-len(panels) // columns)
    with open_canvas(2.6 * columns, 2.3 * rows) as figure:
        fields = np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel()
        for ax in fields[len(panels) :]:
            ax.set_axis_off()
        for ax, panel in zip(fields, panels, strict=False):
            _draw_field(ax, panel, of)
        unit = "minutes of a fit" if of == "minutes" else "weights"
        text = to_svg(figure, f"finetune-{of}", f"Score on each task of {title} against {unit}")
    return text.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)


def _draw_field(ax: Any, panel: TaskResult, of: str) -> None:
    for line in (read_line(line) for line in panel.lines):
        x = line.minutes if of == "minutes" else line.weights
        if x and np.isfinite(line.mean) and line.mean > 0:
            colour = COLOURS.get(line.role, MUTED)
            ax.plot([x], [line.mean], "o", color=colour, markersize=4)
            ax.annotate(line.name, (x, line.mean), fontsize=5, xytext=(2, 2),
                        textcoords="offset points")  # fmt: skip
    for value in (v for v in panel.published if not v.metric):
        if of == "minutes":
            ax.axhline(value.mean, color=MUTED, linewidth=0.7, linestyle=":")
        elif value.weights is not None:
            ax.plot([1e6 * value.weights], [value.mean], "D", color=MUTED, markersize=5,
                    markerfacecolor=PAPER)  # fmt: skip
            ax.annotate(value.name, (1e6 * value.weights, value.mean), fontsize=5, xytext=(2, 2),
                        textcoords="offset points")  # fmt: skip
    ax.set_xscale("log")
    ax.set_title(panel.task, fontsize=8)
    ax.set_xlabel("minutes of a fit" if of == "minutes" else "weights", fontsize=7)
    ax.set_ylabel(panel.about["metric"], fontsize=7)


def describe_suite(
    title: str, panels: list[TaskResult], missing: list[str], details: str, pictures: list[Path]
) -> list[str]:
    """The section of one suite: what is measured, the table, the pictures, every line."""
    text = [f"## {title}", "", *compare(panels), ""]
    if missing:
        text += [f"Not measured yet: {', '.join(missing)}.", ""]
    text += [f"![{path.stem}]({path.name})" for path in pictures]
    text += ["", details.replace("# Fine-tuning results", f"### {title}: every line", 1)
             .replace("\n### ", "\n##### ").replace("\n## ", "\n#### ")]  # fmt: skip
    return text
