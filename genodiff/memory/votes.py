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

`score_heads` is the simplest form: every relative whose flank agrees counts once, a_b is a half,
and how quickly the stretch around i changes is added:

    heads_i(ref → alt) = log (n_i(alt) + ½) − log (n_i(ref) + ½) + STRETCH log r_i

r_i: the share of the relatives' bases that differ from the target in the `AROUND` places on either
side. So it takes no account of which bases are exchanged, nor of how far a relative is, and tells
places of a genome from one another, where votes tell the bases of a place
(benchmarks/relatives/FINDINGS.md).
"""

from typing import Any

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
AROUND = 32
STRETCH = 0.6
_CHANGES, _PLACES = 0.5, 5.0  # that are counted beside those around
_SURE = 0.9


class ProfileNumbers(Settings):
    """Of `profiles.py`: the spectrum of mutations, the `edges` that part the bins of change, and
    the weights (groups of `frames.py`, contexts and then bins, classes) of the classes.
    """

    kappa: float
    edges: tuple[float, ...]
    weights: tuple[tuple[tuple[float, ...], ...], ...]


class VoteNumbers(Settings):
    """The vote of each relative, and how much oftener a transition is seen than a transversion."""

    weights: tuple[float, ...]
    kappa: float


def weigh_relatives(distances: Floats, *, reaches: float = REACHES) -> Floats:
    """(G,): the vote of each relative, the greatest being 1 where none shares it.

    `distances` (G + 1, G + 1), the target first: changes of a place (`relatives_fit`).
    """
    alike = (distances[1:, 1:] <= NEAR).sum(1)
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


def measure_change(over: Floats, codes: Codes) -> Floats:
    """(B, L): the share of the relatives' bases around each place that differ from the target's.

    `over` (G, B, L, 4), `codes` (B, L): 4 where no base is known, which is left out.
    """
    votes, known = count_votes(over, np.ones(len(over))), codes < NONE
    own = np.where(known, codes, 0)[..., None].astype(np.int64)
    all_ = votes.sum(-1) * known
    differ = all_ - np.take_along_axis(votes, own, -1)[..., 0] * known
    changes, places = sum_around(differ, AROUND), sum_around(all_, AROUND)
    return np.asarray((changes + _CHANGES) / (places + _PLACES))


def sum_around(values: NDArray[Any], reach: int) -> Floats:
    """(B, L): the sums over `reach` places on either side, without the place itself."""
    total = np.concatenate([np.zeros((len(values), 1)), values.cumsum(1)], 1)
    at = np.arange(values.shape[1])
    first, last = np.maximum(at - reach, 0), np.minimum(at + reach + 1, len(at))
    return np.asarray(total[:, last] - total[:, first] - values)


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


def score_heads(over: Floats, ref: NDArray[np.integer], change: Floats) -> Floats:
    """As `score_votes`, each relative counting once; `over` (G, M, 4), `change` (M,)."""
    found = score_plainly(count_votes(over, np.ones(len(over))), ref)
    other = np.asarray(ref)[:, None] != np.arange(4)
    return found + other * (STRETCH * np.log(change)[:, None])


def _compare(votes: Floats, ref: NDArray[np.integer]) -> Floats:
    logs = np.log(votes)
    own = np.take_along_axis(logs, np.asarray(ref)[:, None].astype(np.int64), 1)
    return np.asarray(logs - own)
