"""Heat maps: a picture of one pixel a cell, enlarged without smoothing.

A cell is drawn in one of two colours, and its opacity is its size. So the page's background, light
or dark, is what 0 looks like. A value that is not known is grey.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.reports.shapes import Cells, PlacedText, Shape

UP, DOWN, UNKNOWN = (11, 99, 176), (201, 79, 36), (128, 128, 128)
"""Colours of values above and below 0, and of what is not known."""
_UNKNOWN_OPACITY = 0.25
_PERCENTILE = 99.5


def find_limit(values: NDArray[Any]) -> float:
    """The size that is drawn in full colour: nearly the largest, so that few cells outshine all.

    1 where all values are 0 or not known.
    """
    sizes = np.abs(values[np.isfinite(values)])
    sizes = sizes[sizes > 0]
    return float(np.percentile(sizes, _PERCENTILE)) if len(sizes) else 1.0


def colour_cells(values: NDArray[Any], limit: float) -> NDArray[np.uint8]:
    """Colours (rows, columns, 4) of values (rows, columns)."""
    shown = np.zeros((*values.shape, 4), np.uint8)
    known = np.isfinite(values)
    share = np.clip(np.abs(np.where(known, values, 0)) / limit, 0, 1)
    for colour, where in ((UP, values > 0), (DOWN, values < 0), (UNKNOWN, ~known)):
        shown[where, :3] = colour
    shown[..., 3] = np.round(255 * np.where(known, share, _UNKNOWN_OPACITY))
    return shown


def draw_scale(
    limit: float, x: float, y: float, width: float, *, signed: bool, unit: str
) -> list[Shape]:
    """A bar of colours with the values of its ends."""
    steps = np.linspace(-1 if signed else 0, 1, 64)[None]
    least = f"−{limit:.3g}" if signed else "0"
    return [
        Cells(colour_cells(steps, 1.0), x, y, width, 8),
        PlacedText(x, y + 18, least, anchor="start"),
        PlacedText(x + width, y + 18, f"{limit:.3g} {unit} or more", anchor="end"),
    ]
