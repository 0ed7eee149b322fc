"""Pictures of dependency maps: a square with a logo above, by themselves or on a page."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from genodiff.io.genes import Gene
from genodiff.maps.map_files import PairMap
from genodiff.reports.gene_rows import draw_region_genes
from genodiff.reports.heat_map import draw_scale, find_limit, place_map
from genodiff.reports.ism_page import weigh_by_information
from genodiff.reports.logo import draw_numbers, list_logo_shapes, list_ticks
from genodiff.reports.map_page import encode_numbers, explain_strand, put_head, render_map_page
from genodiff.reports.shapes import (
    Box,
    PlacedText,
    Shape,
    find_frame,
    measure_text,
    move,
    write_svg,
)

_SIDE = 840.0  # pixels of a map, about
_LARGEST_CELL = 12.0
_SMALLEST_LETTER = 5.0  # pixels of a column of the logo
_NO_VALUE = 255
_LOGO_HEIGHT, _LOGO_EDGES = 50.0, 26.0


def list_dependency_picture(
    maps: Sequence[PairMap], told: Mapping[str, Any], genes: Sequence[Sequence[Gene]]
) -> tuple[list[Shape], str]:
    """The shapes of one region, with a line above that says what they are, and a title."""
    (one,) = maps
    head = f"{one.region.label} · dependencies in {told['unit']}"
    title = f"Dependency map of {one.region.label}"
    return put_head(_list_shapes(one, told["unit"], genes[0]), head), title


def render_dependency_page(
    maps: Sequence[PairMap], told: Mapping[str, Any], genes: Sequence[Sequence[Gene]]
) -> str:
    """All regions on a page that needs no network; `genes` are those of each region."""
    sections = []
    for number, (one, beside) in enumerate(zip(maps, genes, strict=True), 1):
        shapes = _list_shapes(one, told["unit"], beside)
        name, title = f"region-{number}", f"Dependency map of {one.region.label}"
        change, code, scale = _pack(one)
        sections.append(
            {
                "id": name,
                "region": one.region,
                "figure": Markup(write_svg(shapes, name, title)),
                "width": f"{find_frame(shapes).width:g}",
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
    return render_map_page("dependencies", told, sections)


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


def _list_shapes(one: PairMap, unit: str, genes: Sequence[Gene]) -> list[Shape]:
    """The logo, where its letters can be read, the map, and the genes below its targets."""
    n = len(one.region.letters)
    cell, shapes = min(_LARGEST_CELL, _SIDE / n), list[Shape]()
    if cell >= _SMALLEST_LETTER:
        shapes += list_logo_shapes(
            weigh_by_information(np.log(np.maximum(one.p.T, 1e-300))),
            first=one.region.first,
            column=cell,
            height=_LOGO_HEIGHT,
        )
        shapes = move(shapes, 0, -_LOGO_HEIGHT - _LOGO_EDGES)
    shapes += _list_square(one, cell, unit)
    below = find_frame(shapes)
    return shapes + draw_region_genes(genes, one.region, cell, below.top + below.height + 4)


def _list_square(one: PairMap, cell: float, unit: str) -> list[Shape]:
    n, values = len(one.region.letters), one.dependency
    limit, side, first = find_limit(values), cell * n, one.region.first
    ticks = [(f"{number:,}", middle) for number, middle in list_ticks(first, n, cell)]
    widest = max((measure_text(text, 9.0) for text, _ in ticks), default=0.0)
    return [
        Box(0, 0, side, side, edge="grid"),
        place_map(values, limit, 0, 0, side, side),
        *draw_numbers(first, n, cell, side + 13),
        *(PlacedText(-5, middle + 3, text, anchor="end") for text, middle in ticks),
        PlacedText(side / 2, side + 25, "target"),
        PlacedText(-10 - widest, side / 2, "source", turned=True),
        *draw_scale(limit, 0, side + 34, 200, signed=False, unit=unit),
    ]
