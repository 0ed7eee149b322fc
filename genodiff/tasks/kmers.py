"""Shared k-mers: how much of a sequence stands, on either strand, in other sequences.

A k-mer is written in two bits a base and counts as the same as its reverse complement (the smaller
of both numbers). k-mers with a letter other than A, C, G, T are left out. For large sets only the
k-mers whose hash falls into one slice of `SLICES` are kept, the same ones on both sides, which
leaves the shares unbiased.
"""

import numpy as np
from numpy.typing import NDArray

K = 24
SLICES = 16
_LARGE = 1 << 24
_NO_BASE = 4
_CODES = np.full(256, _NO_BASE, np.uint8)
_CODES[list(b"ACGT")] = range(4)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_CHUNK = 1 << 22


def shared_kmer_fractions(query: list[bytes], target: list[bytes]) -> NDArray[np.float64]:
    """The share of each query sequence's k-mers that some target sequence has.

    It is NaN for a sequence without a k-mer.
    """
    sample = sum(map(len, target)) + sum(map(len, query)) > _LARGE
    known = np.sort(collect_kmers(target, sample)[0])  # np.unique would hash, which is far slower
    kmers, owner = collect_kmers(query, sample)
    found = (
        known[np.minimum(np.searchsorted(known, kmers), len(known) - 1)] == kmers
        if len(known)
        else np.zeros(len(kmers), bool)
    )
    n = np.bincount(owner, minlength=len(query))
    with np.errstate(invalid="ignore"):
        return np.bincount(owner, weights=found, minlength=len(query)) / n


def collect_kmers(
    sequences: list[bytes], sample: bool
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Canonical k-mers of all sequences, place by place, and which sequence each is from.

    With `sample`, those of one slice.
    """
    kept: list[tuple[NDArray[np.uint64], NDArray[np.int64]]] = []
    first, size = 0, 0
    for i, sequence in enumerate(sequences):
        size += len(sequence) + 1
        if size > _CHUNK or i == len(sequences) - 1:
            kept.append(_chunk(sequences[first : i + 1], first, sample))
            first, size = i + 1, 0
    if not kept:
        return np.zeros(0, np.uint64), np.zeros(0, np.int64)
    return np.concatenate([k for k, _ in kept]), np.concatenate([o for _, o in kept])


def _chunk(
    sequences: list[bytes], first: int, sample: bool
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    codes: NDArray[np.uint8] = _CODES[np.frombuffer(b"\n".join(sequences) + b"\n", np.uint8)]
    if len(codes) < K:
        return np.zeros(0, np.uint64), np.zeros(0, np.int64)
    breaks = np.concatenate([[0], np.cumsum(codes == _NO_BASE)])
    whole = breaks[K:] == breaks[:-K]
    forward = _rolled(codes & np.uint8(3))
    backward = _rolled((np.uint8(3) - (codes & np.uint8(3)))[::-1])[::-1]
    kmers = np.minimum(forward, backward)
    if sample:
        whole &= in_sample(kmers)
    at = np.flatnonzero(whole)
    ends = np.cumsum([len(s) + 1 for s in sequences])
    return kmers[at], np.searchsorted(ends, at, side="right") + first


def in_sample(kmers: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which k-mers belong to the slice that stands for all."""
    return (kmers * _MIX) >> np.uint64(64 - (SLICES - 1).bit_length()) == 0


def _rolled(codes: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """The number of the k-mer at each position, put together from its 2-, 4-, 8- and 16-mers."""
    words, width = codes.astype(np.uint64), 1
    eight = words
    while width < 16:
        words = (words[:-width] << np.uint64(2 * width)) | words[width:]
        width *= 2
        eight = words if width == 8 else eight
    return (words[:-8] << np.uint64(16)) | eight[16:]
