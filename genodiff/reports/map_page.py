"""Pictures of maps, by themselves or on a page with a line that says what lies under the pointer.

Saturation mutagenesis is a logo above a heat map, a dependency map is a square with a logo above.
A cell of a heat map is drawn in one of two colours, and its opacity is its size. So the page's
background, light or dark, is what 0 looks like. A value that is not known is grey.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from genodiff.io.genes import Gene
from genodiff.maps.map_regions import BASES, PairMap, SaturationMap
from genodiff.reports.gene_rows import draw_region_genes
from genodiff.reports.logo import draw_numbers, list_logo_shapes, list_ticks
from genodiff.reports.shapes import (
    Box,
    Cells,
    Disc,
    PlacedText,
    Shape,
    find_frame,
    measure_text,
    move,
    write_svg,
)
from genodiff.reports.template import encode_data, encode_numbers, render_template

_TURNED = " The region is read on the - strand: as its reverse complement, from right to left."
_UP, _DOWN, _UNKNOWN = (11, 99, 176), (201, 79, 36), (128, 128, 128)
"""Colours of values above and below 0, and of what is not known."""
_UNKNOWN_OPACITY = 0.25
_PERCENTILE = 99.5
_CELL, _ROW = 12.0, 16.0  # pixels of a column at most, and of a row
_LOGO_HEIGHT, _SMALL_LOGO, _LOGO_EDGES = 80.0, 50.0, 26.0
_SIDE = 840.0  # pixels of a dependency map, about
_SMALLEST_LETTER = 5.0  # pixels of a column of its logo
_NO_VALUE = 255
Told = Mapping[str, Any]


def put_head(shapes: list[Shape], head: str) -> list[Shape]:
    """The shapes with a line of text above them."""
    frame = find_frame(shapes)
    return [PlacedText(frame.left + 4, frame.top - 6, head, 11, "ink", "start"), *shapes]


class MapDrawer(NamedTuple):
    """How the maps of a verb are drawn, by themselves or on a page; `told` is of their sidecar.

    `head` is a line above a picture, `draw` the shapes of a map and the pixels of a base, `explain`
    the caption, and `pack` what the page's script reads.
    """

    verb: str
    title: str
    head: Callable[[Told], str]
    draw: Callable[[Any, Told], tuple[list[Shape], float]]
    explain: Callable[[Told], str]
    pack: Callable[[Any], dict[str, Any]]

    def list_picture(
        self, maps: Sequence[Any], told: Told, genes: Sequence[Sequence[Gene]]
    ) -> tuple[list[Shape], str]:
        """The shapes of one region, with a line above that says what they are, and a title."""
        (one,) = maps
        shapes, label = self._add_genes(one, told, genes[0]), one.region.label
        return put_head(shapes, f"{label} · {self.head(told)}"), f"{self.title} of {label}"

    def _add_genes(self, one: Any, told: Told, genes: Sequence[Gene]) -> list[Shape]:
        """The shapes of a map, and the genes of its region below."""
        shapes, cell = self.draw(one, told)
        below = find_frame(shapes)
        top = below.top + below.height + 4
        return shapes + draw_region_genes(genes, one.region, cell, top)

    def render_page(self, maps: Sequence[Any], told: Told, genes: Sequence[Sequence[Gene]]) -> str:
        """All regions on a page that needs no network; `genes` are those of each region."""
        sections, numbers = [], {}
        for number, (one, beside) in enumerate(zip(maps, genes, strict=True), 1):
            region, name = one.region, f"region-{number}"
            shapes = self._add_genes(one, told, beside)
            figure = write_svg(shapes, name, f"{self.title} of {region.label}")
            place = {"contig": region.contig, "first": region.first, "letters": region.letters}
            numbers[name] = {**place, **self.pack(one)}
            sections.append(
                {
                    "id": name, "region": region, "figure": Markup(figure), "kind": self.verb,
                    "width": f"{find_frame(shapes).width:g}",
                    "caption": self.explain(told) + _TURNED * (region.strand == "-"),
                }
            )  # fmt: skip
        data = encode_data({"unit": told["unit"], "maps": numbers})
        name = maps[0].region.title if len(maps) == 1 else f"{len(maps)} regions"
        context = {"verb": self.verb, "title": self.title.lower(), "name": name}
        context |= {"facts": _list_facts(told), "sections": sections, "data": data}
        return render_template("map.html.jinja", context)


def _list_facts(told: Told) -> list[tuple[str, str]]:
    facts = {
        "model": f"{Path(told['model']).name} ({told['checkpoint']})",
        "score": f"{told['score']}, in {told['unit']}",
        "evaluations of the network": f"{told['evaluations']:,}",
        "bases of a window": f"{told['context']:,}" if told.get("context") else "",
        "class": str(told.get("label") or ""),
        "targets masked together": f"every {told['every']} bases" if told.get("every") else "",
    }
    if company := told.get("company"):
        facts["effect of masking targets together"] = (
            f"{company['pairs']} pairs by themselves differ by {company['median']:.3g} nats in "
            f"the middle and {company['worst']:.3g} at most; the strongest of them is "
            f"{company['strongest']:.3g}"
        )
    facts["genes"] = Path(told["genes"]).name if told.get("genes") else ""
    return [(name, text) for name, text in facts.items() if text]


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
    for colour, where in ((_UP, values > 0), (_DOWN, values < 0), (_UNKNOWN, ~known)):
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


def weigh_by_information(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """(L, 4): p times 2 − entropy in bits, from logarithms that need not be normalised."""
    p = np.exp(logs - logs.max(1, keepdims=True))
    p = p / p.sum(1, keepdims=True)
    entropy = -np.where(p > 0, p * np.log2(np.maximum(p, 1e-300)), 0.0).sum(1, keepdims=True)
    heights: NDArray[np.float64] = p * (2 - entropy)
    return heights


def _list_saturation(one: SaturationMap, told: Told) -> tuple[list[Shape], float]:
    """The logo and the cells.

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
    cells = move(_list_cells(one, told["unit"]), 0, _LOGO_HEIGHT + _LOGO_EDGES)
    return shapes + cells, _CELL


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


