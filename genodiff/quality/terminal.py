"""What `judge` and `scorecard` print on a terminal."""

import logging
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from genodiff.errors import format_count
from genodiff.jobs.request import find_named
from genodiff.quality.requests import JudgeRequest
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


def show_scorecard(found: dict[str, Any]) -> None:
    """Print the figures of samples, and what is said of them."""
    console = Console()
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
    console.print(table)
    nothing = "no figure differs from its baseline (few or short samples cannot show much)"
    for line in said or [nothing]:
        console.print(line, markup=False, highlight=False)
