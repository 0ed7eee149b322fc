"""Curves in a terminal, drawn with braille dots: two across and four down in a character."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # of U+2800, by row and column


class Curve(NamedTuple):
    """Points (x, y) in the order of x, and a colour of rich; `joined` by lines, or alone."""

    points: Sequence[tuple[float, float]]
    style: str
    joined: bool = True


def draw_curves(curves: Sequence[Curve], width: int, height: int) -> Text:
    """The curves over one pair of axes, in `width` characters and `height` lines and one for x.

    Points in one column of dots are averaged. Y runs from the lowest to the highest average.
    """
    label = 8
    across, down = 2 * max(2, width - label), 4 * max(1, height)
    places = [(x, y) for c in curves for x, y in c.points if math.isfinite(y)]
    if not places:
        return Text("no figures yet", style="dim")
    left, right = min(x for x, _ in places), max(x for x, _ in places)
    averaged = [_average(c.points, left, right, across) for c in curves]
    heights = [y for columns in averaged for y in columns.values()]
    low, high = min(heights), max(heights)
    cells: dict[tuple[int, int], tuple[int, str]] = {}
    for curve, columns in zip(curves, averaged, strict=True):
        before: tuple[int, int] | None = None
        for column, y in columns.items():
            row = round((high - y) / (high - low) * (down - 1)) if high > low else down // 2
            here = (column, row)
            for x, dot in _join(before if curve.joined else None, here):
                old = cells.get((dot // 4, x // 2), (0, ""))[0]
                cells[dot // 4, x // 2] = (old | _DOTS[dot % 4][x % 2], curve.style)
            before = here
    text = Text()
    for line in range(down // 4):
        value = high - (high - low) * line / max(1, down // 4 - 1)
        marked = line in (0, down // 8, down // 4 - 1)
        text.append(f"{value:7.3f} " if marked else " " * label, style="dim")
        for place in range(across // 2):
            dots, style = cells.get((line, place), (0, ""))
            text.append(chr(0x2800 + dots) if dots else " ", style=style)
        text.append("\n")
    first, last = f"{left:,.0f}", f"{right:,.0f}"
    text.append(" " * label + first + last.rjust(across // 2 - len(first)), style="dim")
    return text


def _average(
    points: Sequence[tuple[float, float]], left: float, right: float, columns: int
) -> dict[int, float]:
    """Mean y by column of dots, in the order of columns."""
    sums: dict[int, tuple[float, int]] = {}
    for x, y in points:
        if math.isfinite(y):
            share = (x - left) / (right - left) if right > left else 0.0
            column = min(int(share * columns), columns - 1)
            total, number = sums.get(column, (0.0, 0))
            sums[column] = (total + y, number + 1)
    return {column: total / number for column, (total, number) in sorted(sums.items())}


def _join(before: tuple[int, int] | None, here: tuple[int, int]) -> list[tuple[int, int]]:
    """The dots of a line from the place before to this one."""
    if before is None:
        return [here]
    steps = max(abs(here[0] - before[0]), abs(here[1] - before[1]), 1)
    return [
        (
            round(before[0] + (here[0] - before[0]) * i / steps),
            round(before[1] + (here[1] - before[1]) * i / steps),
        )
        for i in range(1, steps + 1)
    ]
