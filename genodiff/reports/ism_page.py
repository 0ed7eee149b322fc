"""Pictures of saturation mutagenesis: a logo above a heat map, as .svg or on a page by itself."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from genodiff.reports.heat_map import (
    draw_scale,
    find_limit,
    open_svg,
    place_picture,
    stack_pictures,
    write_text,
)
from genodiff.reports.logo import draw_logo
from genodiff.reports.map_page import encode_numbers, explain_strand, render_map_page
from genodiff.scoring.map_files import SaturationMap
from genodiff.scoring.map_regions import BASES, MapRegion

_LEFT, _CELL, _ROW = 30.0, 12.0, 16.0  # of the labels, of a column, of a row
_LOGO_HEIGHT, _LOGO_EDGES = 80.0, 24.0


def draw_ism_picture(maps: Sequence[SaturationMap], told: Mapping[str, Any], run: str) -> str:
    """One region as an .svg that stands by itself."""
    (one,) = maps
    wide = _LEFT + _CELL * len(one.region.letters) + 2
    pictures = [
        (_draw_letters(one, told, "region-1"), wide, _LOGO_HEIGHT + _LOGO_EDGES),
        (_draw_cells(one, told["unit"]), max(wide, 260.0), 6 * _ROW + 30),
    ]
    head = f"{one.region.label} · {told['score']}"
    return stack_pictures(pictures, f"Saturation mutagenesis of {one.region.label}", head)


def render_ism_page(maps: Sequence[SaturationMap], told: Mapping[str, Any], run: str) -> str:
    """All regions on a page that needs no network."""
    sections = []
    for number, one in enumerate(maps, 1):
        sections.append(
            {
                "id": f"region-{number}",
                "title": one.region.name,
                "place": one.region.label,
                "figure": Markup(
                    _draw_letters(one, told, f"region-{number}") + _draw_cells(one, told["unit"])
                ),
                "width": f"{max(_LEFT + _CELL * len(one.region.letters) + 2, 260):g}",
                "caption": _explain(told) + explain_strand(one.region),
                "kind": "ism",
                "numbers": {
                    "contig": one.region.contig,
                    "first": one.region.first,
                    "letters": one.region.letters,
                    "scores": encode_numbers(one.score.T.astype("<f4")),
                },
            }
        )
    return render_map_page("ism", run, told, sections)


def find_heights(one: SaturationMap, is_oracle: bool) -> NDArray[np.float64]:
    """Heights (L, 4) of the logo.

    Of a run: chances times information in bits. Of an oracle: at the reference, by how much the
    other bases lower the prediction in the mean.
    """
    score = one.score.T
    if is_oracle:
        columns = one.region.columns
        known = np.flatnonzero(columns >= 0)
        heights = np.zeros_like(score)
        heights[known, columns[known]] = -score[known].sum(1) / 3
        return heights
    return weigh_by_information(score)


def weigh_by_information(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """(L, 4): p times 2 − entropy in bits, from logarithms that need not be normalised."""
    p = np.exp(logs - logs.max(1, keepdims=True))
    p = p / p.sum(1, keepdims=True)
    entropy = -np.where(p > 0, p * np.log2(np.maximum(p, 1e-300)), 0.0).sum(1, keepdims=True)
    heights: NDArray[np.float64] = p * (2 - entropy)
    return heights


def _draw_letters(one: SaturationMap, told: Mapping[str, Any], name: str) -> str:
    scale = np.log(2) if told["unit"] == "bits" else 1.0
    is_oracle = told["context"] is None
    natural = one if is_oracle else SaturationMap(one.region, one.score * scale)
    return draw_logo(
        find_heights(natural, is_oracle),
        name=name,
        title=f"Logo of {one.region.label}",
        first=one.region.first,
        unit="mean effect" if is_oracle else "bits",
        column=_CELL,
        height=_LOGO_HEIGHT,
    )


def _draw_cells(one: SaturationMap, unit: str) -> str:
    """The reference, and a row for each base that is put in its place."""
    n, limit = len(one.region.letters), find_limit(one.score)
    wide = max(_LEFT + _CELL * n + 2, 260.0)
    parts = [open_svg(wide, 6 * _ROW + 30, f"Scores of {one.region.label}")]
    parts.append(_draw_reference(one.region))
    for row, base in enumerate(BASES):
        y = _ROW * (row + 1.75)
        parts.append(write_text(_LEFT - 8, y, base, size=11, colour=base.lower()))
    parts.append(place_picture(one.score, limit, _LEFT, _ROW, _CELL * n, 4 * _ROW))
    for place, column in enumerate(one.region.columns):
        if column >= 0:  # a dot is the base as it stands
            x, y = _LEFT + _CELL * (place + 0.5), _ROW * (column + 1.5)
            parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="1.6" style="fill: var(--muted)"/>')
    parts.append(draw_scale(limit, _LEFT, 5.4 * _ROW, 200, signed=True, unit=unit))
    return "".join([*parts, "</svg>"])


def _draw_reference(region: MapRegion) -> str:
    return "".join(
        write_text(
            _LEFT + _CELL * (place + 0.5), _ROW * 0.75, letter, size=10,
            colour=letter.lower() if letter in BASES else "muted",
        )
        for place, letter in enumerate(region.letters)
    )  # fmt: skip


def _explain(told: Mapping[str, Any]) -> str:
    above = (
        "by how much the other three bases lower the prediction in the mean"
        if told["context"] is None
        else "the chances that the model gives each base, all others being known, times information"
    )
    return (
        f"Above: {above}. Below: {told['score']}, in {told['unit']}. Blue is above 0, orange "
        "below, a dot is the reference, grey is N."
    )
