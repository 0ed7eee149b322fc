"""Tracks of a region: a logo, information, entropy, surprisal, and genes below.

The page is one to move about in: it draws on canvases from the chances that it holds, so that any
part can be seen at any size, and asks the network for nothing. In a picture that is seen from far,
a column is the mean of its bases, and pale is from the least to the most. Nothing is drawn where
nothing was read.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.io.genes import Gene
from genodiff.maps.map_regions import find_columns
from genodiff.maps.track_values import BaseTracks, list_drawn
from genodiff.reports.gene_rows import draw_genes
from genodiff.reports.logo import LETTERS, draw_numbers, stack_letters
from genodiff.reports.map_page import put_head
from genodiff.reports.shapes import GLYPHS, Box, Line, PlacedText, Shape, measure_text
from genodiff.reports.template import encode_data, encode_numbers, render_template

_WIDTH, _CELL = 960.0, 16.0  # pixels of a picture, and of a column at most
_READABLE = 3.5  # pixels of a column that is drawn as letters
_LOGO, _HEIGHT, _GAP, _STRIP = 120.0, 60.0, 20.0, 10.0
_ROWS = (("information", "model"), ("entropy", "muted"), ("surprisal", "markov"))

Limits = tuple[float, float]


def render_track_page(
    regions: Sequence[BaseTracks], told: Mapping[str, Any], genes: Sequence[Sequence[Gene]] = ()
) -> str:
    """A page of all `regions`; `told` is what the sidecar says of the model and how it read.

    `genes` are those of each region.
    """
    drawn = list_drawn(told)
    shown = [{"name": one.title, "limits": one.limits, "strip": one.is_strip} for one in drawn]
    data: dict[str, Any] = {"glyphs": GLYPHS, "related": shown, "regions": []}
    for one, some in zip(regions, genes or [[]] * len(regions), strict=True):
        part = {"contig": one.contig, "start": one.start + 1, "letters": one.letters}
        p, *related = (
            encode_numbers(np.ascontiguousarray(values, "<f4"))
            for values in (one.p, *(one.related[track.name] for track in drawn))
        )
        part |= {"p": p, "related": related}
        data["regions"].append(part | {"genes": [_shift_gene(gene, one.start) for gene in some]})
    name = regions[0].label if len(regions) == 1 else f"{len(regions):,} regions"
    context: dict[str, Any] = {"name": name, "data": encode_data(data), "has_genes": any(genes)}
    context |= {"facts": _list_facts(regions, told), "labels": [one.label for one in regions]}
    context |= {"has_related": bool(told.get("relatives")), "has_values": bool(told.get("tracks"))}
    return render_template("tracks.html.jinja", context)


def _shift_gene(one: Gene, start: int) -> dict[str, Any]:
    """A gene as the page's script reads it: places from the first base of the region, 0-based."""
    parts = {"exons": one.exons, "coding": one.coding}
    return {
        "start": one.start - start, "end": one.end - start, "strand": one.strand, "name": one.name,
        **{key: [[a - start, b - start] for a, b in some] for key, some in parts.items()},
    }  # fmt: skip


def _list_facts(regions: Sequence[BaseTracks], told: Mapping[str, Any]) -> list[tuple[str, str]]:
    bases = sum(len(one.letters) for one in regions)
    every = told.get("every")
    facts = {
        "model": f"{Path(told['model']).name} ({told['checkpoint']})",
        "bases": f"{bases:,}, of which {sum(int(one.known.sum()) for one in regions):,} read",
        "bases of a window": f"{told['context']:,}",
        "masked": f"every {every} bases at once" if every else "each base separately",
    }
    if relatives := told.get("relatives"):
        names = [f"{one['name']} ({one['identity']:.1%} identity)" for one in relatives["genomes"]]
        strains = ["strains of the species are included"] * bool(relatives["strains"])
        facts["relatives"] = "; ".join([", ".join(names), *strains])
    if told.get("tracks"):
        files = (f"{name} ({Path(file).name})" for name, file in told["tracks"].items())
        facts["values drawn below"] = ", ".join(files)
    if told.get("genes"):
        facts["genes"] = Path(told["genes"]).name
    if company := told.get("company"):
        (median, worst), sites = company["bits"], company["sites"]
        facts["effect of masking several at once"] = (
            f"at {sites} bases information moves by {median:.3g} bits in the middle and "
            f"{worst:.3g} at most"
        )
    return list(facts.items())


def list_track_picture(
    one: BaseTracks, told: Mapping[str, Any], genes: Sequence[Gene]
) -> tuple[list[Shape], str]:
    """The shapes of a region, with a line above that says what they are, and a title."""
    n = len(one.letters)
    scale = min(_CELL, _WIDTH / n)
    shapes: list[Shape] = []
    if scale >= _READABLE:
        for column, letter in zip(find_columns(one.letters), one.letters, strict=True):
            colour = LETTERS[column].lower() if column >= 0 else "muted"
            shapes.append(
                PlacedText(scale * (len(shapes) + 0.5), -4, letter, min(10, scale), colour)
            )
    limits = find_limits(one)
    shapes += _frame("logo", 0, _LOGO, scale * n, limits["information"])
    shapes += _draw_heights(one.logo, scale, _LOGO, limits["information"][1])
    top, bottom = _LOGO + _GAP, 0.0
    for name, colour in _ROWS:
        shapes += _frame(name, top, _HEIGHT, scale * n, limits[name])
        shapes += _draw_values(getattr(one, name), scale, top, limits[name], colour)
        top += _HEIGHT + _GAP
    for track in list_drawn(told):
        values = one.related[track.name]
        if track.is_strip:
            shapes += _draw_strip(values, scale, top)
            shapes.append(PlacedText(-5, top + _STRIP - 2, track.title, 8, anchor="end"))
            top, bottom = top + _STRIP + 4, top + _STRIP + _GAP
            continue
        shapes += _frame(track.title, top, _HEIGHT, scale * n, track.limits, unit="")
        shapes += _draw_values(values, scale, top, track.limits, "a")
        top += _HEIGHT + _GAP
    top = max(top, bottom)
    shapes += draw_numbers(one.start + 1, n, scale, top - 4)
    shapes += draw_genes(genes, one.start, one.end, scale, top + 8)
    return put_head(shapes, f"{one.label} · {told['checkpoint']}"), f"Tracks of {one.label}"


