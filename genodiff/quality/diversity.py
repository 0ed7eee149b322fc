"""How different the sequences of a set are from one another: what a collapsed generator lacks.

The effective number of sequences is the Vendi score: exp of the entropy of the eigenvalues of K / n
with K the cosines of word counts, both strands pooled. It is n where no two sequences share a word,
and 1 where all are alike. Source: Friedman and Dieng 2023, arXiv 2210.02410.
"""

from collections.abc import Sequence

import numpy as np

from genodiff.alphabet import DNA, SOFT
from genodiff.quality.scorecard import Ids, kmer_counts

MOST = 1000
"""Sequences of which the effective number is found: its cost grows with the cube."""

_WORD = 6


def count_duplicates(sequences: Sequence[Ids]) -> int:
    """How many sequences stand in the set already, on either strand."""
    plain = [np.asarray(ids) & np.uint8(0xFF ^ SOFT) for ids in sequences]
    return len(plain) - len({min(ids.tobytes(), DNA.rc(ids).tobytes()) for ids in plain})


def measure_effective_number(sequences: Sequence[Ids]) -> float:
    """The effective number of the first `MOST` sequences, from 1 to their number."""
    rows = np.stack([kmer_counts([ids], _WORD) for ids in sequences[:MOST]])
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows / np.maximum(length, 1e-12)
    share = np.linalg.eigvalsh(rows @ rows.T / len(rows))
    share = share[share > 1e-12]
    return float(np.exp(-(share * np.log(share)).sum()))
