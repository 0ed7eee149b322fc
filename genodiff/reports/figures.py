"""The report's figures: plain numbers in, one `<svg>` string out.

No file, no run and no model is read here.

Every figure has a name (unique in the page), carries its message in its title for screen readers,
and reads in black and white: line styles and markers differ wherever colours do.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from genodiff.reports.svg import (
    BAD,
    GRID,
    INK,
    MARKOV,
    MODEL,
    MUTED,
    PAPER,
    SOURCE,
    open_canvas,
    to_svg,
)

Role = Literal["uniform", "composition", "markov", "model", "source"]
_COLOUR: dict[str, str] = {
    "uniform": MUTED,
    "composition": MUTED,
    "markov": MARKOV,
    "model": MODEL,
    "source": SOURCE,
}
_DASH: dict[str, tuple[float, ...]] = {
    "uniform": (1, 2),
    "composition": (4, 2),
    "markov": (6, 2, 1, 2),
    "source": (8, 2),
}
WIDE, TALL = 7.2, 3.1
NARROW = 3.9  # inches, for phones
_LETTER = 0.0108  # width of a letter of a label, as a share of a wide figure


class BitsLine(NamedTuple):
    """One figure of merit: bits per base, with an interval where it is an estimate."""

    role: Role
    name: str
    bits: float
    low: float | None = None
    high: float | None = None


def spread_labels(
    places: Sequence[float], sizes: Sequence[float], low: float = -np.inf, high: float = np.inf
) -> list[float]:
    """The `places`, in their order, moved until labels of these `sizes` do not overlap.

    They stay inside low..high if they fit.
    """
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = [places[i] for i in order]
    half = [sizes[i] / 2 for i in order]
    for _ in range(200):
        for a in range(len(moved) - 1):
            lack = half[a] + half[a + 1] - (moved[a + 1] - moved[a])
            if lack > 1e-9:
                moved[a] -= lack / 2
                moved[a + 1] += lack / 2
        for a in range(len(moved)):
            moved[a] = min(max(moved[a], low + half[a]), high - half[a])
    found = [0.0] * len(places)
    for place, i in zip(moved, order, strict=True):
        found[i] = place
    return found


def draw_number_line(
    lines: Sequence[BitsLine],
    closed: float | None = None,
    unit: str = "base",
    *,
    narrow: bool = False,
) -> str:
    """All lines on one axis of bits per base, the model with its interval.

    `closed`, the share of the gap, is drawn as a bar; of a narrow figure it is said under the axis.
    """
    if narrow:
        return _number_rows(lines, closed, unit)
    low = min(x.low if x.low is not None else x.bits for x in lines)
    high = max(x.high if x.high is not None else x.bits for x in lines)
    pad = max((high - low) * 0.07, 0.01)
    title = f"Bits per {unit}: " + ", ".join(f"{x.name} {x.bits:.3f}" for x in lines)
    with open_canvas(WIDE, 1.95 if closed is not None else 1.6) as figure:
        ax = figure.add_subplot()
        ax.set_xlim(low - pad, high + pad)
        ax.set_ylim(-0.62 if closed is not None else -0.15, 1.16)
        ax.grid(False)
        ax.yaxis.set_visible(False)
        ax.spines["left"].set_visible(False)
        ax.spines["bottom"].set_position(("data", 0.0))
        ax.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 2.5, 5, 10]))
        left, right = low - pad, high + pad
        sizes = [(right - left) * (0.03 + _LETTER * max(len(x.name), 5)) for x in lines]
        places = spread_labels([x.bits for x in lines], sizes, left, right)
        for line, place in zip(lines, places, strict=True):
            colour = _COLOUR[line.role]
            strong = line.role == "model"
            ax.plot(
                [line.bits, line.bits],
                [0, 0.34],
                color=colour,
                linewidth=3 if strong else 1.8,
                solid_capstyle="butt",
                zorder=3,
            )
            ax.plot([line.bits, place], [0.36, 0.62], color=colour, linewidth=0.8, zorder=2)
            if line.low is not None and line.high is not None:
                ax.fill_betweenx(
                    [0, 0.34], line.low, line.high, color=colour, alpha=0.25, linewidth=0, zorder=2
                )
            ax.text(
                place,
                0.92,
                line.name,
                ha="center",
                va="bottom",
                color=colour,
                fontsize=9,
                fontweight="bold" if strong else None,
            )
            ax.text(
                place,
                0.66,
                f"{line.bits:.3f}",
                ha="center",
                va="bottom",
                color=INK,
                fontsize=9,
                fontweight="bold" if strong else None,
            )
        source = [x.bits for x in lines if x.role == "source"]
        if source:
            ax.axvspan(
                left,
                source[0],
                ymax=_fraction(ax, 0.34),
                ymin=_fraction(ax, 0),
                color=BAD,
                alpha=0.13,
                linewidth=0,
            )
        if closed is not None and source:
            start = next(x.bits for x in lines if x.role == "composition")
            here = next(x.bits for x in lines if x.role == "model")
            ax.plot(
                [start, source[0]], [-0.46, -0.46], color=GRID, linewidth=13, solid_capstyle="butt"
            )
            ax.plot([start, here], [-0.46, -0.46], color=MODEL, linewidth=13, solid_capstyle="butt")
            inside = closed >= 0.4
            ax.text(
                (start + here) / 2 if inside else (here + source[0]) / 2, -0.47,
                f"{closed:.0%} of the gap closed",
                ha="center", va="center", fontsize=8.5, color=PAPER if inside else INK,
            )  # fmt: skip
        return to_svg(figure, "fig-line", title)


def _number_rows(lines: Sequence[BitsLine], closed: float | None, unit: str) -> str:
    """The number line with a row for each line, its name and figure on the left."""
    shown = sorted(lines, key=lambda x: x.bits)
    title = f"Bits per {unit}: " + ", ".join(f"{x.name} {x.bits:.3f}" for x in lines)
    with open_canvas(NARROW, 0.6 + 0.27 * len(shown)) as figure:
        ax = figure.add_subplot()
        for y, line in enumerate(shown):
            colour = _COLOUR[line.role]
            ax.axhline(y, color=GRID, linewidth=0.6, zorder=1)
            if line.low is not None and line.high is not None:
                ax.plot([line.low, line.high], [y, y], color=colour, linewidth=1.6, zorder=2)
            marker = "D" if line.role == "model" else "o"
            ax.plot([line.bits], [y], color=colour, marker=marker, markersize=5, zorder=3)
        ax.set_yticks(range(len(shown)), [f"{x.name}  {x.bits:.3f}" for x in shown])
        for label, line in zip(ax.get_yticklabels(), shown, strict=True):
            label.set_color(_COLOUR[line.role])
            label.set_fontweight("bold" if line.role == "model" else "normal")
        ax.set_ylim(-0.6, len(shown) - 0.4)
        ax.grid(False, axis="y")
        ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
        said = f" · {closed:.0%} of the gap closed" if closed is not None else ""
        ax.set_xlabel(f"bits per {unit}{said}")
        return to_svg(figure, "fig-line-narrow", title)


def _fraction(ax: Axes, y: float) -> float:
    low, high = ax.get_ylim()
    return (y - low) / (high - low)


def _reference_lines(ax: Axes, lines: Sequence[BitsLine]) -> None:
    """Horizontal lines with their names at the right edge, kept from running into one another."""
    low, high = ax.get_ylim()
    shown = [x for x in lines if low <= x.bits <= high]
    for line, place in zip(
        shown,
        spread_labels([x.bits for x in shown], [(high - low) * 0.075] * len(shown)),
        strict=True,
    ):
        colour = _COLOUR[line.role]
        ax.axhline(
            line.bits, color=colour, linewidth=1.1, dashes=_DASH.get(line.role, (1, 0)), zorder=1.5
        )
        ax.annotate(
            f"{line.name} {line.bits:.3f}",
            xy=(1.0, line.bits), xycoords=("axes fraction", "data"),
            xytext=(1.015, place), textcoords=("axes fraction", "data"),
            va="center", ha="left", fontsize=8, color=colour, annotation_clip=False,
        )  # fmt: skip


def draw_curves(
    steps: Sequence[float],
    loss: Sequence[float],
    valid: Sequence[tuple[float, float, float]],
    lines: Sequence[BitsLine],
    accent: BitsLine | None = None,
    unit: str = "base",
    *,
    narrow: bool = False,
) -> str:
    """Training loss and validation bounds (step, bits, half-width) by step.

    Each step's loss is faint, its running mean strong.
    """
    x, y = np.asarray(steps, float), np.asarray(loss, float)
    fine = np.isfinite(y)
    x, y = x[fine], y[fine]
    with open_canvas(*((NARROW, 3.9) if narrow else (WIDE, TALL))) as figure:
        ax = figure.add_subplot()
        if len(y):
            bx, by = average_neighbours(x, y, 400)
            ax.plot(bx, by, color=MODEL, linewidth=0.7, alpha=0.35)
            ax.plot(
                bx,
                smooth(by, max(1, len(by) // 20)),
                color=MODEL,
                linewidth=1.8,
                label="training loss, running mean",
            )
        if valid:
            v = np.asarray(valid, float)
            error = np.where(np.isfinite(v[:, 2]), v[:, 2], 0.0)
            ax.errorbar(
                v[:, 0], v[:, 1], yerr=error, color=INK, marker="o", markersize=3.5, linewidth=1.0,
                elinewidth=0.9,
                capsize=2, label="validation bound (EMA weights), 95 %",
            )  # fmt: skip
        if accent is not None and len(y):
            bars = (
                None
                if accent.low is None or accent.high is None
                else [[accent.bits - accent.low], [accent.high - accent.bits]]
            )
            ax.errorbar(
                [x[-1]], [accent.bits], yerr=bars, color=MODEL, marker="D", markersize=6,
                markeredgecolor=PAPER,
                linestyle="none", capsize=3, label="test bound, 95 %", zorder=5,
            )  # fmt: skip
        _bits_limits(
            ax,
            [x.bits for x in lines],
            np.concatenate([y, np.asarray(valid, float).reshape(-1, 3)[:, 1]]),
        )
        _reference_lines(ax, lines)
        ax.set_xlabel("optimizer step")
        ax.set_ylabel(f"bits per {unit}")
        ax.set_xlim(left=0)
        if narrow:
            figure.legend(loc="outside upper left", ncols=1, handlelength=2.2)
        else:
            ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=3, handlelength=2.2)
        name = "fig-curves-narrow" if narrow else "fig-curves"
        last = f"; last validation {valid[-1][1]:.3f}" if valid else ""
        return to_svg(figure, name, f"Loss and bound by step{last}")


def _bits_limits(ax: Axes, marks: Sequence[float], values: np.ndarray) -> None:
    """Limit the axis to the reference lines and the losses but the extreme ones."""
    values = values[np.isfinite(values)]
    top = max([*marks, float(np.quantile(values, 0.98)) if len(values) else 2.0])
    bottom = min([*marks, float(np.quantile(values, 0.005)) if len(values) else 2.0])
    pad = max((top - bottom) * 0.08, 0.02)
    ax.set_ylim(bottom - pad, top + pad)


def average_neighbours(x: np.ndarray, y: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Means of at most `n` groups of neighbours: a long run must not make a large file."""
    if len(x) <= n:
        return x, y
    edge = np.linspace(0, len(x), n + 1).astype(int)
    size = np.diff(edge)
    return np.add.reduceat(x, edge[:-1]) / size, np.add.reduceat(y, edge[:-1]) / size


