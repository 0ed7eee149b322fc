"""Pictures as lists of shapes: how large they are, and the same picture as SVG.

A picture is as large as its shapes, and a label counts with the room that its letters take. So no
label is cut, wherever it stands. Places are in pixels, y runs downwards, and a place may lie left
of 0 or above it. `reports.paint` makes PNG and PDF of the same shapes.
"""

import base64
import io
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from typing import Any, NamedTuple

from matplotlib.font_manager import FontProperties
from matplotlib.image import imsave
from matplotlib.textpath import text_to_path
from numpy.typing import NDArray

GLYPHS = {
    "A": "M0 100L38 0H62L100 100H79L72 79H28L21 100ZM50 19L34 62H66Z",
    "C": "M100 81C85.2 97.7 60.2 104.2 37.7 97.2C15.2 90.2 0.1 71.3 0.1 50C0.1 28.7 15.2 9.8 37.7 "
    "2.8C60.2 -4.2 85.2 2.3 100 19L83 32C74.5 19.8 58.6 14.2 43.7 18.4C28.9 22.5 18.7 35.4 18.7 50"
    "C18.7 64.6 28.9 77.5 43.7 81.6C58.6 85.8 74.5 80.2 83 68Z",
    "G": "M100 81C85.2 97.7 60.2 104.2 37.7 97.2C15.2 90.2 0.1 71.3 0.1 50C0.1 28.7 15.2 9.8 37.7 "
    "2.8C60.2 -4.2 85.2 2.3 100 19L83 32C74.8 19.9 59.3 14.1 44.5 17.8C29.8 21.4 19.2 33.7 18.5 48"
    "C17.7 62.4 26.9 75.6 41.2 80.6C55.5 85.6 71.6 81.3 81 70V61H58V46H100Z",
    "T": "M0 0H100V17H61V100H39V17H0Z",
}
"""Outlines of letters in a box of 100 × 100, as SVG paths of M, L, H, V, C and Z."""
COLOURS = {
    "ink": "#1c2126", "muted": "#5c6670", "grid": "#e3e6e8", "paper": "#ffffff", "wash": "#eef4fa",
    "model": "#0b63b0", "source": "#0a7f52", "markov": "#b4530b", "real": "#6b7280",
    "bad": "#b3261e",
    "a": "#1a7f37", "c": "#0b5cad", "g": "#96600a", "t": "#b3261e",
}  # fmt: skip
"""Colours by the names that the pages' style gives them, as a picture by itself has them."""
FONT = "DejaVu Sans"
_STACK = f"system-ui, {FONT}, sans-serif"
_PAD = 4.0  # pixels round all shapes
_ASCENT, _DESCENT = 0.93, 0.24  # of a letter, by its size
_BOLD = 1.15  # the width of bold text, by that of plain text


class PlacedText(NamedTuple):
    """Text whose baseline begins, has its middle or ends at (x, y); `turned` runs upwards."""

    x: float
    y: float
    text: str
    size: float = 9.0
    colour: str = "muted"
    anchor: str = "middle"
    turned: bool = False
    bold: bool = False


class Box(NamedTuple):
    """A rectangle; `fill` and `edge` are names of colours, or empty."""

    x: float
    y: float
    width: float
    height: float
    fill: str = ""
    edge: str = ""
    opacity: float = 1.0


class Line(NamedTuple):
    """Straight lines from point to point; `fill` is the colour of the area that they enclose."""

    points: tuple[tuple[float, float], ...]
    colour: str = "muted"
    width: float = 0.8
    dash: tuple[float, ...] = ()
    opacity: float = 1.0
    fill: str = ""


class Disc(NamedTuple):
    """A filled circle."""

    x: float
    y: float
    radius: float
    colour: str = "muted"


class Letter(NamedTuple):
    """A base stretched to fill a box."""

    base: str
    x: float
    y: float
    width: float
    height: float


class Cells(NamedTuple):
    """A picture of colours (rows, columns, 4) of uint8, enlarged without smoothing."""

    colours: NDArray[Any]
    x: float
    y: float
    width: float
    height: float
    key: str = ""
    """A class, by which a page's script finds it."""


Shape = PlacedText | Box | Line | Disc | Letter | Cells


class Frame(NamedTuple):
    """What a picture covers."""

    left: float
    top: float
    width: float
    height: float


@cache
def measure_text(text: str, size: float) -> float:
    """Pixels that a text takes from left to right."""
    font = FontProperties(family=FONT, size=size)
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width)


def find_frame(shapes: Iterable[Shape]) -> Frame:
    """The box that holds all shapes, and a little more. Raises `ValueError` for none."""
    edges = [_find_edges(one) for one in shapes]
    lefts, tops, rights, bottoms = zip(*edges, strict=True)
    left, top = min(lefts) - _PAD, min(tops) - _PAD
    return Frame(left, top, max(rights) + _PAD - left, max(bottoms) + _PAD - top)


