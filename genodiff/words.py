"""Words of k bases as numbers, two bits a base, the first base in the highest bits.

Codes of bases are 0 to 3 for A, C, G and T, and 4 or more for all else (`alphabet.LETTER_CODES`).
"""

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]


def pack_words(codes: NDArray[np.uint8], k: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The n − k + 1 words of k ≤ 31 bases, and which of them hold bases only.

    >>> words, whole = pack_words(np.array([0, 1, 2, 4], np.uint8), 2)
    >>> words[whole].tolist()
    [1, 6]
    """
    if len(codes) < k:
        return np.empty(0, np.int64), np.empty(0, np.bool_)
    words = pack_kmers((codes & np.uint8(3)).astype(np.uint64), k)
    return words.view(np.int64), find_whole(codes, k)


def pack_kmers(bases: Words, k: int) -> Words:
    """Words of codes 0 to 3 by doubling: a word of a + b bases joins one of a and one of b.

    `bases` are at least k, and k is at most 32.
    """
    words = {1: bases}
    size = 1
    while size * 2 <= k:
        words[2 * size] = (words[size][:-size] << np.uint64(2 * size)) | words[size][size:]
        size *= 2
    done = words[size]
    for part in [part for part in reversed(words) if (k - size) & part]:
        n = len(bases) - size - part + 1
        done = (done[:n] << np.uint64(2 * part)) | words[part][size : size + n]
        size += part
    return done


def find_whole(codes: NDArray[np.uint8], k: int) -> NDArray[np.bool_]:
    """(n − k + 1,): which words of k letters hold bases only."""
    other = codes > 3
    if not other.any():
        return np.ones(len(codes) - k + 1, np.bool_)
    before = np.concatenate(([0], np.cumsum(other)))
    return np.asarray(before[k:] == before[:-k])


def turn_words(k: int) -> NDArray[np.int64]:
    """(4^k,): the number of each word's reverse complement.

    >>> turn_words(2)[:4].tolist()  # AA, AC, AG, AT: TT, GT, CT, AT
    [15, 11, 7, 3]
    """
    cube = np.arange(4**k).reshape((4,) * k)
    return np.flip(cube.transpose()).reshape(-1)
