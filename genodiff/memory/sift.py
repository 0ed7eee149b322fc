"""Where few places of a window are informative: agreements counted on every diagonal.

Seeds need places side by side that are visible. Where much is masked there are few, and to count on
all diagonals is cheap: bits of 512 diagonals are added at once (`native/recall_sift.h`).

The informative places are cut into groups of `GROUP`, the last of which has all that are left. A
diagonal is tried where it agrees with a group in at least `list_least_hits` places: so many that
about `BY_CHANCE` diagonals of the text reach it by chance.
"""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from genodiff.memory.copying import Places
from genodiff.memory.text import PAD, Codes, MemoryText

GROUP = 32
BY_CHANCE = 500.0
AGREES = 0.3
"""The chance that two bases agree, where composition is uneven."""
LONGEST = 25_000_000
"""Places of the longest text that is sifted: about 30 ms a window at most, with AVX-512."""
SPARSE = 0.55
"""The share of informative places above which seeds find as much."""
_CHUNK = 1 << 20


def count_sparse(size: int, length: int) -> int:
    """The most informative places of a window at which the diagonals of a text are sifted."""
    return int(SPARSE * length) if size <= LONGEST else -1


@cache
def list_least_hits(size: int) -> NDArray[np.int64]:
    """(2 GROUP,): the least agreements of a group of so many places, for a text of `size`."""
    most = BY_CHANCE / max(size, 1)
    return np.array([_find_least(n, most) for n in range(2 * GROUP)], np.int64)


def _find_least(n: int, most: float) -> int:
    chance, least = 0.0, n + 1
    while least > 0:
        k = least - 1
        chance += math.comb(n, k) * AGREES**k * (1 - AGREES) ** (n - k)
        if chance > most:
            break
        least = k
    return least


def list_groups(tells: NDArray[np.bool_]) -> list[Places]:
    """The places of each group that is counted."""
    at = np.flatnonzero(tells)
    n = max(len(at) // GROUP, 1)
    return [at[GROUP * i : GROUP * (i + 1) if i < n - 1 else None] for i in range(n)]


def sift(text: MemoryText, codes: Codes, tells: NDArray[np.bool_]) -> Places:
    """The diagonals of a text that are worth a score, ascending."""
    least = list_least_hits(text.size)
    groups, found = list_groups(tells), []
    for first in range(1 - len(codes), text.size, _CHUNK):
        diagonals = np.arange(first, min(first + _CHUNK, text.size), dtype=np.int64)
        passes = np.zeros(len(diagonals), np.bool_)
        for group in groups:
            hits = np.zeros(len(diagonals), np.int64)
            for i in group.tolist():
                hits += text.codes[diagonals + i + PAD] == codes[i]
            passes |= hits >= least[len(group)]
        found.append(diagonals[passes])
    return np.concatenate(found)
