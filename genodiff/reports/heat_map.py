"""Heat maps as inline SVG: a picture of one pixel a cell, enlarged without smoothing.

A cell is drawn in one of two colours, and its opacity is its size. So the page's background, light
or dark, is what 0 looks like. A value that is not known is grey.
"""

import base64
import io
from html import escape
from typing import Any

import numpy as np
from matplotlib.image import imsave
from numpy.typing import NDArray

from genodiff.reports.logo import find_step

UP, DOWN, UNKNOWN = (11, 99, 176), (201, 79, 36), (128, 128, 128)
"""Colours of values above and below 0, and of what is not known."""
_UNKNOWN_OPACITY = 0.25
_PERCENTILE = 99.5

STYLE = """
svg { --ink: #1c2126; --muted: #5c6670; --grid: #e3e6e8; --paper: #ffffff; --wash: #eef4fa;
  --a: #1a7f37; --c: #0b5cad; --g: #96600a; --t: #b3261e;
  font-family: system-ui, "DejaVu Sans", sans-serif; background: var(--paper); }
@media (prefers-color-scheme: dark) { svg { --ink: #e6e9ec; --muted: #9aa5af; --grid: #2c3238;
  --paper: #1b1f23; --wash: #1d2833; --a: #62d58a; --c: #74b8ff; --g: #f2bd5c; --t: #ff8f86; } }
"""
"""Colours of a picture that stands by itself, as the pages' style has them."""


def find_limit(values: NDArray[Any]) -> float:
    """The size that is drawn in full colour: nearly the largest, so that few cells outshine all.

    1 where all values are 0 or not known.
    """
    sizes = np.abs(values[np.isfinite(values)])
    sizes = sizes[sizes > 0]
    return float(np.percentile(sizes, _PERCENTILE)) if len(sizes) else 1.0


def encode_picture(values: NDArray[Any], limit: float) -> str:
    """A PNG of values (rows, columns) as a `data:` address."""
    shown = np.zeros((*values.shape, 4), np.uint8)
    known = np.isfinite(values)
    share = np.clip(np.abs(np.where(known, values, 0)) / limit, 0, 1)
    for colour, where in ((UP, values > 0), (DOWN, values < 0), (UNKNOWN, ~known)):
        shown[where, :3] = colour
    shown[..., 3] = np.round(255 * np.where(known, share, _UNKNOWN_OPACITY))
    buffer = io.BytesIO()
    imsave(buffer, shown, format="png", metadata={"Software": "genodiff"})
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def place_picture(
    values: NDArray[Any], limit: float, x: float, y: float, width: float, height: float
) -> str:
    """An SVG `<image>` of `values` at a place."""
    return (
        f'<image class="cells" href="{encode_picture(values, limit)}" x="{x:g}" y="{y:g}" '
        f'width="{width:g}" height="{height:g}" preserveAspectRatio="none" '
        'style="image-rendering: pixelated"/>'
    )


def open_svg(width: float, height: float, title: str) -> str:
    """The start of an `<svg>` for an HTML page; screen readers read `title`."""
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(title, quote=True)}" style="max-width: {width:g}px">'
    )


def write_text(
    x: float, y: float, text: str, *, size: float = 9, colour: str = "muted",
    anchor: str = "middle", turned: bool = False,
) -> str:  # fmt: skip
    """An SVG `<text>`; `turned` runs upwards."""
    at = f'transform="translate({x:g} {y:g}) rotate(-90)"' if turned else f'x="{x:g}" y="{y:g}"'
    return (
        f'<text {at} text-anchor="{anchor}" '
        f'style="fill: var(--{colour}); font-size: {size:g}px">{escape(text)}</text>'
    )


def list_ticks(first: int, n: int, cell: float) -> list[tuple[int, float]]:
    """Numbers for an axis of `n` cells that begins with `first`, and the middle of each cell.

    Numbers fall from a negative `first`.
    """
    step = find_step(n, cell, len(f"{first + n:,}"))
    numbers = range(first + -first % step, first + n, step)
    return [(abs(number), cell * (number - first + 0.5)) for number in numbers]


def draw_scale(limit: float, x: float, y: float, width: float, *, signed: bool, unit: str) -> str:
    """A bar of colours with the values of its ends."""
    steps = np.linspace(-1 if signed else 0, 1, 64)[None]
    least = f"−{limit:.3g}" if signed else "0"
    return (
        place_picture(steps, 1.0, x, y, width, 8)
        + write_text(x, y + 18, least, anchor="start")
        + write_text(x + width, y + 18, f"{limit:.3g} {unit} or more", anchor="end")
    )


def stack_pictures(pictures: list[tuple[str, float, float]], title: str, head: str) -> str:
    """A picture that stands by itself: `<svg>` elements of a width and height, one below the other.

    `title` is read by screen readers, `head` is a line above.
    """
    width, at, parts = max(one[1] for one in pictures), 22.0, []
    for svg, wide, tall in pictures:
        place = f'<svg x="0" y="{at:g}" width="{wide:g}" height="{tall:g}" viewBox='
        parts.append(svg.replace("<svg viewBox=", place, 1))
        at += tall
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{at:g}" '
        f'viewBox="0 0 {width:g} {at:g}" role="img" aria-label="{escape(title, quote=True)}">'
        f"<title>{escape(title)}</title><style>{STYLE}</style>"
        f'<rect width="100%" height="100%" style="fill: var(--paper)"/>'
        f"{write_text(8, 15, head, size=11, colour='ink', anchor='start')}"
        f"{''.join(parts)}</svg>\n"
    )
