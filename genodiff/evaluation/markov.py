"""Interpolated Markov models of DNA: what counting k-mers achieves, and a network has to beat.

With n(c a) the number of times that base a follows the k-base context c on either strand of the
train split, and c' the context without its oldest base,

    P_k(a | c) = (n(c a) + λ P_{k-1}(a | c')) / (n(c) + λ),    P_{-1}(a) = 1/4
    (MacKay & Peto 1995)

This is the posterior mean under a Dirichlet prior that is worth λ observations of the next lower
order. λ = 20 is fixed, so that the lines mean the same on every genome. On yeast (test chrXIV,
train all but chrXIV, chrXVI and chrM) the perplexities of orders 0, 1, 2, …, 8 are 3.897, 3.871,
3.860, …, 3.831; those of orders 10 and 12 are 3.850 and 3.876, each to 0.001. λ = 20 is not the
best: `fit_pseudo` chooses order and λs on held-out counts.

No k-mer spans an N, or the end of a contig or interval. Soft-masked bases count like others.
Sequences are scored on their forward strand. A base with fewer than k bases before it is scored by
the highest order that it has the context for.

Sequences are codes (`data.stretches`): A 0, C 1, G 2, T 3, anything else 4.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from genodiff.data.store import Codes, Stretch
from genodiff.errors import DataError
from genodiff.words import turn_words

PSEUDO = 20.0
MAX_ORDER = 12
_CHUNK = 1 << 21
_FIX = "check the recipe's splits and the FASTA file"


@dataclass(frozen=True)
class KmerCounts:
    """How often each (k+1)-mer stands on either strand, for k = 0..order: `tables[k][context,
    base]`, int64.

    The context's newest base is its lowest base-4 digit.
    """

    tables: tuple[NDArray[np.int64], ...]

    @property
    def order(self) -> int:
        return len(self.tables) - 1

    @property
    def bases(self) -> int:
        """How many bases were counted, each once per strand."""
        return int(self.tables[0].sum())


def count(stretches: Iterable[Stretch], order: int = 8) -> KmerCounts:
    """The counts of all (k+1)-mers, k = 0..order, within each stretch and its reverse complement.

    Stretches may be memory-mapped and of any length: about 40 bytes per base of a 2-million-base
    chunk are held, and 16 per (order + 1)-mer. About 15 s per billion bases at order 8.
    """
    if not 0 <= order <= MAX_ORDER:
        raise ValueError(f"order {order} is not in 0..{MAX_ORDER}")
    # Words are counted at the highest order that their last base has the context for, and passed
    # down from there.
    found = [np.zeros(4 ** (k + 1), np.int64) for k in range(order + 1)]
    for chunk, skip in _chunks(stretches, order):
        if chunk.min() > 3:
            continue
        run = _run_lengths(chunk)
        word = np.zeros(len(chunk), np.int32)
        for j in range(order + 1):
            word[j:] |= (chunk[: max(0, len(chunk) - j)] & 3).astype(np.int32) << (2 * j)
        run[:skip] = -1
        full = run >= order
        _add_counts(found[order], word if full.all() else word[full])
        partial = np.flatnonzero((run >= 0) & ~full)
        for k in np.unique(run[partial]).tolist():
            ends = partial[run[partial] == k]
            _add_counts(found[k], word[ends] & (4 ** (k + 1) - 1))
    for k in range(order, 0, -1):
        found[k - 1] += found[k].reshape(4, -1).sum(0)
    return KmerCounts(tuple((t + turn_words(t)).reshape(-1, 4) for t in found))


def _add_counts(table: NDArray[np.int64], words: NDArray[np.int32]) -> None:
    """Count words; of few words the whole table is not touched, as genomes have many stretches."""
    if 8 * len(words) < len(table):
        which, times = np.unique(words, return_counts=True)
        table[which] += times
    else:
        table += np.bincount(words, minlength=len(table))


def _chunks(stretches: Iterable[Stretch], overlap: int) -> Iterator[tuple[Codes, int]]:
    """Pieces of at most _CHUNK new bases, each with up to `overlap` bases before it, and how many
    those are.
    """
    for stretch in stretches:
        for start in range(0, len(stretch), _CHUNK):
            skip = min(overlap, start)
            yield stretch[start - skip : start + _CHUNK], skip


def _run_lengths(codes: Codes) -> NDArray[np.int32]:
    """For each position, how many consecutive bases precede it; -1 where it holds no base."""
    position = np.arange(len(codes), dtype=np.int32)
    other = codes > 3
    last = np.maximum.accumulate(np.where(other, position, np.int32(-1)))
    return np.where(other, np.int32(-1), position - last - 1).astype(np.int32)


@dataclass(frozen=True)
class Markov:
    """Orders 0..K at once: `tables[k][context, base]` = ln P_k(base | context), float32."""

    tables: tuple[NDArray[np.float32], ...]

    @property
    def order(self) -> int:
        return len(self.tables) - 1

    def nll(self, codes: Codes) -> NDArray[np.float32]:
        """(order + 1, n): −ln P_k of every base of `codes` (n,) given those before it, in nats.

        It is 0 where there is no base. Contexts begin anew after such a place and at the start.
        """
        run = _run_lengths(codes)
        base = (codes & 3).astype(np.int32)
        out = np.empty((self.order + 1, len(codes)), np.float32)
        word = base.copy()
        for k, table in enumerate(self.tables):
            if k:
                word[k:] |= base[: max(0, len(base) - k)] << (2 * k)
            known = -table.reshape(-1).take(word)
            out[k] = np.where(run >= k, known, out[k - 1]) if k else known
        out[:, run < 0] = 0
        return out

    def sample(
        self, n: int, length: int, generator: np.random.Generator, order: int | None = None
    ) -> Codes:
        """`n` sequences (n, length) of codes drawn from order `order` (default: the highest); see
        LETTERS.
        """
        order = self.order if order is None else order
        cdfs = [np.exp(t.astype(np.float64)).cumsum(1) for t in self.tables[: order + 1]]
        context = np.zeros(n, np.int64)
        out = np.empty((n, length), np.uint8)
        for i in range(length):
            cdf = cdfs[min(i, order)][context]
            base = np.minimum((generator.random((n, 1)) * cdf[:, 3:] >= cdf).sum(1), 3)
            out[:, i] = base
            context = (context * 4 + base) % 4 ** min(i + 1, order)
        return out


def fit(counts: KmerCounts, pseudo: float | Sequence[float] = PSEUDO) -> Markov:
    """The model of the module's equation; `pseudo` is λ of all orders or of each, from 0 up."""
    if isinstance(pseudo, int | float):
        pseudo = [pseudo] * len(counts.tables)
    if counts.bases == 0:
        raise DataError("the train split contains no base to count", fix=_FIX)
    below = np.full((1, 4), 0.25)
    tables = []
    for table, lam in zip(counts.tables[: len(pseudo)], pseudo, strict=True):
        below = _blend(table, _repeat(below, table), float(lam))
        tables.append(np.log(below).astype(np.float32))
    return Markov(tuple(tables))


