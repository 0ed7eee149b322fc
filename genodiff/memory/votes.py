"""What relatives say of an exchange, each counting once: votes.

A likelihood is dominated by the nearest relative, which shares what has not had time to change.
Votes ask another question: in how many lines of descent has a base been seen at this place?

    votes_i(b) = Σ_g weight_g over_ig(b)
    score(ref → alt) = log (votes(alt) + ½) − log (votes(ref) + ½)

over: the chance that relative g has base b over place i, as told by the bases around it. Relatives
that are alike share one vote: weight_g = 1 / (how many relatives, itself among them, differ from it
in less than `NEAR` of their places).
"""

import numpy as np

from genodiff.memory.evidence import Floats

NEAR = 0.02
ADDED = 0.5


def share_votes(distances: Floats, near: float = NEAR) -> Floats:
    """(G,): the weight of each relative. `distances` (G, G), 0 on the diagonal."""
    return np.asarray(1 / (distances <= near).sum(1))


def count_votes(over: Floats, weights: Floats) -> Floats:
    """(..., 4): votes for each base; `over` (G, ..., 4), `weights` (G,)."""
    return np.asarray(np.tensordot(weights, over, 1))


def score_votes(votes: Floats, ref: np.ndarray, added: float = ADDED) -> Floats:
    """(M, 4): the score of each base in place of `ref` (M,), in nats; `votes` (M, 4)."""
    logs = np.log(votes + added)
    return np.asarray(logs - np.take_along_axis(logs, ref[:, None].astype(np.int64), 1))
