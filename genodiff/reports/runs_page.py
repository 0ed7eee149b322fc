"""Several training runs on one page: curves, bounds, and what differs between their settings.

Nothing is computed anew. Bounds of different runs stand in one table with their own intervals; what
pairs their windows is `genodiff compare`.

Curves of several training runs in one figure: plain numbers in, one `<svg>` string out.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from markupsafe import Markup
from matplotlib.ticker import EngFormatter, MaxNLocator

from genodiff.errors import printable
from genodiff.reports import blocks
from genodiff.reports.figures import NARROW, WIDE, average_neighbours, smooth
from genodiff.reports.folder import RunParts, dump
from genodiff.reports.svg import (
    BAD,
    INK,
    MARKOV,
    MODEL,
    REAL,
    SOURCE,
    draw_both_widths,
    open_canvas,
    to_svg,
)
from genodiff.reports.template import render_template
from genodiff.statistics.reasons import TOO_FEW
from genodiff.version import __version__

Axis = Literal["tokens", "time"]
COLOURS = (MODEL, SOURCE, MARKOV, BAD, REAL, INK)
_DASHES = ("-", "--", "-.", ":")
_MARKERS = ("o", "s", "^", "D", "v", "P")
_TALL = 3.6
_LONG = 5400  # seconds from which time is in hours
_POINTS = 300
_STEEP = 0.02  # the share of a run's first steps that does not set the height of the figure


class RunCurve(NamedTuple):
    """A run as it is drawn: `at` is tokens or seconds of each loss, which is in bits."""

    name: str
    at: Sequence[float]
    loss: Sequence[float]
    valid: Sequence[tuple[float, float, float]]
    """Place, bits, half-width of the 95 % interval."""


def draw_runs(runs: Sequence[RunCurve], axis: Axis, unit: str, *, narrow: bool = False) -> str:
    """Running means of the losses, and validations with their intervals, of all runs.

    Every run has its own colour, dashes and marker. `unit`: what bits are per.
    """
    longest = max((run.at[-1] for run in runs if run.at), default=0.0)
    scale, label = 1.0, "tokens"
    if axis == "time":
        scale, label = (3600.0, "hours") if longest >= _LONG else (60.0, "minutes")
    with open_canvas(*((NARROW, 4.2) if narrow else (WIDE, _TALL))) as figure:
        ax = figure.add_subplot()
        heights: list[float] = []
        for i, run in enumerate(runs):
            colour, dash = COLOURS[i % len(COLOURS)], _DASHES[i // len(COLOURS) % len(_DASHES)]
            x, y = np.asarray(run.at, float) / scale, np.asarray(run.loss, float)
            known = np.isfinite(x) & np.isfinite(y)
            x, y = x[known], y[known]
            name: str | None = run.name
            if len(y):
                x, y = average_neighbours(x, y, _POINTS)
                mean = smooth(y, max(1, len(y) // 20))
                ax.plot(x, mean, color=colour, linestyle=dash, linewidth=1.2, label=name)
                heights += mean[int(_STEEP * len(mean)) :].tolist()
                name = None
            if run.valid:
                at, bits, half = np.asarray(run.valid, float).T
                ax.errorbar(
                    at / scale, bits, yerr=np.where(np.isfinite(half), half, 0.0), color=colour,
                    linestyle="none", marker=_MARKERS[i % len(_MARKERS)], markersize=4,
                    elinewidth=0.8, capsize=2, label=name,
                )  # fmt: skip
                heights += bits.tolist()
        if heights:
            low, high = min(heights), float(np.quantile(heights, 0.99))
            pad = max(0.08 * (high - low), 0.01)
            ax.set_ylim(low - pad, high + pad)
        ax.set_xlim(left=0)
        ax.xaxis.set_major_locator(MaxNLocator(5 if narrow else 8))
        if axis == "tokens":
            ax.xaxis.set_major_formatter(EngFormatter(sep=" "))
        ax.set_xlabel(label if axis == "tokens" else f"{label} of training")
        ax.set_ylabel(f"bits per {unit}")
        figure.legend(loc="outside upper left", ncols=1 if narrow else 3, handlelength=2.2)
        last = [f"{run.name} {run.valid[-1][1]:.3f}" for run in runs if run.valid]
        title = f"Bits by {axis}; last validation: {', '.join(last) or 'none yet'}"
        return to_svg(figure, f"fig-{axis}{'-narrow' * narrow}", title)


_NOT_SETTINGS = ("out",)


def name_runs(paths: Sequence[Path]) -> list[str]:
    """A name for each run: its folder's, with as many folders above it as make it the only one."""
    parts = [path.resolve().parts for path in paths]
    names = [""] * len(parts)
    for i, own in enumerate(parts):
        for n in range(1, len(own) + 1):
            names[i] = printable("/".join(own[-n:]))
            if all(other[-n:] != own[-n:] for j, other in enumerate(parts) if j != i):
                break
    return names


