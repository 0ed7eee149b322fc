"""Exact draws and marginals under constraints, by forward–backward over layers.

The bases of the free positions are independent with probabilities p_f(a), and conditioned on
satisfying everything:

    q(x) = Π_f p_f(x_f) · [x satisfies all] / Z

    β_f(s) = Σ_a p_f(a) β_{f+1}(move_f(s, a)),  β_F = 1,  Z = β_0(start)
    α_{f+1}(s') = Σ over (s, a) that move to s' of α_f(s) p_f(a)
    q(x_f = a) ∝ p_f(a) Σ_s α_f(s) β_{f+1}(move_f(s, a))

A known base is a p_f that is 1 there. Where moves have weights (codon usage), p_f(a) becomes
p_f(a) g_f(s, a) in all three sums.

Messages are scaled at each position. Where they underflow, as with probabilities of e^-1000, the
same sums are done with logarithms. `kernels/native/chain.h` has the scaled sums in C.

A draw is close where errors of the logarithms could change it. How much it hangs on other positions
than its own is summed outwards from it, as far as that matters: the states of the two sides of a
boundary soon meet where constraints look at a few bases, and no base beyond tells them apart.
"""

import math
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.constraints.layers import Layers, Table
from genodiff.errors import GenodiffError

Weights = NDArray[np.float64]
SMALL = 1e-150  # products of two such numbers are still exact
LOST = 1e-200  # a sum of products of three, of which some may have vanished
MET = 1e-3  # what all further positions may add without being looked at


class DrawnBases(NamedTuple):
    """Bases drawn together, and whether the errors that were allowed for could change one."""

    symbols: NDArray[np.int8]
    close: bool


def draw_bases(
    layers: Layers, logp: Weights, due: NDArray[np.bool_], u: Weights, error: float = 0.0
) -> DrawnBases:
    """Bases at the `due` (F,) free positions, drawn from q, one uniform `u` (F,) each.

    From left to right, each given those before: so their joint law is that of q, exactly. `logp`
    (F, 4) has −inf where a base is known to be another; others may be off by `error` each.
    """
    found = draw_scaled(layers, scale_rows(logp), due, u, error)
    return draw_by_logs(layers, logp, due, u, error) if found is None else found


def scale_rows(logp: Weights) -> Weights:
    """p (F, 4), the largest of each position 1. Raises `GenodiffError` where none is finite."""
    top = reduce(np.maximum, logp.T)[:, None]  # ten times as fast as a maximum of rows of four
    if not np.isfinite(top).all():
        fix = "use a checkpoint from before the loss diverged"
        raise GenodiffError("the denoiser gave no finite logits", fix=fix)
    p: Weights = np.exp(logp - top)
    return p


def draw_scaled(
    layers: Layers, p: Weights, due: NDArray[np.bool_], u: Weights, error: float = 0.0
) -> DrawnBases | None:
    """None where something may underflow: no positive factor below `SMALL` is ever multiplied."""
    if not due.any():
        return DrawnBases(np.zeros(0, np.int8), False)
    if _has_small(p.ravel()):
        return None
    beta = _pass_back(layers, p)
    if beta is None or _has_small(np.concatenate(beta)):
        return None
    p, alpha = p.copy(), [np.ones(1)]
    symbols: list[int] = []
    close = False
    for f in range(int(np.flatnonzero(due)[-1]) + 1):
        moves = layers.moves[f]
        if due[f]:
            weights = p[f] * (alpha[f] @ (layers.gain(f) * beta[f + 1][moves]))
            if weights.sum() < LOST:
                return None
            symbol, gaps = choose_base(weights, float(u[f]))
            for edge in range(3):
                if error and not close and gaps[edge] < math.inf:
                    limit = float(gaps[edge]) / (2 * error)
                    close = _hangs_on(layers, p, alpha, beta, f, edge, limit)
            symbols.append(symbol)
            p[f] = np.arange(4) == symbol
        found = _scatter(alpha[f][:, None] * p[f] * layers.gain(f), moves, len(beta[f + 1]))
        alpha.append(found / found.max())
    if _has_small(np.concatenate(alpha)):
        return None
    return DrawnBases(np.array(symbols, np.int8), close)


