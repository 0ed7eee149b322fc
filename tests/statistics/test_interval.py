"""The interval of a ratio over windows: exact small cases, and its coverage where the truth is
known.
"""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.signal import lfilter

from genodiff.statistics.interval import count_blocks, ratio
from genodiff.statistics.seed_windows import estimate_fixed_ratio

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
