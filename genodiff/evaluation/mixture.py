"""A static mixture of context orders 0 to 24: what counting long contexts gives.

With n(c a) the number of times that base a follows context c on either strand of the train split,
and c_k the k bases before position i,

    P(a) = Σ_{k=0..K} w_k(s_i) P_k(a | c_k),
    P_k(a | c_k) = (n(c_k a) + λ_k P_{k-1}(a | c_{k-1})) / (n(c_k) + λ_k),    K = 24

The class s_i is known before the base is. It says which order is the longest whose context occurs
in the train split, how often that context occurs, and whether only one base follows it. λ_k and the
weights w(s) are fitted on the valid split. The weights are fitted by expectation maximisation, and
those of a class are shrunk towards those of its order (Jelinek and Mercer 1980). Such mixtures
compress DNA best (Pratas et al. 2016). Long contexts find copied repeats, which a network that sees
one window cannot find; so windows without repeats are reported apart.

Orders up to 8 to 11, by the length of the train split, are counted in tables. Higher orders are
counted only for the contexts of the scored bases, while the train split is read piece by piece. So
memory does not grow with the train split.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from genodiff.data.stretches import Codes, Stretch
from genodiff.errors import DataError
from genodiff.evaluation.markov import KmerCounts, _run_lengths
from genodiff.words import pack_kmers

MAX_ORDER = 24
TABLED = 11  # the highest order that is counted in a table
_LEAST_TABLED = 8
_CHUNK = 1 << 21
_GRID = tuple(2.0**i for i in range(-6, 13))
_ROUNDS = 60
_SHRINK = 200.0
_ODD = np.uint64(0x9E3779B97F4A7C15)
_OFTEN = 4
_KINDS = 6  # (once, 2 or 3 times, more often) x (several bases followed, one did)

Floats = NDArray[np.float64]
Train = Callable[[], Iterable[Stretch]]


@dataclass(frozen=True)
class Mixture:
    """What is fitted: λ of each order, and `weights[s, k]` with rows that sum to 1."""

    pseudo: Floats
    weights: Floats


class Seen:
    """Train-split counts for contexts of scored bases (rows), for the orders 0 .. 24 (columns)."""

    def __init__(
        self, hits: NDArray[np.int32], total: NDArray[np.int32], most: NDArray[np.int32]
    ) -> None:
        self.hits, self.total = hits, total  # n(c_k a) of the base that stands there, n(c_k)
        self.longest = (total > 0).sum(1) - 1
        row = np.arange(len(total))
        often = np.digitize(total[row, self.longest], (2, _OFTEN))
        sure = most[row, self.longest] == total[row, self.longest]
        self.kind = (self.longest * _KINDS + 2 * often + sure).astype(np.int32)

    def __len__(self) -> int:
        return len(self.hits)


def choose_tabled(bases: int) -> int:
    """The orders of a train split of `bases` that are counted in tables: 8 to 11.

    A table of 4^12 numbers takes 130 MB, and a second to count and keep, for a plasmid too.
    """
    return min(max(int(np.log2(max(bases, 1))) // 2, _LEAST_TABLED), TABLED)


def look_up(codes: Codes, where: NDArray[np.bool_], tables: KmerCounts, train: Train) -> Seen:
    """The train split's counts for the contexts of `codes` (n,) at the places `where` (n,).

    A context begins anew after whatever is no base, and at the start of `codes`. `tables` are the
    counts of the lowest orders. `train` gives the train split's stretches, once for each higher
    order. Raises `ValueError` where `where` marks what is no base.
    """
    at = np.flatnonzero(where)
    run = _run_lengths(codes)[at]
    if (run < 0).any():
        raise ValueError("only bases have a context")
    base = codes[at].astype(np.int64)
    hits, total, most = (np.zeros((len(at), MAX_ORDER + 1), np.int32) for _ in range(3))
    bases = codes.astype(np.uint64) & np.uint64(3)
    alive = np.arange(len(at))
    for k in range(MAX_ORDER + 1):
        alive = alive[run[alive] >= k]
        if not len(alive):
            break
        words = pack_kmers(bases, k)[at[alive] - k] if k else np.zeros(len(alive), np.uint64)
        if k <= tables.order:
            rows = tables.tables[k][words.astype(np.int64)]
        else:
            wanted, inverse = np.unique(words, return_inverse=True)
            rows = _count_contexts(wanted, k, train())[inverse]
        total[alive, k] = np.minimum(rows.sum(1), np.iinfo(np.int32).max)
        most[alive, k] = np.minimum(rows.max(1), np.iinfo(np.int32).max)
        hits[alive, k] = np.minimum(
            rows[np.arange(len(alive)), base[alive]], np.iinfo(np.int32).max
        )
        alive = alive[total[alive, k] > 0]
    return Seen(hits, total, most)


def _count_contexts(
    wanted: NDArray[np.uint64], k: int, train: Iterable[Stretch]
) -> NDArray[np.int64]:
    """(len(wanted), 4): how often each base follows each sorted context, on either strand."""
    bits = max(int(8 * len(wanted) - 1).bit_length(), 10)
    shift = np.uint64(64 - min(bits, 30))
    flags = np.zeros(1 << min(bits, 30), np.bool_)
    flags[(wanted * _ODD) >> shift] = True
    found = np.zeros(len(wanted) * 4, np.int64)
    for stretch in train:
        for start in range(0, max(len(stretch) - k, 0), _CHUNK):
            chunk = stretch[start : start + _CHUNK + k]
            if chunk.min() > 3:
                continue
            for strand in (chunk, np.where(chunk < 4, 3 - chunk, chunk)[::-1]):
                bases = strand.astype(np.uint64) & np.uint64(3)
                words = pack_kmers(bases, k)[:-1]
                likely = np.flatnonzero(flags[(words * _ODD) >> shift])
                others = np.concatenate(([0], np.cumsum(strand > 3)))
                likely = likely[others[likely + k + 1] == others[likely]]
                place = np.minimum(np.searchsorted(wanted, words[likely]), len(wanted) - 1)
                same = wanted[place] == words[likely]
                found += np.bincount(
                    place[same] * 4 + strand[likely[same] + k], minlength=len(found)
                )
    return found.reshape(-1, 4)


def fit_mixture(held_out: Seen) -> Mixture:
    """The λs and the weights under which the held-out bases are most likely.

    Raises `DataError` where there are none.
    """
    if not len(held_out):
        raise DataError(
            "the valid split contains no base to fit on",
            fix="check the recipe's splits and the FASTA file",
        )
    pseudo = np.zeros(MAX_ORDER + 1)
    below = np.full(len(held_out), 0.25)
    for k in range(MAX_ORDER + 1):
        rows = held_out.total[:, k] > 0
        # Columns of rows that lie far apart: as one piece they are read several times as fast.
        hits, total = (part[rows, k].astype(np.float64) for part in (held_out.hits, held_out.total))
        lower = below[rows]
        tried = {lam: float(np.log((hits + lam * lower) / (total + lam)).sum()) for lam in _GRID}
        pseudo[k] = max(_GRID, key=tried.__getitem__) if len(hits) else 1.0
        below = _blend(held_out, k, below, pseudo[k])
    p = probabilities(held_out, pseudo)
    orders = np.arange(MAX_ORDER + 1)
    weights = np.zeros(((MAX_ORDER + 1) * _KINDS, MAX_ORDER + 1))
    for longest in range(MAX_ORDER + 1):
        equal = np.where(orders <= longest, 1.0, 0.0) / (longest + 1)
        of_order = _maximise(p[held_out.longest == longest], equal, equal, 1.0)
        for kind in range(longest * _KINDS, (longest + 1) * _KINDS):
            weights[kind] = _maximise(p[held_out.kind == kind], of_order, of_order, _SHRINK)
    return Mixture(pseudo, weights)


def mixture_nll(mixture: Mixture, seen: Seen) -> Floats:
    """−ln P of each base, nats."""
    return -np.log((probabilities(seen, mixture.pseudo) * mixture.weights[seen.kind]).sum(1))


def probabilities(seen: Seen, pseudo: Floats) -> Floats:
    """(bases, orders): P_k of the base that stands there."""
    out = np.empty((len(seen), MAX_ORDER + 1))
    below = np.full(len(seen), 0.25)
    for k in range(MAX_ORDER + 1):
        below = out[:, k] = _blend(seen, k, below, pseudo[k])
    return out


def _blend(seen: Seen, k: int, below: Floats, lam: float) -> Floats:
    return (seen.hits[:, k] + lam * below) / (seen.total[:, k] + lam)


def _maximise(p: Floats, weights: Floats, prior: Floats, strength: float) -> Floats:
    """Mixing weights by expectation maximisation; `strength` counts of `prior` are added."""
    for _ in range(_ROUNDS if len(p) else 0):
        mixed = p @ weights
        share = weights * (p / mixed[:, None]).sum(0)
        weights = (share + strength * prior) / (len(p) + strength)
    return weights
