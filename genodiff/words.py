"""Words of k bases as numbers, two bits a base, the first base in the highest bits.

Codes of bases are 0 to 3 for A, C, G and T, and 4 or more for all else (`alphabet.LETTER_CODES`).
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Number = TypeVar("Number", np.int64, np.float64)


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


def pack_kmers(bases: Words, k: int, factor: int = 4) -> Words:
    """(n − k + 1,): Σ_j bases[i + j] · factor^(k−1−j) modulo 2^64, by doubling.

    `bases` are at least k codes. Codes 0 to 3 with factor 4 give the words of k ≤ 32 bases, and
    another factor a hash of stretches of any length.
    """
    part, length = bases, 1  # all words of `length`, doubled and joined
    done, size = bases[:0], 0
    while True:
        if k & length:
            done = done[:-length] * _raise(factor, length) + part[size:] if size else part
            size += length
        if size == k:
            return done
        part = part[:-length] * _raise(factor, length) + part[length:]
        length *= 2


def _raise(factor: int, exponent: int) -> np.uint64:
    return np.uint64(pow(factor, exponent, 1 << 64))


def find_whole(codes: NDArray[np.uint8], k: int) -> NDArray[np.bool_]:
    """(n − k + 1,): which words of k letters hold bases only."""
    other = codes > 3
    if not other.any():
        return np.ones(len(codes) - k + 1, np.bool_)
    before = np.concatenate(([0], np.cumsum(other)))
    return np.asarray(before[k:] == before[:-k])


def turn_words(by_word: NDArray[Number]) -> NDArray[Number]:
    """What stands for each of the 4^k words, in the place of its reverse complement.

    >>> turn_words(np.arange(16))[:4].tolist()  # AA, AC, AG, AT: TT, GT, CT, AT
    [15, 11, 7, 3]
    """
    k = (len(by_word).bit_length() - 1) // 2
    return np.flip(by_word.reshape((4,) * k).transpose()).reshape(-1)
