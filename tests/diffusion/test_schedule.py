"""Noise schedules: ends, derivatives, inverses, accuracy, names."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from genodiff.diffusion.schedule import (
    Cosine,
    CosineSquared,
    Geometric,
    Linear,
    LogLinear,
    OneMinusCosine,
    Polynomial,
    SigmaLinear,
    schedule,
)
from genodiff.errors import UsageError

FROM_ONE_TO_ZERO = [Linear(), Cosine(), OneMinusCosine(), CosineSquared(), Polynomial()]
ENDS = torch.tensor([0.0, 1.0], dtype=torch.float64)
INSIDE = torch.linspace(0.001, 0.999, 401, dtype=torch.float64)


@pytest.mark.parametrize("noise", FROM_ONE_TO_ZERO, ids=repr)
def test_alpha_goes_from_one_to_exactly_zero(noise):
    assert noise.alpha(ENDS).tolist() == [pytest.approx(1, abs=2e-16), 0]
    assert noise.masked(ENDS).tolist() == [0, pytest.approx(1, abs=3e-16)]
    assert noise.sigma(ENDS)[1] == math.inf


@pytest.mark.parametrize("cls", [Linear, Cosine, OneMinusCosine, CosineSquared, Polynomial])
def test_alpha_ends_at_eps_where_one_is_given(cls):
    assert cls(eps=0.01).alpha(ENDS).tolist() == pytest.approx([1, 0.01], abs=1e-15)


@pytest.mark.parametrize("cls", [SigmaLinear, Geometric])
def test_a_schedule_given_by_its_noise_starts_and_ends_at_the_noise_it_names(cls):
    assert cls(0.01, 5.0).sigma(ENDS).tolist() == pytest.approx([0.01, 5.0])


def test_the_linear_weight_is_exactly_one_over_t():
    assert torch.equal(Linear().weight(INSIDE), 1 / INSIDE)
    torch.testing.assert_close(LogLinear().weight(INSIDE), 1 / INSIDE, rtol=1e-12, atol=0)


@given(st.floats(0.01, 0.99))
def test_the_two_cosines_are_two_functions_each_with_its_own_name(t):
    at = torch.tensor([t], dtype=torch.float64)
    for noise, wanted in (
        (schedule("cosine"), math.cos(math.pi * t / 2)),
        (schedule("one_minus_cosine"), 1 - math.cos(math.pi * (1 - t) / 2)),
        (schedule("cosine_squared"), math.cos(math.pi * t / 2) ** 2),
        (schedule("polynomial", power=2.0), 1 - t**2),
    ):
        assert noise.alpha(at).item() == pytest.approx(wanted, abs=1e-15)


def test_loglinear_is_linear_and_its_truncated_twin_has_a_name_of_its_own():
    assert schedule("loglinear") == schedule("linear") == Linear()
    assert schedule("loglinear_eps", eps=1e-3) == LogLinear()
    at = torch.tensor([0.3], dtype=torch.float64)
    sigma = -math.log1p(-(1 - 1e-3) * 0.3)
    assert LogLinear(1e-3).sigma(at).item() == pytest.approx(sigma, abs=1e-15)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("cosin", {}, "cosine"),
        ("linear", {"power": 2.0}, "power"),
        ("linear", {"eps": 1.0}, "eps"),
        ("linear", {"eps": -0.1}, "eps"),
        ("polynomial", {"power": 0.0}, "power"),
        ("geometric", {"sigma_min": 0.0}, "sigma_min"),
        ("geometric", {"sigma_min": 2.0, "sigma_max": 1.0}, "sigma"),
        ("sigma_linear", {"sigma_max": math.inf}, "sigma"),
        ("polynomial", {"power": math.nan}, "power"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused_in_one_line(name, settings, message):
    with pytest.raises(UsageError, match=message) as refused:
        schedule(name, **settings)
    assert "\n" not in str(refused.value)
