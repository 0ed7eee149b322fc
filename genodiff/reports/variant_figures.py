"""Figures of scored variants: distributions, calibration of percentiles, and of standard errors."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.reports.figures import NARROW, WIDE
from genodiff.reports.svg import GRID, INK, MARKOV, MODEL, MUTED, SOURCE, open_canvas, to_svg
from genodiff.variants.scored_tally import ScoredPlaces

_BINS = 40
_COLOURS = (MODEL, MARKOV, SOURCE, MUTED)
_DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))


class Distribution(NamedTuple):
    """Scores of one class: middles and counts of bins, and the background at each percent."""

    name: str
    middles: NDArray[np.float64]
    counts: NDArray[np.float64]
    quantiles: NDArray[np.float64] | None
    unit: str


def draw_distributions(shown: Sequence[Distribution], *, narrow: bool = False) -> str:
    """A histogram for each class; the background is an outline of the same area."""
    columns = 1 if narrow else min(2, len(shown))
    rows = math.ceil(len(shown) / columns)
    title = "Scores of " + ", ".join(f"{int(x.counts.sum()):,} {x.name}" for x in shown)
    with open_canvas(NARROW if narrow else WIDE, 0.3 + 1.9 * rows) as figure:
        for number, one in enumerate(shown):
            ax = figure.add_subplot(rows, columns, number + 1)
            low, high = _find_range(one)
            edges = np.linspace(low, high, _BINS + 1)
            inside = np.clip(one.middles, low, high - 1e-9 * (high - low))
            share = np.histogram(inside, edges, weights=one.counts)[0] / one.counts.sum()
            ax.bar(edges[:-1], share, np.diff(edges), align="edge", color=MODEL, alpha=0.45,
                   label="scored")  # fmt: skip
            if one.quantiles is not None:
                below = np.interp(edges, one.quantiles, np.linspace(0, 1, len(one.quantiles)), 0, 1)
                below[0], below[-1] = 0, 1
                ax.stairs(np.diff(below), edges, color=INK, linewidth=1.2, label="random variants")
            ax.set_title(f"{one.name}, {int(one.counts.sum()):,}", loc="left")
            ax.set_xlabel(one.unit)
            ax.set_yticks([])
            ax.grid(False, axis="y")
            if number == 0 and any(x.quantiles is not None for x in shown):
                ax.legend(loc="upper left")
        return to_svg(figure, f"fig-scores{'-narrow' if narrow else ''}", title)


class ConsequenceScores(NamedTuple):
    """Scores of the variants of one consequence: how many, and their 5th, 50th and 95th percent."""

    term: str
    n: int
    low: float
    middle: float
    high: float


def draw_consequences(
    shown: Sequence[ConsequenceScores], unit: str, *, narrow: bool = False
) -> str:
    """The median and the middle 90 % of each consequence, the most severe on top."""
    title = "Scores by consequence: " + ", ".join(f"{one.n:,} {one.term}" for one in shown)
    with open_canvas(NARROW if narrow else WIDE, 0.9 + 0.26 * len(shown)) as figure:
        ax = figure.add_subplot()
        at = np.arange(len(shown))[::-1]
        ax.hlines(at, [x.low for x in shown], [x.high for x in shown], color=MODEL, linewidth=3,
                  alpha=0.45)  # fmt: skip
        ax.plot([one.middle for one in shown], at, "o", color=MODEL, markersize=5)
        ax.axvline(0, color=MUTED, linewidth=0.8)
        names = [one.term.removesuffix("_variant").replace("_", " ") for one in shown]
        ax.set_yticks(at, [f"{name}, {x.n:,}" for name, x in zip(names, shown, strict=True)])
        ax.grid(False, axis="y")
        ax.set_xlabel(unit)
        return to_svg(figure, f"fig-consequences{'-narrow' if narrow else ''}", title)


def draw_places(places: ScoredPlaces, unit: str, *, narrow: bool = False) -> str:
    """The lowest and the mean score of each stretch of the genome, contig after contig."""
    bins = places.list_bins()
    starts, total = {}, 0
    for name, end in places.ends.items():
        starts[name], total = total, total + end
    x = np.array([starts[b.contig] + (b.start + b.end) / 2 for b in bins])
    title = f"Scores along {len(starts)} contigs, in stretches of {places.width:,} bases"
    with open_canvas(NARROW if narrow else WIDE, 2.4) as figure:
        ax = figure.add_subplot()
        for name in list(starts)[1:]:
            ax.axvline(starts[name], color=GRID, linewidth=0.8)
        ax.plot(x, [b.least for b in bins], "o", color=MODEL, markersize=2.5, label="least likely")
        ax.plot(x, [b.mean for b in bins], "o", color=MARKOV, markersize=1.5, label="mean")
        ax.set_xlim(0, total)
        room = (0.14 if narrow else 0.06) * total
        named = [name for name in starts if places.ends[name] >= room]
        ax.set_xticks([starts[n] + places.ends[n] / 2 for n in named], [n[-12:] for n in named])
        ax.tick_params(axis="x", length=0)
        ax.grid(False, axis="x")
        ax.set_ylabel(unit)
        figure.legend(loc="outside lower center", ncols=2)
        return to_svg(figure, f"fig-places{'-narrow' if narrow else ''}", title)


def _find_range(one: Distribution) -> tuple[float, float]:
    """From the 0.5th to the 99.5th percentile of both; what is beyond is in the outer bins."""
    share = np.cumsum(one.counts) / one.counts.sum()
    ends = [float(one.middles[np.searchsorted(share, x)]) for x in (0.005, 0.995)]
    if one.quantiles is not None:
        ends += [float(one.quantiles[1]), float(one.quantiles[-2])]
    low, high = min(ends), max(ends)
    pad = 0.02 * (high - low) or 0.5
    return low - pad, high + pad


class PercentileLine(NamedTuple):
    """Percentiles of some variants, counted in bins of equal width from 0 to 100."""

    name: str
    counts: NDArray[np.float64]

    @property
    def n(self) -> int:
        """How many variants."""
        return round(float(self.counts.sum()))


def draw_calibration(
    lines: Sequence[PercentileLine], held_out: PercentileLine | None, *, narrow: bool = False
) -> str:
    """How far the share of variants up to each percentile is from what random ones have.

    The band is Kolmogorov's and Smirnov's at 95 % for the first of `lines`.
    """
    n = lines[0].n
    band = 135.8 / math.sqrt(n)
    title = f"Percentiles of {n:,} scored variants against random ones"
    with open_canvas(*((NARROW, 3.4) if narrow else (WIDE, 3.0))) as figure:
        ax = figure.add_subplot()
        ax.axhspan(-band, band, color=GRID, alpha=0.8, linewidth=0, label="random, 95 %")
        ax.axhline(0, color=MUTED, linewidth=0.8)
        for number, line in enumerate(lines):
            ax.plot(
                *_subtract_uniform(line.counts), color=_COLOURS[number % 4],
                linestyle=_DASHES[number % 4], label=f"{line.name}, {line.n:,}",
            )  # fmt: skip
        if held_out is not None:
            ax.plot(
                *_subtract_uniform(held_out.counts), color=INK, marker="o", markersize=3,
                linewidth=0.9, label=f"{held_out.name}, {held_out.n:,}",
            )  # fmt: skip
        ax.set_xlim(0, 100)
        reach = max(1.25 * band, *(np.abs(line.get_ydata()).max() * 1.1 for line in ax.lines))
        ax.set_ylim(-reach, reach)
        ax.set_xlabel("percentile")
        ax.set_ylabel("share up to it − percentile")
        figure.legend(loc="outside lower center", ncols=1 if narrow else 3)
        return to_svg(figure, f"fig-calibration{'-narrow' if narrow else ''}", title)


def _subtract_uniform(counts: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    at = np.linspace(0, 100, len(counts) + 1)
    share = 100 * np.concatenate(([0], np.cumsum(counts))) / counts.sum()
    return [at, share - at]
