"""Mutation-selection columns: which bases a position tolerates, and how quickly it changes.

A class c is a rate, a set T of tolerated bases, and a strength s of selection against the others
(Halpern and Bruno 1998). With fitness f_b = 0 within T and -s outside, mutation rates mu of HKY85
(`tree.py`) and the bases' own shares p,

    q_c(a -> b) = rate_c mu(a -> b) h(f_b - f_a)          h(x) = x / (1 - exp(-x))
    pi_c(b)     ∝ p(b) exp(f_b)                           the stationary profile of the class
    column_c(b) = pi_c(b) / p(b) P_c(column | b)          P_c: summed over the tree

A position is in a state k of a chain of reading frames (`frames.py`), whose classes are drawn with
probabilities w_k that depend on the other two bases of its codon and on z, the quantile (of `BINS`)
of the rate of change around it (`votes.measure_change`):

    w_kc(context, z) ∝ w_kc(context) w_kc(z) / w_kc
    L_i(b)           = Σ_k told_ik Σ_c w_kc column_ic(b)
    score            = log L_i(alt) - log L_i(ref) + HEADS / G heads(ref -> alt)

told: the probability of each state given all other positions. The target's own base is not read.
Few genomes leave the classes uncertain, and then the headcount (`votes.score_heads`) still adds
information; its weight falls with their number G.

The weights are fitted by expectation maximization, the same for a set of bases and its complement
on the other strand, so both strands give the same score. kappa is counted between the nearest
genomes, where positions have changed at most once. A genome has the base that is likeliest over a
position, or says nothing where none is likelier than not. This file is the definition, in NumPy.
"""

from collections.abc import Iterator
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.memory.frames import ANY, CONTEXTS, GROUPS, STATES, read_contexts, run_frames
from genodiff.memory.tables import Floats
from genodiff.memory.text import NONE, Codes
from genodiff.memory.tree import (
    ProfileNumbers,
    Tree,
    measure_change,
    score_heads,
    share_bases,
    weigh_columns,
)