def draw_by_logs(
    layers: Layers, logp: Weights, due: NDArray[np.bool_], u: Weights, error: float = 0.0
) -> DrawnBases:
    """The definition, for what underflows."""
    logp, beta, alpha = logp.copy(), pass_back_logs(layers, logp), np.zeros(1)
    symbols: list[int] = []
    close = False
    for f, moves in enumerate(layers.moves):
        gain = np.log(layers.gain(f))
        if due[f]:
            total = sum_paths_log(alpha, logp[f] + gain, moves, beta[f + 1])
            symbol, gaps = choose_base(np.exp(total - total.max()), float(u[f]))
            most = int((np.isfinite(logp).sum(1) > 1).sum())
            near = (gaps < math.inf) & (gaps <= 2 * error * most)
            for edge in np.flatnonzero(near):
                close |= gaps[edge] <= 2 * error * find_influence(layers, logp, f, int(edge))
            symbols.append(symbol)
            logp[f] = np.where(np.arange(4) == symbol, 0.0, -np.inf)
        alpha = pass_on_logs(alpha, logp[f] + gain, moves, len(beta[f + 1]))
    return DrawnBases(np.array(symbols, np.int8), bool(close))


def choose_base(weights: Weights, u: float) -> tuple[int, Weights]:
    """The symbol that a uniform in [0, 1) draws, and its distance to each boundary in log-odds.

    There are three boundaries (3,), infinitely far where all weights are on one side.
    """
    cdf = np.cumsum(weights)
    total = cdf[-1]
    if not total > 0:
        raise GenodiffError("no allowed base is left for a position", fix="report this as a bug")
    symbol = int((cdf[:-1] <= u * total).sum())
    if not weights[symbol]:  # rounding, at the end of the line
        symbol = int(np.flatnonzero(weights)[-1])
    here = math.log(max(u, 1e-300)) - math.log1p(-u)
    gaps = np.full(3, math.inf)
    inner = (cdf[:-1] > 0) & (cdf[:-1] < total)
    gaps[inner] = np.abs(np.log(cdf[:-1][inner]) - np.log(total - cdf[:-1][inner]) - here)
    return symbol, gaps


def _hangs_on(
    layers: Layers,
    p: Weights,
    alpha: list[Weights],
    beta: list[Weights],
    f: int,
    edge: int,
    limit: float,
) -> bool:
    """Whether `find_influence` reaches `limit`, from the messages of all before and after f.

    What is not summed is bounded: by 1 for each open position, and by the total variation of the
    states, since a base beyond depends on the side through its state alone.
    """
    is_open = (p > 0).sum(1) > 1
    left, right, found = int(is_open[:f].sum()), int(is_open[f + 1 :].sum()), 1.0
    if limit <= found or limit > found + left + right:
        return limit <= found
    first = np.arange(4) <= edge
    rows, moves = (p[f] * first, p[f] * ~first), layers.moves[f]
    gain = layers.gain(f)
    ahead = [_scatter(alpha[f][:, None] * row * gain, moves, len(beta[f + 1])) for row in rows]
    for g in range(f + 1, len(p)):
        ahead = [now / (now @ beta[g][:-1]) for now in ahead]
        apart = float(np.abs(ahead[0] - ahead[1]) @ beta[g][:-1]) / 2
        if found >= limit or found + left + apart * right < limit or apart * right < MET:
            break
        if is_open[g]:
            after = layers.gain(g) * beta[g + 1][layers.moves[g]]
            found += _differ(*(p[g] * (now @ after) for now in ahead))
            right -= 1
        row = p[g] * layers.gain(g)
        ahead = [_scatter(now[:, None] * row, layers.moves[g], len(beta[g + 1])) for now in ahead]
    else:
        apart = 0.0
    found += apart * right
    back = [(gain * beta[f + 1][moves]) @ row for row in rows]
    for g in range(f - 1, -1, -1):
        back = [now / (alpha[g + 1] @ now) for now in back]
        apart = float(alpha[g + 1] @ np.abs(back[0] - back[1])) / 2
        if found >= limit or found + apart * left < limit:
            break
        taken = [layers.gain(g) * np.append(now, 0.0)[layers.moves[g]] for now in back]
        if is_open[g]:
            found += _differ(*(p[g] * (alpha[g] @ now) for now in taken))
            left -= 1
        back = [now @ p[g] for now in taken]
    return not found < limit


