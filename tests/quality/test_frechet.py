"""The Frechet distance, against closed forms and scipy's matrix root."""

import numpy as np
import pytest
from scipy.linalg import sqrtm

from genodiff.quality.sample_quality import find_frechet, measure_frechet


def test_the_distance_is_that_of_the_definition():
    rng = np.random.default_rng(1)
    one = rng.normal(size=(200, 5)) @ rng.normal(size=(5, 5))
    other = rng.normal(size=(150, 5)) @ rng.normal(size=(5, 5)) + 0.5
    laws = [np.cov(rows, rowvar=False) for rows in (one, other)]
    wanted = np.square(one.mean(0) - other.mean(0)).sum()
    wanted += np.trace(laws[0] + laws[1] - 2 * np.real(sqrtm(laws[0] @ laws[1])))
    assert find_frechet(one, other) == pytest.approx(wanted)
    assert find_frechet(other, one) == pytest.approx(wanted)
    assert find_frechet(one, one) == pytest.approx(0, abs=1e-9)
    turned, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    assert find_frechet(one @ turned, other @ turned) == pytest.approx(wanted)


def test_one_number_is_the_distance_of_two_normal_laws():
    one, other = np.array([[0.0], [2.0]]), np.array([[3.0], [9.0]])
    assert find_frechet(one, other) == pytest.approx(5**2 + (np.sqrt(2) - np.sqrt(18)) ** 2)


def test_the_standard_error_is_what_repetition_shows():
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        found.append(measure_frechet(rng.normal(size=(300, 2)), 1 + rng.normal(size=(300, 2))))
    spread = np.std([one["value"] for one in found])
    assert np.mean([one["se"] for one in found]) == pytest.approx(spread, rel=0.3)


def test_one_row_has_no_spread_and_so_no_distance():
    one, two = np.zeros((1, 3)), np.ones((2, 3))
    assert measure_frechet(one, two) is None
    assert measure_frechet(two, one) is None
    assert measure_frechet(two, two + 1) == {"value": pytest.approx(3), "se": None}


def test_fewer_rows_than_columns_are_no_error():
    rng = np.random.default_rng(2)
    found = measure_frechet(rng.normal(size=(4, 9)), rng.normal(size=(4, 9)))
    assert np.isfinite([found["value"], found["se"]]).all()