RATES = (0.3, 1.0, 3.0, 9.0)
STRENGTHS = (2.5, 6.0)
SUBSETS = tuple(bases for n in (1, 2, 3, 4) for bases in combinations(range(4), n))
BINS = 8
HEADS = 2.0
NEAREST = 0.05
"""Genomes at most so many changes apart are counted for kappa; else the nearest two."""
_ROUNDS, _CHAIN_ROUNDS, _INNER = 60, 6, 12
_PRIOR, _CONTEXT_PRIOR, _FIXED_PRIOR = 100.0, 60.0, 1000.0
_SURE, _ROWS = 0.9, 64
_WORK = 12_000_000  # columns times nodes that weights are fitted on
_FEW, _LEAST = 625, 1e-3


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

    @property
    def are_few(self) -> bool:
        """Whether the columns of bases that there may be are few."""
        return (NONE + 1) ** self.tree.relatives <= _FEW

    @cached_property
    def every(self) -> Floats:
        """(5^G, C, 4): `read` of all columns of bases."""
        genomes = self.tree.relatives
        powers = (NONE + 1) ** np.arange(genomes)[:, None]
        return self.read_bases(np.arange((NONE + 1) ** genomes) // powers % (NONE + 1))

    def read_bases(self, bases: NDArray[np.integer]) -> Floats:
        """`read` of (G, M) bases, 4 where a genome says nothing."""
        over = np.eye(NONE + 1)[bases][..., :NONE]
        return np.concatenate(list(self.read_parts(over)))

    def read_parts(self, over: Floats) -> Iterator[Floats]:
        """As `read`, a few columns at a time, which a cache holds."""
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


class ReadWindows(NamedTuple):
    """Windows (B, L) as the states see them: `columns` (U, C, 4) of U different columns, `which`
    (B, L) of them, `codes`, and `rows` (K, B, L): context and bin of each base in each state.
    """

    columns: Floats
    which: NDArray[np.int64]
    codes: Codes
    rows: NDArray[np.int64]


def read_windows(columns: ProfileColumns, over: Floats, codes: Codes, edges: Floats) -> ReadWindows:
    """Read windows: `over` (G, B, L, 4), `codes` (B, L), `edges` of the bins of change."""
    bases = np.where(over.sum(-1) > 0.5, over.argmax(-1), NONE).reshape(len(over), -1)
    if columns.are_few:
        which = (bases * (NONE + 1) ** np.arange(len(over))[:, None]).sum(0)
        read = columns.every
    else:
        unique, which = np.unique(bases, axis=1, return_inverse=True)
        read = columns.read_bases(unique)
    rows = read_contexts(codes) * BINS + np.searchsorted(edges, measure_change(over, codes))
    return ReadWindows(read, which.reshape(codes.shape), codes, rows)


def tabulate(columns: Floats, spread: Floats, mirror: NDArray[np.int64]) -> list[Floats]:
    """Of each state (rows, U, 4): the weight of U columns, for each row of `spread_weights`."""
    u, tables = len(columns), {}
    flat = columns.transpose(1, 0, 2).reshape(len(mirror), -1)
    width = 4 * _ROWS  # always as wide, so a column has the same bits in any batch
    flat = np.pad(flat, ((0, 0), (0, -flat.shape[1] % width)))
    pieces = [np.ascontiguousarray(flat[:, i : i + width]) for i in range(0, flat.shape[1], width)]
    for state in STATES:
        if (state.group, state.strand) not in tables:
            weights = spread[state.group][_first_row(state.group) :]
            weights = np.ascontiguousarray(weights if state.strand > 0 else weights[:, mirror])
            table = np.concatenate([weights @ piece for piece in pieces], 1)
            tables[state.group, state.strand] = table[:, : 4 * u].reshape(-1, u, 4)
    return [tables[state.group, state.strand] for state in STATES]


def _first_row(group: int) -> int:
    """Outside codons there is one context."""
    return 0 if GROUPS[group].startswith("codon") else ANY * BINS


def _emit(windows: ReadWindows, tables: list[Floats]) -> Floats:
    """(B, L, K): the weight of each column in each state, with the target's own base."""
    own, known = np.minimum(windows.codes, 3), windows.codes < NONE
    out = np.ones((*own.shape, len(STATES)))
    for k, state in enumerate(STATES):
        row = windows.rows[k] - _first_row(state.group)
        out[..., k] = np.where(known, tables[k][row, windows.which, own], 1.0)
    return out


def fit_profiles(
    over: Floats, codes: Codes, distances: Floats, tree: Tree, gc: float
) -> ProfileNumbers:
    """Fit the weights on windows: `over` (G, B, L, 4), `codes` (B, L), 4 where no base is known.

    `distances` (G + 1, G + 1): changes of a position, the target first (`measure_distances`).
    """
    kappa = measure_near_kappa(over, codes, distances)
    columns = ProfileColumns(tree, gc, kappa)
    some = slice(None, None, -(-codes.size * len(tree.parent) // _WORK))
    over, codes = over[:, some], codes[some]
    change = measure_change(over, codes)
    edges = np.quantile(change[codes < NONE], np.linspace(0, 1, BINS + 1)[1:-1])
    windows = read_windows(columns, over, codes, edges)
    weights = _fit_weights(windows, columns.mirror)
    return ProfileNumbers(
        kappa=kappa,
        edges=tuple(edges.tolist()),
        weights=tuple(tuple(tuple(row.tolist()) for row in group) for group in weights),
    )


def _fit_weights(windows: ReadWindows, mirror: NDArray[np.int64]) -> Floats:
    """(groups, contexts + bins, C): see `spread_weights`."""
    columns, known = windows.columns, windows.codes < NONE
    seen = columns.transpose(0, 2, 1).reshape(-1, len(mirror))  # by column and the target's base
    cells = windows.which * 4 + np.minimum(windows.codes, 3)
    counts = np.bincount(cells[known], minlength=len(seen)).astype(np.float64)
    whole = np.full(len(mirror), 1 / len(mirror))
    for _ in range(_ROUNDS):
        whole = _improve(seen, counts, counts, whole, whole * 0, mirror)
    start = _start_weights(whole)
    weights = np.repeat(start[:, None], CONTEXTS + BINS, 1)
    for number in range(_CHAIN_ROUNDS + 1):
        emission = _emit(windows, tabulate(columns, spread_weights(weights), mirror))
        told = run_frames(emission).told * emission * known[..., None]
        told /= np.maximum(told.sum(-1, keepdims=True), 1e-300)
        last = number == _CHAIN_ROUNDS
        weights = _improve_groups(seen, told, cells, windows.rows, weights, start, mirror, last)
    return weights


def _start_weights(whole: Floats) -> Floats:
    """(groups, C): slow first and second codon positions, a quick third; ATG, rarely GTG; TAA, TAG
    and TGA.
    """
    rates, fitness, _ = list_classes()
    tolerated = fitness == 0
    tilt = {"plain": 0.2, "codon0": -0.5, "codon1": -0.8, "codon2": 0.6}
    fixed = dict(zip(GROUPS[-6:], ("A", "T", "G", "T", "AG", "AG"), strict=True))
    out = []
    for group in GROUPS:
        weights = whole * rates ** tilt.get(group, -1.0)
        if group in fixed:
            sets = np.array([b in fixed[group] for b in "ACGT"])
            weights = weights * np.where((tolerated <= sets).all(1), 1.0, 1e-3)
            if group == "start0":
                weights[(tolerated == [True, False, True, False]).all(1)] *= 100.0
        out.append(weights / weights.sum())
    return np.array(out)


def spread_weights(weights: Floats) -> Floats:
    """(groups, contexts * bins, C) of `weights` (groups, contexts + bins, C)."""
    contexts, bins = weights[:, :CONTEXTS], weights[:, CONTEXTS:]
    out = contexts[:, :, None] * (bins / contexts[:, [ANY]])[:, None]
    return (out / out.sum(-1, keepdims=True)).reshape(len(weights), -1, weights.shape[-1])


def _improve_groups(
    seen: Floats, told: Floats, cells: NDArray[np.int64], rows: NDArray[np.int64],
    weights: Floats, start: Floats, mirror: NDArray[np.int64], last: bool,
) -> Floats:  # fmt: skip
    """A round of expectation maximization; the `last` one parts the bins. `start` (groups, C): what
    start and stop codons stay near to.
    """
    out, n = weights.copy(), len(seen)
    for number, group in enumerate(GROUPS):
        counts = np.zeros((2, CONTEXTS * BINS * n))  # of both strands
        for k, state in enumerate(STATES):
            if state.group == number:
                cell = (rows[k] * n + cells).ravel()
                more = np.bincount(cell, told[..., k].ravel(), minlength=counts.shape[1])
                counts[(1 - state.strand) // 2] += more
        count = counts.reshape(2, CONTEXTS, BINS, n)
        plain, coding = group == "plain", group.startswith("codon")
        base = weights[number, ANY]

        def fit(of: Floats, known: Floats, prior: Floats, plain: bool = plain) -> Floats:
            some = of.sum(0) > _LEAST
            here, turned = (of + of[::-1])[:, some] / 2 if plain else of[:, some]
            for _ in range(_INNER):
                known = _improve(seen[some], here, turned, known, prior, mirror)
            return known

        if not last:
            prior = _PRIOR * base if plain or coding else _FIXED_PRIOR * start[number]
            out[number] = base = fit(count.sum((1, 2)), base, prior)
        if coding and not last:
            for c in range(ANY):
                prior = _CONTEXT_PRIOR * base
                out[number, c] = fit(count[:, c].sum(1), weights[number, c], prior)
        if (plain or coding) and last:
            for z in range(BINS):
                out[number, CONTEXTS + z] = fit(count[:, :, z].sum(1), base, _PRIOR * base)
    return out


def _improve(
    seen: Floats, here: Floats, turned: Floats, weights: Floats, prior: Floats,
    mirror: NDArray[np.int64],
) -> Floats:  # fmt: skip
    """One step: `here` and `turned` (N,) count the columns of either strand; `prior` (C,)."""
    own, other = weights, weights[mirror]
    own = own * ((here / np.maximum(seen @ own, 1e-300)) @ seen)
    other = other * ((turned / np.maximum(seen @ other, 1e-300)) @ seen)
    total = prior + own + other[mirror]
    return np.asarray(total / total.sum())


class ProfileScores:
    """Scores of substitutions by fitted numbers."""

    def __init__(self, tree: Tree, gc: float, numbers: ProfileNumbers) -> None:
        self._columns = ProfileColumns(tree, gc, numbers.kappa)
        self._edges = np.array(numbers.edges)
        self._spread = spread_weights(np.array(numbers.weights))

    def weigh(self, over: Floats, codes: Codes) -> Floats:
        """(B, L, 4): log L of each base; `over` (G, B, L, 4), `codes` (B, L), 4: no base known."""
        return np.log(self._mix(over, codes)[0])

    def tell_states(self, over: Floats, codes: Codes) -> Floats:
        """(B, L, K): the probability of each state of `frames.py`, as all other positions tell."""
        return self._mix(over, codes)[1]

    def _mix(self, over: Floats, codes: Codes) -> tuple[Floats, Floats]:
        """(B, L, 4) and the probabilities of the states (B, L, K)."""
        windows = read_windows(self._columns, over, codes, self._edges)
        tables = self._tables if self._columns.are_few else self._tabulate(windows.columns)
        told = run_frames(_emit(windows, tables)).told
        out = np.zeros((*codes.shape, 4))
        for k, state in enumerate(STATES):
            row = windows.rows[k] - _first_row(state.group)
            out += told[..., k, None] * tables[k][row, windows.which]
        return out, told

    def _tabulate(self, columns: Floats) -> list[Floats]:
        return tabulate(columns, self._spread, self._columns.mirror)

    @cached_property
    def _tables(self) -> list[Floats]:
        return self._tabulate(self._columns.every)

    def score(self, over: Floats, codes: Codes) -> Floats:
        """(B, L, 4): the score of each base in place of the target's own, in nats.

        Where the target's base is hidden the scores are beside A's: differences alone count.
        """
        logs, change = self.weigh(over, codes), measure_change(over, codes)
        own = np.minimum(codes, 3).astype(np.int64).ravel()
        flat = over.reshape(len(over), -1, 4)
        found = self.compare(logs.reshape(-1, 4), flat, own, change.ravel())
        return found.reshape(logs.shape)

    def compare(
        self, logs: Floats, over: Floats, ref: NDArray[np.integer], change: Floats
    ) -> Floats:
        """(M, 4): the score of each base in place of `ref` (M,); `logs` (M, 4) as `weigh` gives,
        `over` (G, M, 4), `change` (M,).
        """
        own = np.take_along_axis(logs, ref[:, None].astype(np.int64), 1)
        heads = score_heads(over, ref, change)
        return np.asarray(logs - own + HEADS / max(len(over), 1) * heads)
