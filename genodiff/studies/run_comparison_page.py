"""The page of finished runs side by side."""

from pathlib import Path
from typing import Any

from genodiff.io.published_text import hide_all_folders
from genodiff.reports.benchmark_figures import Dot, draw_dots
from genodiff.reports.runs_page import name_runs
from genodiff.reports.svg import draw_both_widths
from genodiff.studies.comparison_files import (
    ComparisonFigure,
    ComparisonTable,
    describe_correction,
    make_pair_table,
    show_difference,
    show_ends,
    write_comparison,
)


def write_run_page(given: dict[str, Any], out: Path) -> None:
    """Write the results of `compare_runs` as table, page and JSON. Raises `MachineError`."""
    results = name_for_others(given)
    unit, against = results["unit"], results["against"]
    head = ["", f"bits per {unit}", "95 % interval", f"minus {against}"]
    head += ["perplexity", "parameters", "objective", "length"]
    body = [
        [
            row["name"],
            f"{'=' if row['figure'] == 'exact' else '≤'} {row['bits']:.4f}",
            show_ends(row["ci95_bits"]),
            show_difference(row["minus"]),
            f"{row['perplexity']:.3f}",
            f"{row['parameters']:,}",
            row["objective"],
            f"{row['seq_len']:,}",
        ]
        for row in results["rows"]
    ]
    size = f"{results['tokens']:,} tokens in {results['windows']:,} of {results['windows_total']:,}"
    again = f", {results['repeats']} masks each" if results["repeats"] > 1 else ""
    notes = [
        f"{results['split']} of {results['data']}: {size} windows{again}. Intervals are over "
        f"blocks of windows, not over training seeds; differences are taken window by window. "
        f"{describe_correction(results['pairs'])}"
        f'"=" is an exact likelihood, "≤" a bound.',
        *results["notes"],
    ]
    shown = [
        Dot(row["name"], row["bits"], row["ci95_bits"], (), "model") for row in results["rows"]
    ]
    picture = ComparisonFigure(
        "In a picture",
        draw_both_widths(draw_dots, "fig-compare", f"bits per {unit}", shown),
        "Each run with its own 95 % interval. Paired differences are surer than these intervals.",
    )
    title = ", ".join(row["name"] for row in results["rows"])
    table = ComparisonTable(f"Bits per {unit}", head, body)
    tables = [table, make_pair_table(results["pairs"])]
    write_comparison(out, title, notes, tables, [picture], given)


def name_for_others(results: dict[str, Any]) -> dict[str, Any]:
    """The same results without the folders of a machine: runs have names that tell them apart."""
    names = [row["name"] for row in results["rows"]]
    if hide_all_folders(names) == names:
        return results
    short = name_runs([Path(name) for name in names])
    pairs = sorted(zip(names, short, strict=True), key=lambda pair: -len(pair[0]))

    def rename(value: Any) -> Any:
        if isinstance(value, str):
            for name, own in pairs:
                value = value.replace(name, own)
            return value
        if isinstance(value, dict):
            return {key: rename(inner) for key, inner in value.items()}
        return [rename(inner) for inner in value] if isinstance(value, list) else value

    found: dict[str, Any] = rename(results)
    return found
