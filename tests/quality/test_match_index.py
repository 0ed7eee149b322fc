"""Longest matches by sorted words, against the slow definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genodiff.alphabet import DNA
from genodiff.quality.match_index import MatchIndex
from genodiff.quality.scorecard import longest_matches
from tests.quality.test_scorecard import ids, random_text


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_matches_are_those_of_the_slow_definition(seed):
    """Copies of every length, on both strands, at the ends and beside N."""
    rng = np.random.default_rng(seed)
    text = [list(random_text(seed + i, int(rng.integers(40, 400)))) for i in range(3)]
    text[1][20] = "N"
    texts = [ids("".join(part)) for part in text]
    queries = []
    for i in range(8):
        source = texts[rng.integers(3)]
        start, size = rng.integers(len(source)), rng.integers(1, 150)
        copied = source[start : start + size]
        copied = DNA.rc(copied) if rng.integers(2) else copied
        queries.append(np.concatenate([ids(random_text(seed + 9 + i, 7)), copied, ids("NACG")]))
    index = MatchIndex([part for part in texts])
    slow = longest_matches(queries, _long_stretches(texts))
    assert index.measure_longest(queries).tolist() == slow.tolist()


def _long_stretches(texts: list[np.ndarray]) -> list[np.ndarray]:
    """The stretches between N that have 32 bases or more: the others are not searched."""
    parts = [ids(part) for text in texts for part in DNA.decode(text).split("N")]
    return [part for part in parts if len(part) >= 32]


def test_a_copy_is_found_whole_beside_many_repeats():
    unit = random_text(1, 40)
    text = ids(unit * 30 + "C" + random_text(2, 300))
    whole = ids(random_text(3, 20) + unit * 3 + "A")
    found = MatchIndex([text]).measure_longest([whole, text[1100:1500], ids("")])
    assert found[0] >= 120
    assert found[1:].tolist() == [400, 0]


@pytest.mark.parametrize("text", [[], ["ACGT"], ["N" * 50]])
def test_a_text_without_a_whole_word_matches_nothing(text):
    index = MatchIndex([ids(part) for part in text])
    assert index.measure_longest([ids("ACGTACGT")]).tolist() == [0]
