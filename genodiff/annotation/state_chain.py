"""A chain of states along a sequence: its partition sum, its marginals, its best path.

    weight(s_1 … s_L) = exp(Σ_i a_i[s_i] + Σ_i T_i[s_i, s_{i+1}] + b[s_1] + e[s_L])

a are scores of states at each place (a network's), T those of steps, b and e of both ends. A step
that must not be taken has the score `FORBIDDEN`. Sums run over a tree of products of matrices, in
log₂ L levels, so that gradients are autograd's; a sum with 13 states over 8,192 places is 13
levels. Source: Lafferty, McCallum and Pereira, 2001 (conditional random fields).

The best path through a long chain is found piece by piece at once, and exact. A piece's best paths
depend on what lies before it only through one number for each state, up to a constant. So all
pieces are gone through together, each from a guess of these numbers; then those whose guess was not
what the piece before ends with go again, until none is left (rank convergence: Maleki, Musuvathi
and Mytkowicz, 2014). Scores are rounded to 2^-20 before, so that sums are exact and equals are
equal: the path is that of `find_best_path` for the rounded scores, whatever the pieces.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

FORBIDDEN = -1e6
"""The score of what must not be: its weight is 0 in any float, and sums of many stay finite."""
PIECE = 2048
"""Bases of a piece."""
_GROUP = 512  # pieces that are gone through together: their numbers stay in the cache
_GRAIN = 2.0**20
_BLOCK = 1 << 20  # places whose scores are looked at together

Floats = NDArray[np.float64]
PathScores = Any
"""Scores (L, S), an array or what is read as one: its `shape`, and the rows at several places."""


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
    base to base: `find_long_path` is the quick one. Raises `ValueError` where every path is
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


def round_scores(scores: NDArray[np.floating]) -> Floats:
    """Scores as multiples of 2^-20."""
    return np.round(scores.astype(np.float64) * _GRAIN) / _GRAIN


def find_long_path(
    states: PathScores,
    steps: NDArray[np.float32],
    begin: NDArray[np.float32],
    end: NDArray[np.float32],
    *,
    piece: int = PIECE,
) -> NDArray[np.int8]:
    """The path of the greatest weight through (L, S) scores; the lowest state of equals.

    `steps` (S, S) are those of every place. One byte is kept for each place and state. Raises
    `ValueError` where every path is forbidden.
    """
    length, n = states.shape
    piece = max(1, min(piece, length))  # a short contig is one piece of its own length
    pieces = -(-length // piece)
    ways = _Ways(round_scores(steps))
    first = round_scores(begin)
    came_from = np.zeros((pieces * piece, n), np.int8)
    starts, ends = np.zeros((n, pieces)), np.zeros((n, pieces))
    todo = np.arange(pieces)
    while len(todo):
        for i in range(0, len(todo), _GROUP):
            some = todo[i : i + _GROUP]
            ends[:, some] = _walk(states, ways, first, starts[:, some], some, came_from, piece)
        known = ends - ends.max(0)
        behind = todo[todo + 1 < pieces] + 1
        todo = behind[(starts[:, behind] != known[:, behind - 1]).any(0)]
        starts[:, todo] = known[:, todo - 1]
    last = int((ends[:, -1] + round_scores(end)).argmax())
    found = _walk_back(came_from[:length], last, piece)
    walked = steps[found[:-1], found[1:]]
    for i in range(0, length, _BLOCK):
        at = np.arange(i, min(i + _BLOCK, length))
        check_allowed(states[at], found[at], walked, begin[found[0]], end[found[-1]])
    return found


class _Ways:
    """For each state those that may come before it, in their order, and the scores of the steps.

    A state with fewer than others has its last one again, and it is never taken.
    """

    def __init__(self, steps: Floats) -> None:
        lists = [np.flatnonzero(column > FORBIDDEN / 2) for column in steps.T]
        lists = [one if len(one) else np.arange(len(steps)) for one in lists]
        most = max(map(len, lists))
        self.before = np.array([[*one, *[one[-1]] * (most - len(one))] for one in lists]).T
        scores = [[*steps[one, to], *[-np.inf] * (most - len(one))] for to, one in enumerate(lists)]
        self.scores = np.array(scores).T[:, :, None]

    def go(self, best: Floats) -> tuple[Floats, NDArray[np.int8]]:
        """The best (S, pieces) behind a step, and where they came from."""
        found = best[self.before[0]] + self.scores[0]
        came = np.repeat(self.before[0][:, None], best.shape[1], 1).astype(np.int8)
        for before, scores in zip(self.before[1:], self.scores[1:], strict=True):
            other = best[before] + scores
            better = other > found
            np.copyto(found, other, where=better)
            np.copyto(came, before[:, None].astype(np.int8), where=better)
        return found, came


def _walk(
    states: PathScores,
    ways: _Ways,
    first: Floats,
    starts: Floats,
    some: NDArray[np.int64],
    came_from: NDArray[np.int8],
    piece: int,
) -> Floats:
    """The best of each state at the ends of pieces that begin behind `starts` (S, pieces)."""
    length, best = states.shape[0], starts.copy()
    for t in range(piece):
        at = some * piece + t
        if at[-1] >= length:  # the last piece may be shorter
            at = at[:-1]
            if not len(at):
                break
        scores = round_scores(states[at]).T
        here = best[:, : len(at)]
        found, came = ways.go(here)
        if at[0] == 0:
            found[:, 0] = first
        best[:, : len(at)] = found + scores
        came_from[at] = came.T
    return best


def _walk_back(came_from: NDArray[np.int8], last: int, piece: int) -> NDArray[np.int8]:
    """The path that ends in the state `last`: for all ends of all pieces at once, then chosen."""
    length, n = came_from.shape
    pieces = -(-length // piece)
    begins = np.arange(pieces) * piece
    ends = np.minimum(begins + piece, length)
    came = np.repeat(np.arange(n, dtype=np.int8)[None], pieces, 0)  # (pieces, state at the end)
    for t in range(piece - 1, 0, -1):
        inside = begins + t < ends
        rows = came_from[(begins + t)[inside]]
        came[inside] = np.take_along_axis(rows, came[inside].astype(np.int64), 1)
    at = np.empty(pieces, np.int64)  # the state at the end of each
    at[-1] = last
    for k in range(pieces - 1, 0, -1):
        at[k - 1] = came_from[begins[k], came[k, at[k]]]
    found = np.empty(length, np.int8)
    found[ends - 1] = at
    for t in range(piece - 1, 0, -1):
        place = (begins + t)[begins + t < ends]
        found[place - 1] = came_from[place, found[place]]
    return found
