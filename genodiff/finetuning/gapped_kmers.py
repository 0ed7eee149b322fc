"""The gapped spectrum kernel as an explicit feature map, and its naive form.

    window       l bases of a sequence, which may hang over its ends
    gapped k-mer k of the l places of a window, and the bases there
    K(x, y)      the sum over all pairs of windows of x and y of C(m, k), m their equal places

An N, and a place beyond the end, equals nothing. With both strands a sequence has the windows of
its reverse complement too. Source of the kernel: Ghandi et al., 2014, PLoS Comput. Biol. 10(7),
e1003711, whose windows stay inside; hanging over makes the feature map short, since a gapped k-mer
of span s then stands in exactly l - s + 1 windows, wherever it is.
"""

from collections import Counter
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse  # type: ignore[import-untyped]

from genodiff.alphabet import LETTER_CODES, reverse_complement


def compute_gapped_kernel(x: bytes, y: bytes, l: int, k: int, *, both_strands: bool) -> float:  # noqa: E741
    """K(x, y) by its definition, window by window: the truth that the features are tested with."""
    own, other = (_windows(s, l, both_strands=both_strands) for s in (x, y))
    return float(
        sum(
            n * m * comb(sum(a == b and a in b"ACGT" for a, b in zip(one, two, strict=True)), k)
            for one, n in own.items()
            for two, m in other.items()
        )
    )


def _windows(sequence: bytes, l: int, *, both_strands: bool) -> Counter[bytes]:  # noqa: E741
    strands = [sequence, bytes(reverse_complement(sequence))] if both_strands else [sequence]  # type: ignore[arg-type]
    over = b"-" * (l - 1)
    found: Counter[bytes] = Counter()
    for strand in strands:
        padded = over + strand + over
        found.update(padded[i : i + l] for i in range(len(padded) - l + 1))
    return found


def count_gap_patterns(l: int, k: int) -> int:  # noqa: E741
    """How many patterns of k places span at most l places: C(l - 1, k - 1)."""
    return comb(l - 1, k - 1)


def gapped_features(sequences: list[bytes], *, l: int, k: int, both_strands: bool) -> Any:  # noqa: E741
    """(n, features), sparse float32 rows of length 1, whose products are the normalised kernel.

    A row's product with another is K(x, y) / sqrt(K(x, x) K(y, y)). A sequence shorter than every
    pattern has a row of zeros.
    """
    codes = LETTER_CODES[np.frombuffer(b"\n".join(sequences) + b"\n", np.uint8)]
    owner = np.repeat(np.arange(len(sequences)), [len(s) + 1 for s in sequences])
    blocks = []
    for rest in combinations(range(1, l), k - 1):
        pattern = (0, *rest)
        mirror = tuple(pattern[-1] - at for at in reversed(pattern))
        if both_strands and mirror < pattern:
            continue  # counted with its mirror image
        weight = float(np.sqrt((l - pattern[-1]) * (2 if both_strands else 1)))
        blocks.append(_block(codes, owner, len(sequences), pattern, mirror, both_strands, weight))
    found = sparse.hstack(blocks, format="csr", dtype=np.float32)
    row = np.repeat(np.arange(len(sequences)), np.diff(found.indptr))
    norm = np.sqrt(np.bincount(row, found.data.astype(np.float64) ** 2, len(sequences)))
    found.data = (found.data / np.maximum(norm, 1e-30)[row]).astype(np.float32)
    return found


def _block(
    codes: NDArray[np.uint8], owner: NDArray[np.int64], n: int, pattern: tuple[int, ...],
    mirror: tuple[int, ...], both_strands: bool, weight: float,
) -> Any:  # fmt: skip
    """Weighted counts of the 4^k words of one pattern and, of two strands, of its mirror image.

    A word that is its own reverse complement is seen twice where a pair of words is seen once on
    each strand: the norm of its orbit is larger by the square root of 2.
    """
    k = len(pattern)
    at, number = _words(codes, owner, pattern, reverse=False)
    if both_strands:
        turned_at, turned = _words(codes, owner, mirror, reverse=True)
        if mirror == pattern:
            own = number == turned
            number = np.minimum(number, turned)
            values = np.where(own, weight * np.sqrt(2), weight)
        else:
            at, number = np.concatenate([at, turned_at]), np.concatenate([number, turned])
            values = np.full(len(at), weight)
    else:
        values = np.full(len(at), weight)
    counts = sparse.csr_matrix(
        (values.astype(np.float32), (owner[at], number)), shape=(n, 4**k), dtype=np.float32
    )
    counts.sum_duplicates()
    return counts


def _words(
    codes: NDArray[np.uint8], owner: NDArray[np.int64], pattern: tuple[int, ...], *, reverse: bool
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Where the pattern stands on known bases, and the number of its word (or of its reverse)."""
    size = max(0, len(codes) - pattern[-1])
    number, whole = np.zeros(size, np.int32), np.ones(size, bool)
    for offset in reversed(pattern) if reverse else pattern:
        here = codes[offset : offset + size]
        number = 4 * number + ((3 - (here & 3)) if reverse else (here & 3))
        whole &= here < 4
    whole &= owner[:size] == owner[pattern[-1] :][:size]  # no gap lies over a newline
    at = np.flatnonzero(whole)
    return at, number[at]
