"""The substitution rate of one aligned column, tested against the neutral rate.

A column is the base of the target and that of each related genome, called where one lies over the
position with probability above one half. With t the length of the tree that joins the target and
the genomes present, in substitutions per neutral site, and l(r) the log-likelihood of the column
when all branches are scaled by r (Felsenstein 1981, HKY85):

    r̂       the rate in [0, MOST] at which l is largest; 1 is neutral
    rs      t (1 − min(r̂, CAP))                  rejected substitutions: GERP, Cooper et al. 2005,
                                                 with the cap of GERP++, Davydov et al. 2010
    phylop  ± −log10 P(χ²₁ > 2 (l(r̂) − l(1)))    phyloP's CONACC, Pollard et al. 2010; positive
                                                 where r̂ < 1

A column where no genome is present, or whose target has no base, has no value. Columns are tested
once each and cached, so a value depends on the column alone.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.kernels.library import call, is_loaded
from genodiff.memory.columns import (
    ColumnNumbers,
    States,
    exchange_branches,
    list_states,
    run_chain,
)
from genodiff.memory.tables import Floats
from genodiff.memory.text import NONE
from genodiff.memory.tree import Tree, exchange, share_bases, weigh_columns
from genodiff.registry import find_named

Columns = NDArray[np.uint8]
"""(M, 1 + G): codes of the target and of each genome, 4 where there is none."""

CAP, MOST = 3.0, 30.0
PRESENT = 0.5
"""A genome is present at a position where its bases have more than this probability."""
_GRID = np.concatenate([[0.0], np.geomspace(0.01, MOST, 95)])
_CHUNK, _DIGITS = 2048, 9
_DIGITS_OF_64 = 27  # bases or none, in an integer
_RANGES = ((np.log(0.02), 0.0), (np.log(50.0), np.log(200.0)))
"""The least and the largest logarithm of the neutral rate, and of kappa."""
_KIND_ROUNDS, _LEAST_STEP = 12, 1e-3
_MOST_NODES = 100_000
"""Nodes of the trees of the columns that kinds are told apart by: the most frequent columns."""


class NeutralRate(NamedTuple):
    """What rate 1 is: `rate` times the fitted tree, with transitions `kappa` times as frequent.

    `source` names the sites it is estimated from, `sites` counts them.
    """

    rate: float
    kappa: float
    source: str
    sites: float


class ColumnScores(NamedTuple):
    """(M,) each, NaN where there is no value: see the module; `length` is t, `present` a count."""

    rs: Floats
    phylop: Floats
    length: Floats
    present: Floats


def call_columns(over: Floats, codes: NDArray[np.uint8]) -> Columns:
    """Call the columns of positions: `over` (G, M, 4), `codes` (M,) of the target."""
    called = np.where(over.sum(-1) > PRESENT, over.argmax(-1), NONE)
    return np.concatenate([np.minimum(codes, NONE)[None], called]).T.astype(np.uint8)


def measure_length(tree: Tree, present: Sequence[bool] | NDArray[np.bool_]) -> float:
    """The length of the branches that join the target and the genomes present."""
    joined: set[int] = set()
    for node in (number for number, there in enumerate(present, 1) if there):
        while node > 0 and node not in joined:
            joined.add(node)
            node = tree.parent[node]
    return float(sum(tree.length[node] for node in joined))


def find_slow(numbers: ColumnNumbers, neutral: float) -> NDArray[np.bool_]:
    """(3, K): whether a state is slow at each codon position: its mean rate is below half of
    `neutral`.
    """
    means = list_states(numbers).weights @ np.array(numbers.rate)
    return np.asarray(means < neutral / 2)


THIRD, FAST = "third codon positions, inferred from the alignment", "the fastest inferred class"
_LEAST_CODING = 0.2


def find_fast(numbers: ColumnNumbers) -> tuple[NDArray[np.bool_], str]:
    """(3, K): the states and codon positions that are taken for neutral, and their name."""
    states = list_states(numbers)
    plain = states.of < len(numbers.plain)
    if states.share[~plain].sum() >= _LEAST_CODING or not plain.any():
        return np.asarray(~plain & (states.phase == 2)), THIRD
    means = (states.weights @ np.array(numbers.rate))[0]
    fastest = plain & (means == means[plain].max())
    return np.broadcast_to(fastest, states.phase.shape), FAST


def guess_neutral(numbers: ColumnNumbers) -> NeutralRate:
    """The neutral rate by the fitted classes alone: no column is read."""
    states, (fast, name) = list_states(numbers), find_fast(numbers)
    weights = np.einsum("k,pk,pkj->j", states.share, fast, states.weights)
    weights /= weights.sum()
    rate, kappa = (float(weights @ np.array(x)) for x in (numbers.rate, numbers.kappa))
    return NeutralRate(rate, kappa, name, 0.0)


class ColumnTest:
    """Test columns under the tree of `numbers`, rate 1 being `neutral`.

    Without `tells_p` phylop is NaN, and scipy is not imported.

    >>> test = ColumnTest(numbers, neutral)  # doctest: +SKIP
    >>> test.score(call_columns(over, codes)).rs  # doctest: +SKIP
    """

    def __init__(
        self, numbers: ColumnNumbers, neutral: NeutralRate, *, tells_p: bool = True
    ) -> None:
        self.numbers, self.neutral, self.tells_p = numbers, neutral, tells_p
        self.slow = find_slow(numbers, neutral.rate)
        self._known: dict[bytes, tuple[float, ...]] = {}

    def score(self, columns: Columns) -> ColumnScores:
        """Score columns (M, 1 + G)."""
        unique, inverse = list_unique(columns)
        keys = [row.tobytes() for row in unique]
        new = [i for i, key in enumerate(keys) if key not in self._known]
        for first in range(0, len(new), _CHUNK):
            some = new[first : first + _CHUNK]
            for i, row in zip(some, self._test(unique[some]).tolist(), strict=True):
                self._known[keys[i]] = tuple(row)
        table = np.array([self._known[key] for key in keys]).reshape(-1, len(ColumnScores._fields))
        return ColumnScores(*table[inverse].T)

    def _test(self, columns: Columns) -> Floats:
        """(U, 4): the scores of distinct columns."""
        tree, neutral, present = self.numbers.tree, self.neutral, columns[:, 1:] < NONE
        scale = neutral.rate
        length = np.array([scale * measure_length(tree, row) for row in present])
        log = weigh_at_rates(columns, self.numbers, _GRID * scale, neutral.kappa)
        best, at = log.max(0), _GRID[log.argmax(0)]
        one = weigh_at_rates(columns, self.numbers, np.array([scale]), neutral.kappa)[0]
        root, logp = np.sqrt(np.maximum(2 * (best - one), 0)), np.full(len(columns), np.nan)
        if self.tells_p:
            log_ndtr = find_named("scipy.special:log_ndtr")
            logp = -(np.log(2) + log_ndtr(-root)) / np.log(10)
        out = np.stack(
            [
                length * (1 - np.minimum(at, CAP)),
                np.where(at < 1, logp, -logp),
                length,
                present.sum(1),
            ],
            1,
        )
        out[(columns[:, 0] == NONE) | ~present.any(1)] = np.nan
        return out.round(_DIGITS)  # NumPy's log may differ in the last bit by an array's shape


def list_unique(columns: Columns) -> tuple[Columns, NDArray[np.int64]]:
    """The distinct columns, ascending, and which of them each is."""
    width = columns.shape[1]
    if width <= _DIGITS_OF_64:
        packed: NDArray[Any] = columns @ (NONE + 1) ** np.arange(width, dtype=np.int64)[::-1]
    else:
        packed = np.ascontiguousarray(columns).view(np.dtype((np.void, width)))[:, 0]
    _, first, inverse = np.unique(packed, return_index=True, return_inverse=True)
    return columns[first], inverse


def observe_columns(columns: Columns, numbers: ColumnNumbers) -> Floats:
    """(U, J): the likelihood of columns, given the target's base, at each rate of the classes."""
    weight = weigh_columns(numbers.tree, _leaves(columns, numbers.gc), exchange_branches(numbers))
    return _pick(weight, columns, numbers.gc).T


