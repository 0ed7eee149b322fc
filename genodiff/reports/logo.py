"""A sequence logo as inline SVG: letters A, C, G, T of given heights, in the page's colours.

Heights may be information (p · R bits), or effects of either sign. Letters above zero are stacked
with the largest on top, those below hang from the axis with the largest at the bottom. A height
that is 0 or not finite is a letter that is not there.

The letters are outlines of our own in a box of 100 × 100, so a page that draws them in a canvas
(`GLYPHS`) has the same letters.
"""

import math
from collections.abc import Collection
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

GLYPHS = {
    "A": "M0 100L38 0H62L100 100H79L72 79H28L21 100ZM50 19L34 62H66Z",
    "C": "M100 81A56 50 0 1 1 100 19L83 32A35 33 0 1 0 83 68Z",
    "G": "M100 81A56 50 0 1 1 100 19L83 32A35 33 0 1 0 81 70V61H58V46H100Z",
    "T": "M0 0H100V17H61V100H39V17H0Z",
}
"""Outlines as SVG paths, y downwards, to be filled by the even-odd rule."""
LETTERS = "ACGT"

_LEFT, _BELOW, _ABOVE = 30.0, 18.0, 6.0  # of the axes and their numbers
_LEAST = 0.4  # pixels of the smallest letter that is drawn
_GAP = 0.06  # share of a column between two letters


def draw_logo(
    heights: NDArray[Any],
    *,
    name: str,
    title: str,
    first: int = 1,
    limits: tuple[float, float] | None = None,
    unit: str = "bits",
    column: float = 12.0,
    height: float = 90.0,
    marked: Collection[int] = (),
) -> str:
    """A logo of `heights` (L, 4), columns A, C, G, T, as an `<svg>` element for an HTML page.

    `name` (letters, digits and hyphens) must be unique in the page; screen readers read `title`.
    `first` is the number of the first column on the axis; numbers fall from a negative one.
    `limits` are the ends of the scale (default: 0, or the lowest sum, to the highest). `column` and
    `height` are pixels of a column and of the letters. `marked` columns (from 0) have a wash behind
    them. Raises `ValueError` for an array of another shape, and for limits that hold no range.
    """
    values = np.asarray(heights, np.float64)
    if values.ndim != 2 or values.shape[1] != len(LETTERS) or not len(values):
        raise ValueError(f"heights have the shape {values.shape}, not (columns, 4)")
    values = np.where(np.isfinite(values), values, 0.0)
    low, high = limits or find_limits(values)
    if not low <= 0 <= high or low == high:
        raise ValueError(f"limits {low} and {high} hold no range around 0")
    scale = height / (high - low)
    zero = _ABOVE + high * scale
    wide, tall = _LEFT + column * len(values) + 2, _ABOVE + height + _BELOW
    parts = [
        f'<svg viewBox="0 0 {_round(wide)} {_round(tall)}" role="img" '
        f'aria-label="{escape(title, quote=True)}" style="max-width: {_round(wide)}px">'
    ]
    parts.append(_define_letters(name))
    for place in sorted({one for one in marked if 0 <= one < len(values)}):
        x = _round(_LEFT + column * place)
        parts.append(
            f'<rect x="{x}" y="{_round(_ABOVE)}" width="{_round(column)}" '
            f'height="{_round(height)}" style="fill: var(--wash)"/>'
        )
    parts += _draw_axes(len(values), first, (low, high), unit, column, height, zero)
    for place, row in enumerate(values):
        parts += _draw_column(name, _LEFT + column * place, column, row * scale, zero)
    return "".join([*parts, "</svg>"])


def find_limits(values: NDArray[Any]) -> tuple[float, float]:
    """The ends of a scale that holds every stack of letters; (0, 1) where all are 0."""
    values = np.where(np.isfinite(values), values, 0.0)
    low = float(np.minimum(values, 0).sum(1).min(initial=0.0))
    high = float(np.maximum(values, 0).sum(1).max(initial=0.0))
    return (low, high) if low < high else (0.0, 1.0)


def _define_letters(name: str) -> str:
    shapes = "".join(
        f'<path id="{name}-{letter}" d="{path}" '
        f'style="fill: var(--{letter.lower()}); fill-rule: evenodd"/>'
        for letter, path in GLYPHS.items()
    )
    return f"<defs>{shapes}</defs>"


def _draw_column(
    name: str, left: float, column: float, pixels: NDArray[Any], zero: float
) -> list[str]:
    """The letters of one column, from the axis outwards, the smallest first."""
    parts, up, down = [], zero, zero
    for i in np.argsort(np.abs(pixels), kind="stable"):
        size = abs(float(pixels[i]))
        if size == 0:
            continue
        if pixels[i] > 0:
            up -= size
        top = up if pixels[i] > 0 else down
        if pixels[i] < 0:
            down += size
        if size < _LEAST:
            continue
        x, wide = left + column * _GAP / 2, column * (1 - _GAP) / 100
        parts.append(
            f'<use href="#{name}-{LETTERS[i]}" transform="translate({_round(x)} {_round(top)}) '
            f'scale({wide:.4g} {size / 100:.4g})"/>'
        )
    return parts


def _draw_axes(
    columns: int, first: int, limits: tuple[float, float], unit: str, column: float,
    height: float, zero: float,
) -> list[str]:  # fmt: skip
    """The axis of heights with its ends, the zero line, and numbers of columns below."""
    right, bottom = _LEFT + column * columns, _ABOVE + height
    line = "stroke: var(--muted); stroke-width: 0.8"
    text = "fill: var(--muted); font-size: 9px"
    parts = [
        f'<path d="M{_round(_LEFT - 3)} {_round(_ABOVE)}V{_round(bottom)}'
        f'M{_round(_LEFT - 3)} {_round(zero)}H{_round(right)}" style="fill: none; {line}"/>'
    ]
    scale = height / (limits[1] - limits[0])
    for value in sorted({limits[0], 0.0, limits[1]}):
        y = _round(zero - value * scale + 3)
        parts.append(
            f'<text x="{_round(_LEFT - 6)}" y="{y}" text-anchor="end" '
            f'style="{text}">{value:.3g}</text>'
        )
    middle = _round(_ABOVE + height / 2)
    parts.append(
        f'<text transform="translate(8 {middle}) rotate(-90)" text-anchor="middle" '
        f'style="{text}">{escape(unit)}</text>'
    )
    step = find_step(columns, column, len(f"{first + columns:,}"))
    for number in range(first + -first % step, first + columns, step):
        x = _round(_LEFT + column * (number - first + 0.5))
        parts.append(
            f'<text x="{x}" y="{_round(bottom + 13)}" text-anchor="middle" '
            f'style="{text}">{abs(number):,}</text>'
        )
    return parts


def find_step(columns: int, column: float, letters: int) -> int:
    """The distance of two numbers below the columns: 1, 2 or 5 times a power of 10."""
    wanted = (6.0 * letters + 12) / column
    power = 10 ** math.floor(math.log10(max(wanted, 1)))
    return next(n * power for n in (1, 2, 5, 10) if n * power >= min(wanted, 10 * power))


def _round(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
