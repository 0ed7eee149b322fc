"""The genes that scores of states mean: those of the best path that the grammar allows.

Scores are natural logarithms, at each base one for each of the 13 states. Without scores of steps
all allowed ones weigh alike, so that the path is the one whose bases are right most probably, each
by itself. Of letters, genes begin and end with their codons (`codon_states`). A contig may begin
and end in any state; a gene that an end cuts off is not among those found.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from genodiff.annotation.codon_states import find_codon_path
from genodiff.annotation.gene_grammar import N_STATES, allow_steps
from genodiff.annotation.path_pieces import find_long_path
from genodiff.annotation.state_chain import FORBIDDEN

_STEPS = np.where(allow_steps(), 0.0, FORBIDDEN).astype(np.float32)
_FREE = np.zeros(N_STATES, np.float32)


def decode_path(
    scores: NDArray[np.floating],
    steps: NDArray[np.float32] | None = None,
    letters: bytes | None = None,
    never: Sequence[int] = (),
) -> NDArray[np.int8]:
    """The allowed path of the greatest sum of scores (L, 13), and of steps (13, 13) if given.

    It passes through no state of `never`.
    """
    walk = (_STEPS if steps is None else steps).copy()
    walk[list(never)] = walk[:, list(never)] = FORBIDDEN
    if letters is not None:
        return find_codon_path(scores, walk, letters)
    return find_long_path(scores, walk, _FREE, _FREE)
