"""Generated DNA beside real DNA: words, motifs, embeddings, a discriminator, copies, diversity.

Every figure of the samples stands beside that of other real sequence (the floor), and of sequence
drawn from Markov models. Real sequence is the held-out split of a run, or a FASTA file. What is off
the floor is said in sentences. No model judges the samples; how likely they are to one is
`genodiff judge`.

With --designs it is a Pareto table of designs by several methods: the score that guided them, an
independent judge, naturalness, diversity, and copies.
"""

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from genodiff.api.scorecard import scorecard_or_designs
from genodiff.cli.common import order_samples
from genodiff.cli.request_flags import make_verb
from genodiff.errors import format_count
from genodiff.jobs.request import find_named


def _show(asked: Any, found: dict[str, Any]) -> None:
    console = Console()
    draw = _draw if asked.designs is None else _draw_designs
    tables, lines = draw(found, console.width)
    for table in tables:
        console.print(table)
    for line in lines:
        console.print(line, markup=False, highlight=False)


def _draw_designs(found: dict[str, Any], width: int) -> tuple[list[Table], list[str]]:
    """As many tables as the terminal's width asks for: no heading and no figure is cut."""
    drawn = find_named("genodiff.reports.design_rows:make_design_table")(found)
    columns = list(zip(drawn.columns, *drawn.rows, strict=True))
    sizes = [max(map(len, column)) + 3 for column in columns]
    parts: list[list[int]] = []
    room = 0
    for i in range(1, len(columns)):
        if room < sizes[i]:
            parts.append([0])
            room = width - sizes[0] - 1
        parts[-1].append(i)
        room -= sizes[i]
    tables = []
    for part in parts:
        table = Table(box=SIMPLE_HEAD)
        for i in part:
            table.add_column(columns[i][0], justify="right" if i else "left", no_wrap=True)
        for cells in drawn.rows:
            table.add_row(*(escape(cells[i]) for i in part))
        tables.append(table)
    return tables, drawn.notes


def _draw(found: dict[str, Any], width: int) -> tuple[list[Table], list[str]]:
    sets = found["sets"]
    compared = format_count(found["compared"], "sequence")
    title = f"{compared} of {found['length']:,} bases each, against as many"
    table = Table(title=f"{title} real ones", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("", no_wrap=True)
    for name in sets:
        table.add_column(name, justify="right", no_wrap=True)
    list_rows = find_named("genodiff.reports.scorecard_rows:list_scorecard_rows")
    for row in list_rows(sets):
        table.add_row(row.title, *map(escape, row.cells))
    said = [f"{one['figure']}: {one['says']}" for one in found["findings"]]
    return [table], said or ["no figure is off its floor"]


scorecard = make_verb(scorecard_or_designs, arrange=order_samples, show=_show)
