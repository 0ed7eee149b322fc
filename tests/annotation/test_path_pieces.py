"""The best path by pieces is that of the plain one, with equals, of any length and any piece."""

import numpy as np
import pytest

from genodiff.annotation.gene_grammar import N_STATES, allow_steps
from genodiff.annotation.state_chain import FORBIDDEN, find_best_path, find_long_path, round_scores

STEPS = np.where(allow_steps(), 0.0, FORBIDDEN).astype(np.float32)
FREE = np.zeros(N_STATES, np.float32)


@pytest.mark.few(24)
@pytest.mark.parametrize("piece", [1, 2, 7, 64, 2048])
@pytest.mark.parametrize("length", [1, 2, 3, 63, 64, 65, 500, 1501])
@pytest.mark.parametrize("coarse", [False, True])
def test_it_is_the_plain_path_of_rounded_scores(piece, length, coarse):
    draw = np.random.default_rng(length * 7 + piece)
    scores = draw.normal(0, 3, (length, N_STATES)).astype(np.float32)
    if coarse:
        scores = np.round(scores / 4)  # many equals
    steps = np.where(allow_steps(), draw.normal(0, 1, STEPS.shape), FORBIDDEN).astype(np.float32)
    begin, end = draw.normal(0, 2, (2, N_STATES)).astype(np.float32)
    for given in ((steps, begin, end), (STEPS, FREE, FREE)):
        exact = [round_scores(one) for one in (scores, *given)]
        found = find_long_path(scores, *given, piece=piece)
        assert (found == find_best_path(*exact)).all()


def test_what_lies_far_away_may_decide():
    """Between two bases all is alike: pieces go again until the first reaches the last."""
    scores = np.zeros((901, 2), np.float32)
    scores[0, 1] = 1
    stay = np.where(np.eye(2) > 0, 0, FORBIDDEN).astype(np.float32)
    free = np.zeros(2, np.float32)
    assert (find_long_path(scores, stay, free, free, piece=30) == 1).all()
    scores[-1, 0] = 2
    assert (find_long_path(scores, stay, free, free, piece=30) == 0).all()


def test_no_path_is_told_and_a_long_one_of_small_scores_is_not():
    free, none = np.zeros(2, np.float32), np.full((2, 2), FORBIDDEN, np.float32)
    for find in (find_long_path, find_best_path):
        with pytest.raises(ValueError, match="no path"):
            find(np.zeros((3, 2), np.float32), none, free, free)
        low = np.full((600, 2), -2000, np.float32)  # together below what is forbidden
        assert (find(low, np.zeros((2, 2), np.float32), free, free) == 0).all()
