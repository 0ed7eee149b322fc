"""Mutation-selection columns: which bases a position tolerates, and how quickly it changes.

A class c is a rate, a set T of tolerated bases, and a strength s of selection against the others
(Halpern and Bruno 1998). With fitness f_b = 0 within T and -s outside, mutation rates mu of HKY85
(`tree.py`) and the bases' own shares p,

    q_c(a -> b) = rate_c mu(a -> b) h(f_b - f_a)          h(x) = x / (1 - exp(-x))
    pi_c(b)     ∝ p(b) exp(f_b)                           the stationary profile of the class
    L(b)        = Σ_c w_c(z) pi_c(b) / p(b) P_c(column | b)
    score       = log L(alt) - log L(ref) + HEADS / G heads(ref -> alt)

P_c(column | b): the probability of the bases of all related genomes, given base b of the target,
summed over the tree. The target's own base is not read. z: which of `BINS` quantiles the rate of
change around the position lies in (`votes.measure_change`); so w is how often each class occurs in
slowly and in quickly changing stretches. Few genomes leave the classes uncertain, and then the
headcount (`votes.score_heads`) still adds information; its weight falls with their number G.

The weights are fitted by expectation maximisation, the same for a set of bases and its complement,
so both strands give the same score. kappa is counted between the nearest genomes, where positions
have changed at most once. This file is the definition, in NumPy.
"""

from collections.abc import Iterator
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from genodiff.memory.evidence import Floats
from genodiff.memory.text import NONE, Codes
from genodiff.memory.tree import Tree, share_bases, weigh_columns
from genodiff.memory.votes import ProfileNumbers, measure_change, score_heads

RATES = (0.3, 1.0, 3.0, 9.0)
STRENGTHS = (2.5, 6.0)
SUBSETS = tuple(bases for n in (1, 2, 3, 4) for bases in combinations(range(4), n))
BINS = 8
HEADS = 8.0
NEAREST = 0.05
"""Genomes at most so many changes apart are counted for kappa; else the nearest two."""
_ROUNDS, _BIN_ROUNDS, _PRIOR = 80, 30, 100.0
_SURE, _ROWS = 0.9, 512
_WORK = 2_000_000  # columns times nodes that weights are fitted on


