"""Seeds and units join to intervals that cover; Holm's correction, equivalence, and the words."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from genodiff.statistics.comparisons import adjust_holm, judge_differences, show_p
from genodiff.statistics.seeds import (
    JointEstimate,
    estimate_difference,
    estimate_mean,
    estimate_one,
)

PROBABILITIES = st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=12)


def known(value: float, se: float, df: float = 30) -> JointEstimate:
    return JointEstimate(value, ((se**2, df),), 5)


def holm_by_definition(p: list[float | None]) -> list[bool]:
    """Holm's step-down procedure at 5 %, as he wrote it."""
    known = sorted((value, i) for i, value in enumerate(p) if value is not None)
    rejected = [False] * len(p)
    for rank, (value, i) in enumerate(known):
        if value > 0.05 / (len(known) - rank):
            break
        rejected[i] = True
    return rejected


@given(PROBABILITIES)
def test_adjusted_values_reject_what_holms_procedure_rejects(p):
    adjusted = adjust_holm(p)
    wanted = holm_by_definition(p)
    for value, mine, rejected in zip(p, adjusted, wanted, strict=True):
        assert (mine is None) == (value is None)
        if mine is not None and abs(mine - 0.05) > 1e-9:
            assert (mine <= 0.05) == rejected
            assert value <= mine <= 1


def test_without_covariance_the_interval_is_students_and_paired_is_the_paired_test():
    a, b = np.array([0.8, 0.82, 0.85, 0.81]), np.array([0.79, 0.8, 0.84, 0.78])
    nothing = np.zeros((8, 8))
    mean = estimate_mean(a, nothing[:4, :4], 100)
    assert mean.ci95 == pytest.approx(stats.t.interval(0.95, 3, a.mean(), stats.sem(a)))
    gap = estimate_difference(a, b, nothing, 100, paired=True)
    assert gap.p == pytest.approx(stats.ttest_rel(a, b).pvalue)
    loose = estimate_difference(a, b, nothing, 100, paired=False)
    welch = stats.ttest_ind(a, b, equal_var=False)
    assert loose.p == pytest.approx(welch.pvalue)
    assert loose.ci95 == pytest.approx(tuple(welch.confidence_interval()))


def test_the_quantile_lies_between_those_of_seeds_and_units_and_p_is_that_of_the_interval():
    mixed = JointEstimate(1.0, ((0.2, 200.0), (0.1, 2.0)), 3)
    quantile = (1.0 - mixed.ci95[0]) / 0.3**0.5
    weighted = (2 * stats.t.ppf(0.975, 200) + stats.t.ppf(0.975, 2)) / 3
    assert quantile == pytest.approx(weighted)
    edge = mixed._replace(value=1.0 - mixed.ci95[0])
    assert edge.p == pytest.approx(0.05)
    assert mixed.scaled(2).p == pytest.approx(mixed.p)
    assert mixed._replace(value=0.0).p == 1


def test_units_alone_decide_where_seeds_are_equal():
    same = estimate_mean(np.full(5, 0.7), np.full((5, 5), 0.01), 50)
    assert same.se == pytest.approx(0.1)
    assert same.parts[0][1] == 50
    assert same.ci95 == estimate_one(0.7, 0.01, 50).ci95


@pytest.mark.parametrize(
    ("values", "df", "why"),
    [([0.5], 9, "one seed"), ([0.5, 0.6], 0, "too few test units"), ([0.5, 0.5], 9, "no variation"),
     ([0.5, math.nan], 9, "undefined")],
)  # fmt: skip
def test_where_there_is_no_interval_the_reason_is_said(values, df, why):
    found = estimate_mean(np.array(values), np.zeros((len(values), len(values))), df)
    assert (found.se, found.ci95, found.p, found.test_equivalence(1)) == (None,) * 4
    assert found.why_none == why
    (judged,) = judge_differences([("a", "b", found)], margin=1)
    assert judged.describe() == f"no interval: {why}"
    assert judged.p_holm is None


def test_words_follow_the_corrected_values_and_only_a_margin_makes_equal():
    ahead, near = known(0.1, 0.01), known(0.001, 0.001)
    pairs = [("a", "b", ahead), ("a", "c", near), ("c", "a", ahead.scaled(0.5))]
    judged = judge_differences(pairs)
    words = [gap.describe() for gap in judged]
    assert words == ["ahead", "cannot be told apart", "ahead"]
    assert judged[0].describe(higher_is_better=False) == "behind"
    words = [gap.describe() for gap in judge_differences(pairs, margin=0.01)]
    assert words == ["ahead", "equivalent within ±0.01", "ahead"]
    wide = judge_differences([("a", "b", ahead)], margin=0.2)[0]
    assert wide.describe() == "ahead, within ±0.2"
    assert wide.to_json()["p_equivalent"] < 0.05
    # 0.04 is significant alone, and not among three
    alone = known(2.1, 1.0, 1000)
    assert judge_differences([("a", "b", alone)])[0].describe() == "ahead"
    several = judge_differences([("a", "b", alone), *(("a", "c", known(0.001, 1.0)),) * 2])
    assert several[0].describe() == "cannot be told apart"


def test_two_one_sided_tests_are_those_of_the_interval_of_90_percent():
    found = known(0.004, 0.003, 12)
    reach = stats.t.ppf(0.95, 12) * 0.003
    edge = 0.004 + reach
    assert found.test_equivalence(edge) == pytest.approx(0.05)
    assert known(-0.004, 0.003, 12).test_equivalence(edge) == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("p", "shown"), [(None, ""), (1e-9, "< 0.0001"), (0.0123, "0.0123"), (0.5, "0.50")]
)
def test_p_values_are_shown_briefly(p, shown):
    assert show_p(p) == shown