def weigh_at_rates(columns: Columns, numbers: ColumnNumbers, rates: Floats, kappa: float) -> Floats:
    """(R, U): log-likelihood of columns, given the target's base, all branches scaled by a rate."""
    length = np.asarray(rates)[:, None] * np.array(numbers.length)
    branches = exchange(length, np.full(length.shape, kappa), numbers.gc)
    weight = weigh_columns(numbers.tree, _leaves(columns, numbers.gc), branches)
    with np.errstate(divide="ignore"):
        return np.log(_pick(weight, columns, numbers.gc))


def estimate_neutral(
    columns: Columns, weights: Floats, numbers: ColumnNumbers, source: str, *, kinds: int = 1
) -> NeutralRate:
    """Estimate the rate and kappa at which `columns` (M, 1 + G) are likeliest.

    `weights` (M,): what each counts. Columns without a base or a genome are left out. With two
    `kinds` each column is of one or the other, which differ in rate and kappa, and the result is
    that of lower kappa: of third codon positions, some are free to change to any base and some to
    one base alone.
    """
    fits = (columns[:, 0] < NONE) & (columns[:, 1:] < NONE).any(1)
    unique, inverse = list_unique(columns[fits])
    counts = np.asarray(np.bincount(inverse, weights[fits], minlength=len(unique)), np.float64)
    total = float(counts.sum())
    if not total:
        return NeutralRate(1.0, 1.0, source, 0.0)
    most = max(1, _MOST_NODES // len(numbers.parent))
    chosen = np.argsort(-counts, kind="stable")[:most] if kinds > 1 else slice(None)
    unique, counts = unique[chosen], counts[chosen]

    def weigh(at: Floats) -> Floats:
        rate, kappa = np.exp(at)
        return weigh_at_rates(unique, numbers, np.array([rate]), float(kappa))[0]

    def improve(at: Floats, share: Floats) -> Floats:
        at = np.clip(at, *_RANGES)
        steps = at + np.array([[0, 0], [0.5, 0], [0, 0.5]])
        found = find_named("scipy.optimize:minimize")(
            lambda tried: -float(share @ weigh(tried)), at, method="Nelder-Mead",
            bounds=list(zip(*_RANGES, strict=True)),
            options={"initial_simplex": np.clip(steps, *_RANGES)},
        )  # fmt: skip
        return np.asarray(found.x)

    best = [improve(np.log([1.0, 3.0]), counts)]
    if kinds > 1:
        best = [best[0] + one for one in ([0.1, -0.5], [-0.4, 1.5])]
        share = np.full(2, 0.5)
        for _ in range(_KIND_ROUNDS):
            logs = np.stack([weigh(one) for one in best]) + np.log(share)[:, None]
            own = counts * np.exp(logs - np.logaddexp(*logs))
            before, share = share, own.sum(1) / own.sum()
            best = [improve(one, some) for one, some in zip(best, own, strict=True)]
            if abs(before - share).max() < _LEAST_STEP:
                break
    rate, kappa = np.exp(min(best, key=lambda one: float(one[1]))).tolist()
    return NeutralRate(rate, kappa, source, total)


def _leaves(columns: Columns, gc: float) -> Floats:
    """(G, U, 4)."""
    codes = columns[:, 1:].T
    there = np.eye(NONE + 1)[np.minimum(codes, NONE)][..., :NONE] / share_bases(gc)
    return np.where((codes < NONE)[..., None], there, 1.0)


def _pick(weight: Floats, columns: Columns, gc: float) -> Floats:
    """(J, U) of (J, U, 4): the target's base, summed over where it is unknown."""
    code = columns[:, 0]
    own = weight[:, np.arange(len(code)), np.minimum(code, NONE - 1)]
    return np.where(code < NONE, own, (weight * share_bases(gc)).sum(-1))


class Ancestral(NamedTuple):
    """Of REF and one ALT: `odds`, log P(ALT is ancestral) / P(REF is), in nats; and `rs`."""

    odds: float
    rs: float


class Ancestry:
    """Which of two bases of a population is the ancestral one, and the constraint of its site.

    At the root of the population, before either base arose, stood REF or ALT. Mutation is
    reversible (`tree.py`), so either is as likely before anything is read, and

        log P(ALT is ancestral) / P(REF is ancestral) = log L(ALT) - log L(REF)

    with L the factors of `columns.py`. `rs` is that of the column that has the likelier of both
    bases in the target's place, so that a derived REF does not make its own site look less
    constrained. Rate 1 is that of `guess_neutral`.
    """

    def __init__(self, numbers: ColumnNumbers) -> None:
        self._test = ColumnTest(numbers, guess_neutral(numbers), tells_p=False)

    def judge(self, factors: Floats, over: Floats, ref: int, alt: int) -> Ancestral | None:
        """Judge a site: `factors` (4,), and what each genome has over it, `over` (G, 4).

        None where no genome is present.
        """
        odds = float(np.log(factors[alt]) - np.log(factors[ref]))
        likelier = np.array([alt if odds > 0 else ref], np.uint8)
        rs = float(self._test.score(call_columns(over[:, None], likelier)).rs[0])
        return None if np.isnan(rs) else Ancestral(odds, rs)


BLOCK, AROUND = 3072, 510
"""Columns of a block, and those that are read on either side: multiples of a codon."""
_CLASS_CHUNK = 4096


class ColumnClasses:
    """How much likelier the slow classes of `numbers` make each column of a row than the others do.

    The chain of `columns.py` runs along called columns; `columns` (U, 1 + G) are the distinct ones.
    With told_k the probability of state k given all columns around one but not it, and e_k its
    likelihood under k,

        lod = log Σ_slow told_k e_k / Σ_slow told_k  -  log Σ_other told_k e_k / Σ_other told_k

    in nats. A class is slow where its mean rate over a codon is below half of the rate `neutral`.
    Slow genes change at third codon positions as others do. Where the columns around say which
    position it is, such a column is worth nothing, for or against.

    A row is read in blocks, each with the columns on either side that tell it anything; so the lods
    do not depend on the number of threads. In C where there is a library.
    """

    def __init__(self, numbers: ColumnNumbers, neutral: float, columns: Columns) -> None:
        self.states: States = list_states(numbers)
        self.slow = find_slow_classes(numbers, neutral)[self.states.of]
        mixtures, place = np.unique(
            self.states.weights.reshape(-1, len(numbers.rate)), axis=0, return_inverse=True
        )
        self.place = place.reshape(3, -1).astype(np.int64)
        """(3, K): the column of `likely` that each state has at each codon position."""
        parts = [
            observe_columns(columns[first : first + _CLASS_CHUNK], numbers) @ mixtures.T
            for first in range(0, len(columns), _CLASS_CHUNK)
        ]
        self.likely = np.concatenate([np.zeros((0, len(mixtures))), *parts])

    def compare(self, ids: NDArray[np.int32]) -> Floats:
        """(n,): the lod of each column of a row; `ids` are rows of `columns`, below 0 gaps."""
        if not is_loaded():
            return self.compare_slowly(ids)
        lods = np.empty(len(ids))
        arrays: dict[str, NDArray[Any]] = {
            "of": self.place, "ids": ids, "likely": self.likely, "share": self.states.share,
            "leave": self.states.leave, "toward": self.states.toward,
            "slow": self.slow.astype(np.float64), "lods": lods,
        }  # fmt: skip
        n, (k, m) = len(ids), (len(self.slow), self.likely.shape[1])
        call("classes", arrays, backward=False, n=n, K=k, M=m, block=BLOCK, around=AROUND)
        return lods

    def compare_slowly(self, ids: NDArray[np.int32]) -> Floats:
        """Compute `compare` in NumPy: the definition."""
        lods = np.full(len(ids), np.nan)
        edges = [-1, *np.flatnonzero(ids < 0).tolist(), len(ids)]
        for low in range(0, len(ids), BLOCK):
            high = min(low + BLOCK, len(ids))
            first, end = max(low - AROUND, 0), min(high + AROUND, len(ids))
            cuts = sorted({first - 1, end, *(one for one in edges if first <= one < end)})
            for before, after in pairwise(cuts):
                at = np.arange(before + 1, after)
                if not len(at):
                    continue
                found, mine = self._compare(ids[at], at % 3), (low <= at) & (at < high)
                lods[at[mine]] = found[mine]
        return lods

    def _compare(self, ids: NDArray[np.int32], phase: NDArray[np.int64]) -> Floats:
        seen = np.take_along_axis(self.likely[ids], self.place[phase], 1)
        told = run_chain(seen[None], self.states.share, self.states.steps).told[0]
        with np.errstate(invalid="ignore"):  # where no class is slow there is no lod
            slow, other = (
                np.log((told * seen)[:, one].sum(1) / told[:, one].sum(1))
                for one in (self.slow, ~self.slow)
            )
            return np.asarray(slow - other)


def find_slow_classes(numbers: ColumnNumbers, neutral: float) -> NDArray[np.bool_]:
    """(C + D,): which classes are slow: never all of them, and the slowest where none would be."""
    rate = np.array(numbers.rate)
    plain = [float(np.array(one) @ rate) for one in numbers.plain]
    means = np.array([*plain, *(float((np.array(one) @ rate).mean()) for one in numbers.coding)])
    slow = (means < neutral / 2) & (means < means.max())
    return slow if slow.any() else (means == means.min()) & (means < means.max())