def list_classes() -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Rates (C,), fitness (C, 4), and the class with the complementary bases (C,)."""
    rates, fitness = [], []
    for rate in RATES:
        for bases in SUBSETS:
            for strength in STRENGTHS if len(bases) < 4 else (0.0,):
                rates.append(rate)
                fitness.append([0.0 if b in bases else -strength for b in range(4)])
    names = [(rate, *f) for rate, f in zip(rates, fitness, strict=True)]
    mirror = [names.index((name[0], *name[:0:-1])) for name in names]
    return np.array(rates), np.array(fitness), np.array(mirror)


def fix(advantage: Floats) -> Floats:
    """h: how much likelier a mutation is fixed than a neutral one; `advantage` f_b - f_a."""
    still = np.abs(advantage) < 1e-9
    x = np.where(still, 1.0, advantage)
    return np.where(still, 1.0, x / -np.expm1(-x))


class ProfileColumns:
    """The classes with a tree, ready for columns."""

    def __init__(self, tree: Tree, gc: float, kappa: float) -> None:
        self.tree, self.share = tree, share_bases(gc)
        rates, fitness, self.mirror = list_classes()
        bases = np.arange(4)
        turned = (bases[:, None] ^ bases) == 2
        mutation = self.share * np.where(turned, kappa, 1.0) * (1 - np.eye(4))
        mutation = mutation / (self.share[:, None] * mutation).sum()
        flow = rates[:, None, None] * mutation * fix(fitness[:, None, :] - fitness[:, :, None])
        flow[:, bases, bases] = -flow.sum(2)
        profile = self.share * np.exp(fitness)
        self.profile = profile / profile.sum(1, keepdims=True)
        # Reversible, so sqrt(pi) q / sqrt(pi) is symmetric.
        root = np.sqrt(self.profile)
        even = root[:, :, None] * flow / root[:, None, :]
        self._speed, side = np.linalg.eigh((even + even.transpose(0, 2, 1)) / 2)
        self._left = side / root[:, :, None]
        self._right = side.transpose(0, 2, 1) * root[:, None, :]

    @cached_property
    def chances(self) -> Floats:
        """(C, nodes, 4, 4): the probability of each base after each branch."""
        lasting = np.exp(self._speed[:, None, :] * np.array(self.tree.length)[:, None])
        out = np.einsum("cab,cnb,cbd->cnad", self._left, lasting, self._right)
        return np.asarray(out.clip(1e-12))

    def read(self, over: Floats) -> Floats:
        """(M, C, 4): pi_c(b) / p(b) P_c(column | b); `over` (G, M, 4), 1 - Σ: no base."""
        leaves = (1 - over.sum(-1, keepdims=True)).clip(0) + over / self.share
        weights = weigh_columns(self.tree, leaves, self.chances)
        return (weights * (self.profile / self.share)[:, None]).transpose(1, 0, 2)

    def read_parts(self, over: Floats) -> Iterator[Floats]:
        """As `read`, some hundred columns at a time."""
        for first in range(0, over.shape[1], _ROWS):
            yield self.read(over[:, first : first + _ROWS])


def measure_near_kappa(over: Floats, codes: Codes, distances: Floats) -> float:
    """How much more often a transition is seen than one transversion, between near genomes.

    `over` (G, ..., 4); `codes` (...) of the target; `distances` (G + 1, G + 1), the target first.
    """
    target = np.eye(5)[np.minimum(codes, NONE)][..., :4]
    all_ = np.concatenate([target[None], over]).reshape(len(over) + 1, -1, 4)
    base, sure = all_.argmax(-1), all_.max(-1) > _SURE
    apart = np.array(distances, float)
    np.fill_diagonal(apart, np.inf)
    near = np.argwhere(np.triu(apart <= max(NEAREST, apart.min())))
    counts = np.zeros(4)
    for i, j in near.tolist():
        both = sure[i] & sure[j]
        counts += np.bincount((base[i] ^ base[j])[both], minlength=4)
    return float(2 * (counts[2] + 1) / (counts[1] + counts[3] + 2))


def fit_profiles(
    over: Floats, codes: Codes, distances: Floats, tree: Tree, gc: float
) -> ProfileNumbers:
    """Fit the weights on windows: `over` (G, B, L, 4), `codes` (B, L), 4 where no base is known.

    `distances` (G + 1, G + 1): changes of a position, the target first (`measure_distances`).
    """
    kappa = measure_near_kappa(over, codes, distances)
    columns, known = ProfileColumns(tree, gc, kappa), np.flatnonzero(codes.ravel() < NONE)
    known = known[:: -(-len(known) * len(tree.parent) // _WORK) or 1]
    change = measure_change(over, codes).ravel()[known]
    over, codes = over.reshape(len(over), -1, 4)[:, known], codes.ravel()[known].astype(int)
    parts, first = [], 0
    for part in columns.read_parts(over):
        own = codes[first : first + len(part)]
        parts.append(part[np.arange(len(part)), :, own])
        first += len(part)
    seen = np.concatenate(parts)
    even = np.full(seen.shape[1], 1 / seen.shape[1])
    whole = _maximise(seen, even, even, columns.mirror, _ROUNDS)
    edges = np.quantile(change, np.linspace(0, 1, BINS + 1)[1:-1])
    bins = np.searchsorted(edges, change)
    weights = [
        _maximise(seen[bins == z], whole, whole, columns.mirror, _BIN_ROUNDS) for z in range(BINS)
    ]
    spelt = tuple(tuple(w.tolist()) for w in weights)
    return ProfileNumbers(kappa=kappa, edges=tuple(edges.tolist()), weights=spelt)


def _maximise(
    seen: Floats, weights: Floats, prior: Floats, mirror: NDArray[np.int64], rounds: int
) -> Floats:
    for _ in range(rounds):
        joint = seen * weights
        total = (joint / joint.sum(1, keepdims=True)).sum(0) + _PRIOR * prior
        weights = (total + total[mirror]) / (2 * total.sum())
    return weights


class ProfileScores:
    """Scores of substitutions by fitted numbers."""

    def __init__(self, tree: Tree, gc: float, numbers: ProfileNumbers) -> None:
        self._columns = ProfileColumns(tree, gc, numbers.kappa)
        self._edges, self._weights = np.array(numbers.edges), np.array(numbers.weights)

    def weigh(self, over: Floats, change: Floats) -> Floats:
        """(M, 4): log L of each base; `over` (G, M, 4), `change` (M,)."""
        weights = self._weights[np.searchsorted(self._edges, change)]
        parts, first = [], 0
        for part in self._columns.read_parts(over):
            some = weights[first : first + len(part)]
            parts.append(np.einsum("mc,mcb->mb", some, part))
            first += len(part)
        return np.log(np.concatenate(parts))

    def score(self, over: Floats, ref: NDArray[np.integer], change: Floats) -> Floats:
        """(M, 4): the score of each base in place of `ref` (M,), in nats."""
        logs = self.weigh(over, change)
        own = np.take_along_axis(logs, np.asarray(ref)[:, None].astype(np.int64), 1)
        return logs - own + HEADS / max(len(over), 1) * score_heads(over, ref, change)
