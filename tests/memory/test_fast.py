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
