"""Diversity of sets whose answer is known; longest matches against the slow definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genodiff.alphabet import DNA
from genodiff.quality.match_index import MatchIndex
from genodiff.quality.sample_quality import count_duplicates, measure_effective_number
from genodiff.quality.scorecard import longest_matches
from tests.quality.test_scorecard import ids, random_text


def test_the_effective_number_counts_modes():
    """Words of homopolymers of A (or T) and of C (or G) have none in common."""
    modes = [ids("A" * 40), ids("C" * 40)]
    assert measure_effective_number(modes * 5) == pytest.approx(2)
    assert measure_effective_number(modes[:1] * 7) == pytest.approx(1)
    wanted = np.exp(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))
    assert measure_effective_number([*modes[:1] * 3, modes[1]]) == pytest.approx(wanted)
    fresh = [ids(random_text(i, 60)) for i in range(20)]
    number = measure_effective_number(fresh)
    assert number > 15
    assert measure_effective_number([*fresh, *map(DNA.rc, fresh)]) == pytest.approx(number)


def test_duplicates_count_on_either_strand():
    one, other = ids("ACCGT"), ids("AAAAC")
    assert count_duplicates([one, other]) == 0
    assert count_duplicates([one, DNA.rc(one), one, other | 0x80]) == 2


def test_identity_is_that_of_the_most_similar_place_without_gaps():
    """Against all diagonals of both strands, one by one."""
    rng = np.random.default_rng(1)
    text = ids(random_text(1, 600))
    found = MatchIndex([text])
    for place, changes in ((0, 3), (250, 12), (510, 6), (560, 0)):
        copy = text[place : place + 80].copy()
        copy = np.concatenate([copy, ids(random_text(place, 80 - len(copy)))])
        copy[rng.choice(80, changes, replace=False)] = ids("A")[0]
        wanted = 0.0
        for strand in (text, DNA.rc(text)):
            padded = np.concatenate([np.zeros(79), strand, np.zeros(79)])
            rows = np.lib.stride_tricks.sliding_window_view(padded, 80)
            wanted = max(wanted, float((rows == copy).mean(1).max()))
        assert found.measure_identity([copy, DNA.rc(copy)]).tolist() == pytest.approx([wanted] * 2)


def test_a_sequence_is_not_compared_with_itself():
    rows = [ids(random_text(i, 70)) for i in range(3)]
    rows.append(DNA.rc(rows[0]))
    found = MatchIndex(rows).measure_identity(rows, skip_own=True)
    assert found[[0, 3]].tolist() == [1, 1]
    assert (found[1:3] < 0.6).all()


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
