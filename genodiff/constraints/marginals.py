"""Marginals under constraints in logarithms: the definition, slow and never lost to underflow.

The bases of the free positions are independent with probabilities p_f(a), and conditioned on
satisfying everything:

    q(x) = Π_f p_f(x_f) · [x satisfies all] / Z

    β_f(s) = Σ_a p_f(a) β_{f+1}(move_f(s, a)),  β_F = 1,  Z = β_0(start)
    α_{f+1}(s') = Σ over (s, a) that move to s' of α_f(s) p_f(a)
    q(x_f = a) ∝ p_f(a) Σ_s α_f(s) β_{f+1}(move_f(s, a))

A known base is a p_f that is 1 there. Where moves have weights (codon usage), p_f(a) becomes
p_f(a) g_f(s, a) in all three sums.
"""

import numpy as np
from numpy.typing import NDArray

from genodiff.constraints.layers import Layers, Table

Weights = NDArray[np.float64]


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
