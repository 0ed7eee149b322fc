"""The page of designs by method: the Pareto table, the front, and who hacked the oracle.

Pictures of designs by method: the Pareto front, and who hacked the oracle.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup
from matplotlib.transforms import Bbox

from genodiff.reports.design_rows import make_design_table
from genodiff.reports.figures import NARROW, TALL, WIDE
from genodiff.reports.svg import (
    BAD,
    GRID,
    MODEL,
    MUTED,
    REAL,
    draw_both_widths,
    open_canvas,
    to_svg,
)
from genodiff.reports.template import render_template
from genodiff.version import __version__

Rows = Sequence[Mapping[str, Any]]
Label = tuple[str, float, float, str]
"""A text, the point it belongs to, and its colour."""
AROUND = ((5, 5), (5, -11), (-5, 5), (-5, -11), (5, 15), (5, -21), (-5, 15), (-5, -21))
"""Where a label may stand beside its point, in points of type; the first that is free."""


def draw_pareto(rows: Rows, lower: bool, *, narrow: bool = False) -> str:
    """Naturalness against the judge's score, with 95 % intervals; the front is filled."""
    with open_canvas(NARROW if narrow else WIDE, TALL + 0.4) as figure:
        ax = figure.add_subplot()
        labels: list[Label] = []
        for row in rows:
            colour = REAL if row["method"] == "real" else MODEL if row["front"] else MUTED
            x, y = row["bits"], row["judge"]
            ax.errorbar(
                [x["mean"]], [y["mean"]], [1.96 * (y["se"] or 0)], [1.96 * (x["se"] or 0)],
                color=colour, marker="s" if row["method"] == "real" else "o", markersize=6,
                markerfacecolor=colour if row["front"] else "none", elinewidth=0.9,
            )  # fmt: skip
            labels.append((row["method"], x["mean"], y["mean"], colour))
        ax.invert_xaxis()
        if lower:
            ax.invert_yaxis()
        ax.margins(0.15)
        write_labels(ax, labels)
        ax.set_xlabel("bits per base under a model\nwithout guidance (natural: right)")
        ax.set_ylabel("score of the independent judge")
        name = "fig-pareto-narrow" if narrow else "fig-pareto"
        return to_svg(figure, name, "Naturalness and the judge's score, by method")


def draw_gains(rows: Rows, *, narrow: bool = False) -> str:
    """The judge's gain against the oracle's, with 95 % intervals; below the line it was hacked."""
    with open_canvas(NARROW if narrow else WIDE, TALL + 0.4) as figure:
        ax = figure.add_subplot()
        made = [row for row in rows if row["gains"] is not None]
        labels: list[Label] = []
        furthest = max([1.0, *(row["gains"]["guided"]["ci95"][1] for row in made)])
        ax.plot([0, furthest], [0, furthest], color=MUTED, linewidth=0.9, linestyle="--")
        ax.axhline(0, color=GRID, linewidth=0.9)
        for row in made:
            guided, judge = row["gains"]["guided"], row["gains"]["judge"]
            colour = BAD if row["gains"]["hacked"] else MODEL
            ax.plot(guided["ci95"], [judge["value"]] * 2, color=colour, linewidth=0.9)
            ax.plot([guided["value"]] * 2, judge["ci95"], color=colour, linewidth=0.9)
            marker = "X" if row["gains"]["hacked"] else "o"
            ax.plot([guided["value"]], [judge["value"]], color=colour, marker=marker, markersize=6)
            labels.append((row["method"], guided["value"], judge["value"], colour))
        ax.margins(0.12)
        write_labels(ax, labels)
        ax.set_xlabel("gain by the guiding oracle, in sd of real sequence")
        ax.set_ylabel("gain by the judge")
        name = "fig-gains-narrow" if narrow else "fig-gains"
        return to_svg(figure, name, "Gain by the judge and by the oracle, by method")


def write_labels(ax: Any, labels: Sequence[Label]) -> None:
    """Each beside its point, and on no other label or point where there is room."""
    taken: list[Any] = []
    for _, x, y, _ in labels:
        here, reach = ax.transData.transform((x, y)), 4 * ax.figure.dpi / 72
        taken.append(Bbox([here - reach, here + reach]))
    for text, x, y, colour in labels:
        tried: list[tuple[int, int, Any, Any]] = []
        for right, up in AROUND:
            one = ax.annotate(
                text, (x, y), (right, up), textcoords="offset points", fontsize=8, color=colour,
                ha="left" if right > 0 else "right",
            )  # fmt: skip
            box = one.get_window_extent()
            tried.append((sum(box.overlaps(other) for other in taken), len(tried), one, box))
            if not tried[-1][0]:
                break
        best = min(tried, key=lambda found: found[:2])
        for _, _, one, _ in tried:
            if one is not best[2]:
                one.remove()
        taken.append(best[3])


_FACTS = {
    "oracle": "oracle that guided",
    "judge": "independent judge",
    "model": "model of bits",
    "train": "searched for copies",
}


def render_designs(found: Mapping[str, Any]) -> str:
    """The page as text, of what `genodiff.compare_designs` returns. It needs no network."""
    rows, table = found["rows"], make_design_table(found)
    has_front = rows[0]["bits"] is not None and rows[0]["judge"] is not None
    has_gains = any(row["gains"] for row in rows)
    pareto = draw_both_widths(draw_pareto, rows, found["lower"]) if has_front else ""
    gains = draw_both_widths(draw_gains, rows) if has_gains else ""
    return render_template(
        "designs.html.jinja",
        {
            "version": __version__,
            "name": f"{len(rows) - 1} methods",
            "length": f"{found['length']:,}",
            "columns": table.columns,
            "rows": [
                {
                    "cells": [cell.replace(" ", "\u00a0") for cell in cells],
                    "front": row["front"],
                }
                for cells, row in zip(table.rows, rows, strict=True)
            ],
            "notes": table.notes,
            "pareto": Markup(pareto),
            "gains": Markup(gains),
            "facts": [(word, found[key]) for key, word in _FACTS.items() if found[key]],
        },
    )
