"""Scores of a variant's span given its flanks: `llr` and `chain`, in nats.

    llr     sum over i of log p(alt_i | F) − sum over i of log p(ref_i | F), a span's bases masked
            together: exact for one base, blind to dependence between the bases of a longer span
    chain   log p_π(S_alt | F) − log p_π(S_ref | F), averaged over orders π in which the span is
            unmasked base by base; each term is a lower bound on log p(S | F)

The average over all orders needs the 2^m − 1 masks of a span of m bases, and no order: with C_k the
cross-entropy at k masks, averaged over all sets of k, it is −Σ C_k / k (`diffusion/loss.py`).
It is taken where that is not more than the orders would cost. Beyond, orders are drawn, the same
for both spellings where the spans are equally long.

Each function is a generator: it asks for masked windows, is sent what the denoiser says, and ends
with an `Estimate`. So the windows of many variants go to the network together, and the arithmetic
of one knows nothing of the others.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.counter import Purpose, generator
from genodiff.scoring.spelling_pair import Flags, Ids, Logs, SpellingPair

if TYPE_CHECKING:
    from genodiff.scoring.masked_reader import MaskedReader


class Estimate(NamedTuple):
    """A score in nats, positive where the alternative is likelier.

    `se` is the standard error of its random draws, 0.0 where nothing was drawn; `freedom` is how
    many degrees of freedom it has. `note` is what to know about it, words joined by "; ".
    A `value` of NaN is no score, and `note` says why.
    """

    value: float
    se: float
    freedom: int = 0
    windows: int = 0  # masked windows that were asked for, the repeated ones once
    note: str = ""


Steps = Generator[list[Ids], list[Logs], Estimate]


def run_steps(steps: Steps, reader: MaskedReader) -> Estimate:
    """The estimate of one score by itself: the obvious loop."""
    answer: Any = None  # begins the generator
    while True:
        try:
            windows = steps.send(answer)
        except StopIteration as end:
            estimate: Estimate = end.value
            return estimate
        answer = reader.read(windows)


def score_llr(reader: MaskedReader, pair: SpellingPair) -> Steps:
    """The masked marginal: one window for both spellings of equal length, else one for each."""
    ref = reader.hide(pair.ref, pair.ref_span)
    alt = reader.hide(pair.alt, pair.alt_span)
    of_ref, of_alt = yield [ref, alt]
    log_alt = sum_logs(reader, of_alt, pair.alt[pair.alt_span])
    log_ref = sum_logs(reader, of_ref, pair.ref[pair.ref_span])
    return Estimate(log_alt - log_ref, 0.0, windows=count_distinct([ref, alt]))


def score_chain(reader: MaskedReader, pair: SpellingPair, seed: int, orders: int) -> Steps:
    """The span base by base, averaged over orders: over all of them, or over `orders` drawn."""
    ref = _plan_chain(pair.ref_span, pair.key(), seed, orders)
    alt = _plan_chain(pair.alt_span, pair.key(), seed, orders)
    windows = [reader.hide(pair.ref, mask) for mask in ref.masks]
    windows += [reader.hide(pair.alt, mask) for mask in alt.masks]
    logs = yield windows
    of_ref = ref.sum_logs(reader, pair.ref, logs[: len(ref.masks)])
    of_alt = alt.sum_logs(reader, pair.alt, logs[len(ref.masks) :])
    value = float(of_alt.mean()) - float(of_ref.mean())
    n = max(len(of_ref), len(of_alt))
    if n == 1:
        return Estimate(value, 0.0, windows=count_distinct(windows))
    if pair.widths[0] == pair.widths[1]:
        se = find_standard_error(of_alt - of_ref)
    else:
        se = math.hypot(find_standard_error(of_alt), find_standard_error(of_ref))
    return Estimate(value, se, n - 1, count_distinct(windows))


def count_distinct(windows: list[Ids]) -> int:
    """How many windows of different content there are, those without a mask included."""
    return len({window.tobytes() for window in windows})


class _ChainPlan(NamedTuple):
    """Masks of one spelling, and the weight of each masked base's logarithm in each value."""

    masks: list[Flags]
    weights: list[NDArray[np.float64]]  # of mask a: (values, masked bases)
    values: int

    def sum_logs(self, reader: MaskedReader, ids: Ids, logs: list[Logs]) -> NDArray[np.float64]:
        found = np.zeros(self.values)
        for mask, weight, some in zip(self.masks, self.weights, logs, strict=True):
            found += weight @ take_logs(reader, some, ids[mask])
        return found


def _plan_chain(span: Flags, key: int, seed: int, orders: int) -> _ChainPlan:
    at = np.flatnonzero(span)
    m = len(at)
    if m == 0:
        return _ChainPlan([], [], 1)
    if 2**m - 1 <= orders * m:
        return _plan_all_orders(span, at)
    draws = generator(seed, Purpose.VARIANT_ORDER, key, m)
    masks: dict[bytes, Flags] = {}
    weights: dict[bytes, NDArray[np.float64]] = {}
    for number in range(orders):
        mask = span.copy()
        for base in at[draws.permutation(m)]:
            content = mask.tobytes()
            masks.setdefault(content, mask.copy())
            chosen = weights.setdefault(content, np.zeros((orders, int(mask.sum()))))
            chosen[number, int(mask[:base].sum())] += 1.0
            mask[base] = False
    return _ChainPlan(list(masks.values()), list(weights.values()), orders)


def _plan_all_orders(span: Flags, at: NDArray[np.int64]) -> _ChainPlan:
    m, masks, weights = len(at), [], []
    for k in range(1, m + 1):
        share = 1 / (k * math.comb(m, k))
        for chosen in combinations(at.tolist(), k):
            mask = np.zeros_like(span)
            mask[list(chosen)] = True
            masks.append(mask)
            weights.append(np.full((1, k), share))
    return _ChainPlan(masks, weights, 1)


def take_logs(reader: MaskedReader, logs: Logs, ids: Ids) -> NDArray[np.float64]:
    """The logarithm of each id at the mask that stands for it."""
    columns = reader.columns(ids)
    if (columns < 0).any():
        raise ValueError("a span has an id that is no target")
    taken: NDArray[np.float64] = logs[np.arange(len(ids)), columns]
    return taken


def sum_logs(reader: MaskedReader, logs: Logs, ids: Ids) -> float:
    """The logarithm of all ids together, each at the mask that stands for it."""
    return math.fsum(take_logs(reader, logs, ids))


def find_standard_error(values: NDArray[np.float64]) -> float:
    """Of the mean of independent values; 0 for one."""
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0
