"""Pictures of saturation mutagenesis: a logo above a heat map, by themselves or on a page."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.io.genes import Gene
from genodiff.maps.map_files import SaturationMap
from genodiff.maps.map_regions import BASES
from genodiff.reports.gene_rows import draw_region_genes
from genodiff.reports.heat_map import colour_cells, draw_scale, find_limit
from genodiff.reports.logo import list_logo_shapes
from genodiff.reports.map_page import MapDrawer, encode_numbers
from genodiff.reports.shapes import Cells, Disc, PlacedText, Shape, find_frame, move

_CELL, _ROW = 12.0, 16.0  # of a column, of a row
_LOGO_HEIGHT, _LOGO_EDGES = 80.0, 26.0


def weigh_by_information(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """(L, 4): p times 2 − entropy in bits, from logarithms that need not be normalised."""
    p = np.exp(logs - logs.max(1, keepdims=True))
    p = p / p.sum(1, keepdims=True)
    entropy = -np.where(p > 0, p * np.log2(np.maximum(p, 1e-300)), 0.0).sum(1, keepdims=True)
    heights: NDArray[np.float64] = p * (2 - entropy)
    return heights


def _list_shapes(one: SaturationMap, told: Mapping[str, Any], genes: Sequence[Gene]) -> list[Shape]:
    """The logo, the cells, and the genes below.

    Heights of the logo are of a run the chances times information in bits. Of an oracle they are at
    the reference, by how much the other bases lower the prediction in the mean.
    """
    if is_oracle := told["context"] is None:
        columns = one.region.columns
        known = np.flatnonzero(columns >= 0)
        heights = np.zeros_like(one.score.T)
        heights[known, columns[known]] = -one.score.T[known].sum(1) / 3
    else:
        scale = np.log(2) if told["unit"] == "bits" else 1.0
        heights = weigh_by_information(one.score.T * scale)
    unit = "mean effect" if is_oracle else "bits"
    shapes = list_logo_shapes(
        heights, first=one.region.first, unit=unit, column=_CELL, height=_LOGO_HEIGHT
    )
    shapes += move(_list_cells(one, told["unit"]), 0, _LOGO_HEIGHT + _LOGO_EDGES)
    below = find_frame(shapes)
    return shapes + draw_region_genes(genes, one.region, _CELL, below.top + below.height + 4)


def _list_cells(one: SaturationMap, unit: str) -> list[Shape]:
    """The reference, and a row for each base that is put in its place."""
    n, limit, shapes = len(one.region.letters), find_limit(one.score), list[Shape]()
    for place, letter in enumerate(one.region.letters):
        colour = letter.lower() if letter in BASES else "muted"
        shapes.append(PlacedText(_CELL * (place + 0.5), _ROW * 0.75, letter, 10, colour))
    for row, base in enumerate(BASES):
        shapes.append(PlacedText(-8, _ROW * (row + 1.75), base, 11, base.lower()))
    shapes.append(Cells(colour_cells(one.score, limit), 0, _ROW, _CELL * n, 4 * _ROW, "cells"))
    for place, column in enumerate(one.region.columns):
        if column >= 0:  # a dot is the base as it stands
            shapes.append(Disc(_CELL * (place + 0.5), _ROW * (column + 1.5), 1.6))
    return shapes + draw_scale(limit, 0, 5.4 * _ROW, 200, signed=True, unit=unit)


def _explain(told: Mapping[str, Any]) -> str:
    above = (
        "mean decrease of the prediction by the other three bases"
        if told["context"] is None
        else "the predicted probabilities of each base given all others, times information"
    )
    return (
        f"Above: {above}. Below: {told['score']}, in {told['unit']}. Blue is above 0, orange "
        "below, a dot is the reference, grey is N."
    )


def _pack(one: SaturationMap) -> dict[str, Any]:
    return {"scores": encode_numbers(one.score.T.astype("<f4"))}


ISM = MapDrawer(
    "ism", "Saturation mutagenesis", lambda told: told["score"], _list_shapes, _explain, _pack
)
