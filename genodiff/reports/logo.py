"""A sequence logo: letters A, C, G, T of given heights, in the page's colours.

Heights may be information (p · R bits), or effects of either sign. Letters above zero are stacked
with the largest on top, those below hang from the axis with the largest at the bottom. A height
that is 0 or not finite is a letter that is not there.

The letters are outlines of our own in a box of 100 × 100, so a page that draws them in a canvas
(`shapes.GLYPHS`) has the same letters.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.reports.shapes import Letter, Line, PlacedText, Shape, measure_text

LETTERS = "ACGT"

_ABOVE = 6.0
_LEAST = 0.4  # pixels of the smallest letter that is drawn
_GAP = 0.06  # share of a column between two letters


def list_logo_shapes(
    heights: NDArray[Any],
    *,
    first: int = 1,
    unit: str = "bits",
    column: float = 12.0,
    height: float = 90.0,
) -> list[Shape]:
    """The shapes of a logo of `heights` (L, 4); its columns begin at 0, its letters at 6 pixels.

    `first` is the number of the first column on the axis; numbers fall from a negative one.
    The scale goes from 0, or the lowest sum, to the highest. `column` and `height` are pixels of a
    column and of the letters. Raises `ValueError` for an array of another shape.
    """
    values = np.asarray(heights, np.float64)
    if values.ndim != 2 or values.shape[1] != len(LETTERS) or not len(values):
        raise ValueError(f"heights have the shape {values.shape}, not (columns, 4)")
    values = np.where(np.isfinite(values), values, 0.0)
    low, high = find_limits(values)
    scale = height / (high - low)
    zero = _ABOVE + high * scale
    shapes = draw_height_axis(column * len(values), _ABOVE, height, (low, high), unit)
    shapes += draw_numbers(first, len(values), column, _ABOVE + height + 13)
    for place, row in enumerate(values):
        shapes += stack_letters(column * place, column, row * scale, zero)
    return shapes


def find_limits(values: NDArray[Any]) -> tuple[float, float]:
    """The ends of a scale that holds every stack of letters; (0, 1) where all are 0."""
    values = np.where(np.isfinite(values), values, 0.0)
    low = float(np.minimum(values, 0).sum(1).min(initial=0.0))
    high = float(np.maximum(values, 0).sum(1).max(initial=0.0))
    return (low, high) if low < high else (0.0, 1.0)


def stack_letters(left: float, column: float, pixels: NDArray[Any], zero: float) -> list[Letter]:
    """The letters of one column, from the axis outwards, the smallest first."""
    shapes: list[Letter] = []
    up = down = zero
    for i in np.argsort(np.abs(pixels), kind="stable"):
        size = abs(float(pixels[i]))
        if size == 0:
            continue
        if pixels[i] > 0:
            up -= size
        top = up if pixels[i] > 0 else down
        if pixels[i] < 0:
            down += size
        if size >= _LEAST:
            x, wide = left + column * _GAP / 2, column * (1 - _GAP)
            shapes.append(Letter(LETTERS[i], x, top, wide, size))
    return shapes


def draw_height_axis(
    right: float, top: float, height: float, limits: tuple[float, float], unit: str
) -> list[Shape]:
    """The axis of heights with its ends, the zero line up to `right`, and the unit."""
    low, high = limits
    zero = top + height * high / (high - low)
    shapes: list[Shape] = [
        Line(((-3.0, top), (-3.0, top + height))),
        Line(((-3.0, zero), (right, zero))),
    ]
    widest = 0.0
    for value in sorted({low, 0.0, high}):
        text, y = f"{value:.3g}", top + height * (high - value) / (high - low)
        widest = max(widest, measure_text(text, 9.0))
        shapes.append(PlacedText(-6.0, y + 3, text, anchor="end"))
    shapes.append(PlacedText(-12.0 - widest, top + height / 2, unit, turned=True))
    return shapes


def draw_numbers(first: int, columns: int, column: float, y: float) -> list[Shape]:
    """Numbers below the columns, at the middle of each."""
    ticks = list_ticks(first, columns, column)
    return [PlacedText(middle, y, f"{number:,}") for number, middle in ticks]


def list_ticks(first: int, n: int, cell: float) -> list[tuple[int, float]]:
    """Numbers for an axis of `n` cells that begins with `first`, and the middle of each cell.

    Numbers fall from a negative `first`.
    """
    step = find_step(n, cell, len(f"{first + n:,}"))
    numbers = range(first + -first % step, first + n, step)
    return [(abs(number), cell * (number - first + 0.5)) for number in numbers]


def find_step(columns: int, column: float, letters: int) -> int:
    """The distance of two numbers below the columns: 1, 2 or 5 times a power of 10."""
    wanted = (6.0 * letters + 12) / column
    power = 10 ** math.floor(math.log10(max(wanted, 1)))
    return next(n * power for n in (1, 2, 5, 10) if n * power >= min(wanted, 10 * power))
