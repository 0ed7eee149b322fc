"""Which windows share long exact matches with the train split: the same 24-mer on either strand.

Copied repeats can decide a genome's likelihood figure, so windows that have any are shown apart. A
k-mer (k ≤ 31) is packed at two bits per base into a uint64; a k-mer and its reverse complement
share the smaller of their codes.

The k-mers of the *scored* windows are held (8 bytes for each distinct one, and 8 to 16 bytes of a
hashed table of flags that is at most 1 GiB) and the train split is streamed past them, so memory
does not grow with the train split. Nothing is subsampled: 4,096 windows of 1,024 bases against 3
billion bases take minutes and under 300 MB.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from genodiff.scoring.markov import Codes, Stretch

Words = NDArray[np.uint64]

K = 24
_CHUNK = 1 << 20
_MAX_FLAGS = 1 << 30
_ODD = np.uint64(0x9E3779B97F4A7C15)


def canonical_kmers(codes: Codes, k: int = K) -> tuple[Words, NDArray[np.bool_]]:
    """Canonical codes of the n − k + 1 k-mers of `codes`, and which of them hold only bases."""
    n = len(codes) - k + 1
    if not 1 <= k <= 31:
        raise ValueError(f"k {k} is not in 1..31")
    if n <= 0:
        return np.empty(0, np.uint64), np.empty(0, np.bool_)
    bases = codes.astype(np.uint64) & np.uint64(3)
    forward, backward = pack_kmers(bases, k), pack_kmers((np.uint64(3) - bases)[::-1], k)[::-1]
    others = np.concatenate(([0], np.cumsum(codes > 3)))
    return np.minimum(forward, backward), others[k:] == others[:-k]


def pack_kmers(bases: Words, k: int) -> Words:
    """Base-4 codes of all k-mers by doubling: a word of a + b bases joins one of a and one of b."""
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


def shared_kmers(scored: Iterable[Stretch], train: Iterable[Stretch], k: int = K) -> Words:
    """The canonical k-mers, sorted, that stand both in `scored` and in `train`, on any strand."""
    wanted = _distinct(_stream(scored, k))
    if not len(wanted):
        return wanted
    bits = min(max(int(8 * len(wanted) - 1).bit_length(), 10), _MAX_FLAGS.bit_length() - 1)
    shift = np.uint64(64 - bits)
    flags = np.zeros(1 << bits, np.bool_)
    flags[(wanted * _ODD) >> shift] = True
    hit = np.zeros(len(wanted), np.bool_)
    for words in _stream(train, k):
        words = words[flags[(words * _ODD) >> shift]]
        at = np.minimum(np.searchsorted(wanted, words), len(wanted) - 1)
        hit[at[wanted[at] == words]] = True
    return wanted[hit]


def measure_shared_cover(
    windows: Iterable[Codes], shared: Words, k: int = K
) -> NDArray[np.float64]:
    """For each window, the share of its bases that lie in a k-mer of `shared` (sorted)."""
    found = []
    for codes in windows:
        words, valid = canonical_kmers(codes, k)
        inside = np.zeros(len(codes) + 1, np.int64)
        if len(shared):
            at = np.minimum(np.searchsorted(shared, words), len(shared) - 1)
            starts = np.flatnonzero(valid & (shared[at] == words))
            inside[starts] += 1
            inside[starts + k] -= 1
        bases = int(np.count_nonzero(codes < 4))
        found.append(int(np.count_nonzero(inside.cumsum())) / max(bases, 1))
    return np.array(found, np.float64)


def _stream(stretches: Iterable[Stretch], k: int) -> Iterator[Words]:
    for stretch in stretches:
        for start in range(0, len(stretch) - k + 1, _CHUNK):
            codes = stretch[start : start + _CHUNK + k - 1]
            if codes.min() < 4:  # much of an assembly may be N
                words, valid = canonical_kmers(codes, k)
                yield words[valid]


def _distinct(parts: Iterable[Words]) -> Words:
    """Sorted distinct words, merged part by part so that duplicates never fill memory."""
    kept: Words = np.empty(0, np.uint64)
    waiting: list[Words] = []
    size = 0
    for words in parts:
        waiting.append(words)
        size += len(words)
        if size > max(_CHUNK, len(kept)):
            kept = np.unique(np.concatenate([kept, *waiting]))
            waiting, size = [], 0
    return np.unique(np.concatenate([kept, *waiting]))
