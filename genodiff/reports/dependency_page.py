"""Pictures of dependency maps: a square with a logo above, as .svg or on a page by itself."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from genodiff.reports.heat_map import (
    draw_scale,
    find_limit,
    list_ticks,
    open_svg,
    place_picture,
    stack_pictures,
    write_text,
)
from genodiff.reports.ism_page import weigh_by_information
from genodiff.reports.logo import draw_logo
from genodiff.reports.map_page import encode_numbers, explain_strand, render_map_page
from genodiff.scoring.map_files import PairMap

_LEFT, _TOP, _BELOW = 30.0, 4.0, 60.0
_SIDE = 840.0  # pixels of a map, about
_LARGEST_CELL = 12.0
_SMALLEST_LETTER = 5.0  # pixels of a column of the logo
_NO_VALUE = 255
_LOGO_HEIGHT, _LOGO_EDGES = 50.0, 24.0


def draw_dependency_picture(maps: Sequence[PairMap], told: Mapping[str, Any], run: str) -> str:
    """One region as an .svg that stands by itself."""
    (one,) = maps
    pictures = [(_draw_square(one, told["unit"]), *_size(one))]
    logo = _draw_letters(one, "region-1")
    if logo:
        pictures.insert(0, (logo, _size(one)[0], _LOGO_HEIGHT + _LOGO_EDGES))
    head = f"{one.region.label} · dependencies in {told['unit']}"
    return stack_pictures(pictures, f"Dependency map of {one.region.label}", head)


def render_dependency_page(maps: Sequence[PairMap], told: Mapping[str, Any], run: str) -> str:
    """All regions on a page that needs no network."""
    sections = []
    for number, one in enumerate(maps, 1):
        name = f"region-{number}"
        change, code, scale = _pack(one)
        sections.append(
            {
                "id": name,
                "title": one.region.name,
                "place": one.region.label,
                "figure": Markup(_draw_letters(one, name) + _draw_square(one, told["unit"])),
                "width": f"{_size(one)[0]:g}",
                "caption": f"{told['score'].capitalize()}, in {told['unit']}. Rows are sources, "
                "columns are targets. The darker, the stronger; grey is N. Above: the chances that "
                "the model gives each base, times information." + explain_strand(one.region),
                "kind": "dependencies",
                "numbers": {
                    "contig": one.region.contig,
                    "first": one.region.first,
                    "letters": one.region.letters,
                    "scale": scale,
                    "change": encode_numbers(change),
                    "code": encode_numbers(code),
                },
            }
        )
    return render_map_page("dependencies", run, told, sections)


def _pack(one: PairMap) -> tuple[NDArray[np.int16], NDArray[np.uint8], float]:
    """The signed change of each pair in 16 bits of the scale, and 4 · alt + base in a byte."""
    size = np.abs(one.change)
    known = np.isfinite(one.dependency)
    alt = np.where(np.isfinite(size), size, -1).argmax(1)
    source, target = np.indices(alt.shape)
    signed, base = one.change[source, alt, target], one.base[source, alt, target]
    scale = float(np.abs(signed[known]).max(initial=0.0)) or 1.0
    change = np.round(np.where(known, signed, 0) / scale * 32767).astype("<i2")
    code = np.where(known & (base >= 0), 4 * alt + base, _NO_VALUE).astype(np.uint8)
    return change, code, scale


def _cell(one: PairMap) -> float:
    return min(_LARGEST_CELL, _SIDE / len(one.region.letters))


def _size(one: PairMap) -> tuple[float, float]:
    side = _cell(one) * len(one.region.letters)
    return max(_LEFT + side + 2, 260.0), _TOP + side + _BELOW


def _draw_letters(one: PairMap, name: str) -> str:
    """The logo above the map; nothing where its letters would be too narrow to be read."""
    if _cell(one) < _SMALLEST_LETTER:
        return ""
    return draw_logo(
        weigh_by_information(np.log(np.maximum(one.p.T, 1e-300))),
        name=name,
        title=f"Logo of {one.region.label}",
        first=one.region.first,
        column=_cell(one),
        height=_LOGO_HEIGHT,
    )


def _draw_square(one: PairMap, unit: str) -> str:
    n, cell, values = len(one.region.letters), _cell(one), one.dependency
    limit, side = find_limit(values), cell * n
    wide, tall = _size(one)
    parts = [open_svg(wide, tall, f"Dependency map of {one.region.label}")]
    parts.append(
        f'<rect x="{_LEFT:g}" y="{_TOP:g}" width="{side:g}" height="{side:g}" '
        'style="fill: none; stroke: var(--grid)"/>'
    )
    parts.append(place_picture(values, limit, _LEFT, _TOP, side, side))
    for number, middle in list_ticks(one.region.first, n, cell):
        parts.append(write_text(_LEFT + middle, _TOP + side + 13, f"{number:,}"))
        parts.append(write_text(_LEFT - 5, _TOP + middle, f"{number:,}", turned=True))
    parts.append(write_text(_LEFT + side / 2, _TOP + side + 25, "target"))
    parts.append(write_text(10, _TOP + side / 2, "source", turned=True))
    parts.append(draw_scale(limit, _LEFT, _TOP + side + 34, 200, signed=False, unit=unit))
    return "".join([*parts, "</svg>"])
