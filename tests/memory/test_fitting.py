"""The fit finds the numbers that made the data, and reads hidden places alone."""

import numpy as np
import pytest
from made_up_text import draw_bases, hide, mutate

from genodiff.errors import DataError
from genodiff.memory.fitting import fit_numbers, measure_bits
from genodiff.memory.memory import Memory
from genodiff.memory.numbers import MemoryNumbers
from genodiff.memory.text import NONE

GENOME = draw_bases(3000, 1)
UNIFORM = np.full((6, 200, 4), 0.25)


def test_the_fit_finds_how_faithful_the_copies_are():
    numbers = MemoryNumbers(divergence=(0.4,), share=(1.0,), start=0.01)
    memory = Memory.build([("c", 0, GENOME)], numbers=numbers)
    clean = np.stack([mutate(GENOME[a : a + 200], 0.06, a) for a in range(0, 2400, 400)])
    windows = np.stack([hide(x, 0.4, i) for i, x in enumerate(clean)])
    heard: list[str] = []
    found = fit_numbers(memory, windows, clean, UNIFORM, tell=heard.append)
    assert found.alone == pytest.approx(2)
    assert found.alone > found.before > found.after
    assert 0.03 < found.numbers.divergence[0] < 0.12
    assert heard
    mixed = memory.with_numbers(found.numbers).recall(windows)
    chances = mixed.background[..., None] * UNIFORM + mixed.copy
    assert measure_bits(chances, windows, clean).mean() == pytest.approx(found.after, abs=1e-9)


def test_bits_are_of_hidden_bases():
    clean, chances = np.array([[0, 1, 2, NONE]], np.uint8), np.zeros((1, 4, 4))
    chances[0, 0, 0], chances[0, 1, 1] = 0.5, 0.125
    windows = np.array([[NONE, NONE, 2, NONE]], np.uint8)
    assert measure_bits(chances, windows, clean) == pytest.approx([2.0])


def test_windows_without_a_hidden_base_are_refused():
    memory = Memory.build([("c", 0, GENOME)])
    clean = GENOME[:200][None]
    with pytest.raises(DataError, match="no base is masked"):
        fit_numbers(memory, clean, clean, UNIFORM[:1])


def test_windows_count_as_much_as_they_weigh():
    memory = Memory.build([("c", 0, GENOME)])
    clean = np.stack([mutate(GENOME[a : a + 200], 0.02 + a / 4000, a) for a in (0, 400, 800)])
    windows = np.stack([hide(x, 0.4, i) for i, x in enumerate(clean)])
    said, rounds = UNIFORM[:3], ((2.0, 0.5),)
    one = fit_numbers(memory, windows[:1], clean[:1], said[:1], rounds=rounds)
    same = fit_numbers(memory, windows, clean, said, rounds=rounds, weights=np.array([2.0, 0, 0]))
    assert same.numbers == one.numbers
    assert same.after == pytest.approx(one.after, abs=1e-12)
    assert fit_numbers(memory, windows, clean, said, rounds=rounds).numbers != one.numbers