def find_limits(one: BaseTracks) -> dict[str, Limits]:
    """The ends of each scale, from what was read; information and entropy have 2 bits at most."""

    def most(values: NDArray[Any]) -> float:
        return float(np.nanmax(values, initial=0.0))

    least = float(np.nanmin(one.entropy, initial=2.0))
    return {
        "information": (0.0, min(2.0, max(0.05, math.ceil(20 * most(one.information)) / 20))),
        "entropy": (max(0.0, math.floor(20 * min(least, 1.95)) / 20), 2.0),
        "surprisal": (0.0, max(3.0, math.ceil(most(one.surprisal)))),
    }


def _frame(
    name: str, top: float, height: float, right: float, limits: Limits, unit: str = "bits"
) -> list[Shape]:
    """The lines at the ends of a scale, their values, and what is drawn."""
    low, high = limits
    widest = max(20.0, *(measure_text(f"{end:g}", 9.0) for end in (low, high)))
    whole = "" if name == "surprisal" or not unit or (low, high) == (0, 2) else ", of 0 to 2"
    return [
        Line(((0, top), (right, top)), "grid"),
        Line(((0, top + height), (right, top + height)), "grid"),
        PlacedText(-5, top + 8, f"{high:g}", anchor="end"),
        PlacedText(-5, top + height, f"{low:g}", anchor="end"),
        PlacedText(-20 - widest, top + height / 2, name, 9, "ink", turned=True),
        PlacedText(-10 - widest, top + height / 2, f"{unit}{whole}", 7, turned=True),
    ]


def split_columns(n: int, scale: float) -> list[slice]:
    """The bases of each column: one by one, or from far those of a pixel."""
    if scale >= 1:
        return [slice(i, i + 1) for i in range(n)]
    edges = np.linspace(0, n, round(n * scale) + 1).round().astype(int).tolist()
    return [slice(a, b) for a, b in pairwise(edges)]


def _draw_heights(
    heights: NDArray[Any], scale: float, bottom: float, highest: float
) -> list[Shape]:
    """The logo: letters, or from far columns in their colours."""
    shapes: list[Shape] = []
    wide = max(scale, 1.0)
    for number, part in enumerate(split_columns(len(heights), scale)):
        some = heights[part]
        known = np.isfinite(some[:, 0])
        if not known.any():
            continue
        pixels = some[known].mean(0) / highest * bottom
        stack = stack_letters(wide * number, wide, pixels, bottom)
        if scale >= _READABLE:
            shapes += stack
            continue
        shapes += [
            Box(wide * number, letter.y, wide, letter.height, letter.base.lower())
            for letter in stack
        ]
    return shapes


def _draw_strip(values: NDArray[Any], scale: float, top: float) -> list[Shape]:
    """Where a relative has the reference base, and below where it has another."""
    shapes: list[Shape] = []
    wide = max(scale, 1.0)
    for number, part in enumerate(split_columns(len(values), scale)):
        some = values[part][np.isfinite(values[part])]
        if not len(some):
            continue
        same = _STRIP * float(np.maximum(some, 0).mean())
        other = _STRIP * float(np.maximum(-some, 0).mean())
        shapes.append(Box(wide * number, top, wide, same, "a"))
        shapes.append(Box(wide * number, top + same, wide, other, "t"))
    return shapes


def _draw_values(
    values: NDArray[Any], scale: float, top: float, limits: Limits, colour: str
) -> list[Shape]:
    """Bars from the scale's lower end, or a line where that end is not 0."""
    low, high = limits
    shapes: list[Shape] = []
    line: list[tuple[float, float]] = []
    wide, bottom = max(scale, 1.0), top + _HEIGHT

    def end_line() -> None:
        if line:
            shapes.append(Line(tuple(line), colour, 1.5))
            line.clear()

    for number, part in enumerate(split_columns(len(values), scale)):
        some, x = values[part][np.isfinite(values[part])], wide * number
        if not len(some):
            end_line()
            continue
        least, mean, most = (
            bottom - (float(np.clip(one, low, high)) - low) / (high - low) * _HEIGHT
            for one in (some.min(), some.mean(), some.max())
        )
        if most < least:
            shapes.append(Box(x, most, wide, least - most, colour, opacity=0.25))
        if low:
            line += [(x, mean), (x + wide, mean)]
        else:
            shapes.append(Box(x, mean, wide * (0.9 if scale > 4 else 1.0), bottom - mean, colour))
    end_line()
    return shapes
