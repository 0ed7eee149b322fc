"""From figures per window to what is reported: totals, parts, paired differences, the curve over
mask rates.

Everything is a ratio of sums over windows (nats over bases) with the interval of `interval.ratio`;
what the keys mean stands in `dna_evaluation.py`. Numbers that cannot be known are None.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.data.kmers import K
from genodiff.evaluation.bound import ENOUGH, Bound, count_draws
from genodiff.evaluation.lines import MarkovLines
from genodiff.statistics.interval import BITS, Interval, ratio

REPEAT_COVER = 0.25
"""A window is a repeat when at least this share of its bases lies in k-mers that the train split
has too.
"""

RATE_BINS = 20
_NAMED = "fitted", "adaptive", "adaptive_from_train", "without"
Floats = NDArray[np.float64]


class _Table(NamedTuple):
    """Figures of windows, over the bases that count. Lines are called "0" .. "8", "fitted",
    "adaptive" and "adaptive_from_train"; the network without its memory is "without".
    """

    nats: Floats
    tokens: Floats
    lines: dict[str, Floats]
    shared: NDArray[np.int64] | None
    enough: bool  # draws of counts of masks for an interval

    def rows(self, of: NDArray[np.bool_]) -> "_Table":
        lines = {name: line[of] for name, line in self.lines.items()}
        shared = None if self.shared is None else self.shared[of]
        return _Table(self.nats[of], self.tokens[of], lines, shared, self.enough)

    def per_token(self, y: Floats) -> Interval:
        """Σ y / Σ tokens with its interval."""
        found = ratio(y, self.tokens, shared=self.shared)
        return found if self.enough else Interval(found.value, None, None)

    def line_bits(self) -> dict[str, float]:
        return {
            name: float(line.sum() / self.tokens.sum()) * BITS for name, line in self.lines.items()
        }

    def markov_keys(self) -> dict[str, Any]:
        bits = {name: value for name, value in self.line_bits().items() if name.isdigit()}
        return {"markov_bits": bits, "markov_perplexity": {k: 2**x for k, x in bits.items()}}

    def minus_model(self, line: str) -> dict[str, Any] | None:
        found = self.lines.get(line)
        return None if found is None else self.difference(found - self.nats)

    def difference(self, nats: Floats) -> dict[str, Any]:
        found = self.per_token(nats).scaled(BITS)
        return {"bits": found.value, "ci95": found.ends()}

    def line(self, name: str) -> dict[str, Any] | None:
        bits = self.line_bits().get(name)
        if bits is None:
            return None
        return {"bits": bits, "perplexity": 2**bits, "minus_model_bits": self.minus_model(name)}

    def part(self) -> dict[str, Any] | None:
        """The figures of a contig or region; None where it has no base."""
        if not self.tokens.sum():
            return None
        found = self.per_token(self.nats)
        bits = found.scaled(BITS)
        return {
            "tokens": int(self.tokens.sum()),
            "windows": int((self.tokens > 0).sum()),
            "nelbo_nats": found.value,
            "bits_per_base": bits.value,
            "perplexity": math.exp(found.value),
            "ci95_bits": bits.ends(0.0),
            **self.markov_keys(),
            **{f"{name}_bits": self.line_bits().get(name) for name in _NAMED},
            **{f"{name}_minus_model_bits": self.minus_model(name) for name in _NAMED},
        }


def summarise(
    bound: Bound,
    contig: NDArray[np.int64],
    names: Sequence[str],
    markov: MarkovLines | None = None,
    cover: Floats | None = None,
    source: Floats | None = None,
    *,
    soft_masked: bool = True,
) -> dict[str, Any]:
    """The reported figures of windows in genome order.

    `contig` is the number in `names` of each window's, `cover` the share of its bases in k-mers of
    the train split, `source` its nats under its own source (see `lines`); None where it was not
    asked for or cannot be known. Raises `ValueError` where no base counts.
    """
    tokens = bound.tokens
    classes = [_of_class(bound, markov, slice(i, i + 1)) for i in range(2)]
    counted = slice(0, 2 if soft_masked else 1)
    table = _of_class(bound, markov, counted)
    found = table.per_token(table.nats)
    bits, total = found.scaled(BITS), table.tokens.sum()
    source = source if tokens[counted].sum() == tokens.sum() else None
    truth = None if source is None else ratio(source, table.tokens).scaled(BITS)
    regions: dict[str, Any] = {}
    shares: dict[str, float | None] = {"repeat_share": None, "touched_share": None}
    if cover is not None:
        repeat, unique = cover >= REPEAT_COVER, cover == 0
        chosen = {"unique": unique, "touched": ~unique & ~repeat, "repeat": repeat}
        regions = {name: table.rows(of).part() for name, of in chosen.items()}
        shares = {f"{name}_share": float(chosen[name].mean()) for name in ("repeat", "touched")}
    fitted = table.line("fitted")
    if markov is not None and fitted is not None:
        fitted = {"order": len(markov.pseudo) - 1, "pseudo": markov.pseudo, **fitted}
    if classes[1].tokens.sum():
        regions |= {"upper_case": classes[0].part(), "soft_masked": classes[1].part()}
    by_contig = {names[i]: table.rows(contig == i).part() for i in np.unique(contig).tolist()}
    return {
        "tokens": int(total),
        "soft_masked": int(soft_masked),
        "nelbo_nats": found.value,
        "nelbo_nats_total": float(table.nats.sum()),
        "bits_per_base": bits.value,
        "perplexity": math.exp(found.value),
        "ci95_bits": bits.ends(0.0),
        "se_bits": bits.se,
        "mask_se_bits": find_mask_se(bound.nats[counted].sum(0), table.tokens, bound.shared),
        "uniform_bits": 2.0,
        **table.markov_keys(),
        "markov_minus_model_bits": {
            name: table.minus_model(name) for name in table.lines if name.isdigit()
        },
        "markov_fitted": fitted,
        "adaptive_mixture": table.line("adaptive"),
        "adaptive_from_train": table.line("adaptive_from_train"),
        "without_memory": table.line("without"),
        "source_bits": None if source is None else float(source.sum() / total) * BITS,
        "source_ci95_bits": None if truth is None else truth.ends(0.0),
        "model_minus_source_bits": None
        if source is None
        else table.difference(table.nats - source),
        "contigs": {name: part for name, part in by_contig.items() if part is not None},
        "regions": {name: part for name, part in regions.items() if part is not None},
        "repeat_kmer": None if cover is None else K,
        **shares,
        "curve": rate_curve(bound.drawn[counted].sum(0), table.tokens, bound.rate),
    }


def _of_class(bound: Bound, markov: MarkovLines | None, which: slice) -> _Table:
    lines = {}
    if markov is not None:
        lines = {str(k): line[which].sum(0) for k, line in enumerate(markov.fixed)}
        more = zip(_NAMED, (markov.fitted, markov.adaptive, markov.from_train), strict=False)
        lines |= {name: line[which].sum(0) for name, line in more if line is not None}
    if bound.without is not None:
        lines["without"] = bound.without[which].sum(0).mean(0)
    nats = bound.nats[which].sum(0).mean(0)
    draws = count_draws(bound.tokens, bound.nats.shape[1], bound.shared)
    enough = bound.shared is None or draws >= ENOUGH
    return _Table(nats, bound.tokens[which].sum(0), lines, bound.shared, enough)


def rate_curve(by_repeat: Floats, tokens: Floats, rate: Floats | None) -> list[dict[str, Any]]:
    """Nats per masked base in equal bins of the masked share; [] without shares.

    Windows weigh as they do in the bound.
    """
    if rate is None:
        return []
    place = np.ceil(rate * RATE_BINS - 1e-9).astype(int).clip(1, RATE_BINS) - 1
    weights = np.broadcast_to(tokens, by_repeat.shape)
    points = []
    for i in range(RATE_BINS):
        inside = (place == i) & (weights > 0)
        y, n = by_repeat[inside], weights[inside]
        ends = {"rate_lo": i / RATE_BINS, "rate_hi": (i + 1) / RATE_BINS}
        point = {**ends, "nats": None, "se": None, "n": len(n)}
        if len(n):
            point["nats"] = float(y.sum() / n.sum())
        if len(n) > 1:
            about = y - point["nats"] * n
            point["se"] = float(np.sqrt(len(n) / (len(n) - 1) * np.square(about).sum()) / n.sum())
        points.append(point)
    return points


def find_mask_se(
    by_repeat: Floats, tokens: Floats, shared: NDArray[np.int64] | None
) -> float | None:
    """The bound's standard error due to masks alone, in bits; None for one repeat.

    It is the spread of the repeats of a window, or of what had its masks counted together, once
    what the masked shares explain is removed. (The shares are spread evenly over all draws and add
    next to nothing.)
    """
    if len(by_repeat) < 2:
        return None
    if shared is not None:
        by_repeat = np.stack([np.bincount(shared, row) for row in by_repeat])
    variance = (by_repeat.var(0, ddof=1) / len(by_repeat)).sum()
    return float(np.sqrt(variance) / tokens.sum()) * BITS
