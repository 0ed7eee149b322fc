"""Where motifs stand in sequences: log-odds scores against a threshold of known p, both strands.

A base b at place i of a motif scores log2(p_i(b) / q(b)), with q the background and a little of it
mixed into p. Scores are rounded to whole steps of 0.01 bits, so the law of a motif's score under
the background is found exactly, by convolution. The threshold is the least score that background
sequence reaches with probability `p_value` or less. A motif too short for that (6 bases, 1e-4) is
found by its best word alone. Source: Staden 1989; Grant, Bailey and Noble 2011 (FIMO).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from genodiff.io.motifs import Motif
from genodiff.quality.scorecard import Ids, kmer_spectrum, read_bases

P_VALUE = 1e-4
_STEPS = 100  # of a bit
_MIXED = 0.01  # of the background, in a motif's probabilities
_NO_BASE = -(1 << 24)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def measure_background(sequences: Sequence[Ids]) -> Floats:
    """The frequencies (4,) of A, C, G, T, both strands together, each at least a little."""
    found = kmer_spectrum(sequences, 1) + 1e-3
    return found / found.sum()


def make_scores(motif: Motif, background: Floats) -> Ints:
    """Log-odds (width, 4) of a motif in steps of 0.01 bits."""
    mixed = (1 - _MIXED) * motif.matrix + _MIXED * background
    return np.round(_STEPS * np.log2(mixed / background)).astype(np.int64)


def find_threshold(scores: Ints, background: Floats, p_value: float = P_VALUE) -> int:
    """The least score that background reaches with probability at most `p_value`, else the best."""
    low = scores.min(1, keepdims=True)
    shifted = scores - low
    law = np.ones(1)
    for row in shifted:
        wider = np.zeros(len(law) + int(row.max()))
        for base, step in enumerate(row.tolist()):
            wider[step : step + len(law)] += background[base] * law
        law = wider
    upper = law[::-1].cumsum()[::-1]  # P(score >= s); tiny errors of rounding do not matter
    rare = np.flatnonzero(upper <= p_value * (1 + 1e-9))
    best = len(law) - 1
    return int(min(int(rare[0]) if len(rare) else best, best) + low.sum())


def count_motif_hits(
    sequences: Sequence[Ids], motifs: Sequence[Motif], background: Floats, p_value: float = P_VALUE
) -> Ints:
    """How often each motif stands in each sequence, (sequences, motifs), both strands.

    A place where a motif stands on both strands counts twice. A hit holds A, C, G and T only.
    """
    parts = [np.append(read_bases(ids), -1) for ids in sequences]
    codes = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    owner = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    codes = np.where(codes < 0, 4, codes)
    found = np.zeros((len(parts), len(motifs)), np.int64)
    for column, motif in enumerate(motifs):
        scores = make_scores(motif, background)
        least = find_threshold(scores, background, p_value)
        for strand in (scores, scores[::-1, ::-1]):
            places = len(codes) - len(strand) + 1
            if places <= 0:
                continue
            total = np.zeros(places, np.int64)
            for i, row in enumerate(strand):
                total += np.append(row, _NO_BASE)[codes[i : i + places]]
            hits = owner[np.flatnonzero(total >= least)]
            found[:, column] += np.bincount(hits, minlength=len(parts))
    return found
