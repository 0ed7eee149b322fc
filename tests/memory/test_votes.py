"""Votes of relatives."""

import numpy as np
import pytest

from genodiff.memory.tree import (
    count_votes,
    measure_change,
    measure_kappa,
    score_heads,
    score_plainly,
    score_votes,
    weigh_relatives,
)

BASES = np.eye(4)


def test_plain_votes_count_each_relative_once():
    over = np.stack([BASES[[0, 1]], BASES[[0, 1]], BASES[[2, 1]]])
    votes = count_votes(over, np.ones(3))
    np.testing.assert_array_equal(votes, [[2, 0, 1, 0], [0, 3, 0, 0]])
    found = score_plainly(votes, np.array([0, 1]))
    assert found[0, 2] == pytest.approx(np.log(1.5 / 2.5))
    assert found[0, 0] == 0


def test_relatives_that_are_alike_share_a_vote():
    far = np.full((4, 4), 0.2)
    far[1, 2] = far[2, 1] = 0.01
    np.fill_diagonal(far, 0)
    np.testing.assert_allclose(weigh_relatives(far), [0.5, 0.5, 1])


def test_the_farther_a_relative_the_less_it_counts():
    far = np.abs(np.subtract.outer([0, 0.1, 0.2], [0, 0.1, 0.2]))
    first, second = weigh_relatives(far, reaches=0.1)
    assert second / first == pytest.approx(np.exp(-1))


def test_seen_bases_are_likelier_than_unseen_transitions_and_these_than_transversions():
    ref = np.array([0])
    found = score_votes(np.array([[5.0, 0, 0, 0]]), ref, total=5.0, kappa=8.0)[0]
    assert found[2] > found[1] == pytest.approx(found[3])
    assert found[0] == 0
    found = score_votes(np.array([[4.0, 1.0, 0, 0]]), ref, total=5.0, kappa=1.0)[0]
    assert found[1] > found[2]
    found = score_votes(np.zeros((1, 4)), np.array([3]), total=2.0, kappa=4.0)[0]  # the prior
    assert np.isfinite(found).all()
    assert found[1] > found[0]


def test_change_is_that_of_the_places_around():
    codes = np.zeros((1, 100), np.uint8)
    over = np.zeros((2, 1, 100, 4))
    over[:, 0, :, 0] = 1
    over[0, 0, 50] = BASES[1]
    codes[0, 20:30] = 4
    found = measure_change(over, codes)[0]
    places = 2 * (64 - 10)  # 32 on either side, of which 10 are hidden, in two relatives
    assert found[50] == pytest.approx(0.5 / (places + 5))
    assert found[51] == pytest.approx(1.5 / (places + 5))
    assert found[99] == pytest.approx(0.5 / (2 * 32 + 5))


def test_heads_are_plain_votes_and_how_much_changes_around():
    over = np.stack([BASES[[0, 0]], BASES[[0, 0]], BASES[[2, 0]]])
    slow, quick = score_heads(over, np.zeros(2, int), np.array([0.02, 0.3]))
    assert slow[2] == pytest.approx(np.log(1.5 / 2.5) + 0.6 * np.log(0.02))
    assert quick[1] == quick[2] == pytest.approx(np.log(0.5 / 3.5) + 0.6 * np.log(0.3))
    assert slow[0] == quick[0] == 0


def test_kappa_is_counted_where_relatives_are_sure():
    codes = np.zeros(100, np.uint8)
    base = np.zeros(100, int)
    base[:20], base[20:30], base[30:] = 2, 1, 0
    assert measure_kappa(BASES[base][None], codes) == pytest.approx(2 * 21 / 12)
    assert measure_kappa(0.5 * BASES[base][None], codes) == pytest.approx(1.0)
