"""Small made-up genomes for the tests of the memory."""

import numpy as np
from numpy.typing import NDArray

from genodiff.memory.text import NONE

Codes = NDArray[np.uint8]


def draw_bases(n: int, seed: int) -> Codes:
    return np.random.default_rng(seed).integers(0, 4, n).astype(np.uint8)


def mutate(codes: Codes, share: float, seed: int) -> Codes:
    """`codes` with a share of its bases drawn anew among the other three."""
    rng = np.random.default_rng(seed)
    other = (codes + rng.integers(1, 4, len(codes))) % 4
    return np.where(rng.random(len(codes)) < share, other, codes).astype(np.uint8)


def hide(codes: Codes, share: float, seed: int) -> Codes:
    """`codes` with a share of its places hidden."""
    hidden = np.random.default_rng(seed).random(len(codes)) < share
    return np.where(hidden, NONE, codes).astype(np.uint8)
