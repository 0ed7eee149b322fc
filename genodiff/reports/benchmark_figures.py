"""Figures of a fine-tuning sweep: plain numbers in, elements of a page out."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

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

_COLOURS = ("model", "source", "markov", "bad", "real", "ink")
_DASHES: tuple[tuple[float, ...], ...] = ((), (6, 3), (6, 2, 1, 2), (1, 2))
_ROLES = {"model": "model", "scratch": "source", "baseline": "markov"}


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