def smooth(y: np.ndarray, half: int) -> np.ndarray:
    """The running mean over `half` values on either side."""
    total = np.concatenate([[0.0], np.cumsum(y)])
    i = np.arange(len(y))
    low, high = np.maximum(i - half, 0), np.minimum(i + half + 1, len(y))
    return (total[high] - total[low]) / (high - low)


def draw_mask_rate_curve(
    rate: Sequence[float],
    bits: Sequence[float],
    half: Sequence[float],
    bound: float,
    lines: Sequence[BitsLine],
    unit: str = "base",
    *,
    narrow: bool = False,
) -> str:
    """C_k/k against the masked share k/n: bits per masked base, by the share that is masked."""
    with open_canvas(NARROW if narrow else WIDE, TALL) as figure:
        ax = figure.add_subplot()
        ax.errorbar(
            rate,
            bits,
            yerr=half,
            color=MODEL,
            marker="o",
            markersize=4,
            linewidth=1.5,
            elinewidth=0.9,
            capsize=2,
        )
        ax.fill_between([0, 1], 0, bound, color=MODEL, alpha=0.08, linewidth=0)
        ax.axhline(bound, color=MODEL, linewidth=1.0)
        ax.set_xlim(0, 1)
        _bits_limits(ax, [x.bits for x in lines] + [bound], np.asarray(bits, float))
        _reference_lines(ax, [*lines, BitsLine("model", "mean = bound", bound)])
        ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        if narrow:
            ax.xaxis.set_major_locator(MaxNLocator(4))
        ax.set_xlabel("share of the window that is masked (k/n)")
        ax.set_ylabel(f"bits per masked {unit} (Cₖ/k)")
        return to_svg(
            figure,
            "fig-mask-rate-narrow" if narrow else "fig-mask-rate",
            f"Bits per masked {unit} by mask rate; the mean is the bound, {bound:.3f}",
        )
