"""The files of a comparison: table.md, compare.html and results.json in one folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from genodiff import __version__
from genodiff.io import atomic
from genodiff.io.target import seal_page
from genodiff.reports.template import render_template

TABLE, PAGE, RESULTS = "table.md", "compare.html", "results.json"


class ComparisonTable(NamedTuple):
    """A table of plain cells; the first of each row names it."""

    title: str
    head: Sequence[str]
    body: Sequence[Sequence[str]]


class ComparisonFigure(NamedTuple):
    """An `<svg>` of ours with its title and caption."""

    title: str
    svg: str
    caption: str


def write_comparison(
    out: Path,
    title: str,
    notes: Sequence[str],
    tables: Sequence[ComparisonTable],
    figures: Sequence[ComparisonFigure],
    results: dict[str, Any],
) -> None:
    """Write the three files into the folder `out`, each atomically. Raises `MachineError`."""
    lines = [f"# {title}", ""]
    for note in notes:
        lines += [note, ""]
    for table in tables:
        rows = [_line(table.head), "|---" * len(table.head) + "|", *map(_line, table.body)]
        lines += [f"## {table.title}", "", *rows, ""]
    context = {
        "version": __version__,
        "title": title,
        "notes": notes,
        "tables": tables,
        "figures": [figure._replace(svg=Markup(figure.svg)) for figure in figures],
    }
    page = render_template("comparison.html.jinja", context)
    atomic.write_text(out / TABLE, seal_page("\n".join(lines)))
    atomic.write_text(out / PAGE, seal_page(page + "\n"))
    atomic.write_json(out / RESULTS, {"genodiff": __version__, **results})


def show_ends(pair: Sequence[float] | None, form: str = ".4f") -> str:
    """An interval as `1.9012 – 1.9345`; empty where there is none."""
    return "" if pair is None else f"{pair[0]:{form}} – {pair[1]:{form}}"


def show_difference(gap: dict[str, Any] | None) -> str:
    """A paired difference with its interval as `-0.0123 [-0.0150 – -0.0096]`."""
    if gap is None:
        return ""
    return f"{gap['bits']:+.4f}" + (f" [{show_ends(gap['ci95'], '+.4f')}]" if gap["ci95"] else "")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
