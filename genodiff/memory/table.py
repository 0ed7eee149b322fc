"""The table of the k-mers of a text: where each stands, on the forward strand."""

import numpy as np

from genodiff.memory.search import KmerTable
from genodiff.memory.text import PAD, MemoryText
from genodiff.words import pack_words

MOST_K = 14
LEAST_K = 4


def choose_k(bases: int) -> int:
    """The k of which there are about as many words as bases, or fewer."""
    return min(max((max(bases, 1).bit_length() - 1) // 2, LEAST_K), MOST_K)


def build_table(text: MemoryText, k: int) -> KmerTable:
    """The places of every k-mer without a 4, ascending for each. In C, `native/recall.py`."""
    words, whole = pack_words(text.codes[PAD : PAD + text.size], k)
    at = np.flatnonzero(whole).astype(np.uint32)
    words = words[at]
    start = np.zeros(4**k + 1, np.uint32)
    start[1:] = np.cumsum(np.bincount(words, minlength=4**k))
    return KmerTable(k, start, at[np.argsort(words, kind="stable")])
