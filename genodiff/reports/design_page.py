"""The page of designs by method: the Pareto table, the front, and who hacked the oracle."""

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from genodiff.reports.design_figures import draw_gains, draw_pareto
from genodiff.reports.design_rows import make_design_table
from genodiff.reports.svg import draw_both_widths
from genodiff.reports.template import render_template
from genodiff.version import __version__

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
