"""Pictures of dependency maps: a square with a logo above, by themselves or on a page."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from genodiff.io.genes import Gene
from genodiff.maps.map_files import PairMap
from genodiff.reports.gene_rows import draw_region_genes
from genodiff.reports.heat_map import colour_cells, draw_scale, find_limit
from genodiff.reports.ism_page import weigh_by_information
from genodiff.reports.logo import draw_numbers, list_logo_shapes, list_ticks
from genodiff.reports.map_page import MapDrawer, encode_numbers
from genodiff.reports.shapes import Box, Cells, PlacedText, Shape, find_frame, measure_text, move

_SIDE = 840.0  # pixels of a map, about
_LARGEST_CELL = 12.0
_SMALLEST_LETTER = 5.0  # pixels of a column of the logo
_NO_VALUE = 255
_LOGO_HEIGHT, _LOGO_EDGES = 50.0, 26.0


def _pack(one: PairMap) -> dict[str, Any]:
    """The signed change of each pair in 16 bits of the scale, and 4 · alt + base in a byte."""
    size = np.abs(one.change)
    known = np.isfinite(one.dependency)
    alt = np.where(np.isfinite(size), size, -1).argmax(1)
    source, target = np.indices(alt.shape)
    signed, base = one.change[source, alt, target], one.base[source, alt, target]
    scale = float(np.abs(signed[known]).max(initial=0.0)) or 1.0
    change = np.round(np.where(known, signed, 0) / scale * 32767).astype("<i2")
    code = np.where(known & (base >= 0), 4 * alt + base, _NO_VALUE).astype(np.uint8)
    return {"scale": scale, "change": encode_numbers(change), "code": encode_numbers(code)}


def _list_shapes(one: PairMap, told: Mapping[str, Any], genes: Sequence[Gene]) -> list[Shape]:
    """The logo, where its letters can be read, the map, and the genes below its targets."""
    n = len(one.region.letters)
    cell, shapes = min(_LARGEST_CELL, _SIDE / n), list[Shape]()
    if cell >= _SMALLEST_LETTER:
        heights, first = weigh_by_information(np.log(np.maximum(one.p.T, 1e-300))), one.region.first
        logo = list_logo_shapes(heights, first=first, column=cell, height=_LOGO_HEIGHT)
        shapes = move(logo, 0, -_LOGO_HEIGHT - _LOGO_EDGES)
    shapes += _list_square(one, cell, told["unit"])
    below = find_frame(shapes)
    return shapes + draw_region_genes(genes, one.region, cell, below.top + below.height + 4)


def _list_square(one: PairMap, cell: float, unit: str) -> list[Shape]:
    n, values = len(one.region.letters), one.dependency
    limit, side, first = find_limit(values), cell * n, one.region.first
    ticks = [(f"{number:,}", middle) for number, middle in list_ticks(first, n, cell)]
    widest = max((measure_text(text, 9.0) for text, _ in ticks), default=0.0)
    return [
        Box(0, 0, side, side, edge="grid"),
        Cells(colour_cells(values, limit), 0, 0, side, side, "cells"),
        *draw_numbers(first, n, cell, side + 13),
        *(PlacedText(-5, middle + 3, text, anchor="end") for text, middle in ticks),
        PlacedText(side / 2, side + 25, "target"),
        PlacedText(-10 - widest, side / 2, "source", turned=True),
        *draw_scale(limit, 0, side + 34, 200, signed=False, unit=unit),
    ]


def _explain(told: Mapping[str, Any]) -> str:
    return (
        f"{told['score'].capitalize()}, in {told['unit']}. Rows are sources, columns are targets. "
        "The darker, the stronger; grey is N. Above: the chances that the model gives each base, "
        "times information."
    )


DEPENDENCIES = MapDrawer(
    "dependencies",
    "Dependency map",
    lambda told: f"dependencies in {told['unit']}",
    _list_shapes,
    _explain,
    _pack,
)
