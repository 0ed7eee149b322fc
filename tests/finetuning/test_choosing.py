"""Choices by validation: halving, equals, failures."""

import math

import numpy as np
import pytest

from genodiff.errors import GenodiffError
from genodiff.finetuning.choosing import (
    LEAST_STEPS,
    Choice,
    choose_candidate,
    find_shares,
    list_choosing_seeds,
)
from genodiff.tasks.task import TaskData
from tests.finetuning.test_baselines import motif_examples

SHARES = (0.25, 1.0)


def choose(values: list[float], metric: str = "accuracy") -> Choice:
    """A choice among candidates whose value does not depend on the share."""
    return choose_candidate(values, lambda value, share: (value, 60 * share), metric, SHARES)


def test_all_are_tried_in_short_and_the_best_few_in_full():
    found = choose([0.1, 0.5, 0.9, 0.7])
    assert found.candidate == 2
    assert [t.candidate for t in found.trials if t.share < 1] == [0, 1, 2, 3]
    assert [t.candidate for t in found.trials if t.share == 1] == [2, 3]
    assert choose([0.1, 0.5, 0.9], metric="mse").candidate == 0
    assert choose([0.9, 0.9, 0.9]).candidate == 0  # of equals the simplest


def test_a_short_fit_that_misleads_is_corrected_by_the_whole_one():
    curves = {"slow": {0.25: 0.6, 1.0: 0.9}, "fast": {0.25: 0.7, 1.0: 0.8}, "no": {0.25: 0.5}}
    names = ["no", "fast", "slow"]
    found = choose_candidate(names, lambda name, share: (curves[name][share], 1.0), "mcc", SHARES)
    assert found.candidate == 2


def test_what_fails_is_not_chosen():
    assert choose([math.nan, 0.4, 0.3]).candidate == 1
    assert choose([math.nan, math.nan, 0.3]).candidate == 2
    with pytest.raises(GenodiffError, match="all settings failed"):
        choose([math.nan, math.nan])


def test_a_whole_fit_that_failed_leaves_the_choice_to_short_ones():
    def evaluate(value: float, share: float) -> tuple[float, float]:
        return (math.nan if share == 1 and value == 0.9 else value), 1.0

    assert choose_candidate([0.1, 0.7, 0.9], evaluate, "mcc", SHARES).candidate == 2


@pytest.mark.parametrize("steps", [1, 300, 600, 1_900, 2_100, 5_000, 10_000, 1_000_000])
def test_short_fits_are_tried_at_larger_shares(steps):
    shares = find_shares(steps)
    assert list(shares) == sorted(set(shares))
    assert shares[0] > 0
    assert shares[-1] <= 1
    for share, least in zip(shares, LEAST_STEPS, strict=False):
        assert share * steps >= min(least, steps) - 1e-9
    assert (steps > LEAST_STEPS[0]) == (shares[0] < 1)
    if steps >= 10_000:
        assert shares == (0.1, 0.35)


def test_more_seeds_choose_where_a_seed_has_few_validation_examples():
    task, train = motif_examples(120)  # 12 of them validate
    data = TaskData(task, train, train, "official")
    assert list(list_choosing_seeds(data, 1)) == [1, 2, 3, 4, 5]
    assert list(list_choosing_seeds(data._replace(valid_index=np.arange(12)), 1)) == [1]
    assert list(list_choosing_seeds(data._replace(train=motif_examples(1_000)[1]), 1)) == [1]
