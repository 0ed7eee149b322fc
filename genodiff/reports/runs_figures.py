"""Curves of several training runs in one figure: plain numbers in, one `<svg>` string out."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.ticker import EngFormatter, MaxNLocator

from genodiff.reports.figures import NARROW, WIDE, average_neighbours, smooth
from genodiff.reports.svg import BAD, INK, MARKOV, MODEL, REAL, SOURCE, open_canvas, to_svg

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
