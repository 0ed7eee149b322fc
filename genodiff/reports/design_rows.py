"""The table of designs by method, with its digits, for a terminal and for a page."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class DesignTable(NamedTuple):
    """Columns, and a row of cells for each method; the first cell is the method."""

    columns: list[str]
    rows: list[list[str]]
    notes: list[str]


def make_design_table(found: Mapping[str, Any]) -> DesignTable:
    """The columns that the rows have figures for, and what is to be said of methods."""
    rows = found["rows"]
    picks = {
        "n": lambda row: f"{row['n']:,}",
        "guided": lambda row: _mean(row["guided"]),
        "judge": lambda row: _mean(row["judge"]),
        "transfer": lambda row: _transfer(row["gains"]),
        "bits": lambda row: _mean(row["bits"], 3),
        "6-mers r": lambda row: f"{row['words']['value']:.2f}",
        "difference": lambda row: _mean(row["difference"]),
        "effective": lambda row: f"{row['effective']:.0%}",
        "match": lambda row: _match(row["match"]),
        "front": lambda row: "yes" if row["front"] else "",
    }
    table = {name: [pick(row) for row in rows] for name, pick in picks.items()}
    kept = {name: cells for name, cells in table.items() if any(cells)}
    lines = [[row["method"], *(cells[i] for cells in kept.values())] for i, row in enumerate(rows)]
    notes = []
    for row in rows:
        if row["gains"] is not None and row["gains"]["hacked"]:
            gain, judged = row["gains"]["guided"]["value"], row["gains"]["judge"]["value"]
            notes.append(
                f"{row['method']} hacks its oracle: it gained {gain:.1f} standard deviations of "
                f"real sequence there, and {judged:.1f} by the judge"
            )
    return DesignTable(["method", *kept], lines, notes)


def _mean(figure: Mapping[str, Any] | None, digits: int = 2) -> str:
    if figure is None:
        return ""
    half = "" if figure["se"] is None else f" ± {1.96 * figure['se']:.{digits}f}"
    return f"{figure['mean']:.{digits}f}{half}"


def _transfer(gains: Mapping[str, Any] | None) -> str:
    if gains is None or gains["transfer"] is None:
        return ""
    low, high = gains["transfer"]["ci95"]
    return f"{gains['transfer']['value']:.2f} [{low:.2f},{high:.2f}]"


def _match(match: Mapping[str, Any] | None) -> str:
    return "" if match is None else f"{match['median']:g} (≤ {match['max']})"
