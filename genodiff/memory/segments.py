"""Maximal scoring segments: where scores sum to more than around them (Karlin and Altschul 1990).

A segment begins at the first positive score, and ends where its sum was largest, once the sum has
fallen by `drop` from there, or to 0, or a score is NaN. The next begins behind that end.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.kernels.library import call, is_loaded
from genodiff.memory.evidence import Floats


class Segments(NamedTuple):
    """`start` and `end` (N,), half-open, and `score` (N,), their sums."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    score: Floats


def find_segments(scores: Floats, drop: float) -> Segments:
    """Find the segments of `scores` (n,), in C where there is a library.

    >>> find_segments(np.array([1.0, -0.5, 1.0, -3.0, 2.0]), 2.0).end.tolist()
    [3, 5]
    """
    if not is_loaded():
        return find_segments_slowly(scores, drop)
    scores = np.ascontiguousarray(scores, np.float64)
    # Each segment has a positive score of its own.
    most = int((scores > 0).sum())
    ends, sums, count = np.zeros((most, 2), np.int64), np.zeros(most), np.zeros(1, np.int64)
    arrays = {
        "scores": scores, "drop": np.array([drop]), "ends": ends, "sums": sums, "count": count
    }  # fmt: skip
    call("segments", arrays, backward=False, n=len(scores))
    n = int(count[0])
    return Segments(ends[:n, 0], ends[:n, 1], sums[:n])


def find_segments_slowly(scores: Floats, drop: float) -> Segments:
    """Find the segments in Python: the definition."""
    found: list[tuple[int, int, float]] = []
    i = 0
    while i < len(scores):
        if not scores[i] > 0:
            i += 1
            continue
        sums = scores[i]
        best, end = sums, i + 1
        for j in range(i + 1, len(scores)):
            sums += scores[j]
            if sums > best:
                best, end = sums, j + 1
            if not (sums > 0 and sums > best - drop):
                break
        found.append((i, end, float(best)))
        i = end
    start, end_, score = zip(*found, strict=True) if found else ((), (), ())
    return Segments(np.array(start, np.int64), np.array(end_, np.int64), np.array(score, float))
