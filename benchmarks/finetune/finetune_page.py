"""RESULTS.md and the pictures of benchmarks/finetune: a table of all tasks, and every line."""

import io
import re
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatterSciNotation

from genodiff.reports.blocks import describe_duration
from genodiff.reports.chart import spread_labels
from genodiff.reports.sweep_results import ModelResult, TaskResult
from genodiff.statistics.seeds import JointEstimate
from genodiff.tasks.published_scores import PublishedValue

STYLE: dict[Any, Any] = {
    "svg.hashsalt": "genodiff", "svg.fonttype": "none", "font.size": 8,
    "savefig.facecolor": "white", "axes.titlesize": 9,
    "axes.spines.top": False, "axes.spines.right": False,
}  # fmt: skip
COLOURS = {"model": "#0b5cad", "scratch": "#00804a", "baseline": "#b34700"}
OTHER = "#666666"
AXES = {"minutes": "minutes of a fit", "weights": "weights"}
UNREAD = ("majority", "length-tree")


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
    return f"{line.name} {line.mean:.3f}{show_interval(line.estimate)} ({line.seeds})"


def show_interval(estimate: JointEstimate | None, less: float = 0.0, form: str = ".3f") -> str:
    """The ends of its interval in brackets, each less `less`; nothing where there is none."""
    if estimate is None or estimate.ci95 is None:
        return ""
    return f" [{', '.join(format(end - less, form) for end in estimate.ci95)}]"


def _gap(ours: Line | None, known: PublishedValue | None) -> str:
    if ours is None or known is None:
        return ""
    return f"{ours.mean - known.mean:+.3f}{show_interval(ours.estimate, known.mean)}"


def _time(line: Line | None) -> str:
    if line is None:
        return ""
    choosing = f" + {describe_duration(60 * line.choosing)} of choosing" if line.choosing else ""
    return describe_duration(60 * line.minutes) + choosing


def draw(panels: list[TaskResult], of: str, title: str) -> str:
    """Score against `minutes` of a fit or `weights`, a field per task; published ones diamonds.

    A published point has weights only. Against minutes it is a line over the whole width. What does
    not read the sequence (majority, length) is left to the tables.
    """
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(4.8 * columns, 3.3 * rows), layout="constrained")
        fields = np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel()
        for ax in fields[len(panels) :]:
            ax.set_axis_off()
        for ax, panel in zip(fields, panels, strict=False):
            _draw_field(ax, panel, of)
        about = f"Score on each task of {title} against {AXES[of]}"
        raw = io.StringIO()
        figure.savefig(raw, format="svg", metadata={"Date": None, "Title": about})
    return shorten(raw.getvalue())


def shorten(svg: str) -> str:
    """The picture with two digits for coordinates and each style written once, as a class."""
    text = re.sub(r"\d+\.\d{4,}", lambda number: f"{float(number[0]):.2f}", svg)
    text = re.sub(r"\n\s+", "\n", text)
    styles = list(dict.fromkeys(re.findall(r' style="([^"]*)"', text)))
    for number, style in enumerate(styles):
        text = text.replace(f' style="{style}"', f' class="s{number}"')
    classes = "".join(f".s{number}{{{style}}}\n" for number, style in enumerate(styles))
    return text.replace("</style>", f"{classes}</style>", 1)


def _draw_field(ax: Any, panel: TaskResult, of: str) -> None:
    points: list[tuple[str, float, float, str]] = []
    for result in panel.lines:
        line = read_line(result)
        x = line.minutes if of == "minutes" else line.weights
        if not x or not np.isfinite(line.mean) or result.ensemble or line.name in UNREAD:
            continue
        colour = COLOURS.get(line.role, OTHER)
        interval = None if line.estimate is None else line.estimate.ci95
        if interval is not None:
            ax.plot([x, x], interval, color=colour, linewidth=0.8, alpha=0.6)
        ax.plot([x], [line.mean], "o", color=colour, markersize=4)
        points.append((line.name, x, line.mean, colour))
    for value in (v for v in panel.published if not v.metric):
        if of == "minutes":
            ax.axhline(value.mean, color=OTHER, linewidth=0.7, linestyle=":")
            points.append((value.name, np.nan, value.mean, OTHER))
        elif value.weights is not None:
            x = 1e6 * value.weights
            ax.plot([x], [value.mean], "D", color=OTHER, markersize=5, markerfacecolor="white")
            points.append((value.name, x, value.mean, OTHER))
    ax.set_xscale("log")
    ax.minorticks_off()  # they are most of the file
    ax.xaxis.set_major_formatter(LogFormatterSciNotation() if of == "weights" else "{x:g}")
    ax.set_title(panel.task)
    ax.set_xlabel(AXES[of])
    ax.set_ylabel(panel.about["metric"])
    _name_points(ax, points)


def _name_points(ax: Any, points: list[tuple[str, float, float, str]]) -> None:
    """Names at the right edge, apart from one another, each with a thin line to its point."""
    low, high = ax.get_ylim()
    right = ax.get_xlim()[1]
    ax.set_xlim(right=right)
    places = spread_labels([y for *_, y, _ in points], [0.075 * (high - low)] * len(points))
    for (name, x, y, colour), place in zip(points, places, strict=True):
        ends = dict(xycoords=("axes fraction", "data"), textcoords=("axes fraction", "data"))
        ax.annotate(f"{name} {y:.3f}", (1.0, y), (1.06, place), color=colour, fontsize=6.5,
                    va="center", annotation_clip=False, **ends,
                    arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.4,
                                "relpos": (0.0, 0.5), "shrinkA": 1, "shrinkB": 0})  # fmt: skip
        if np.isfinite(x):
            ax.plot([x, right], [y, y], color=colour, linewidth=0.3, alpha=0.5)


def describe_suite(
    title: str, panels: list[TaskResult], missing: list[str], page: Path, pictures: list[Path]
) -> list[str]:
    """The section of one suite: what is measured, the table, the pictures, where every line is."""
    text = [f"## {title}", "", *compare(panels), ""]
    if missing:
        text += [f"Not measured yet: {', '.join(missing)}.", ""]
    named = ", ".join(f"`{path.name}`" for path in pictures)
    text += [f"Pictures, drawn beside this page by `run.py --only-write`: {named}."]
    return [*text, "", f"Every line, choice, audit and command: `xzcat {page.name}`.", ""]
