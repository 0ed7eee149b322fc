"""What relatives say of an exchange of bases, each counting by itself: votes.

A likelihood is dominated by the nearest relative, which shares what has not had time to change.
Votes ask another question: in how many lines of descent has a base been seen at this place?

    votes_i(b) = Σ_g weight_g over_ig(b)            weight_g = exp(−d_g / REACHES) / n_g
    score_i(ref → alt) = log (votes_i(alt) + a_alt) − log (votes_i(ref) + a_ref)
    a_b = ADDED Σ_g weight_g · P(b | ref)

over: the chance that relative g has base b over place i, as told by the bases around it. d_g: how
many changes of a place lie between the target and g. n_g: how many relatives, g among them, are
within `NEAR` of g; so strains of one species share a vote. P: of an exchange after `LENGTH`
changes of a place, so a transition that nobody has seen is still likelier than a transversion.

`plain` is the simplest form: every relative whose flank agrees counts once, and a_b is a half.
"""

import numpy as np
from numpy.typing import NDArray

from genodiff.memory.evidence import Floats
from genodiff.memory.text import NONE, Codes
from genodiff.memory.tree import exchange
from genodiff.settings import Settings

NEAR = 0.02
REACHES = 0.1
ADDED = 0.3
LENGTH = 0.3
_SURE = 0.9


class VoteNumbers(Settings):
    """The vote of each relative, and how much oftener a transition is seen than a transversion."""

    weights: tuple[float, ...]
    kappa: float


def weigh_relatives(distances: Floats, *, near: float = NEAR, reaches: float = REACHES) -> Floats:
    """(G,): the vote of each relative, the greatest being 1 where none shares it.

    `distances` (G + 1, G + 1), the target first: changes of a place (`relatives_fit`).
    """
    alike = (distances[1:, 1:] <= near).sum(1)
    far = distances[0, 1:]
    return np.asarray(np.exp(-(far - far.min(initial=np.inf)) / reaches) / alike)


def measure_kappa(over: Floats, codes: Codes) -> float:
    """How much more often a transition is seen than one transversion; `over` (G, ..., 4)."""
    sure = (over.max(-1) > _SURE) & (codes < NONE)
    apart = (over.argmax(-1) ^ codes)[sure]
    return float(2 * ((apart == 2).sum() + 1) / (((apart == 1) | (apart == 3)).sum() + 2))


def count_votes(over: Floats, weights: Floats) -> Floats:
    """(..., 4): votes for each base; `over` (G, ..., 4), `weights` (G,)."""
    return np.asarray(np.tensordot(weights, over, 1))


def score_votes(
    votes: Floats,
    ref: NDArray[np.integer],
    *,
    total: float,
    kappa: float,
    added: float = ADDED,
) -> Floats:
    """(M, 4): the score of each base in place of `ref` (M,), in nats; `votes` (M, 4).

    `total`: all weights together.
    """
    chances = exchange(np.array(LENGTH), np.array(kappa), 0.5)
    return _compare(votes + added * total * chances[ref], ref)


def score_plainly(votes: Floats, ref: NDArray[np.integer]) -> Floats:
    """As `score_votes`, with a half added to each base."""
    return _compare(votes + 0.5, ref)


def _compare(votes: Floats, ref: NDArray[np.integer]) -> Floats:
    logs = np.log(votes)
    own = np.take_along_axis(logs, np.asarray(ref)[:, None].astype(np.int64), 1)
    return np.asarray(logs - own)
