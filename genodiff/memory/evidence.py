"""What a short Markov chain says of the visible bases: against it, copies are judged.

With x_V the visible bases of a window, f_i = p(x_i | visible bases before i) and b_i = p(x_i |
visible bases after i), masked bases summed over,

    evidence_i = sqrt(f_i b_i)

The product over a window is p(x_V), as each of Π f_i and Π b_i is. Unlike f_i alone, evidence_i is
the same on both strands, because the chain counts both. At a hidden place it is 1.
"""

import numpy as np
from numpy.typing import NDArray

from genodiff.memory.tables import count_kmers
from genodiff.memory.text import NONE, Codes, MemoryText, turn_codes
from genodiff.words import turn_words

ORDER = 4
_CHUNK = 1 << 20

Floats = NDArray[np.float64]


class Chain:
    """A Markov chain of both strands: `next[c, a]`, the chance of base a after context c, and
    `first[c]`, the chance of context c. A context is a base-4 number, its last base the last digit.
    """

    def __init__(self, counts: Floats) -> None:
        """`counts`: (4^order, 4), of both strands."""
        self.counts = counts
        counts = np.asarray(counts, np.float64) + 1
        self.next: Floats = counts / counts.sum(1, keepdims=True)
        self.first: Floats = counts.sum(1) / counts.sum()
        self.order = round(np.log2(len(counts)) / 2)


def count_words(codes: Codes | MemoryText, order: int) -> Floats:
    """(4^order, 4): how often each base follows each context, on both strands of `codes`."""
    k = order + 1
    forward = np.zeros(4**k, np.int64)
    for first in range(0, max(len(codes) - k + 1, 0), _CHUNK):
        forward += count_kmers(codes[first : first + _CHUNK + k - 1], k)
    return (forward + turn_words(forward)).reshape(-1, 4).astype(np.float64)


def measure_evidence(windows: Codes, chain: Chain) -> Floats:
    """(B, L) of windows (B, L): see the module. The loop over places; in C, `native/recall.h`."""
    return np.stack(
        [
            np.sqrt(_filter(x, chain) * _filter(turn_codes(x), chain)[::-1])
            for x in np.atleast_2d(windows)
        ]
    ).reshape(windows.shape)


def _filter(x: Codes, chain: Chain) -> Floats:
    """p(x_i | visible bases before i) at visible places, else 1.

    After `order` + 1 visible bases one context has all the mass, and a row of `next` is looked up.
    """
    visible, places = x < NONE, np.arange(len(x))
    run = places - np.maximum.accumulate(np.where(visible, -1, places))  # visible, up to a place
    sure = np.append(False, run > chain.order)[: len(x)]
    words = np.zeros(len(x), np.int64)
    for back in range(chain.order, 0, -1):
        words[back:] = 4 * words[back:] + x[:-back]
    found = np.ones(len(x))
    looked = sure & visible
    found[looked] = chain.next[words[looked], x[looked]]
    states = chain.first
    for i in np.flatnonzero(~looked).tolist():
        if sure[i]:
            states = np.zeros_like(chain.first)
            states[words[i]] = 1
        joint = states[:, None] * chain.next
        total = joint[:, x[i]].sum() if visible[i] else joint.sum()
        if visible[i]:
            found[i] = total
            joint[:, np.arange(4) != x[i]] = 0
        joint /= total
        states = joint.reshape(4, -1, 4).sum(0).reshape(-1)
    return found
