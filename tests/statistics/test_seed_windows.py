"""Figures over seeds and windows together: equal to the interval of windows where seeds do nothing,
and of the right coverage where both vary.
"""

import numpy as np
import pytest
from scipy import stats

from genodiff.statistics.interval import BITS, ratio
from genodiff.statistics.seed_windows import (
    compare_models,
    estimate_fixed_difference,
    estimate_fixed_ratio,
    estimate_ratio,
    estimate_ratio_difference,
)

Floats = np.ndarray


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
