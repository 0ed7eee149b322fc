"""K-mers by where they stand, for tasks whose sequences are anchored (at a start site, say).

A sequence is divided into bins of so many bases from its start, and a k-mer belongs to the bin of
its first base. One bin per base gives the features of a position weight matrix and of its
dinucleotides; wide bins allow a motif to shift.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse  # type: ignore[import-untyped]

from genodiff.alphabet import LETTER_CODES
from genodiff.finetuning.kmer_regression import kmer_features
from genodiff.words import pack_words


def position_features(
    sequences: list[bytes], *, length: int, spots: tuple[tuple[int, int], ...],
    whole: tuple[int, ...] = (),
) -> Any:  # fmt: skip
    """(n, features), sparse: counts of k-mers by bin for each (k, width) of `spots`.

    Sequences are read to `length`. `whole` adds the k-mers of these k without their position, as
    `kmer_features` of the given strand counts them.
    """
    cut = [sequence[:length] for sequence in sequences]
    codes = LETTER_CODES[np.frombuffer(b"\n".join(cut) + b"\n", np.uint8)]
    lengths = np.array([len(s) + 1 for s in cut])
    owner = np.repeat(np.arange(len(cut)), lengths)
    place = np.arange(len(codes)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    blocks = [
        _counts(codes, owner, place, len(cut), k, width, count_bins(length, k, width))
        for k, width in spots
    ]
    if whole:
        blocks.append(kmer_features(cut, both_strands=False, ks=whole))
    return sparse.hstack(blocks, format="csr", dtype=np.float64)


def count_bins(length: int, k: int, width: int) -> int:
    """Bins of `width` bases in which a k-mer of a sequence of `length` may begin."""
    return max(1, -(-max(1, length - k + 1) // width))


def _counts(
    codes: NDArray[np.uint8], owner: NDArray[np.int64], place: NDArray[np.int64],
    n: int, k: int, width: int, bins: int,
) -> Any:  # fmt: skip
    number, whole = pack_words(codes, k)
    at = np.flatnonzero(whole)
    column = place[at] // width * 4**k + number[at]
    return sparse.csr_matrix((np.ones(len(at)), (owner[at], column)), shape=(n, bins * 4**k))
