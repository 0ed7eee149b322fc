"""Figures of a fine-tuning sweep: plain numbers in, one `<svg>` string out."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties

from genodiff.reports.figures import NARROW, TALL, WIDE
from genodiff.reports.svg import (
    BAD,
    INK,
    MARKOV,
    MODEL,
    MUTED,
    PAPER,
    REAL,
    SOURCE,
    open_canvas,
    to_svg,
)

_COLOURS = (MODEL, SOURCE, MARKOV, BAD, REAL, INK)
_DASHES = ("-", "--", "-.", ":")
_BASES = {"A": SOURCE, "C": MODEL, "G": MARKOV, "T": BAD}
_NAME = 0.18
"""Inches of height of a name under a figure."""

_LETTERS = FontProperties(family="DejaVu Sans Mono", weight="bold")


class Dot(NamedTuple):
    """A model's place on a task: mean, interval, single seeds."""

    name: str
    mean: float
    ci95: tuple[float, float] | None
    seeds: Sequence[float]
    role: str


def draw_dots(name: str, metric: str, rows: Sequence[Dot], *, narrow: bool = False) -> str:
    """One line per model: its seeds as small points, the mean with its interval.

    Published means are open diamonds.
    """
    with open_canvas(NARROW if narrow else WIDE, 0.7 + 0.24 * len(rows)) as figure:
        ax = figure.add_subplot()
        for y, row in enumerate(reversed(rows)):
            colour = {"model": MODEL, "scratch": SOURCE, "baseline": MARKOV}.get(row.role, MUTED)
            if row.ci95 is not None:
                ax.plot(row.ci95, [y, y], color=colour, linewidth=1.2)
            if row.role == "published":
                ax.plot(
                    [row.mean],
                    [y],
                    marker="D",
                    markersize=5,
                    markerfacecolor=PAPER,
                    markeredgecolor=colour,
                    linestyle="none",
                )
            else:
                ax.plot(
                    row.seeds,
                    [y] * len(row.seeds),
                    marker="|",
                    markersize=7,
                    color=colour,
                    alpha=0.6,
                    linestyle="none",
                )
                ax.plot([row.mean], [y], marker="o", markersize=5, color=colour, linestyle="none")
        ax.set_yticks(range(len(rows)), [row.name for row in reversed(rows)])
        ax.set_ylim(-0.6, len(rows) - 0.4)
        ax.set_xlabel(metric)
        title = f"{metric}: " + ", ".join(f"{row.name} {row.mean:.3f}" for row in rows)
        return to_svg(figure, f"{name}-dots{'-narrow' * narrow}", title)


def draw_learning(
    name: str,
    metric: str,
    models: Mapping[str, Sequence[Sequence[Mapping[str, Any]]]],
    *,
    narrow: bool = False,
) -> str:
    """Losses (training dashed) and the validation metric by epoch, a line for each seed."""
    with open_canvas(*((NARROW, 2 * TALL) if narrow else (WIDE, TALL))) as figure:
        left, right = figure.subplots(*((2, 1) if narrow else (1, 2)))
        for colour, (model, seeds) in zip(_cycle(len(models)), models.items(), strict=True):
            for i, epochs in enumerate(seeds):
                at = [e["epoch"] + 1 for e in epochs]
                label = model if i == 0 else None
                left.plot(
                    at,
                    _numbers(epochs, "train_loss"),
                    color=colour,
                    linewidth=0.9,
                    linestyle="--",
                    alpha=0.7,
                )
                left.plot(
                    at, _numbers(epochs, "valid_loss"), color=colour, linewidth=1.2, label=label
                )
                right.plot(
                    at,
                    _numbers(epochs, "valid"),
                    color=colour,
                    linewidth=1.2,
                    marker="o",
                    markersize=2.5,
                    label=label,
                )
        for ax, title in ((left, "loss (training dashed)"), (right, f"validation {metric}")):
            ax.set_xlabel("epoch")
            ax.set_ylabel(title)
            ax.xaxis.get_major_locator().set_params(integer=True)
        _name_below(right, 1 if narrow else 2)
        return to_svg(
            figure,
            f"{name}-learning{'-narrow' * narrow}",
            "Learning curves of " + ", ".join(models),
        )


def _name_below(ax: Axes, columns: int = 1) -> None:
    """The models' names under the figure, where they hide no line however long they are."""
    handles, labels = ax.get_legend_handles_labels()
    ax.figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def _numbers(epochs: Sequence[Mapping[str, Any]], key: str) -> list[float]:
    return [np.nan if e[key] is None else float(e[key]) for e in epochs]


def _cycle(n: int) -> list[str]:
    return [_COLOURS[i % len(_COLOURS)] for i in range(n)]


def _plot_model(ax: Axes, i: int, label: str, x: Sequence[float], y: Sequence[float]) -> None:
    """Model number `i` as a line of its own colour and dashes."""
    ax.plot(
        x,
        y,
        color=_COLOURS[i % len(_COLOURS)],
        marker="o",
        markersize=3,
        linestyle=_DASHES[i % 4],
        label=label,
    )


def draw_reliability(name: str, models: Mapping[str, Mapping[str, Any]]) -> str:
    """Share of right decisions by confidence; a calibrated model lies on the diagonal."""
    with open_canvas(WIDE / 2, TALL + _NAME * len(models)) as figure:
        ax = figure.add_subplot()
        ax.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8, linestyle=":")
        for i, (model, found) in enumerate(models.items()):
            label = f"{model} (error {found['ece']:.3f})"
            _plot_model(ax, i, label, found["confidence"], found["accuracy"])
        low = min((min(found["confidence"], default=0.5) for found in models.values()), default=0.5)
        ax.set_xlim(max(0, low - 0.05), 1.02)
        ax.set_ylim(0, 1.05)
        ax.set_xlabel("confidence")
        ax.set_ylabel("accuracy")
        _name_below(ax)
        return to_svg(figure, f"{name}-calibration", "Calibration of " + ", ".join(models))


def draw_by_length(
    name: str, metric: str, models: Mapping[str, Sequence[Mapping[str, Any]]], unit: str = "bases"
) -> str:
    """The metric in groups of sequences of like length, which is in `unit`."""
    with open_canvas(WIDE / 2, TALL + _NAME * len(models)) as figure:
        ax = figure.add_subplot()
        for i, (model, groups) in enumerate(models.items()):
            at = [(g["from"] + g["to"]) / 2 for g in groups]
            _plot_model(ax, i, model, at, [g["value"] for g in groups])
        ax.set_xlabel(f"length, {unit}")
        ax.set_ylabel(metric)
        _name_below(ax)
        return to_svg(figure, f"{name}-length", f"{metric} by length of " + ", ".join(models))
