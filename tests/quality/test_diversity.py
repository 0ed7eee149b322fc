"""Diversity of sets whose answer is known."""

import numpy as np
import pytest

from genodiff.alphabet import DNA
from genodiff.quality.diversity import count_duplicates, measure_effective_number
from genodiff.quality.match_index import MatchIndex
from tests.quality.test_scorecard import ids, random_text


def test_the_effective_number_counts_modes():
    """Words of homopolymers of A (or T) and of C (or G) have none in common."""
    modes = [ids("A" * 40), ids("C" * 40)]
    assert measure_effective_number(modes * 5) == pytest.approx(2)
    assert measure_effective_number(modes[:1] * 7) == pytest.approx(1)
    assert measure_effective_number([*modes[:1] * 3, modes[1]]) == pytest.approx(
        np.exp(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))
    )
    fresh = [ids(random_text(i, 60)) for i in range(20)]
    assert measure_effective_number(fresh) > 15
    assert measure_effective_number([*fresh, *map(DNA.rc, fresh)]) == pytest.approx(
        measure_effective_number(fresh)
    )


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
    found = MatchIndex([*rows, DNA.rc(rows[0])]).measure_identity(
        [*rows, DNA.rc(rows[0])], skip_own=True
    )
    assert found[[0, 3]].tolist() == [1, 1]
    assert (found[1:3] < 0.6).all()
