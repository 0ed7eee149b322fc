"""The longest train match against a search of every place."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_text import draw_bases, hide

from genodiff.memory.matches import TrainMatch, find_longest_match
from genodiff.memory.memory import Memory
from genodiff.memory.text import NONE, Codes, turn_codes


def match_slowly(parts: list[Codes], x: Codes, drawn: np.ndarray) -> int:
    best = 0
    for text in (side for part in parts for side in (part, turn_codes(part))):
        for i in range(len(x)):
            for j in range(len(text)):
                n = 0
                while i + n < len(x) and j + n < len(text) and x[i + n] == text[j + n] < NONE:
                    n += 1
                if drawn[i : i + n].any():
                    best = max(best, n)
    return best


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([0.0, 0.1]))
def test_it_is_the_longest_on_either_strand(seed, length, hidden):
    parts = [hide(draw_bases(n, seed + n), hidden, seed) for n in (60, 45)]
    x, rng = draw_bases(length, seed + 1), np.random.default_rng(seed)
    if length > 20:
        x[3:17] = turn_codes(parts[1])[10:24] if seed % 2 else parts[0][20:34]
    x, drawn = hide(x, hidden / 2, seed + 3), rng.random(length) < 0.3
    memory = Memory.build([("a", 0, parts[0]), ("b", 100, parts[1])], k=4)
    for mask in (np.ones(length, bool), drawn):
        found = find_longest_match(memory, x, mask)
        expected = match_slowly(parts, x, mask)
        assert (0 if found is None else found.length) == (expected if expected >= 4 else 0)
        if found is not None:
            here = x[found.at : found.at + found.length]
            part, first = (parts[0], 0) if found.contig == "a" else (parts[1], 100)
            there = part[found.start - first : found.start - first + found.length]
            assert np.array_equal(here, there if found.strand == "+" else turn_codes(there))


@pytest.mark.parametrize("turned", [False, True])
def test_it_says_where(turned):
    text = draw_bases(500, 1)
    memory = Memory.build([("c", 50, text)], k=6)
    x = draw_bases(100, 2)
    x[30:70] = turn_codes(text[200:240]) if turned else text[200:240]
    found = find_longest_match(memory, x)
    assert found.length >= 40
    assert found == TrainMatch(found.length, found.at, "c", found.start, "-" if turned else "+")
    assert found.at <= 30
    assert found.at + found.length >= 70


def test_what_has_no_word_of_the_table_matches_nothing():
    memory = Memory.build([("c", 0, draw_bases(500, 1))], k=6)
    for x in (np.zeros(0, np.uint8), draw_bases(5, 1), np.full(50, NONE, np.uint8)):
        assert find_longest_match(memory, x) is None
    assert find_longest_match(Memory.build([]), draw_bases(50, 1)) is None
    inside = draw_bases(500, 1)[:50]
    assert find_longest_match(memory, inside, np.zeros(50, bool)) is None
