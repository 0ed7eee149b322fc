"""Choices by validation: halving, noise, budgets, failures."""

import math

import pytest

from genodiff.errors import GenodiffError
from genodiff.finetuning.budget import (
    FINALISTS,
    LEAST_STEPS,
    Budget,
    Choice,
    choose_candidate,
    find_shares,
    look_again,
)

SECONDS, SHARES = 60.0, (0.25, 1.0)


def choose(values: list[float], minutes: float | None = None, **more: object) -> Choice:
    """A choice among candidates whose value does not depend on the share."""

    def evaluate(value: float, share: float) -> tuple[float, float]:
        return value, SECONDS * share

    metric = more.pop("metric", "accuracy")
    return choose_candidate(  # type: ignore[call-overload]
        values, evaluate, metric, budget=Budget(minutes), **({"shares": SHARES} | more)
    )


def test_all_are_tried_in_short_and_the_best_few_in_full() -> None:
    found = choose([0.1, 0.5, 0.9, 0.7])
    assert found.candidate == 2
    assert [t.candidate for t in found.trials if t.share < 1] == [0, 1, 2, 3]
    assert [t.candidate for t in found.trials if t.share == 1] == [2, 3]
    assert found.why == "best on validation"
    assert choose([0.1, 0.5, 0.9], metric="mse").candidate == 0


def test_the_simplest_within_noise_is_taken_and_reaches_the_last_share() -> None:
    found = choose([0.80, 0.85, 0.86, 0.90], noise=lambda best, other, share: 0.06)
    assert found.candidate == 1  # 0.85 is within 0.06 of 0.90, and 0.80 is not
    assert [t.candidate for t in found.trials if t.share == 1] == [1, 3]
    assert found.why == "the simplest within noise of the best"
    assert choose([0.9, 0.9, 0.9]).candidate == 0  # of equals the simplest


def test_a_short_fit_that_misleads_is_corrected_by_the_whole_one() -> None:
    curves = {"slow": {0.25: 0.6, 1.0: 0.9}, "fast": {0.25: 0.7, 1.0: 0.8}, "no": {0.25: 0.5}}

    def evaluate(name: str, share: float) -> tuple[float, float]:
        return curves[name][share], 1.0

    names = ["no", "fast", "slow"]
    found = choose_candidate(names, evaluate, "mcc", budget=Budget(), shares=SHARES)
    assert found.candidate == 2


def test_a_choice_is_left_for_the_best_alone() -> None:
    assert look_again([0.90, 0.96, 0.97, math.nan], "auroc") == (2, "best on validation")
    assert look_again([0.97, 0.9], "auroc") == (0, "still the best on validation")
    assert look_again([0.97, math.nan, 0.97], "auroc")[0] == 0  # equals go to the first
    assert look_again([0.9, 0.96, 0.8], "mse")[0] == 2


def test_what_is_reserved_cannot_be_afforded_yet() -> None:
    budget = Budget(3.0)
    budget.reserved = 60.0
    budget.spend(60.0)
    assert budget.affords(60.0)
    assert not budget.affords(61.0)
    budget.reserved = 0.0
    assert budget.affords(120.0)


@pytest.mark.parametrize("minutes", [0.01, 1.0, 2.3, 2.6, 3.0, 10.0])
def test_a_budget_is_kept_once_the_first_candidate_was_tried(minutes: float) -> None:
    found = choose([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], minutes)
    spent = sum(t.seconds for t in found.trials)
    assert spent <= max(60 * minutes, SECONDS / 4)
    if minutes >= 10:
        assert spent == 6 * SECONDS / 4 + FINALISTS * SECONDS
        assert "budget" not in found.why
    else:
        assert "the budget allowed" in found.why
    assert found.candidate == max(t.candidate for t in found.trials)


@pytest.mark.parametrize(
    ("minutes", "short", "whole"),
    [(0.01, 1, 0), (0.6, 2, 0), (1.0, 4, 0), (2.9, 4, 0), (3.0, 4, 2), (9.0, 4, 2)],
)
def test_without_reserve_all_are_tried_in_short_before_any_is_in_full(
    minutes: float, short: int, whole: int
) -> None:
    found = choose([0.1, 0.2, 0.4, 0.3], minutes, reserve=False)
    assert len([t for t in found.trials if t.share < 1]) == short
    assert [t.candidate for t in found.trials if t.share == 1] == [2, 3][:whole]
    assert found.candidate == min(short - 1, 2)


@pytest.mark.parametrize(("minutes", "tried"), [(1.0, 1), (2.9, 1), (3.0, 2), (5.0, 3)])
def test_a_longer_fit_is_reckoned_longer(minutes: float, tried: int) -> None:
    sizes = [1.0, 2.0, 2.0]

    def evaluate(candidate: int, share: float) -> tuple[float, float]:
        return 0.1 * candidate, SECONDS * share * sizes[candidate]

    found = choose_candidate(
        range(3), evaluate, "mcc", budget=Budget(minutes), shares=(1.0,), sizes=sizes
    )
    assert len(found.trials) == tried
    assert sum(t.seconds for t in found.trials) <= 60 * minutes


def test_what_fails_is_not_chosen() -> None:
    assert choose([math.nan, 0.4, 0.3]).candidate == 1
    with pytest.raises(GenodiffError, match="every setting that was tried failed"):
        choose([math.nan, math.nan])


@pytest.mark.parametrize("steps", [1, 300, 600, 1_900, 2_100, 5_000, 10_000, 1_000_000])
def test_short_fits_are_tried_at_larger_shares(steps: int) -> None:
    shares = find_shares(steps)
    assert list(shares) == sorted(set(shares))
    assert shares[0] > 0
    assert shares[-1] <= 1
    for share, least in zip(shares, LEAST_STEPS, strict=False):
        assert share * steps >= min(least, steps) - 1e-9
    assert (steps > LEAST_STEPS[0]) == (shares[0] < 1)
    if steps >= 10_000:
        assert shares == (0.1, 0.35)
