"""The figures of a run's report: plain numbers in, elements of a page out.

Every figure carries its message in its title for screen readers, and reads in black and white: line
styles and marks differ wherever colours do.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from genodiff.reports.chart import (
    TALL,
    WIDE,
    Axis,
    AxisTick,
    Reference,
    Trace,
    draw_both_widths,
    draw_chart,
    make_rows,
    show,
)

Role = Literal["uniform", "composition", "markov", "model", "source"]
COLOURS = {"markov": "markov", "model": "model", "source": "source"}
_DASHES: dict[str, tuple[float, ...]] = {
    "uniform": (1, 2), "composition": (4, 2), "markov": (6, 2, 1, 2), "source": (8, 2),
}  # fmt: skip
Floats = NDArray[np.float64]


class BitsLine(NamedTuple):
    """One figure of merit: bits per base, with an interval where it is an estimate."""

    role: Role
    name: str
    bits: float
    low: float | None = None
    high: float | None = None


class Series(NamedTuple):
    """The values of one set of sequences in a comparison figure."""

    role: Literal["samples", "real", "markov"]
    name: str
    values: Sequence[float]


def draw_number_line(lines: Sequence[BitsLine], closed: float | None, unit: str) -> Markup:
    """All lines on one axis of bits per base, a row each, the model with its interval.

    `closed` is the model's share of the gap between composition and source.
    """
    shown = sorted(lines, key=lambda one: one.bits)
    names = [f"{one.name}  {one.bits:.3f}" for one in shown]
    colours = [COLOURS.get(one.role, "muted") for one in shown]
    rows = make_rows(names)
    bold = [one.role == "model" for one in shown]
    ticks = [
        AxisTick(*given) for given in zip(range(len(shown)), names, colours, bold, strict=True)
    ]
    traces = []
    source = next((one.bits for one in lines if one.role == "source"), None)
    for i, one in enumerate(shown):
        if one.role == "model" and closed is not None and source is not None:
            start = next((x.bits for x in lines if x.role == "composition"), one.bits)
            ends = [(one.bits, start)], [(source, one.bits)]
            traces += [Trace([one.bits], [i], c, ends=end, thick=7, sideways=True, opacity=0.4)
                       for c, end in zip(("model", "grid"), ends, strict=True)]  # fmt: skip
        mark, radius = ("D", 3.0) if one.role == "model" else ("o", 2.6)
        given = [(one.low, one.high)] if one.low is not None and one.high is not None else []
        traces.append(
            Trace([one.bits], [i], colours[i], mark=mark, radius=radius, ends=given, sideways=True)
        )
    said = f" · {closed:.0%} of the gap closed" if closed is not None else ""
    x, y = Axis(f"bits per {unit}{said}"), rows._replace(ticks=ticks, grid=True)
    title = f"Bits per {unit}: " + ", ".join(f"{one.name} {one.bits:.3f}" for one in lines)
    return draw_both_widths(title, lambda width: draw_chart(traces, x, y, width, 20 * len(shown)))


def draw_curves(
    steps: Sequence[float],
    loss: Sequence[float],
    valid: Sequence[tuple[float, float, float]],
    lines: Sequence[BitsLine],
    accent: BitsLine | None = None,
    unit: str = "base",
) -> Markup:
    """Training loss and validation bounds (step, bits, half-width) by step.

    Each step's loss is faint, its running mean strong.
    """
    x, y = np.asarray(steps, float), np.asarray(loss, float)
    x, y = x[np.isfinite(y)], y[np.isfinite(y)]
    traces = []
    if len(y):
        at, means = average_neighbours(x, y, 400)
        mean = smooth(means, max(1, len(means) // 20))
        traces += [
            Trace(at, means, width=0.7, opacity=0.35),
            Trace(at, mean, name="training loss, running mean", width=1.8),
        ]
    step, bits, half = np.asarray(valid, float).reshape(-1, 3).T
    if valid:
        half = np.where(np.isfinite(half), half, 0.0)
        name, ends = "validation bound (EMA weights), 95 %", list_ends(bits, half)
        traces.append(Trace(step, bits, "ink", name, 1.0, mark="o", radius=1.8, ends=ends))
    if accent is not None and len(y):
        given = [(accent.low, accent.high)] if None not in (accent.low, accent.high) else []
        traces.append(
            Trace(x[-1:], [accent.bits], "model", "test bound, 95 %", mark="D", radius=3,
                  ends=given)  # type: ignore[arg-type]
        )  # fmt: skip
    low, high = find_bits_limits([one.bits for one in lines], np.concatenate([y, bits]))
    axes = Axis("optimizer step", 0.0), Axis(f"bits per {unit}", low, high)
    last = f"; last validation {valid[-1][1]:.3f}" if valid else ""
    return draw_both_widths(
        f"Loss and bound by step{last}",
        lambda width: draw_chart(traces, *axes, width, TALL, list_references(lines)),
    )


def draw_mask_rate_curve(
    rate: Sequence[float],
    bits: Sequence[float],
    half: Sequence[float],
    bound: float,
    lines: Sequence[BitsLine],
    unit: str = "base",
) -> Markup:
    """C_k/k against the masked share k/n: bits per masked base, by the share that is masked."""
    low, high = find_bits_limits([one.bits for one in lines] + [bound], np.asarray(bits, float))
    traces = [
        Trace([0, 1], [bound, bound], opacity=0.08, floor=low),
        Trace(rate, bits, mark="o", ends=list_ends(bits, half)),
    ]
    x = Axis("share of the window that is masked (k/n)", 0, 1, form="{:.0%}".format)
    y = Axis(f"bits per masked {unit} (Cₖ/k)", low, high)
    named = list_references([*lines, BitsLine("model", "mean = bound", bound)])
    return draw_both_widths(
        f"Bits per masked {unit} by mask rate; the mean is the bound, {bound:.3f}",
        lambda width: draw_chart(traces, x, y, width, TALL, named),
    )


def list_ends(values: Sequence[float] | Floats, half: Any) -> list[tuple[float, float]]:
    """The ends of intervals of given half widths."""
    return [(a - b, a + b) for a, b in zip(values, half, strict=True)]


def list_references(lines: Sequence[BitsLine]) -> list[Reference]:
    """Lines to compare a curve with."""
    return [
        Reference(x.bits, x.name, COLOURS.get(x.role, "muted"), _DASHES.get(x.role, ()))
        for x in lines
    ]


def find_bits_limits(marks: Sequence[float], values: Floats) -> tuple[float, float]:
    """An axis for the reference lines and the losses but the extreme ones."""
    values = values[np.isfinite(values)]
    top = max([*marks, float(np.quantile(values, 0.98)) if len(values) else 2.0])
    bottom = min([*marks, float(np.quantile(values, 0.005)) if len(values) else 2.0])
    pad = max((top - bottom) * 0.08, 0.02)
    return bottom - pad, top + pad


def average_neighbours(x: Floats, y: Floats, n: int) -> tuple[Floats, Floats]:
    """Means of at most `n` groups of neighbours: a long run must not make a large file."""
    if len(x) <= n:
        return x, y
    edge = np.linspace(0, len(x), n + 1).astype(int)
    size = np.diff(edge)
    return np.add.reduceat(x, edge[:-1]) / size, np.add.reduceat(y, edge[:-1]) / size


def smooth(y: Floats, half: int) -> Floats:
    """The running mean over `half` values on either side."""
    total = np.concatenate([[0.0], np.cumsum(y)])
    i = np.arange(len(y))
    low, high = np.maximum(i - half, 0), np.minimum(i + half + 1, len(y))
    return np.asarray((total[high] - total[low]) / (high - low))


_SETS: dict[str, dict[str, Any]] = {
    "samples": {"colour": "model", "mark": "o"},
    "real": {"colour": "real", "mark": "s", "dash": (4, 2)},
    "markov": {"colour": "markov", "mark": "^", "dash": (6, 2, 1, 2)},
}
"""How a trace of a set of sequences looks."""


def draw_trinucleotides(names: Sequence[str], sets: Sequence[Series]) -> Markup:
    """Bars of 3-mer frequencies in each set, both strands pooled, sorted by the real set.

    Values are shares in [0, 1], in the order of `names`. Narrow, the bars lie on their sides.
    """
    real = next((s for s in sets if s.role == "real"), sets[0])
    order = np.argsort(-np.asarray(real.values, float), kind="stable")
    at = list(range(len(names)))
    words = make_rows(names[i] for i in order)
    shares = Axis("% of 3-mers", 0)

    def draw(width: float) -> Any:
        traces, narrow = [], width < WIDE
        thick = 9.0 if narrow else 0.6 * width / (len(names) + 2)
        for s in sets:
            values = (100 * np.asarray(s.values, float)[order]).tolist()
            x, y = (values, at) if narrow else (at, values)
            if s is real:
                bars = [(0, value) for value in values]
                traces.append(Trace(x, y, "real", s.name, 0, opacity=0.3, ends=bars, thick=thick,
                                    sideways=narrow))  # fmt: skip
            else:
                look = _SETS[s.role] | {"width": 0, "hollow": s.role != "samples"}
                traces.append(Trace(x, y, name=s.name, **look))
        if narrow:
            return draw_chart(traces, shares, words, width, 12 * len(names))
        across = words._replace(low=-0.6, high=words.low, turned=True)
        return draw_chart(traces, across, shares, width, TALL)

    return draw_both_widths("3-mer frequencies of " + ", ".join(s.name for s in sets), draw)


def draw_distances(sizes: Sequence[int], sets: Sequence[Series]) -> Markup:
    """Jensen-Shannon distance to real sequences by word size, one labelled line per set."""
    traces = [Trace(sizes, s.values, name=s.name, **_SETS[s.role]) for s in sets]
    x = Axis("word size k", ticks=[AxisTick(k, str(k)) for k in sizes])
    y = Axis("Jensen-Shannon distance", 0)
    title = "Distance to real sequence by k-mer length"
    return show(title, draw_chart(traces, x, y, WIDE / 2))


def gc_histogram(sets: Sequence[Series]) -> Markup:
    """Histogram of the GC content per sequence in each set.

    Values are GC shares in [0, 1]; those that are not finite are left out.
    """
    every = np.concatenate([np.asarray(s.values, float) for s in sets])
    every = every[np.isfinite(every)]
    low, high = (float(every.min()), float(every.max())) if len(every) else (0.0, 1.0)
    width = next(w for w in (0.01, 0.02, 0.05, 0.1) if (high - low) / w <= 16 or w == 0.1)
    edges = np.arange(np.floor(low / width) - 1, np.ceil(high / width) + 2) * width
    traces = []
    for s in sets:
        values = np.asarray(s.values, float)
        values = values[np.isfinite(values)]
        share = 100 * np.histogram(values, edges)[0] / max(len(values), 1)
        x, y = np.repeat(edges, 2), np.concatenate([[0], np.repeat(share, 2), [0]])
        fill: dict[str, Any] = {"opacity": 0.3, "floor": 0.0} if s.role == "real" else {}
        traces.append(Trace(x, y, name=s.name, **(_SETS[s.role] | {"mark": ""} | fill)))
    x_axis, y_axis = Axis("GC of a sequence", form="{:.0%}".format), Axis("% of sequences", 0)
    title = "GC per sequence in " + ", ".join(s.name for s in sets)
    return show(title, draw_chart(traces, x_axis, y_axis, WIDE / 2))


def draw_homopolymers(sets: Sequence[Series]) -> Markup:
    """Share of bases in homopolymer runs, by run length.

    Values are shares in [0, 1] for lengths 1, 2 and so on. The last one includes all longer runs.
    """
    n = len(sets[0].values)
    traces = []
    for s in sets:
        values = 100 * np.asarray(s.values, float)
        logs = np.log10(np.where(values > 0, values, np.nan))
        traces.append(Trace(range(1, n + 1), logs, name=s.name, **_SETS[s.role]))
    x = Axis("run length", ticks=[AxisTick(i, str(i) + "+" * (i == n)) for i in range(1, n + 1)])
    y = Axis("% of bases", ticks=[AxisTick(i, f"{10.0**i:g}") for i in range(-5, 3)])
    low = min((float(np.nanmin(t.y)) for t in traces if np.isfinite(t.y).any()), default=0.0)
    y = y._replace(low=low - 0.1, high=2.1, ticks=[t for t in y.ticks if t.at >= low - 0.1])
    return show("Bases in homopolymer runs by run length", draw_chart(traces, x, y, WIDE / 2))
