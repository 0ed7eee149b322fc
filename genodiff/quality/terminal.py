"""What `judge` and `scorecard` print on a terminal."""

import logging
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from genodiff.errors import format_count
from genodiff.jobs.request import find_named
from genodiff.quality.requests import EitherRequest, JudgeRequest
from genodiff.statistics.reasons import TOO_FEW

_log = logging.getLogger("genodiff")


def show_judged(asked: JudgeRequest, result: dict[str, Any]) -> None:
    """Print the figures of samples under a judge, and say how they were drawn."""
    Console().print(_draw_judged(result))
    told = result["sampling"]
    if told is None:
        file = asked.samples
        _log.warning("%s.json is not there: how these samples were drawn is not known", file)
    else:
        _log.info(
            "drawn in %s by %s, temperature %s, top-p %s",
            told["precision"],
            told["sampler"],
            told["temperature"],
            told["top_p"],
        )


def _draw_judged(result: dict[str, Any]) -> Table:
    found = {name: result[name] for name in ("samples", "real") if name in result}
    table = Table(
        title=f"under {result['run']} ({result['judge']})", title_justify="left", box=SIMPLE_HEAD
    )
    table.add_column("")
    for name in found:
        table.add_column(name, justify="right")

    def row(title: str, show: Any) -> None:
        table.add_row(title, *(show(part) for part in found.values()))

    row("samples, tokens", lambda part: f"{part['samples']:,}, {part['tokens']:,}")
    at_most = "" if result["figure"] == "exact" else ", at most"
    row(f"perplexity{at_most}", lambda part: f"{part['perplexity']:.4g}")
    row(
        "95 % interval",
        lambda part: (
            TOO_FEW
            if part["ci95_perplexity"] is None
            else " – ".join(f"{e:.4g}" for e in part["ci95_perplexity"])
        ),
    )
    row("entropy, nats", lambda part: f"{part['entropy_nats']:.3f}")
    for n in next(iter(found.values()))["distinct"]:
        row(
            f"distinct {n}-grams",
            lambda part, n=n: "" if part["distinct"][n] is None else f"{part['distinct'][n]:.3f}",
        )
    row("duplicates", lambda part: str(part["duplicates"]))
    return table


def show_scorecard(asked: EitherRequest, found: dict[str, Any]) -> None:
    """Print the figures of samples, or the table of designs, and what is said of them."""
    console = Console()
    draw = _draw_scorecard if asked.designs is None else _draw_designs
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


def _draw_scorecard(found: dict[str, Any], width: int) -> tuple[list[Table], list[str]]:
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
    return [table], said or [
        "no figure differs from its baseline (few or short samples cannot show much)"
    ]
