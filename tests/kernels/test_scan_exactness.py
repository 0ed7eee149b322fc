"""How near the C scan comes to float64, for random decays, decays near 1, and awkward shapes."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scans import PROVIDERS, Problem, differences

from genodiff.kernels.naive import naive_scan
from genodiff.kernels.scan import selective_scan

pytestmark = pytest.mark.skipif("native" not in PROVIDERS, reason="the C scan is not here")


def errors(problem: Problem) -> dict[str, float]:
    return differences(problem.solve("native", torch.float32), problem.solve("naive"))


@pytest.mark.parametrize("reverse", [False, True])
def test_at_a_thousand_steps_outputs_are_within_2e_7_and_gradients_within_2e_6(reverse):
    for seed in (0, 1):
        found = errors(Problem(2, 1024, 48, 16, seed=seed, reverse=reverse, h0=True, z=True))
        assert found["y"] < 2e-7, found
        assert max(found.values()) < 2e-6, found


def test_with_decays_near_1_the_error_does_not_grow_with_the_length():
    """A from −0.02 to −0.32, steps of about 0.1: a memory of hundreds to thousands of positions."""
    p = Problem(1, 16384, 16, 16, dt_shift=-2.2)
    p.inputs["A"] = (-0.02 * torch.arange(1.0, 17)).repeat(16, 1).double()
    with torch.no_grad():
        truth = naive_scan(**p.inputs, delta_softplus=True)[0]
        x = {name: value.float() for name, value in p.inputs.items()}
        y = selective_scan(**x, delta_softplus=True, provider="native").double()
    early, whole = (float((y - truth)[:, :n].norm() / truth[:, :n].norm()) for n in (1024, 16384))
    assert whole < 1e-6, (early, whole)
    assert whole < 3 * early + 2e-7, (early, whole)


@pytest.mark.few(10)
@pytest.mark.parametrize("length", [1, 2, 3, 63, 64, 65, 127, 1000])
@pytest.mark.parametrize("channels", [1, 7, 15, 16, 17, 236])
def test_awkward_lengths_and_widths(length, channels):
    found = errors(Problem(1, length, channels, 16, reverse=length % 2 == 0))
    assert found["y"] < 1e-6, found
    assert max(found.values()) < 1e-5, found


@pytest.mark.parametrize("states", [1, 8, 16, 64])
def test_any_number_of_states(states):
    for channels in (15, 33):
        found = errors(Problem(2, 130, channels, states, h0=True))
        assert max(found.values()) < 5e-6, found


@settings(max_examples=30, deadline=None)
@given(*(st.integers(1, n) for n in (9, 140, 40, 36)), *[st.booleans()] * 6)
def test_any_shape_and_any_option(
    batch, length, channels, states, D, z, bias, softplus, reverse, h0
):
    flags = {
        "D": D,
        "z": z,
        "delta_bias": bias,
        "delta_softplus": softplus,
        "reverse": reverse,
        "h0": h0,
    }
    p = Problem(
        batch, length, channels, states, dt_shift=-1.0 if softplus else 1.0, **flags
    )  # a step is never negative
    found = errors(p)
    assert max(found.values()) < 3e-5, found
