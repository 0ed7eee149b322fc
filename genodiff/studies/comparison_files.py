"""The files of a comparison: table.md, compare.html and results.json in one folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from genodiff.io import atomic
from genodiff.io.published_text import hide_folders
from genodiff.io.target import seal_page
from genodiff.reports.template import render_template
from genodiff.statistics.comparisons import JudgedDifference, show_p
from genodiff.statistics.reasons import TOO_FEW
from genodiff.version import __version__

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
    atomic.write_text(out / TABLE, seal_page(hide_folders("\n".join(lines))))
    atomic.write_text(out / PAGE, seal_page(page + "\n"))
    atomic.write_json(out / RESULTS, {"genodiff": __version__, **results})


def describe_pairs(judged: Sequence[JudgedDifference]) -> list[dict[str, Any]]:
    """Differences in bits as plain values: `bits` is a minus b, below 0 where a is better."""
    found = []
    for gap in judged:
        values = gap.to_json()
        bits, verdict = values.pop("difference"), gap.describe(higher_is_better=False)
        found.append(values | {"run": gap.b, "bits": bits, "verdict": verdict})
    return found


def describe_correction(pairs: Sequence[dict[str, Any]]) -> str:
    """A sentence with a blank at its end; empty for fewer than two comparisons."""
    return f"Holm's correction is over all {len(pairs)} comparisons. " if len(pairs) > 1 else ""


def make_pair_table(pairs: Sequence[dict[str, Any]]) -> ComparisonTable:
    """The table of what `describe_pairs` gave."""
    head = ["first", "second", "difference", "95 % interval", "p", "Holm p", "the first is"]
    body = [
        [
            pair["a"],
            pair["b"],
            f"{pair['bits']:+.4f}",
            show_ends(pair["ci95"], "+.4f") if pair["ci95"] else f"none: {pair['why_none']}",
            show_p(pair["p"]),
            show_p(pair["p_holm"]),
            pair["verdict"],
        ]
        for pair in pairs
    ]
    return ComparisonTable("Comparisons", head, body)


def show_ends(pair: Sequence[float] | None, form: str = ".4f") -> str:
    """An interval as `1.9012 – 1.9345`."""
    return TOO_FEW if pair is None else f"{pair[0]:{form}} – {pair[1]:{form}}"


def show_difference(gap: dict[str, Any] | None) -> str:
    """A paired difference with its interval as `-0.0123 [-0.0150 – -0.0096]`."""
    if gap is None:
        return ""
    return f"{gap['bits']:+.4f}" + (f" [{show_ends(gap['ci95'], '+.4f')}]" if gap["ci95"] else "")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
