"""The files of a comparison: table.md, compare.html and results.json in one folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from genodiff.io import atomic
from genodiff.io.file_kinds import hide_folders
from genodiff.io.target import seal_page
from genodiff.reports.benchmark import Dot, draw_dots
from genodiff.reports.benchmark_tables import COMPARISON, list_table_lines
from genodiff.reports.template import render_template
from genodiff.statistics.comparisons import JudgedDifference, show_p
from genodiff.statistics.seeds import TOO_FEW
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
    svg: Markup
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
        lines += [f"## {table.title}", "", *list_table_lines(table.head, table.body), ""]
    context = {"title": title, "notes": notes, "tables": tables, "figures": figures}
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
    body = [
        [pair["a"], pair["b"], f"{pair['bits']:+.4f}",
         show_ends(pair["ci95"], "+.4f") if pair["ci95"] else f"none: {pair['why_none']}",
         show_p(pair["p"]), show_p(pair["p_holm"]), pair["verdict"]]
        for pair in pairs
    ]  # fmt: skip
    return ComparisonTable("Comparisons", COMPARISON, body)


def show_ends(pair: Sequence[float] | None, form: str = ".4f") -> str:
    """An interval as `1.9012 – 1.9345`."""
    return TOO_FEW if pair is None else f"{pair[0]:{form}} – {pair[1]:{form}}"


def show_difference(gap: dict[str, Any] | None) -> str:
    """A paired difference with its interval as `-0.0123 [-0.0150 – -0.0096]`."""
    if gap is None:
        return ""
    return f"{gap['bits']:+.4f}" + (f" [{show_ends(gap['ci95'], '+.4f')}]" if gap["ci95"] else "")


def write_run_page(results: dict[str, Any], out: Path) -> None:
    """Write the results of `compare_runs` as table, page and JSON. Raises `MachineError`."""
    unit, against = results["unit"], results["against"]
    head = ["", f"bits per {unit}", "95 % interval", f"minus {against}"]
    head += ["perplexity", "parameters", "objective", "length"]
    body = []
    for row in results["rows"]:
        bits = f"{'=' if row['figure'] == 'exact' else '≤'} {row['bits']:.4f}"
        figures = bits, show_ends(row["ci95_bits"]), show_difference(row["minus"])
        size = f"{row['perplexity']:.3f}", f"{row['parameters']:,}"
        body.append([row["name"], *figures, *size, row["objective"], f"{row['seq_len']:,}"])
    read = f"{results['tokens']:,} tokens in {results['windows']:,} of {results['windows_total']:,}"
    again = f", {results['repeats']} masks each" if results["repeats"] > 1 else ""
    notes = [
        f"{results['split']} of {results['data']}: {read} windows{again}. Intervals are over "
        f"blocks of windows, not over training seeds; differences are taken window by window. "
        f"{describe_correction(results['pairs'])}"
        f'"=" is an exact likelihood, "≤" a bound.',
        *results["notes"],
    ]
    told = "Each run with its own 95 % interval. Paired differences are surer than these intervals."
    dots = [Dot(one["name"], one["bits"], one["ci95_bits"], (), "model") for one in results["rows"]]
    picture = ComparisonFigure("In a picture", draw_dots(f"bits per {unit}", dots), told)
    title = ", ".join(row["name"] for row in results["rows"])
    table = ComparisonTable(f"Bits per {unit}", head, body)
    tables = [table, make_pair_table(results["pairs"])]
    write_comparison(out, title, notes, tables, [picture], results)
