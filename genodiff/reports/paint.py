"""Pictures of shapes as files: .svg, .png and .pdf, all of the same shapes.

PNG has three pixels for one of the shapes, and fewer where a picture is very wide. Letters of a PDF
stay text. The same shapes give the same bytes.
"""

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, PathPatch, Rectangle
from matplotlib.path import Path as Outline
from matplotlib.transforms import Affine2D

from genodiff.io import atomic
from genodiff.reports.shapes import (
    COLOURS,
    FONT,
    GLYPHS,
    Box,
    Cells,
    Disc,
    Letter,
    Line,
    PlacedText,
    Shape,
    find_frame,
    write_svg,
)

_INCH = 96.0  # pixels of an inch
_FINEST, _WIDEST = 3 * 96.0, 30_000.0  # dots of an inch, and of the longer side, of a PNG
_LONGEST_PAGE = 200.0  # inches of a PDF, which readers show
_STYLE: dict[Any, Any] = {
    "pdf.fonttype": 42,
    "font.family": "sans-serif",
    "font.sans-serif": [FONT],
}


def write_picture(path: str | Path, ending: str, shapes: Sequence[Shape], title: str) -> None:
    """Write a picture atomically; `ending` is .svg, .png or .pdf."""
    if ending == ".svg":
        atomic.write_text(path, write_svg(shapes, "picture", title, alone=True))
        return
    with atomic.open_atomic(path) as file:
        file.write(render_picture(ending, shapes, title))


def render_picture(ending: str, shapes: Sequence[Shape], title: str) -> bytes:
    """The bytes of a .png or .pdf."""
    left, top, width, height = find_frame(shapes)
    side, buffer = max(width, height), io.BytesIO()
    inch = max(_INCH, side / _LONGEST_PAGE) if ending == ".pdf" else _INCH
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width / inch, height / inch), facecolor=COLOURS["paper"])
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        for order, one in enumerate(shapes):
            _paint(axes, one, order, 72 / inch)
        axes.set(xlim=(left, left + width), ylim=(top + height, top))
        about: dict[str, Any] = {"Title": title, "Software": "genodiff"}
        if ending == ".pdf":
            about = {"Title": title, "Creator": "genodiff", "CreationDate": None}
        dpi = min(_FINEST, inch * _WIDEST / side)
        figure.savefig(buffer, format=ending[1:], dpi=dpi, metadata=about)
    return buffer.getvalue()


def _paint(axes: Any, one: Shape, order: int, point: float) -> None:
    """Add a shape to the axes, above those of a lower `order`; a pixel has so many points."""
    if isinstance(one, PlacedText):
        where = {"start": "left", "middle": "center", "end": "right"}[one.anchor]
        axes.text(
            one.x, one.y, one.text, fontsize=one.size * point, color=COLOURS[one.colour],
            ha=where, va="baseline", rotation=90 if one.turned else 0, rotation_mode="anchor",
            fontweight="bold" if one.bold else None, parse_math=False, zorder=order,
        )  # fmt: skip
    elif isinstance(one, Cells):
        edges = (one.x, one.x + one.width, one.y + one.height, one.y)
        axes.imshow(one.colours, extent=edges, interpolation="nearest", aspect="auto", zorder=order)
    elif isinstance(one, Line):
        xs, ys = np.array(one.points).T
        colour, width = COLOURS[one.colour], one.width * point
        dash: Any = (0, [length / one.width for length in one.dash]) if one.dash else "-"
        look: dict[str, Any] = {"alpha": one.opacity, "linewidth": width, "zorder": order}
        if one.fill:
            axes.fill(xs, ys, facecolor=COLOURS[one.fill], edgecolor=colour, **look)
        else:
            axes.add_line(Line2D(xs, ys, color=colour, linestyle=dash, **look))
    else:
        axes.add_patch(_make_patch(one, order, point))


def _make_patch(one: Box | Disc | Letter, order: int, point: float) -> Any:
    if isinstance(one, Disc):
        return Circle((one.x, one.y), one.radius, color=COLOURS[one.colour], lw=0, zorder=order)
    if isinstance(one, Letter):
        scaled = Affine2D().scale(one.width / 100, one.height / 100).translate(one.x, one.y)
        outline = read_outline(GLYPHS[one.base]).transformed(scaled)
        return PathPatch(outline, facecolor=COLOURS[one.base.lower()], lw=0, zorder=order)
    return Rectangle(
        (one.x, one.y), one.width, one.height, facecolor=COLOURS[one.fill] if one.fill else "none",
        edgecolor=COLOURS[one.edge] if one.edge else "none", linewidth=point if one.edge else 0,
        alpha=one.opacity, zorder=order,
    )  # fmt: skip


def read_outline(text: str) -> Outline:
    """An SVG path of M, L, H, V, C and Z, all absolute, as matplotlib's."""
    points: list[tuple[float, float]] = []
    codes: list[int] = []
    for verb, rest in re.findall(r"([MLHVCZ])([^MLHVCZ]*)", text):
        numbers = [float(word) for word in rest.split()]
        if verb == "H":
            numbers = [numbers[0], points[-1][1]]
        if verb == "V":
            numbers = [points[-1][0], numbers[0]]
        if verb == "Z":
            numbers = list(points[-1])
        code = {"M": Outline.MOVETO, "C": Outline.CURVE4, "Z": Outline.CLOSEPOLY}.get(
            verb, Outline.LINETO
        )
        pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
        points += pairs
        codes += [int(code)] * len(pairs)
    return Outline(points, codes)
