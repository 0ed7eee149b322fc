"""The page of a scorecard: what sets the samples apart, all figures, and pictures."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from markupsafe import Markup

from genodiff.reports.scorecard_figures import draw_motif_ratios, draw_shares, draw_word_distances
from genodiff.reports.scorecard_rows import list_scorecard_rows
from genodiff.reports.svg import draw_both_widths
from genodiff.reports.template import render_template
from genodiff.version import __version__

_MOST_MOTIFS = 30
_TITLES = {
    "words": "Words", "motifs": "Motifs", "embedding": "Embedding",
    "discriminator": "Discriminator", "composition": "Composition", "frames": "Reading frames",
    "train": "Copies of train", "diversity": "Diversity",
}  # fmt: skip


def render_scorecard(name: str, found: Mapping[str, Any]) -> str:
    """The page as text, of what `genodiff.scorecard` returns. It needs no network."""
    sets, motifs = found["sets"], found.get("motifs", [])
    # An interval is not broken over lines.
    rows = [
        row._replace(cells=[cell.replace(" ", "\u00a0") for cell in row.cells])
        for row in list_scorecard_rows(sets)
    ]
    return render_template(
        "scorecard.html.jinja",
        {
            "version": __version__,
            "name": name,
            "findings": found["findings"],
            "total": f"{found['samples']:,}",
            "compared": f"{found['compared']:,}",
            "length": f"{found['length']:,}",
            "train": f"{found['train_bases']:,}" if found["train_bases"] else "",
            "columns": list(sets),
            "groups": [
                {"title": _TITLES[group], "rows": list(some)}
                for group, some in groupby(rows, key=lambda row: row.group)
            ],
            "words": Markup(draw_both_widths(draw_word_distances, sets)),
            "shares": Markup(draw_both_widths(draw_shares, sets)),
            "ratios": Markup(draw_both_widths(draw_motif_ratios, motifs)) if motifs else "",
            "motifs": [_show_motif(one) for one in motifs[:_MOST_MOTIFS]],
            "more_motifs": f"{max(0, len(motifs) - _MOST_MOTIFS):,}",
        },
    )


def _show_motif(one: Mapping[str, Any]) -> list[str]:
    half = "" if one["se"] is None else f" ± {1.96 * one['se']:.2f}"
    ratio = f"{one['log2_ratio']:+.2f}{half}"
    return [one["name"], one["id"], f"{one['samples']:.3f}", f"{one['real']:.3f}", ratio]
