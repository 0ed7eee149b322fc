"""Charts as lists of shapes: traces over two axes, a legend above, names of lines at the right.

A chart is as wide as its names need and no wider than it is told, in pixels of which a page shows
about 1.7 as one: `WIDE` for pages and `NARROW` for phones. Colours are those of the page's style.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from markupsafe import Markup
from numpy.typing import NDArray

from genodiff.reports.shapes import Box, Disc, Line, PlacedText, Shape, measure_text, write_svg

WIDE, NARROW, TALL = 518.0, 281.0, 165.0
SIZE = 8.0  # pixels of a letter
_MARKS = {
    "s": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "^": ((0, -1), (1, 0.9), (-1, 0.9)),
    "v": ((0, 1), (1, -0.9), (-1, -0.9)),
    "D": ((0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)),
    "|": ((0, -1.4), (0, 1.4), (0, -1.4)),
}
"""Outlines of marks of radius 1; "o" is a disc."""


class AxisTick(NamedTuple):
    """A value of an axis with its text."""

    at: float
    text: str
    colour: str = "ink"
    bold: bool = False


class Axis(NamedTuple):
    """An axis; ends and ticks that are not given follow from the values.

    Texts of its ticks have `room` of so many pixels at least, and run upwards where it is `turned`.
    """

    title: str = ""
    low: float | None = None
    high: float | None = None
    ticks: Sequence[AxisTick] = ()
    form: Callable[[float], str] | None = None
    grid: bool = True
    turned: bool = False
    room: float = 0.0


Values = Sequence[float] | NDArray[Any]


class Trace(NamedTuple):
    """Points that a line joins, unless its `width` is 0; a value that is not finite interrupts it.

    `ends` are (low, high) of an interval at each point, along x where it lies `sideways`, `thick`
    pixels wide. The area down to `floor` is filled. A trace with a `name` is in the legend.
    """

    x: Values
    y: Values
    colour: str = "model"
    name: str = ""
    width: float = 1.5
    dash: tuple[float, ...] = ()
    mark: str = ""
    radius: float = 2.2
    hollow: bool = False
    opacity: float = 1.0
    ends: Sequence[tuple[float, float]] = ()
    thick: float = 1.0
    sideways: bool = False
    floor: float | None = None


class Reference(NamedTuple):
    """A line at a value of y, with its name at the right."""

    y: float
    name: str
    colour: str = "muted"
    dash: tuple[float, ...] = ()


def draw_both_widths(title: str, draw: Callable[[float], Sequence[Shape]]) -> Markup:
    """A chart drawn twice, for wide pages and for phones; the page's style shows one of the two."""
    wide, narrow = (show(title, draw(width)) for width in (WIDE, NARROW))
    return Markup(f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div>')


def show(title: str, shapes: Sequence[Shape]) -> Markup:
    """A chart as an element of a page."""
    return Markup(write_svg(shapes, "", title, scales=True))


def make_rows(names: Iterable[str]) -> Axis:
    """An axis y with a name for each row, from 0 downwards."""
    ticks = [AxisTick(i, name) for i, name in enumerate(names)]
    return Axis("", len(ticks) - 0.4, -0.6, ticks, grid=False)


def draw_chart(
    traces: Sequence[Trace],
    x: Axis,
    y: Axis,
    width: float,
    height: float = TALL,
    references: Sequence[Reference] = (),
) -> list[Shape]:
    """The shapes of a chart of `width` with the names of its axes, and `height` without.

    References beyond the axis are left out, and points beyond are drawn at its end.
    """
    bottom, top, y_ticks = _fit(y, _list_values(traces, sideways=False), height / 20)
    least, most = sorted((bottom, top))
    shown = [one for one in references if least <= one.y <= most]
    names = [f"{one.name} {one.y:.3f}" for one in shown]
    left = 22.0 if y.title else 8.0
    left += max([measure_text(tick.text, SIZE + tick.bold) for tick in y_ticks] + [y.room])
    right = max((measure_text(name, SIZE) + 6 for name in names), default=8.0)
    across = max(width - left - right - 8, 100.0)
    start, end, x_ticks = _fit(x, _list_values(traces, sideways=True), across / 45)

    def place(value: float) -> float:
        return across * min(max((value - start) / (end - start), 0.0), 1.0)

    def rise(value: float) -> float:
        return height * min(max((value - top) / (bottom - top), 0.0), 1.0)

    x, y = x._replace(ticks=x_ticks), y._replace(ticks=y_ticks)
    shapes = _draw_axes(x, y, place, rise, across, height, left)
    spread = spread_labels([rise(one.y) for one in shown], [SIZE + 2] * len(shown))
    for one, name, at in zip(shown, names, spread, strict=True):
        line = ((0.0, rise(one.y)), (across, rise(one.y)))
        shapes.append(Line(line, one.colour, 1.0, one.dash))
        shapes.append(PlacedText(across + 5, at + 3, name, SIZE, one.colour, "start"))
    for trace in traces:
        shapes += _draw_trace(trace, place, rise)
    return shapes + _draw_legend([t for t in traces if t.name], across)


def _list_values(traces: Sequence[Trace], *, sideways: bool) -> list[float]:
    """All finite values along x or y, ends of intervals and floors included."""
    found: list[float] = []
    for one in traces:
        found += list(one.x if sideways else one.y)
        if one.sideways == sideways:
            found += [value for pair in one.ends for value in pair]
            found += [] if one.floor is None else [one.floor]
    return [float(value) for value in found if math.isfinite(value)] or [0.0, 1.0]


def _fit(axis: Axis, values: list[float], most: float) -> tuple[float, float, Sequence[AxisTick]]:
    """The ends of an axis, and at most about so many ticks."""
    pad = 0.05 * (max(values) - min(values)) or 0.05 * abs(values[0]) or 0.5
    low = min(values) - pad if axis.low is None else axis.low
    high = max(values) + pad if axis.high is None else axis.high
    high += low == high
    if axis.ticks:
        return low, high, axis.ticks
    at = list_ticks(min(low, high), max(low, high), most)
    digits = max((len(f"{v:.10g}".partition(".")[2]) for v in at), default=0)
    form = axis.form or (lambda v: f"{v:,.{digits}f}".replace("-", "−"))
    return low, high, [AxisTick(v, form(v)) for v in at]


def list_ticks(low: float, high: float, most: float) -> list[float]:
    """Round numbers from `low` to `high`, at steps of 1, 2, 2.5 or 5 times a power of 10."""
    wanted = (high - low) / max(most, 1.0)
    power = 10.0 ** math.floor(math.log10(wanted))
    step = next(n * power for n in (1, 2, 2.5, 5, 10, 20) if n * power >= wanted * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(step * i, 12) for i in range(first, last + 1)]


def _draw_axes(
    x: Axis, y: Axis, place: Any, rise: Any, across: float, height: float, left: float
) -> list[Shape]:
    shapes: list[Shape] = []
    for tick in x.ticks:
        at = place(tick.at)
        if x.grid:
            shapes.append(Line(((at, 0), (at, height)), "grid", 0.6))
        shapes.append(Line(((at, height), (at, height + 3)), "muted", 0.7))
        if x.turned:
            shapes.append(PlacedText(at + 3, height + 6, tick.text, SIZE, "ink", "end", True))
        else:
            shapes.append(PlacedText(at, height + 12, tick.text, SIZE, "ink"))
    for tick in y.ticks:
        at = rise(tick.at)
        if y.grid:
            shapes.append(Line(((0, at), (across, at)), "grid", 0.6))
        shapes.append(Line(((-3, at), (0, at)), "muted", 0.7))
        text = PlacedText(-6, at + 3, tick.text, SIZE, tick.colour, "end", bold=tick.bold)
        shapes.append(text)
    shapes.append(Line(((0, 0), (0, height), (across, height)), "muted", 0.7))
    if x.title:
        shapes.append(PlacedText(across / 2, height + 25, x.title, SIZE + 1, "ink"))
    if y.title:
        shapes.append(PlacedText(9 - left, height / 2, y.title, SIZE + 1, "ink", turned=True))
    return shapes


def _draw_trace(one: Trace, place: Any, rise: Any) -> list[Shape]:
    shapes: list[Shape] = []
    for (x, y), (low, high) in zip(zip(one.x, one.y, strict=True), one.ends, strict=False):
        if math.isfinite(low) and math.isfinite(high):
            if one.sideways:
                line = ((place(low), rise(y)), (place(high), rise(y)))
            else:
                line = ((place(x), rise(low)), (place(x), rise(high)))
            shapes.append(Line(line, one.colour, one.thick, opacity=one.opacity))
    pairs = zip(map(float, one.x), map(float, one.y), strict=True)
    for known, some in groupby(pairs, lambda pair: all(map(math.isfinite, pair))):
        if not known:
            continue
        points = tuple((place(x), rise(y)) for x, y in some)
        if one.floor is not None:
            area = ((points[0][0], rise(one.floor)), *points, (points[-1][0], rise(one.floor)))
            shapes.append(Line(area, one.colour, 0, (), one.opacity, one.colour))
        elif one.width and len(points) > 1:
            shapes.append(Line(points, one.colour, one.width, one.dash, one.opacity))
        if one.mark:
            shapes += [put_mark(x, y, one) for x, y in points]
    return shapes


def put_mark(x: float, y: float, one: Trace) -> Shape:
    """The mark of a trace at a point."""
    if one.mark == "o":
        return Disc(x, y, one.radius, one.colour)
    outline = tuple((x + one.radius * a, y + one.radius * b) for a, b in _MARKS[one.mark])
    fill = "paper" if one.hollow else one.colour
    closed = (*outline, outline[0])
    return Line(closed, one.colour, 1.0, opacity=one.opacity, fill=fill)


def _draw_legend(named: Sequence[Trace], across: float) -> list[Shape]:
    """Names above the chart, in as many rows as they need."""
    rows: list[list[tuple[float, Trace]]] = []
    x = math.inf
    for one in named:
        wide = 38 + measure_text(one.name, SIZE)
        if x + wide > across + 14:
            rows.append([])
            x = 0.0
        rows[-1].append((x, one))
        x += wide
    shapes: list[Shape] = []
    for number, row in enumerate(reversed(rows)):
        y = -9.0 - 12 * number
        for x, one in row:
            if one.floor is not None or one.thick > 3:
                shapes.append(Box(x, y - 6, 18, 7, one.colour, opacity=one.opacity))
            elif one.width:
                line = ((x, y - 2.5), (x + 18, y - 2.5))
                shapes.append(Line(line, one.colour, one.width, one.dash, one.opacity))
            if one.mark:
                shapes.append(put_mark(x + 9, y - 2.5, one))
            shapes.append(PlacedText(x + 23, y, one.name, SIZE, "ink", "start"))
    return shapes


def spread_labels(places: Sequence[float], sizes: Sequence[float]) -> list[float]:
    """The `places`, in their order, moved until labels of these `sizes` do not overlap."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = [places[i] for i in order]
    half = [sizes[i] / 2 for i in order]
    for _ in range(200):
        for a in range(len(moved) - 1):
            lack = half[a] + half[a + 1] - (moved[a + 1] - moved[a])
            if lack > 1e-9:
                moved[a] -= lack / 2
                moved[a + 1] += lack / 2
    found = [0.0] * len(places)
    for place, i in zip(moved, order, strict=True):
        found[i] = place
    return found