def _repeat(below: NDArray[np.float64], table: NDArray[np.int64]) -> NDArray[np.float64]:
    """The rows for each context without its oldest base, which has the highest digit."""
    return np.tile(below, (len(table) // len(below), 1))


def _blend(
    table: NDArray[np.int64], shorter: NDArray[np.float64], lam: float
) -> NDArray[np.float64]:
    return (table + lam * shorter) / (table.sum(1, keepdims=True) + lam)


def fit_pseudo(
    counts: KmerCounts,
    held_out: KmerCounts,
    grid: Sequence[float] = tuple(2.0**i for i in range(13)),
) -> list[float]:
    """λ of the orders 0, 1, … up to the best one, under which the held-out counts are most likely.

    Each λ is chosen from `grid`, order by order. The best order is that of the highest held-out
    likelihood. Raises `DataError` where nothing is held out.
    """
    if held_out.bases == 0:
        raise DataError("the valid split contains no base to fit on", fix=_FIX)
    below = np.full((1, 4), 0.25)
    chosen: list[float] = []
    losses: list[float] = []
    for table, seen in zip(counts.tables, held_out.tables, strict=True):
        rows = np.flatnonzero(seen.any(1))
        n, weight, shorter = table[rows], seen[rows], below[rows % len(below)]
        tried = [
            -float((weight * np.log(_blend(n, shorter, lam))).sum() / weight.sum()) for lam in grid
        ]
        losses.append(min(tried))
        chosen.append(grid[tried.index(losses[-1])])
        below = _blend(table, _repeat(below, table), chosen[-1])
    return chosen[: losses.index(min(losses)) + 1]