def render_runs(runs: Sequence[RunParts]) -> str:
    """The page as text, of runs of one domain. It needs no network."""
    names = name_runs([run.path for run in runs])
    unit = runs[0].domain.size_unit
    figures: dict[str, Markup] = {}
    axes: tuple[Axis, ...] = ("tokens", "time")
    for axis in axes:
        curves = [read_curve(name, run, axis) for name, run in zip(names, runs, strict=True)]
        drawn = any(curve.at for curve in curves)
        figures[axis] = Markup(draw_both_widths(draw_runs, curves, axis, unit) if drawn else "")
    return render_template(
        "runs.html.jinja",
        {
            "version": __version__,
            "names": names,
            "unit": unit,
            "rows": [make_row(name, run) for name, run in zip(names, runs, strict=True)],
            "notes": list_notes(names, runs),
            "figures": figures,
            "settings": list_differences([run.config for run in runs]),
            "paths": " ".join(blocks.quote_path(run.path) for run in runs),
        },
    )


def read_curve(name: str, run: RunParts, axis: Axis) -> RunCurve:
    """Losses and validations of a run, by tokens or by seconds of training."""
    metrics = run.metrics or {}
    at = metrics.get("tokens" if axis == "tokens" else "seconds", [])
    if not at or "step" not in metrics or "loss_bits" not in metrics:
        return RunCurve(name, [], [], [])
    place = dict(zip(metrics["step"], at, strict=True))
    scale = 1.0 if run.evaluation is None else run.evaluation.tokens_per_byte
    valid = [
        (place[step], scale * bits, scale * half)
        for step, bits, half in blocks.read_validations(run)
    ]
    return RunCurve(name, at, [scale * bits for bits in metrics["loss_bits"]], valid)


def make_row(name: str, run: RunParts) -> dict[str, str]:
    """What the table says of a run; a cell is empty where nothing is known."""
    valid = blocks.read_validations(run)
    e = run.evaluation
    session = ((run.provenance or {}).get("sessions") or [{}])[-1]
    commit = str(session.get("git") or "")[:12]
    last = ""
    if valid:
        half = f" ± {valid[-1][2]:.4f}" if math.isfinite(valid[-1][2]) else ""
        last = f"{valid[-1][1]:.4f}{half}"
    return {
        "name": name,
        "what": blocks.subtitle(run),
        "training": blocks.describe_training(run),
        "valid": last,
        "test": "not evaluated" if e is None else f"{e.bits_per_base:.4f}",
        "interval": "" if e is None else blocks.format_interval(e.ci95_bits, 4) or TOO_FEW,
        "commit": commit,
    }


def list_notes(names: Sequence[str], runs: Sequence[RunParts]) -> list[str]:
    """What stands against setting the figures side by side, and what could not be read."""
    notes = []
    data = [((run.provenance or {}).get("data") or {}).get("fingerprint") for run in runs]
    if len(set(data) - {None}) > 1:
        notes.append("The runs were trained on different data or splits: their bits are not of "
                     "the same bases.")  # fmt: skip
    tested = {
        (e.fingerprint, e.split, e.context, e.soft_masked, e.tokens)
        for run in runs
        if (e := run.evaluation) is not None
    }
    if len(tested) > 1:
        notes.append("The test figures refer to different bases.")
    for name, run in zip(names, runs, strict=True):
        notes += [f"{name}: {trouble}" for trouble in run.troubles]
    return notes


def list_differences(configs: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[str]]]:
    """Settings that are not the same in all runs, by their dotted names, as short text."""
    flat = [dict(_flatten(config)) for config in configs]
    keys = [key for config in flat for key in config]
    found = []
    for key in dict.fromkeys(keys):
        cells = [dump(config[key]) if key in config else "" for config in flat]
        if len(set(cells)) > 1 and key not in _NOT_SETTINGS:
            found.append((key, cells))
    return found


def _flatten(value: Mapping[str, Any], above: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, inner in value.items():
        name = f"{above}{key}"
        found += _flatten(inner, f"{name}.") if isinstance(inner, Mapping) else [(name, inner)]
    return found
