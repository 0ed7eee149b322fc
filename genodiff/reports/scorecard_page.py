"""The page of a scorecard: what sets the samples apart, all figures, and pictures.

Pictures of a scorecard: each figure of the samples against its floor, words, and motifs.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from markupsafe import Markup

from genodiff.quality.scorecard_figures import list_scorecard_rows
from genodiff.reports.chart import Axis, AxisTick, Trace, draw_both_widths, draw_chart, make_rows
from genodiff.reports.figures import list_ends
from genodiff.reports.template import render_template

_COLOURS = {"samples": "model", "real": "real"}
_MARKS = ("o", "s", "^", "v", "D")
_DRAWN_MOTIFS, _MOST_MOTIFS = 16, 30


def draw_word_distances(sets: Mapping[str, Any]) -> Markup:
    """Distance to real sequence by k-mer length, with 95 % intervals; one line for each set."""
    sizes = [int(k) for k in next(iter(sets.values()))["js"]]
    traces = []
    for i, (name, part) in enumerate(sets.items()):
        figures = [part["js"][str(k)] for k in sizes]
        values = [one["value"] for one in figures]
        ends = list_ends(values, [1.96 * (one["se"] or 0.0) for one in figures])
        at = [k + 0.07 * (i - (len(sets) - 1) / 2) for k in sizes]
        width, dash = {"samples": (1.6, ()), "real": (0.9, (4, 2))}.get(name, (0.9, (1, 2)))
        colour = _COLOURS.get(name, "markov")
        traces.append(Trace(at, values, colour, name, width, dash, _MARKS[i % 5], ends=ends))
    x = Axis("word size k", ticks=[AxisTick(k, str(k)) for k in sizes])
    y = Axis("Jensen-Shannon distance", 0)
    title = "Distance to real sequence by k-mer length, of " + ", ".join(sets)
    return draw_both_widths(title, lambda width: draw_chart(traces, x, y, width))


def draw_shares(sets: Mapping[str, Any]) -> Markup:
    """Shares of sequences that copy: a row for each kind, a mark with its interval for each set."""
    kinds = [("near copies within the set", "within", "near")]
    if next(iter(sets.values()))["match"] is not None:
        kinds = [
            ("20 bases of train", "match", "long"),
            ("80 % of a stretch of train", "match", "near"),
            *kinds,
        ]
    traces, step = [], 0.7 / len(sets)
    for i, (name, part) in enumerate(sets.items()):
        at = [row + step * (i - (len(sets) - 1) / 2) for row in range(len(kinds))]
        values = [100 * part[table][share] for _, table, share in kinds]
        ends = [
            tuple(100 * end for end in part[table][f"{share}_ci95"]) for _, table, share in kinds
        ]
        look: dict[str, Any] = {"width": 0, "mark": _MARKS[i % 5], "ends": ends, "sideways": True}
        traces.append(Trace(values, at, _COLOURS.get(name, "markov"), name, **look))
    axes = Axis("% of sequences", -2, 102), make_rows(name for name, _, _ in kinds)
    return draw_both_widths(
        "Shares of sequences that copy train or one another",
        lambda width: draw_chart(traces, *axes, width, 45 * len(kinds)),
    )


def draw_motif_ratios(motifs: Sequence[Mapping[str, Any]]) -> Markup:
    """The motifs that differ most surely: log2 of samples over real, with 95 % intervals."""
    chosen = sorted(motifs[:_DRAWN_MOTIFS], key=lambda one: -one["log2_ratio"])
    rows, traces = len(chosen), []
    for row, one in enumerate(chosen):
        value, half = one["log2_ratio"], 1.96 * (one["se"] or 0.0)
        colour, ends = "bad" if abs(value) > half else "ink", [(value - half, value + half)]
        traces.append(Trace([value], [row], colour, mark="o", ends=ends, sideways=True))
    traces.append(Trace([0, 0], [-0.6, rows - 0.4], "muted", width=0.9))
    axes = (
        Axis("log2 of hits in samples over hits in real sequence"),
        make_rows(str(one["name"])[:14] for one in chosen),
    )
    return draw_both_widths(
        "Motifs that differ most significantly from real sequence",
        lambda width: draw_chart(traces, *axes, width, 13 * rows),
    )


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
        (one, [cell.replace(" ", "\u00a0") for cell in cells])
        for one, cells in list_scorecard_rows(sets)
    ]
    groups = groupby(rows, key=lambda row: row[0].group)
    context: dict[str, Any] = {"name": name, "findings": found["findings"], "columns": list(sets)}
    context |= {"total": f"{found['samples']:,}", "compared": f"{found['compared']:,}"}
    context["length"] = f"{found['length']:,}"
    context["train"] = f"{found['train_bases']:,}" if found["train_bases"] else ""
    context["groups"] = [{"title": _TITLES[one], "rows": list(some)} for one, some in groups]
    context |= {"words": draw_word_distances(sets), "shares": draw_shares(sets)}
    context["ratios"] = draw_motif_ratios(motifs) if motifs else ""
    context["motifs"] = [_show_motif(one) for one in motifs[:_MOST_MOTIFS]]
    context["more_motifs"] = f"{max(0, len(motifs) - _MOST_MOTIFS):,}"
    return render_template("scorecard.html.jinja", context)


def _show_motif(one: Mapping[str, Any]) -> list[str]:
    half = "" if one["se"] is None else f" ± {1.96 * one['se']:.2f}"
    ratio = f"{one['log2_ratio']:+.2f}{half}"
    return [one["name"], one["id"], f"{one['samples']:.3f}", f"{one['real']:.3f}", ratio]
