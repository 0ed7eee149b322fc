"""The best path through a long chain of states, piece by piece at once, and exact.

A piece's best paths depend on what lies before it only through one number for each state, up to a
constant. So all pieces are gone through together, each from a guess of these numbers; then those
whose guess was not what the piece before ends with go again, until none is left (rank convergence:
Maleki, Musuvathi and Mytkowicz, 2014). Scores are rounded to 2^-20 before, so that sums are exact
and equals are equal: the path is that of `find_best_path` for the rounded scores, whatever the
pieces.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from genodiff.annotation.state_chain import FORBIDDEN, check_allowed

PIECE = 2048
"""Bases of a piece."""
_GROUP = 512  # pieces that are gone through together: their numbers stay in the cache
_GRAIN = 2.0**20
_BLOCK = 1 << 20  # places whose scores are looked at together

Floats = NDArray[np.float64]


class PathScores(Protocol):
    """Scores (L, S), an array or what is read as one: by rows, at several places."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(L, S)."""
        ...

    def __len__(self) -> int:
        """L."""
        ...

    def __getitem__(self, at: Any, /) -> Any:
        """The rows at some places."""
        ...


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
    length, best = len(states), starts.copy()
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
