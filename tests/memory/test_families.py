"""Large families and long runs of N: many diagonals beside each other, and none for long stretches.
What the C library keeps, computes again or skips there is against the definition in NumPy.
"""

import numpy as np
import pytest
from made_up_text import (
    NEEDS_LIBRARY,
    check_diagonals,
    check_recall,
    draw_bases,
    hide,
    mutate,
)

from genodiff.memory.memory import Memory
from genodiff.memory.search import Effort
from genodiff.memory.text import NONE, Codes, turn_codes

pytestmark = NEEDS_LIBRARY
UNIT = draw_bases(700, 11)


def make_copy(seed: int) -> Codes:
    """A copy of UNIT, 2 to 20 % diverged, with a deletion and an insertion, on either strand."""
    rng = np.random.default_rng(seed)
    unit = mutate(UNIT, 0.02 + 0.18 * rng.random(), seed)
    unit = np.delete(unit, slice(a := int(rng.integers(50, 600)), a + int(rng.integers(1, 9))))
    unit = np.insert(unit, int(rng.integers(50, 600)), draw_bases(int(rng.integers(1, 9)), seed))
    return turn_codes(unit) if seed % 3 == 0 else unit


@pytest.fixture(scope="module")
def family():
    """60 copies between unique bases, and a tandem repeat of a part of them."""
    pieces = [part for i in range(60) for part in (make_copy(i), draw_bases(60, 1000 + i))]
    return Memory.build([("one", 0, np.concatenate([*pieces, np.tile(UNIT[:31], 12)]))], k=8)


@pytest.mark.few(1)
@pytest.mark.parametrize("length", [641, 23])
def test_rows_that_are_computed_again(family, length):
    memory = family.with_effort(Effort(most=64))
    clean = np.concatenate([make_copy(200), np.tile(UNIT[:31], 3)])[-length:]
    windows = np.stack(
        [hide(x, share, 5) for x in (clean, turn_codes(clean)) for share in (0.2, 0.7)]
    )
    count = [len(a) + len(b) for a, b in memory.find_all(windows)]
    if length > 600:
        assert min(count) * length > 2 * 32_768  # no window's rows are held together
    without = [(0, 0), (800, 3000), (0, 0), (5, 6)]
    check_recall(memory, windows[::3], without[::3])  # of each strand one
    back = memory.recall(turn_codes(windows))  # the reverse complement, of everything
    there = memory.recall(windows)
    np.testing.assert_allclose(back.background[:, ::-1], there.background, atol=1e-9)
    np.testing.assert_allclose(back.copy[:, ::-1, ::-1], there.copy, atol=1e-9)


@pytest.mark.few(1)
@pytest.mark.parametrize("run", [3000, 20_000])
def test_long_runs_of_n_are_passed_over(run):
    """Bases stand at the ends of runs, in their middle and where a step over them may end."""
    rng = np.random.default_rng(run)
    pieces: list[Codes] = []
    for i in range(6):
        pieces += [mutate(UNIT[:200], 0.05, i), np.full(run + int(rng.integers(0, 700)), NONE)]
    pieces.append(mutate(UNIT[:200], 0.05, 9))
    text = np.concatenate(pieces).astype(np.uint8)
    memory = Memory.build([("one", 0, text)], k=6).with_effort(Effort(scored=None, most=40))
    clean = mutate(UNIT[:230], 0.02, 77)
    windows = np.stack([hide(x, 0.3, 1) for x in (clean, turn_codes(clean))])
    assert min(check_diagonals(memory, windows)) > 7
