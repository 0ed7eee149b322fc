"""Figures that compare generated with real sequences.

Each function takes plain numbers and returns one `<svg>` string.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator, PercentFormatter

from genodiff.reports.figures import NARROW, TALL, WIDE
from genodiff.reports.svg import MARKOV, MODEL, REAL, open_canvas, to_svg


class Series(NamedTuple):
    """The values of one set of sequences in a comparison figure."""

    role: Literal["samples", "real", "markov"]
    name: str
    values: Sequence[float]


_SET_COLOUR = {"samples": MODEL, "real": REAL, "markov": MARKOV}
_SET_MARKER = {"samples": "o", "real": "s", "markov": "^"}
_SET_DASH = {"samples": "-", "real": "--", "markov": "-."}


def draw_trinucleotides(
    names: Sequence[str], sets: Sequence[Series], *, narrow: bool = False
) -> str:
    """Bars of 3-mer frequencies in each set, both strands pooled, sorted by the real set.

    Values are shares in [0, 1], in the order of `names`. Narrow, the bars lie on their sides.
    """
    real = next((s for s in sets if s.role == "real"), sets[0])
    order = np.argsort(-np.asarray(real.values, float), kind="stable")
    at = np.arange(len(names))
    size = (NARROW, 0.9 + 0.145 * len(names)) if narrow else (WIDE, TALL)
    with open_canvas(*size) as figure:
        ax = figure.add_subplot()
        bars = ax.barh if narrow else ax.bar
        bars(
            at,
            100 * np.asarray(real.values, float)[order],
            0.72,
            color=REAL,
            alpha=0.3,
            linewidth=0,
            label=real.name,
        )
        for s in sets:
            if s is not real:
                values = 100 * np.asarray(s.values, float)[order]
                ax.plot(
                    *((values, at) if narrow else (at, values)),
                    linestyle="none", marker=_SET_MARKER[s.role], markersize=4.5,
                    color=_SET_COLOUR[s.role],
                    markerfacecolor=_SET_COLOUR[s.role] if s.role == "samples" else "none",
                    label=s.name,
                )  # fmt: skip
        words = [names[i] for i in order]
        if narrow:
            ax.set_yticks(at, words, fontsize=7, family="monospace")
            ax.set_ylim(len(names) - 0.3, -0.7)
            ax.set_xlim(left=0)
            ax.set_xlabel("% of 3-mers")
        else:
            ax.set_xticks(at, words, rotation=90, fontsize=7, family="monospace")
            ax.set_xlim(-0.7, len(names) - 0.3)
            ax.set_ylim(bottom=0)
            ax.set_ylabel("% of 3-mers")
        ax.grid(visible=False, axis="y" if narrow else "x")
        ax.legend(loc="lower right" if narrow else "upper right")
        name = "fig-kmers-narrow" if narrow else "fig-kmers"
        return to_svg(figure, name, "3-mer frequencies of " + ", ".join(s.name for s in sets))


def draw_distances(sizes: Sequence[int], sets: Sequence[tuple[Series, str]]) -> str:
    """Jensen-Shannon distance to real sequences by word size, one labelled line per set."""
    with open_canvas(WIDE / 2, TALL) as figure:
        ax = figure.add_subplot()
        for s, label in sets:
            ax.plot(
                sizes, s.values, color=_SET_COLOUR[s.role], linestyle=_SET_DASH[s.role],
                marker=_SET_MARKER[s.role],
                markersize=4.5, label=label,
            )  # fmt: skip
        ax.set_xticks(list(sizes))
        ax.set_ylim(bottom=0)
        ax.set_xlabel("word size k")
        ax.set_ylabel("Jensen-Shannon distance")
        ax.legend(loc="upper left")
        return to_svg(figure, "fig-js", "Distance to real sequence by k-mer length")


def gc_histogram(sets: Sequence[Series]) -> str:
    """Histogram of the GC content per sequence in each set.

    Values are GC shares in [0, 1]; those that are not finite are left out.
    """
    everything = np.concatenate([np.asarray(s.values, float) for s in sets])
    everything = everything[np.isfinite(everything)]
    low, high = (
        (float(everything.min()), float(everything.max())) if len(everything) else (0.0, 1.0)
    )
    width = next(w for w in (0.01, 0.02, 0.05, 0.1) if (high - low) / w <= 16 or w == 0.1)
    edges = np.arange(np.floor(low / width) - 1, np.ceil(high / width) + 2) * width
    with open_canvas(WIDE / 2, TALL) as figure:
        ax = figure.add_subplot()
        for s in sets:
            values = np.asarray(s.values, float)
            values = values[np.isfinite(values)]
            share = np.histogram(values, edges)[0] / max(len(values), 1)
            fill = s.role == "real"
            ax.stairs(
                100 * share, edges, color=_SET_COLOUR[s.role], linewidth=0 if fill else 1.6,
                fill=fill,
                alpha=0.3 if fill else 1.0, linestyle=_SET_DASH[s.role] if not fill else "-",
                label=s.name,
            )  # fmt: skip
        ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        ax.xaxis.set_major_locator(MaxNLocator(6))
        ax.set_xlabel("GC of a sequence")
        ax.set_ylabel("% of sequences")
        ax.set_ylim(bottom=0)
        ax.margins(y=0.25)
        ax.legend(loc="upper right")
        return to_svg(figure, "fig-gc", "GC per sequence in " + ", ".join(s.name for s in sets))


def draw_homopolymers(sets: Sequence[Series]) -> str:
    """Share of bases in homopolymer runs, by run length.

    Values are shares in [0, 1] for lengths 1, 2 and so on. The last one includes all longer runs.
    """
    n = len(sets[0].values)
    at = np.arange(1, n + 1)
    with open_canvas(WIDE / 2, TALL) as figure:
        ax = figure.add_subplot()
        for s in sets:
            values = np.asarray(s.values, float)
            ax.plot(
                at, np.where(values > 0, 100 * values, np.nan), color=_SET_COLOUR[s.role],
                linestyle=_SET_DASH[s.role],
                marker=_SET_MARKER[s.role], markersize=4, label=s.name,
            )  # fmt: skip
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
        ax.yaxis.set_minor_locator(NullLocator())
        ax.set_xticks(at, [*[str(i) for i in at[:-1]], f"{n}+"])
        ax.set_xlabel("run length")
        ax.set_ylabel("% of bases")
        ax.legend(loc="upper right")
        return to_svg(figure, "fig-runs", "Bases in homopolymer runs by run length")
