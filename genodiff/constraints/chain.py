"""Exact marginals and draws under constraints, by forward–backward over layers.

The bases of the free positions are independent with probabilities p_f(a), and conditioned on
satisfying everything:

    q(x) = Π_f p_f(x_f) · [x satisfies all] / Z

    β_f(s) = Σ_a p_f(a) β_{f+1}(move_f(s, a)),  β_F = 1,  Z = β_0(start)
    α_{f+1}(s') = Σ over (s, a) that move to s' of α_f(s) p_f(a)
    q(x_f = a) ∝ p_f(a) Σ_s α_f(s) β_{f+1}(move_f(s, a))

A known base is a p_f that is 1 there. Messages are scaled at each position. Where they underflow,
as with probabilities of e^-1000, the same sums are done with logarithms.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.constraints.layers import Layers
from genodiff.errors import GenodiffError

Weights = NDArray[np.float64]
_SMALL = 1e-150  # products of two such numbers are still exact
_LOST = 1e-200  # a sum of products of three, of which some may have vanished


class DrawnBases(NamedTuple):
    """Bases drawn together, and the smallest distance of a uniform to a boundary, in log-odds."""

    symbols: NDArray[np.int8]
    margin: float


def find_marginals(layers: Layers, logp: Weights) -> Weights:
    """q(x_f = a) (F, 4) given natural logarithms of p_f(a) (F, 4), which need not sum to 1.

    This is the definition in logarithms: slow, and never lost to underflow.
    """
    beta, alpha = _backward_logs(layers, logp), np.zeros(1)
    found = np.zeros_like(logp)
    for f, moves in enumerate(layers.moves):
        each = alpha[:, None] + logp[f] + _take_log(beta[f + 1], moves)
        total = np.logaddexp.reduce(each, axis=0)
        found[f] = np.exp(total - np.logaddexp.reduce(total))
        alpha = _advance_logs(alpha, logp[f], moves, len(beta[f + 1]))
    return found


def draw_bases(layers: Layers, logp: Weights, due: NDArray[np.bool_], u: Weights) -> DrawnBases:
    """Bases at the `due` (F,) free positions, drawn from q, one uniform `u` (F,) each.

    From left to right, each given those before: so their joint law is that of q, exactly. `logp`
    (F, 4) has −inf where a base is known to be another.
    """
    top = logp.max(1, keepdims=True)
    if not np.isfinite(top).all():
        raise GenodiffError(
            "the denoiser gave no finite logits",
            fix="use a checkpoint from before the loss diverged",
        )
    found = _draw_scaled(layers, np.exp(logp - top), due, u)
    return _draw_by_logs(layers, logp, due, u) if found is None else found


def _draw_scaled(
    layers: Layers, p: Weights, due: NDArray[np.bool_], u: Weights
) -> DrawnBases | None:
    """None where something may underflow: no positive factor below `_SMALL` is ever multiplied."""
    places = np.flatnonzero(due)
    if not len(places):
        return DrawnBases(np.zeros(0, np.int8), math.inf)
    if _has_small(p.ravel()):
        return None
    kept = [np.array([1.0, 0.0])]  # the last entry stands for a dead state, −1
    for f in range(len(layers.moves) - 1, -1, -1):
        found = kept[-1][layers.moves[f]] @ p[f]
        top = found.max()
        if not top > 0:
            return None
        kept.append(np.append(found / top, 0.0))
    if _has_small(np.concatenate(kept)):
        return None
    kept.pop()
    alpha, seen = np.ones(1), [np.ones(1)]
    symbols: list[int] = []
    margin = math.inf
    for f in range(int(places[-1]) + 1):
        moves, beta = layers.moves[f], kept.pop()
        if due[f]:
            weights = p[f] * (alpha @ beta[moves])
            if weights.sum() < _LOST:
                return None
            symbol, near = choose_base(weights, float(u[f]))
            margin = min(margin, near)
            symbols.append(symbol)
            alpha = _scatter(alpha, moves[:, symbol], len(beta))
        else:
            alpha = _scatter((alpha[:, None] * p[f]).ravel(), moves.ravel(), len(beta))
        alpha = alpha / alpha.max()
        seen.append(alpha)
    return (
        None if _has_small(np.concatenate(seen)) else DrawnBases(np.array(symbols, np.int8), margin)
    )


def _has_small(values: Weights) -> bool:
    return bool(values[values > 0].min(initial=1.0) < _SMALL)


def _scatter(values: Weights, into: NDArray[np.int32], size: int) -> Weights:
    """Sums by target; `size` counts the dead entry, which is dropped."""
    sums = np.bincount(into.ravel() + 1, values, size).astype(np.float64)
    return sums[1:size]


def _draw_by_logs(layers: Layers, logp: Weights, due: NDArray[np.bool_], u: Weights) -> DrawnBases:
    beta, alpha = _backward_logs(layers, logp), np.zeros(1)
    symbols: list[int] = []
    margin = math.inf
    for f, moves in enumerate(layers.moves):
        row = logp[f]
        if due[f]:
            total = np.logaddexp.reduce(
                alpha[:, None] + row + _take_log(beta[f + 1], moves), axis=0
            )
            symbol, near = choose_base(np.exp(total - total.max()), float(u[f]))
            margin = min(margin, near)
            symbols.append(symbol)
            row = np.where(np.arange(4) == symbol, 0.0, -np.inf)
        alpha = _advance_logs(alpha, row, moves, len(beta[f + 1]))
    return DrawnBases(np.array(symbols, np.int8), margin)


def choose_base(weights: Weights, u: float) -> tuple[int, float]:
    """The symbol that a uniform in [0, 1) draws, and its distance to a boundary in log-odds."""
    cdf = np.cumsum(weights)
    total = cdf[-1]
    if not total > 0:
        raise GenodiffError("no base is left for a position", fix="report this as a bug")
    symbol = int((cdf[:-1] <= u * total).sum())
    if not weights[symbol]:  # rounding, at the end of the line
        symbol = int(np.flatnonzero(weights)[-1])
    here = math.log(max(u, 1e-300)) - math.log1p(-u)
    inner = cdf[:-1][(cdf[:-1] > 0) & (cdf[:-1] < total)]
    edges = np.log(inner) - np.log(total - inner)
    return symbol, float(np.abs(edges - here).min(initial=math.inf))


def _backward_logs(layers: Layers, logp: Weights) -> list[Weights]:
    beta = [np.zeros(1)]
    for f in range(len(layers.moves) - 1, -1, -1):
        each = _take_log(beta[-1], layers.moves[f]) + logp[f]
        beta.append(np.logaddexp.reduce(each, axis=1))
    return beta[::-1]


def _take_log(beta: Weights, moves: NDArray[np.int32]) -> Weights:
    return np.append(beta, -np.inf)[moves]


def _advance_logs(alpha: Weights, logp: Weights, moves: NDArray[np.int32], size: int) -> Weights:
    found = np.full(size + 1, -np.inf)
    np.logaddexp.at(found, moves.ravel(), (alpha[:, None] + logp).ravel())
    return found[:size]
