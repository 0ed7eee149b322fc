"""Genes below a picture: a line for each, boxes for its exons, its name and its direction.

Coding parts are tall boxes, what is not coding is low ones, introns are the line. Genes that would
overlap, names included, stand in rows below one another.
"""

from collections.abc import Sequence

from genodiff.io.genes import Gene
from genodiff.maps.map_regions import MapRegion
from genodiff.reports.shapes import Box, Line, PlacedText, Shape, measure_text

_ROW, _TALL, _LOW = 24.0, 9.0, 5.0  # pixels of a row, of a coding and of another box
_SIZE = 9.0
_APART = 10.0  # pixels between two genes of a row, and two arrows of a line
_ARROW = 3.0
MOST_ROWS = 12
"""Rows of a picture; genes that need more are counted."""


def draw_genes(
    genes: Sequence[Gene], start: int, end: int, scale: float, top: float
) -> list[Shape]:
    """The shapes of genes in the bases [start, end), `scale` pixels each, from `top` downwards.

    Base `start` begins at 0. Empty without genes.
    """
    rows, hidden = arrange_genes(genes, start, end, scale)
    shapes: list[Shape] = []
    for number, row in enumerate(rows):
        for one in row:
            shapes += _draw_gene(one, start, end, scale, top + _ROW * number)
    if hidden:
        y = top + _ROW * len(rows) + _SIZE
        shapes.append(PlacedText(0.0, y, f"and {hidden:,} more", _SIZE, anchor="start"))
    return shapes


def draw_region_genes(
    genes: Sequence[Gene], region: MapRegion, scale: float, top: float
) -> list[Shape]:
    """The same of a region of a map, in the direction in which it is read."""
    if region.strand == "-":
        genes = [turn_gene(one, region.start, region.end) for one in genes]
    return draw_genes(genes, region.start, region.end, scale, top)


def turn_gene(one: Gene, start: int, end: int) -> Gene:
    """A gene as it lies where [start, end) is read from its end."""
    both = start + end
    exons, coding = (
        tuple((both - last, both - first) for first, last in reversed(parts))
        for parts in (one.exons, one.coding)
    )
    return one._replace(
        start=both - one.end, end=both - one.start, strand=-one.strand, exons=exons, coding=coding
    )


def arrange_genes(
    genes: Sequence[Gene], start: int, end: int, scale: float
) -> tuple[list[list[Gene]], int]:
    """Rows of genes that do not touch, and how many genes are in no row."""
    rows: list[list[Gene]] = []
    reach: list[float] = []
    hidden = 0
    for one in sorted(genes, key=lambda gene: (gene.start, -gene.end)):
        low = (max(one.start, start) - start) * scale
        high = max((min(one.end, end) - start) * scale, low + measure_text(_name(one), _SIZE))
        row = next((i for i, far in enumerate(reach) if far + _APART <= low), len(rows))
        if row == MOST_ROWS:
            hidden += 1
            continue
        if row == len(rows):
            rows.append([])
            reach.append(0.0)
        rows[row].append(one)
        reach[row] = high
    return rows, hidden


def _name(one: Gene) -> str:
    return f"{one.name} {({1: '→', -1: '←'}).get(one.strand, '')}".strip()


def _draw_gene(one: Gene, start: int, end: int, scale: float, top: float) -> list[Shape]:
    def place(base: int) -> float:
        return (min(max(base, start), end) - start) * scale

    middle = top + _SIZE + 4 + _TALL / 2
    low, high = place(one.start), place(one.end)
    shapes: list[Shape] = [
        PlacedText(low, top + _SIZE, _name(one), _SIZE, "ink", "start"),
        Line(((low, middle), (high, middle)), "muted", 1.0),
    ]
    for parts, tall in ((one.exons, _LOW), (one.coding, _TALL)):
        for first, last in parts:
            x, right = place(first), place(last)
            if right > x:
                shapes.append(Box(x, middle - tall / 2, right - x, tall, "model"))
    if one.strand:
        count = int((high - low) // (2 * _APART))
        for i in range(count):
            x = low + (high - low) * (i + 0.5) / count
            inside = any(place(a) <= x <= place(b) for a, b in (*one.coding, *one.exons))
            back = -_ARROW * one.strand
            points = ((x + back, middle - _ARROW + 0.5), (x, middle), (x + back, middle + 2.5))
            shapes.append(Line(points, "paper" if inside else "muted", 1.0))
    return shapes
