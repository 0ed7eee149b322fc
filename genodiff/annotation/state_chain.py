"""A chain of states along a sequence: its partition sum, its marginals, its best path.

    weight(s_1 … s_L) = exp(Σ_i a_i[s_i] + Σ_i T_i[s_i, s_{i+1}] + b[s_1] + e[s_L])

a are scores of states at each place (a network's), T those of steps, b and e of both ends. A step
that must not be taken has the score `FORBIDDEN`. Sums run over a tree of products of matrices, in
log₂ L levels, so that gradients are autograd's; a sum with 13 states over 8,192 places is 13
levels. Source: Lafferty, McCallum and Pereira, 2001 (conditional random fields).
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

FORBIDDEN = -1e6
"""The score of what must not be: its weight is 0 in any float, and sums of many stay finite."""


class ChainScores(NamedTuple):
    """a, T, b and e in natural logarithms; T is one matrix for all steps, or one of each."""

    states: Float[Tensor, "B L S"]
    steps: Float[Tensor, "*B_steps S S"]
    begin: Float[Tensor, " S"]
    end: Float[Tensor, " S"]


def log_partition(chain: ChainScores) -> Float[Tensor, " B"]:
    """The logarithm of the sum of the weights of all paths.

    >>> flat = ChainScores(torch.zeros(1, 3, 2), torch.zeros(2, 2), torch.zeros(2), torch.zeros(2))
    >>> round(float(log_partition(flat).exp()))  # 2 · 2 · 2 paths
    8
    """
    states, steps, begin, end = chain
    length = states.shape[1]
    if length == 1:
        return (states[:, 0] + begin + end).logsumexp(-1)
    # A matrix of each step, with the score of the state that it leads to.
    product = steps.expand(len(states), length - 1, *steps.shape[-2:]) + states[:, 1:, None, :]
    while product.shape[1] > 1:
        pairs = product.shape[1] // 2
        joined = _multiply(product[:, : 2 * pairs : 2], product[:, 1 : 2 * pairs : 2])
        product = torch.cat([joined, product[:, 2 * pairs :]], 1)
    first = (states[:, 0] + begin)[:, :, None]
    return (first + product[:, 0] + end).logsumexp((1, 2))


def _multiply(a: Tensor, b: Tensor) -> Tensor:
    """log(exp(a) exp(b)), with the largest of each row and column taken out before."""
    rows, columns = a.amax(-1, keepdim=True).detach(), b.amax(-2, keepdim=True).detach()
    # A sum may be 0 where no path leads: then it counts as forbidden.
    least = torch.finfo(a.dtype).tiny
    found = (a - rows).exp() @ (b - columns).exp()
    return found.clamp(min=least).log() + rows + columns


def marginals(chain: ChainScores) -> Float[Tensor, "B L S"]:
    """The chance of each state at each place: the gradient of the logarithm of the sum."""
    with torch.enable_grad():
        states = chain.states.detach().requires_grad_()
        total = log_partition(chain._replace(states=states)).sum()
        (found,) = torch.autograd.grad(total, states)
    return found


def find_best_path(
    states: NDArray[np.float32],
    steps: NDArray[np.float32],
    begin: NDArray[np.float32],
    end: NDArray[np.float32],
) -> NDArray[np.int8]:
    """The path of the greatest weight through (L, S) scores; the lowest state of equals.

    `steps` is (S, S), or (L - 1, S, S). One byte is kept for each place and state. It goes from
    base to base: `path_pieces` has the quick one. Raises `ValueError` where every path is
    forbidden.
    """
    length, n = states.shape
    several = steps.ndim == 3
    came_from = np.empty((length, n), np.int8)
    best = (begin + states[0]).astype(np.float64)
    here = np.arange(n)
    for i in range(1, length):
        ways = best[:, None] + (steps[i - 1] if several else steps)
        came_from[i] = came = ways.argmax(0)
        best = ways[came, here] + states[i]
    best += end
    found = np.empty(length, np.int8)
    found[-1] = best.argmax()
    for i in range(length - 1, 0, -1):
        found[i - 1] = came_from[i, found[i]]
    pairs = np.arange(length - 1), found[:-1], found[1:]
    walked = steps[pairs] if several else steps[pairs[1:]]
    check_allowed(states, found, walked, begin[found[0]], end[found[-1]])
    return found


def check_allowed(
    states: NDArray[np.float32], path: NDArray[np.int8], *others: NDArray[np.float32] | np.floating
) -> None:
    """Raises `ValueError` where a score of a path is that of what is forbidden."""
    scores = np.take_along_axis(states, path[:, None].astype(np.int64), 1)
    if any(float(np.min(one, initial=0.0)) <= FORBIDDEN / 2 for one in (scores, *others)):
        raise ValueError("no path is allowed")
