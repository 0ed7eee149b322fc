"""The memory in C against its definition in NumPy: the same diagonals, the same chances."""

import numpy as np
import pytest
import torch
from made_up_text import draw_bases, hide, mutate

from genodiff.kernels import library
from genodiff.memory import fast
from genodiff.memory.memory import Memory
from genodiff.memory.numbers import MemoryNumbers
from genodiff.memory.search import Effort
from genodiff.memory.tables import build_table, build_table_slowly
from genodiff.memory.text import NONE, Codes, turn_codes

pytestmark = pytest.mark.skipif(
    library.find_missing() is not None,
    reason=f"there is no C library here: {library.find_missing()}",
)


def make_genome() -> Codes:
    """8,000 bases with a family of diverged copies, a tandem repeat, low complexity and N."""
    unit, genome = draw_bases(300, 1), draw_bases(8000, 2)
    for i, at in enumerate((500, 2000, 5000)):
        genome[at : at + 300] = mutate(unit, 0.05 * (i + 1), i)
    genome[6500:6800] = turn_codes(mutate(unit, 0.1, 8))
    genome[3000:3200] = np.tile(draw_bases(20, 3), 10)
    genome[3300:3400] = 0
    genome[4000:4040] = NONE
    return genome


GENOME = make_genome()
PARTS = [("one", 0, GENOME[:4500]), ("two", 0, GENOME[4500:])]


@pytest.fixture(scope="module")
def memory():
    return Memory.build(PARTS, k=6)


def list_windows(length: int) -> list[tuple[Codes, tuple[int, int]]]:
    """Repeats, contig ends, low complexity, N and unknown sequence, at several mask rates."""
    rows = []
    for i, at in enumerate((0, 450, 3100, 3950, 6450, 8000 - length)):
        clean = mutate(np.delete(GENOME[at : at + length + 3], range(40, 43))[:length], 0.04, i)
        clean = np.append(clean, draw_bases(length - len(clean), 9))
        for share in (0.02, 0.4, 0.8, 0.95):
            rows.append((hide(clean, share, i), (at, at + 100 * (i % 3))))
    rows.append((hide(draw_bases(length, 77), 0.5, 1), (0, 0)))
    return rows


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
def test_the_same_diagonals_and_chances(memory, length, effort):
    copies = 0.1 if effort.most == 8 else 1.0
    numbers = memory.numbers.model_copy(update={"copies": copies})
    memory = memory.with_effort(effort).with_numbers(numbers)
    rows = list_windows(length)[:: 2 if effort.scored else 5]
    windows, without = np.stack([x for x, _ in rows]), [w for _, w in rows]
    found, truth = memory.find_all(windows, without), memory.prepare(windows, without)
    some = 0
    for got, window in zip(found, truth, strict=True):
        for one, other in zip(got, memory.find(window), strict=True):
            np.testing.assert_array_equal(one, other)
            some += len(one) > 0
    assert some >= 4
    fast_, slow = memory.recall(windows, without), memory.recall_slowly(windows, without)
    np.testing.assert_allclose(fast_.background, slow.background, atol=1e-9)
    np.testing.assert_allclose(fast_.copy, slow.copy, atol=1e-9)


def test_a_scan_of_every_diagonal_leaves_none_out(memory):
    """What the bound in bytes leaves out has no score: no diagonal of the definition is missing."""
    memory = memory.with_effort(Effort(scored=None, most=700, least_odds=-60.0))
    rows = list_windows(331)[::3]
    windows, without = np.stack([x for x, _ in rows]), [w for _, w in rows]
    some = 0
    for got, window in zip(
        memory.find_all(windows, without), memory.prepare(windows, without), strict=True
    ):
        for one, other in zip(got, memory.find(window), strict=True):
            np.testing.assert_array_equal(one, other)
            some += len(one)
    assert some > 200


@pytest.mark.parametrize("length", [1, 2, 6, 7, 64, 65])
def test_short_windows_and_fewer_classes(memory, length):
    memory = memory.with_numbers(MemoryNumbers(divergence=(0.05,), share=(1.0,), start=0.3))
    memory = memory.with_effort(Effort(scored=None, most=300, least_odds=-50.0))
    windows = np.stack([GENOME[:length], hide(GENOME[600 : 600 + length], 0.3, 1)])
    found, slow = memory.recall(windows), memory.recall_slowly(windows)
    np.testing.assert_allclose(found.background, slow.background, atol=1e-9)
    np.testing.assert_allclose(found.copy, slow.copy, atol=1e-9)


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
    rows = list_windows(128)
    windows, without = np.stack([x for x, _ in rows]), [w for _, w in rows]
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
    rows = list_windows(100)[:2]
    windows, without = np.stack([x for x, _ in rows]), [w for _, w in rows]
    truth = memory.recall(windows, without)
    monkeypatch.setattr(fast, "is_loaded", lambda: False)
    found = memory.recall(windows, without)
    np.testing.assert_allclose(found.copy, truth.copy, atol=1e-9)