def _explain_saturation(told: Told) -> str:
    above = (
        "mean decrease of the prediction by the other three bases"
        if told["context"] is None
        else "the predicted probabilities of each base given all others, times information"
    )
    return (
        f"Above: {above}. Below: {told['score']}, in {told['unit']}. Blue is above 0, orange "
        "below, a dot is the reference, grey is N."
    )


def _pack_saturation(one: SaturationMap) -> dict[str, Any]:
    return {"scores": encode_numbers(one.score.T.astype("<f4"))}


ISM = MapDrawer(
    "ism",
    "Saturation mutagenesis",
    lambda told: told["score"],
    _list_saturation,
    _explain_saturation,
    _pack_saturation,
)


def _pack_pairs(one: PairMap) -> dict[str, Any]:
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


def _list_pairs(one: PairMap, told: Told) -> tuple[list[Shape], float]:
    """The logo, where its letters can be read, and the map."""
    n = len(one.region.letters)
    cell, shapes = min(_CELL, _SIDE / n), list[Shape]()
    if cell >= _SMALLEST_LETTER:
        heights, first = weigh_by_information(np.log(np.maximum(one.p.T, 1e-300))), one.region.first
        logo = list_logo_shapes(heights, first=first, column=cell, height=_SMALL_LOGO)
        shapes = move(logo, 0, -_SMALL_LOGO - _LOGO_EDGES)
    return shapes + _list_square(one, cell, told["unit"]), cell


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


def _explain_pairs(told: Told) -> str:
    return (
        f"{told['score'].capitalize()}, in {told['unit']}. Rows are sources, columns are targets. "
        "The darker, the stronger; grey is N. Above: the chances that the model gives each base, "
        "times information."
    )


DEPENDENCIES = MapDrawer(
    "dependencies",
    "Dependency map",
    lambda told: f"dependencies in {told['unit']}",
    _list_pairs,
    _explain_pairs,
    _pack_pairs,
)
