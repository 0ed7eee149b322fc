"""What `scorecard` prints on a terminal."""

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from genodiff.errors import format_count
from genodiff.quality.scorecard_figures import list_scorecard_rows


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
    for row in list_scorecard_rows(sets):
        table.add_row(row.title, *map(escape, row.cells))
    said = [f"{one['figure']}: {one['says']}" for one in found["findings"]]
    console.print(table)
    nothing = "no figure differs from its baseline (few or short samples cannot show much)"
    for line in said or [nothing]:
        console.print(line, markup=False, highlight=False)
