"""The interval of a ratio over windows, and over seeds and windows together: exact small cases, and
its coverage where the truth is known; Holm's correction, equivalence, and the words.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from scipy.signal import lfilter

from genodiff.statistics.comparisons import adjust_holm, judge_differences, show_p
from genodiff.statistics.interval import (
    BITS,
    compare_models,
    count_blocks,
    estimate_fixed_difference,
    estimate_fixed_ratio,
    estimate_ratio,
    estimate_ratio_difference,
    ratio,
)
from genodiff.statistics.seeds import (
    JointEstimate,
    estimate_difference,
    estimate_mean,
    estimate_one,
)

Floats = NDArray[np.float64]


def test_the_value_is_total_over_total():
    assert ratio(np.array([1.0, 5.0, 6.0]), np.array([1.0, 2.0, 3.0])).value == 2.0
    with pytest.raises(ValueError, match="no window"):
        ratio(np.zeros(3), np.zeros(3))


def test_with_equal_windows_each_its_own_block_it_is_the_t_interval_of_a_mean():
    y = np.array([1.0, 2.0, 4.0, 7.0, 6.0])
    found = ratio(y, np.ones(5))
    assert found.se == pytest.approx(y.std(ddof=1) / 5**0.5)
    reach = 2.7764451051977987 * y.std(ddof=1) / 5**0.5
    assert found.ci95 == pytest.approx((4.0 - reach, 4.0 + reach))


@pytest.mark.parametrize("windows", [1, 2, 4])
def test_fewer_than_five_windows_have_no_interval(windows):
    y = np.arange(windows) + 3.0
    assert ratio(y, np.full(windows, 2.0)) == (y.mean() / 2, None, None)
    assert estimate_fixed_ratio(y[None], np.ones(windows)).why_none == "too few test units"
    assert ratio(np.arange(5) + 3.0, np.ones(5)).ci95 is not None


def test_windows_without_a_base_change_nothing():
    rng = np.random.default_rng(0)
    y, n = rng.random(40), rng.integers(1, 9, 40).astype(float)
    padded = ratio(np.insert(y, [3, 17, 40], 0), np.insert(n, [3, 17, 40], 0))
    assert padded == ratio(y, n)


def test_another_unit_scales_everything():
    found = ratio(np.array([1.0, 2.0, 3.0, 5.0, 8.0]), np.ones(5))
    twice = found.scaled(2)
    assert twice.value == 2 * found.value
    assert twice.se == pytest.approx(2 * (found.se or 0))
    assert twice.ci95 == pytest.approx(tuple(2 * e for e in found.ci95 or ()))


def test_blocks_are_as_many_as_the_root_of_the_windows():
    wanted = {1: 1, 2: 2, 8: 8, 50: 8, 64: 8, 100: 10, 766: 28, 180_000: 424}
    assert {n: count_blocks(n) for n in wanted} == wanted


def test_copies_of_every_window_do_not_make_the_figure_surer_when_they_stand_together():
    rng = np.random.default_rng(2)
    y = rng.random(100)
    once, copied = ratio(y, np.ones(100)), ratio(np.repeat(y, 10), np.ones(1000))
    assert (copied.se or 0) > 0.7 * (once.se or 1)


def coverage(
    draw: Callable[[np.random.Generator], tuple[Floats, Floats]], truth: float, seed: int
) -> float:
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(1000):
        low, high = ratio(*draw(rng)).ci95 or (0, 0)
        hits += low <= truth <= high
    return hits / 1000


@pytest.mark.few(1)
@pytest.mark.parametrize("n", [5, 10, 100, 800])
def test_nineteen_of_twenty_intervals_hold_the_truth_when_windows_are_independent(n):
    def draw(rng: np.random.Generator) -> tuple[Floats, Floats]:
        size = np.full(n, 1000.0)
        return size * (1.3 + 0.05 * rng.standard_normal(n)), size

    assert 0.93 < coverage(draw, 1.3, n) < 0.97


@pytest.mark.few(2)
@pytest.mark.parametrize(("n", "rho"), [(100, 0.5), (800, 0.5), (800, 0.8)])
def test_neighbours_that_are_alike_and_windows_of_different_size_are_allowed_for(n, rho):
    def draw(rng: np.random.Generator) -> tuple[Floats, Floats]:
        noise = rng.standard_normal(n) * np.where(np.arange(n), (1 - rho**2) ** 0.5, 1)
        level = lfilter([1], [1, -rho], noise)
        size = rng.integers(500, 1025, n).astype(float)
        return size * (1.3 + 0.03 * level + 0.03 * rng.standard_normal(n)), size

    assert 0.90 < coverage(draw, 1.3, n) < 0.98


def draw_world(
    rng: np.random.Generator, seeds: int, windows: int, gap: float, seed_sd: float
) -> tuple[Floats, Floats, Floats]:
    """Two models with `seeds` seeds each on common windows; the true difference is `gap`."""
    size = np.full(windows, 100.0)
    hard = np.convolve(rng.normal(0, 0.1, windows + 4), np.ones(5) / 5**0.5, "valid")
    taste = rng.normal(0, 0.03, windows)
    a, b = (
        1.3 + shift + hard + sign * taste
        + rng.normal(0, seed_sd, (seeds, 1)) + rng.normal(0, 0.03, (seeds, windows))
        for shift, sign in ((gap, 1), (0, -1))
    )  # fmt: skip
    return a * size, b * size, size


def test_one_seed_gives_the_interval_of_windows_and_says_so():
    a, b, size = draw_world(np.random.default_rng(1), 1, 300, 0.01, 0.0)
    fixed, known = estimate_fixed_ratio(a, size), ratio(a[0], size)
    assert fixed.ci95 == pytest.approx(known.ci95)
    assert fixed.se == pytest.approx(known.se)
    gap = estimate_fixed_difference(a, b, size)
    assert gap.ci95 == pytest.approx(ratio(a[0] - b[0], size).ci95)
    assert estimate_ratio(a, size).why_none == "one seed"
    (judged,) = compare_models({"a": a, "b": b}, size)
    assert judged.estimate.value == pytest.approx(gap.value * BITS)
    assert judged.estimate.ci95 is not None
    (judged,) = compare_models({"a": a, "b": np.repeat(b, 2, 0)}, size)
    assert judged.estimate.why_none == "one seed"


def test_equal_seeds_add_nothing_to_the_interval_of_windows():
    a, _, size = draw_world(np.random.default_rng(2), 1, 300, 0, 0.0)
    same = estimate_ratio(np.repeat(a, 4, 0), size)
    assert same.ci95 == pytest.approx(ratio(a[0], size).ci95)


def test_seeds_that_differ_widen_the_interval_and_pairing_uses_common_windows():
    a, b, size = draw_world(np.random.default_rng(3), 4, 400, 0.0, 0.01)
    joint, windows = estimate_ratio(a, size), estimate_fixed_ratio(a, size)
    assert joint.se > windows.se
    gap = estimate_ratio_difference(a, b, size, same_seeds=True)
    assert gap.se < joint.se
    with pytest.raises(ValueError, match="no window has a size"):
        estimate_ratio(a, 0 * size)


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("seeds", [3, 4, 5])
@pytest.mark.parametrize("seed_sd", [0.0, 0.003, 0.02])
@pytest.mark.parametrize("same", [True, False])
def test_intervals_over_seeds_and_windows_cover(seeds, seed_sd, same):
    rng = np.random.default_rng([seeds, round(1e4 * seed_sd), same])
    worlds, hits, own = 800, 0, 0
    for _ in range(worlds):
        a, b, size = draw_world(rng, seeds, 300, 0.004, seed_sd)
        low, high = estimate_ratio_difference(a, b, size, same_seeds=same).ci95 or (1.0, 0.0)
        hits += low <= 0.004 <= high
        low, high = estimate_ratio(b, size).ci95 or (1.0, 0.0)
        own += low <= 1.3 <= high
    # 93 to 97 %, with the sampling error of so many worlds
    slack = 2 * (0.95 * 0.05 / worlds) ** 0.5
    assert 0.93 - slack <= hits / worlds <= 0.97 + slack
    assert 0.93 - slack <= own / worlds <= 0.97 + slack


@pytest.mark.slow
def test_holm_keeps_the_family_error_of_four_models_with_four_seeds():
    rng = np.random.default_rng(5)
    worlds, wrong, plain = 500, 0, 0
    for _ in range(worlds):
        a, b, size = draw_world(rng, 4, 200, 0.0, 0.004)
        c, d, _ = draw_world(rng, 4, 200, 0.0, 0.004)
        judged = compare_models({"a": a, "b": b, "c": c, "d": d}, size)
        wrong += any(gap.is_different for gap in judged)
        plain += any((gap.estimate.p or 1) < 0.05 for gap in judged)
    assert wrong / worlds <= stats.binom.ppf(0.99, worlds, 0.05) / worlds
    assert plain / worlds > 0.07, "the world is too kind for the correction to matter"


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