def _differ(one: Weights, other: Weights) -> float:
    """The total variation of two laws given by weights."""
    return float(np.abs(one / one.sum() - other / other.sum()).sum()) / 2


def _pass_back(layers: Layers, p: Weights) -> list[Weights] | None:
    """β of each layer, with a 0 behind it for a dead state, −1."""
    kept = [np.array([1.0, 0.0])]
    for f in range(len(layers.moves) - 1, -1, -1):
        found = (layers.gain(f) * kept[-1][layers.moves[f]]) @ p[f]
        top = found.max()
        if not top > 0:
            return None
        kept.append(np.append(found / top, 0.0))
    return kept[::-1]


def _has_small(values: Weights) -> bool:
    return bool(values[values > 0].min(initial=1.0) < SMALL)


def _scatter(values: Weights, into: Table, size: int) -> Weights:
    """Sums by target; `size` counts the dead entry, which is dropped."""
    sums = np.bincount(into.ravel() + 1, values.ravel(), size).astype(np.float64)
    return sums[1:size]


def find_marginals(layers: Layers, logp: Weights) -> Weights:
    """q(x_f = a) (F, 4) given natural logarithms of p_f(a) (F, 4), which need not sum to 1."""
    beta, alpha = pass_back_logs(layers, logp), np.zeros(1)
    found = np.zeros_like(logp)
    for f, moves in enumerate(layers.moves):
        row = logp[f] + np.log(layers.gain(f))
        total = sum_paths_log(alpha, row, moves, beta[f + 1])
        found[f] = np.exp(total - np.logaddexp.reduce(total))
        alpha = pass_on_logs(alpha, row, moves, len(beta[f + 1]))
    return found


def find_influence(layers: Layers, logp: Weights, f: int, edge: int) -> float:
    """What a draw at position `f` hangs on, in positions: 1 where it hangs on its own alone.

    Σ_g TV(q(x_g | x_f ≤ edge), q(x_g | x_f > edge)), the total variation of bases given either side
    of a boundary. The log-odds of the two sides change by 2 e times as much, at most, where each
    logarithm is off by e: their derivative by log p_g(b) is the difference of the two q(x_g = b).
    """
    first = np.arange(4) <= edge
    sides = []
    for side in (first, ~first):
        given = logp.copy()
        given[f] = np.where(side, logp[f], -np.inf)
        sides.append(find_marginals(layers, given))
    return float(np.abs(sides[0] - sides[1]).sum() / 2)


def pass_back_logs(layers: Layers, logp: Weights) -> list[Weights]:
    """log β of each layer."""
    beta = [np.zeros(1)]
    for f in range(len(layers.moves) - 1, -1, -1):
        each = _take_log(beta[-1], layers.moves[f]) + logp[f] + np.log(layers.gain(f))
        beta.append(np.logaddexp.reduce(each, axis=1))
    return beta[::-1]


def sum_paths_log(alpha: Weights, row: Weights, moves: Table, beta: Weights) -> Weights:
    """log Σ_s α(s) p(a) β(move(s, a)) (4,) of a position."""
    each = alpha[:, None] + row + _take_log(beta, moves)  # a row for all states, or for each
    total: Weights = np.logaddexp.reduce(each, axis=0)
    return total


def pass_on_logs(alpha: Weights, row: Weights, moves: Table, size: int) -> Weights:
    """log α of the next layer, of `size` states."""
    found = np.full(size + 1, -np.inf)
    np.logaddexp.at(found, moves.ravel(), (alpha[:, None] + row).ravel())
    return found[:size]


def _take_log(beta: Weights, moves: Table) -> Weights:
    return np.append(beta, -np.inf)[moves]
