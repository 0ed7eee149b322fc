"""The page of a scorecard: what sets the samples apart, all figures, and pictures.

Pictures of a scorecard: each figure of the samples against its floor, words, and motifs.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from markupsafe import Markup

from genodiff.reports.figures import NARROW, TALL, WIDE
from genodiff.reports.scorecard_rows import list_scorecard_rows
from genodiff.reports.svg import (
    BAD,
    INK,
    MARKOV,
    MODEL,
    MUTED,
    REAL,
    draw_both_widths,
    open_canvas,
    to_svg,
)
from genodiff.reports.template import render_template
from genodiff.version import __version__

_COLOURS = {"samples": MODEL, "real": REAL}
_MARKERS = ("o", "s", "^", "v", "D")
MOST_MOTIFS = 16


def draw_word_distances(sets: Mapping[str, Any], *, narrow: bool = False) -> str:
    """Distance to real sequence by k-mer length, with 95 % intervals; one line for each set."""
    sizes = [int(k) for k in next(iter(sets.values()))["js"]]
    with open_canvas(NARROW if narrow else WIDE, TALL) as figure:
        ax = figure.add_subplot()
        for i, (name, part) in enumerate(sets.items()):
            values = [part["js"][str(k)]["value"] for k in sizes]
            errors = [1.96 * (part["js"][str(k)]["se"] or 0.0) for k in sizes]
            at = np.array(sizes) + 0.07 * (i - (len(sets) - 1) / 2)
            ax.errorbar(
                at, values, errors, color=_COLOURS.get(name, MARKOV), marker=_MARKERS[i % 5],
                markersize=4.5, linewidth=1.6 if name == "samples" else 0.9, elinewidth=0.9,
                linestyle="-" if name == "samples" else "--" if name == "real" else ":",
                label=name,
            )  # fmt: skip
        ax.set_xticks(sizes)
        ax.set_ylim(bottom=0)
        ax.set_xlabel("word size k")
        ax.set_ylabel("Jensen-Shannon distance")
        ax.legend(loc="upper left")
        name = "fig-words-narrow" if narrow else "fig-words"
        return to_svg(
            figure, name, "Distance to real sequence by k-mer length, of " + ", ".join(sets)
        )


def draw_shares(sets: Mapping[str, Any], *, narrow: bool = False) -> str:
    """Shares of sequences that copy: a row for each kind, a mark with its interval for each set."""
    kinds = [("near copies within the set", "within", "near")]
    if next(iter(sets.values()))["match"] is not None:
        kinds = [
            ("20 bases of train", "match", "long"),
            ("80 % of a stretch of train", "match", "near"),
            *kinds,
        ]
    with open_canvas(NARROW if narrow else WIDE, 0.9 + 0.55 * len(kinds)) as figure:
        ax = figure.add_subplot()
        step = 0.7 / len(sets)
        for i, (name, part) in enumerate(sets.items()):
            for row, (_, table, share) in enumerate(kinds):
                low, high = (100 * end for end in part[table][f"{share}_ci95"])
                at, value = row + step * (i - (len(sets) - 1) / 2), 100 * part[table][share]
                colour = _COLOURS.get(name, MARKOV)
                ax.plot([low, high], [at, at], color=colour, linewidth=1.2)
                ax.plot(
                    [value], [at], color=colour, marker=_MARKERS[i % 5], markersize=4.5,
                    linestyle="none", label=name if row == 0 else None,
                )  # fmt: skip
        ax.set_yticks(range(len(kinds)), [name for name, _, _ in kinds])
        ax.set_ylim(len(kinds) - 0.5, -0.5)
        ax.set_xlim(-2, 102)
        ax.set_xlabel("% of sequences")
        ax.grid(visible=False, axis="y")
        figure.legend(loc="outside upper center", ncols=3 if narrow else 5)
        name = "fig-shares-narrow" if narrow else "fig-shares"
        return to_svg(figure, name, "Shares of sequences that copy train or one another")


def draw_motif_ratios(motifs: Sequence[Mapping[str, Any]], *, narrow: bool = False) -> str:
    """The motifs that differ most surely: log2 of samples over real, with 95 % intervals."""
    chosen = sorted(motifs[:MOST_MOTIFS], key=lambda one: -one["log2_ratio"])
    with open_canvas(NARROW if narrow else WIDE, 0.8 + 0.19 * len(chosen)) as figure:
        ax = figure.add_subplot()
        ax.axvline(0, color=MUTED, linewidth=0.9)
        for row, one in enumerate(chosen):
            half = 1.96 * (one["se"] or 0.0)
            value = one["log2_ratio"]
            colour = BAD if abs(value) > half else INK
            ax.plot([value - half, value + half], [row, row], color=colour, linewidth=1.2)
            ax.plot([value], [row], color=colour, marker="o", markersize=4)
        ax.set_yticks(range(len(chosen)), [str(one["name"])[:14] for one in chosen], fontsize=7)
        ax.set_ylim(len(chosen) - 0.4, -0.6)
        ax.set_xlabel("log2 of hits in samples over hits in real sequence")
        ax.grid(visible=False, axis="y")
        name = "fig-motifs-narrow" if narrow else "fig-motifs"
        return to_svg(figure, name, "Motifs that differ most significantly from real sequence")


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
