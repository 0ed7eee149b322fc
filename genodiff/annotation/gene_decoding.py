"""The genes that scores of states mean: those of the best path that the grammar allows.

Scores are natural logarithms, at each base one for each of the 13 states. All allowed steps weigh
alike, so that the path is the one whose bases are right most probably, each by itself. A contig may
begin and end in any state; a gene that an end cuts off is not among those found.
"""

import numpy as np
from numpy.typing import NDArray

from genodiff.annotation.gene_grammar import N_STATES, CodingGene, allow_steps, list_genes
from genodiff.annotation.path_pieces import find_long_path
from genodiff.annotation.state_chain import FORBIDDEN

_STEPS = np.where(allow_steps(), 0.0, FORBIDDEN).astype(np.float32)
_FREE = np.zeros(N_STATES, np.float32)


def decode_path(scores: NDArray[np.float32]) -> NDArray[np.int8]:
    """The allowed path of the greatest sum of scores (L, 13)."""
    return find_long_path(scores, _STEPS, _FREE, _FREE)


def decode_genes(scores: NDArray[np.float32]) -> list[CodingGene]:
    """The genes of the best path, in the order of the contig."""
    return list_genes(decode_path(scores))