def _find_edges(one: Shape) -> tuple[float, float, float, float]:
    """Left, top, right and bottom."""
    if isinstance(one, Line):
        xs, ys = zip(*one.points, strict=True)
        return min(xs), min(ys), max(xs), max(ys)
    if isinstance(one, Disc):
        return one.x - one.radius, one.y - one.radius, one.x + one.radius, one.y + one.radius
    if not isinstance(one, PlacedText):
        return one.x, one.y, one.x + one.width, one.y + one.height
    width = measure_text(one.text, one.size) * (_BOLD if one.bold else 1.0)
    up, down = _ASCENT * one.size, _DESCENT * one.size
    before = width * {"start": 0.0, "middle": 0.5, "end": 1.0}[one.anchor]
    if one.turned:
        return one.x - up, one.y - (width - before), one.x + down, one.y + before
    return one.x - before, one.y - up, one.x + (width - before), one.y + down


def move(shapes: Iterable[Shape], x: float, y: float) -> list[Shape]:
    """The shapes, so far to the right and down."""
    return [
        one._replace(points=tuple((a + x, b + y) for a, b in one.points))
        if isinstance(one, Line)
        else one._replace(x=one.x + x, y=one.y + y)
        for one in shapes
    ]


def write_svg(
    shapes: Sequence[Shape], name: str, title: str, *, alone: bool = False, scales: bool = False
) -> str:
    """The picture as an `<svg>` element; screen readers read `title`.

    In an HTML page it has the page's colours, `name` (letters, digits and hyphens) must be unique
    there if letters are drawn, and it is as wide as its pixels unless it `scales`. `alone` is a
    file by itself, with plain colours that any program can read.
    """
    left, top, width, height = find_frame(shapes)
    box = f'viewBox="{_round(left)} {_round(top)} {_round(width)} {_round(height)}"'
    role = f'role="img" aria-label="{escape(title, quote=True)}"'
    paint = COLOURS.__getitem__ if alone else _take_variable
    used = [
        base for base in GLYPHS if any(isinstance(x, Letter) and x.base == base for x in shapes)
    ]
    defs = "".join(
        f'<path id="{name}-{base}" d="{GLYPHS[base]}" '
        f'style="fill: {paint(base.lower())}; fill-rule: evenodd"/>'
        for base in used
    )
    body = f"<defs>{defs}</defs>" * bool(defs) + "".join(_write(x, name, paint) for x in shapes)
    if not alone:
        style = "" if scales else f' style="max-width: {_round(width)}px"'
        return f"<svg {box} {role}{style}>{body}</svg>"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_round(width)}" '
        f'height="{_round(height)}" {box} {role} font-family="{_STACK}">'
        f"<title>{escape(title)}</title>"
        f"{_write(Box(left, top, width, height, 'paper'), name, paint)}{body}</svg>\n"
    )


def _take_variable(colour: str) -> str:
    return colour if colour[0] == "#" else f"var(--{colour})"


def _write(one: Shape, name: str, paint: Any) -> str:
    if isinstance(one, PlacedText):
        x, y = _round(one.x), _round(one.y)
        at = f'transform="translate({x} {y}) rotate(-90)"' if one.turned else f'x="{x}" y="{y}"'
        bold = "; font-weight: bold" * one.bold
        return (
            f'<text {at} text-anchor="{one.anchor}" style="fill: {paint(one.colour)}; '
            f'font-size: {one.size:g}px{bold}">{escape(one.text)}</text>'
        )
    if isinstance(one, Line):
        points = " ".join(f"{_round(x)},{_round(y)}" for x, y in one.points)
        fill = paint(one.fill) if one.fill else "none"
        style = f"fill: {fill}; stroke: {paint(one.colour)}; stroke-width: {one.width:g}"
        style += f"; stroke-dasharray: {' '.join(map(str, one.dash))}" if one.dash else ""
        style += f"; opacity: {one.opacity:g}" if one.opacity < 1 else ""
        return f'<polyline points="{points}" style="{style}"/>'
    if isinstance(one, Disc):
        return (
            f'<circle cx="{_round(one.x)}" cy="{_round(one.y)}" r="{one.radius:g}" '
            f'style="fill: {paint(one.colour)}"/>'
        )
    if isinstance(one, Letter):
        return (
            f'<use href="#{name}-{one.base}" transform="translate({_round(one.x)} '
            f'{_round(one.y)}) scale({one.width / 100:.4g} {one.height / 100:.4g})"/>'
        )
    place = (
        f'x="{_round(one.x)}" y="{_round(one.y)}" width="{_round(one.width)}" '
        f'height="{_round(one.height)}"'
    )
    if isinstance(one, Box):
        fill = paint(one.fill) if one.fill else "none"
        edge = f"; stroke: {paint(one.edge)}" if one.edge else ""
        pale = f"; opacity: {one.opacity:g}" if one.opacity < 1 else ""
        return f'<rect {place} style="fill: {fill}{edge}{pale}"/>'
    key = f'class="{one.key}" ' if one.key else ""
    return (
        f'<image {key}href="{encode_picture(one.colours)}" {place} preserveAspectRatio="none" '
        'style="image-rendering: pixelated"/>'
    )


def encode_picture(colours: NDArray[Any]) -> str:
    """A PNG of colours (rows, columns, 4) as a `data:` address."""
    buffer = io.BytesIO()
    imsave(buffer, colours, format="png", metadata={"Software": "genodiff"})
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _round(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
