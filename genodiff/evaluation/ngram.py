"""Interpolated n-gram models of tokens: what counting the train split achieves, the line that a
network has to beat.

    P_k(a | c) = (n(c a) + λ_k P_{k-1}(a | c')) / (n(c) + λ_k),    P_{-1}(a) = 1 / V
    (MacKay & Peto 1995)

as in `markov`, for any vocabulary: n(c a) is how often token a follows the k tokens c in train, c'
is c without its oldest, and V the number of tokens that may be predicted. Each λ_k is the power of
two that gives the valid split the highest likelihood, chosen order by order. An n-gram is packed
into a word of 64 bits, which bounds the order: 6 for bytes, 3 for a vocabulary of 2^16. At most
`MOST` tokens of train are counted, from its beginning.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import DataError

MOST = 1 << 26
ORDER = 6
_CHUNK = 1 << 21
_GRID = tuple(2.0**i for i in range(-2, 13))
_HELD_OUT = 1 << 18

Ids = NDArray[np.uint64]
Floats = NDArray[np.float64]


class Table(NamedTuple):
    """The n-grams of one order (sorted words, newest token lowest), their counts and contexts'."""

    words: Ids
    counts: NDArray[np.int64]
    contexts: Ids
    totals: NDArray[np.int64]


@dataclass(frozen=True)
class NgramCounts:
    """Tables of orders 0 to K of a vocabulary whose ids fit `bits`; `tokens` were counted."""

    tables: tuple[Table, ...]
    bits: int
    size: int
    tokens: int

    @property
    def order(self) -> int:
        """The highest order."""
        return len(self.tables) - 1

    def look_up(self, k: int, words: Ids) -> tuple[Floats, Floats]:
        """n(c a) and n(c) of the last k + 1 tokens of words; 0 where they were not seen."""
        words, table = words & np.uint64((1 << self.bits * (k + 1)) - 1), self.tables[k]
        contexts = words >> np.uint64(self.bits)
        seen = _look_up(table.words, table.counts, words)
        return seen, _look_up(table.contexts, table.totals, contexts)


def find_highest_order(padded_size: int) -> int:
    """The highest order for a vocabulary of so many ids."""
    return min(ORDER, 64 // max(1, (padded_size - 1).bit_length()) - 1)


def count(
    stretches: Iterable[NDArray[np.unsignedinteger]], padded_size: int, size: int, most: int = MOST
) -> NgramCounts:
    """The counts of the stretches, each read on its own; `size` is the number of tokens that may be
    predicted.

    Raises `DataError` where nothing is there to count.
    """
    bits, order = (padded_size - 1).bit_length(), find_highest_order(padded_size)
    words, counts = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    tokens = 0
    for stretch in stretches:
        for start in range(0, len(stretch), _CHUNK):
            if tokens >= most:
                break
            part = np.asarray(stretch[max(0, start - order) : start + _CHUNK]).astype(np.uint64)
            found, n = np.unique(pack_words(part, bits, order)[order:], return_counts=True)
            words, counts = _summed(np.concatenate((words, found)), np.concatenate((counts, n)))
            tokens += len(part)
    if not len(words):
        raise DataError("the train split holds too little text to count", fix="give more text")
    tables = []
    for k in range(order, -1, -1):
        if k < order:
            words, counts = _summed(words & np.uint64((1 << bits * (k + 1)) - 1), counts)
        contexts, totals = _summed(words >> np.uint64(bits), counts)
        tables.append(Table(words, counts, contexts, totals))
    return NgramCounts(tuple(reversed(tables)), bits, size, tokens)


def pack_words(ids: Ids, bits: int, order: int) -> Ids:
    """The word of `order` + 1 tokens that ends at each place, with leading zeros at the start."""
    words = ids.copy()
    for j in range(1, order + 1):
        words[j:] |= ids[: max(0, len(ids) - j)] << np.uint64(bits * j)
    return words


def nll(
    counts: NgramCounts, lambdas: Sequence[float], words: Ids, known: NDArray[np.int64]
) -> Floats:
    """−ln P_k of the newest token of each word, for each order k of `lambdas`: (orders, n), nats.

    `known` is how many tokens of context a word really has: above it, an order says what the last
    possible one says.
    """
    below = np.full(len(words), 1 / counts.size)
    out = np.empty((len(lambdas), len(words)))
    for k, lam in enumerate(lambdas):
        mine, context = counts.look_up(k, words)
        below = np.where(known >= k, (mine + lam * below) / (context + lam), below)
        out[k] = -np.log(below)
    return out


def fit(counts: NgramCounts, held_out: NDArray[np.unsignedinteger]) -> list[float]:
    """λ of each order by the likelihood of held-out tokens; 4 for all where there are none."""
    order, some = counts.order, np.asarray(held_out[:_HELD_OUT]).astype(np.uint64)
    if len(some) <= order:
        return [4.0] * (order + 1)
    words = pack_words(some, counts.bits, order)[order:]
    below = np.full(len(words), 1 / counts.size)
    chosen = []
    for k in range(order + 1):
        mine, context = counts.look_up(k, words)
        chosen.append(
            min(_GRID, key=lambda lam: -np.log((mine + lam * below) / (context + lam)).sum())
        )
        below = (mine + chosen[-1] * below) / (context + chosen[-1])
    return chosen


def _summed(words: Ids, counts: NDArray[np.int64]) -> tuple[Ids, NDArray[np.int64]]:
    words, place = np.unique(words, return_inverse=True)
    return words, np.bincount(place, counts, len(words)).astype(np.int64)


def _look_up(keys: Ids, values: NDArray[np.int64], wanted: Ids) -> Floats:
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, values[at], 0).astype(np.float64)
