"""The memory in C against its definition in NumPy: the same diagonals, the same probabilities."""

import numpy as np
import pytest
import torch
from made_up_text import (
    NEEDS_LIBRARY,
    Codes,
    Intervals,
    check_diagonals,
    check_recall,
    draw_bases,
    hide,
    make_genome,
    mutate,
)

from genodiff.memory import fast
from genodiff.memory.memory import Memory
from genodiff.memory.numbers import MemoryNumbers
from genodiff.memory.search import Effort
from genodiff.memory.tables import build_table, build_table_slowly
from genodiff.memory.text import NONE, turn_codes

pytestmark = NEEDS_LIBRARY
GENOME = make_genome(8000)
PARTS = [("one", 0, GENOME[:4500]), ("two", 0, GENOME[4500:])]


@pytest.fixture(scope="module")
def memory():
    return Memory.build(PARTS, k=6)


def cut_windows(length: int, step: int = 1) -> tuple[Codes, Intervals]:
    """Every `step`-th of windows of repeats, contig ends, low complexity, N and unknown sequence,
    at several mask rates, with intervals to leave out.
    """
    rows = []
    for i, at in enumerate((0, 450, 3100, 3950, 6450, 8000 - length)):
        clean = mutate(np.delete(GENOME[at : at + length + 3], range(40, 43))[:length], 0.04, i)
        clean = np.append(clean, draw_bases(length - len(clean), 9))
        for share in (0.02, 0.4, 0.8, 0.95):
            rows.append((hide(clean, share, i), (at, at + 100 * (i % 3))))
    rows.append((hide(draw_bases(length, 77), 0.5, 1), (0, 0)))
    windows, without = zip(*rows[::step], strict=True)
    return np.stack(windows), without


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("length", "effort"),
    [
        (200, Effort(scored=500, most=16)),
        (331, Effort(scored=150, most=8, wild=3)),
        (331, Effort(scored=None, most=10)),
        (70, Effort(scored=1000, most=64, least_odds=-20.0)),
    ],
)
def test_the_same_diagonals_and_probabilities(memory, length, effort):
    copies = 0.1 if effort.most == 8 else 1.0
    numbers = memory.numbers.model_copy(update={"copies": copies})
    memory = memory.with_effort(effort).with_numbers(numbers)
    given = cut_windows(length, 2 if effort.scored else 5)
    assert np.count_nonzero(check_diagonals(memory, *given)) >= 4
    check_recall(memory, *given)


def test_a_scan_of_every_diagonal_leaves_none_out(memory):
    """What the bound in bytes leaves out has no score: no diagonal of the definition is missing."""
    memory = memory.with_effort(Effort(scored=None, most=700, least_odds=-60.0))
    assert check_diagonals(memory, *cut_windows(331, 6)).sum() > 100


@pytest.mark.parametrize("length", [1, 2, 6, 7, 64, 65])
def test_short_windows_and_fewer_classes(memory, length):
    memory = memory.with_numbers(MemoryNumbers(divergence=(0.05,), share=(1.0,), start=0.3))
    memory = memory.with_effort(Effort(scored=None, most=300, least_odds=-50.0))
    check_recall(memory, np.stack([GENOME[:length], hide(GENOME[600 : 600 + length], 0.3, 1)]))


def test_an_empty_batch(memory):
    assert memory.recall(np.zeros((0, 50), np.uint8)).copy.shape == (0, 50, 4)
    assert memory.recall(np.zeros((2, 0), np.uint8)).background.shape == (2, 0)


@pytest.mark.parametrize("k", [4, 7])
def test_the_table(memory, k, threads):
    slow = build_table_slowly(memory.text, k)
    for n in threads:
        torch.set_num_threads(n)
        found = build_table(memory.text, k)
        np.testing.assert_array_equal(found.start, slow.start)
        np.testing.assert_array_equal(found.at, slow.at)


def test_threads_and_company_change_no_bit(memory, threads):
    windows, without = cut_windows(128)
    found = []
    for n in threads:
        torch.set_num_threads(n)
        found.append(memory.recall(windows, without))
    for one in found[1:]:
        assert np.array_equal(one.background, found[0].background)
        assert np.array_equal(one.copy, found[0].copy)
    alone = memory.recall(windows[3:4], without[3:4])
    assert np.array_equal(alone.copy[0], found[0].copy[3])


def test_without_the_library_it_runs_in_numpy(memory, monkeypatch):
    given = cut_windows(100, 13)
    truth = memory.recall(*given)
    monkeypatch.setattr(fast, "is_loaded", lambda: False)
    np.testing.assert_allclose(memory.recall(*given).copy, truth.copy, atol=1e-9)


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
    """A large family: 60 copies between unique bases, and a tandem repeat of a part of them."""
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
