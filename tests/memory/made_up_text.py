"""Small made-up genomes for the tests of the memory, and comparisons of C with NumPy on them."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from genodiff.kernels import library
from genodiff.memory.memory import Memory
from genodiff.memory.text import NONE, turn_codes

Codes = NDArray[np.uint8]
Intervals = Sequence[tuple[int, int]]
NEEDS_LIBRARY = pytest.mark.skipif(
    library.find_missing() is not None,
    reason=f"there is no C library here: {library.find_missing()}",
)


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


def make_genome(n: int = 8003) -> Codes:
    """Bases with a family of diverged copies, a tandem repeat, low complexity and N."""
    unit, genome = draw_bases(300, 1), draw_bases(n, 2)
    for i, at in enumerate((501, 2002, 5003)):
        genome[at : at + 300] = mutate(unit, 0.05 * (i + 1), i)
    genome[6500:6800] = turn_codes(mutate(unit, 0.1, 8))
    genome[3000:3200] = np.tile(draw_bases(20, 3), 10)
    genome[3300:3400] = 0
    genome[4000:4040] = NONE
    return genome


def check_diagonals(
    memory: Memory, windows: Codes, without: Intervals | None = None
) -> NDArray[np.int64]:
    """C finds the diagonals that NumPy finds; return their number in each window."""
    found, truth = memory.find_all(windows, without), memory.prepare(windows, without)
    for got, window in zip(found, truth, strict=True):
        for one, other in zip(got, memory.find(window), strict=True):
            np.testing.assert_array_equal(one, other)
    return np.array([len(there) + len(back) for there, back in found])


def check_recall(memory: Memory, windows: Codes, without: Intervals | None = None) -> None:
    """C recalls what NumPy recalls."""
    found, slow = memory.recall(windows, without), memory.recall_slowly(windows, without)
    np.testing.assert_allclose(found.background, slow.background, atol=1e-9)
    np.testing.assert_allclose(found.copy, slow.copy, atol=1e-9)
