"""The Triton mixer: interpreted against its definition, and on a GPU."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from interpreted import on_cpu
from scans import differences, differentiate, draw
from test_mixer import Inputs, problem, run
from torch import Tensor

import genodiff.kernels.triton.mixer as triton_mixer
import genodiff.kernels.triton.weights as triton_weights
from genodiff.kernels import norm
from genodiff.kernels.direction import join_weights
from genodiff.kernels.mixer import mixer, mixer_by_parts
from genodiff.kernels.triton import launch

pytestmark = pytest.mark.triton


@on_cpu
@pytest.mark.parametrize(("tokens", "width"), [(1, 1), (7, 5), (300, 12)])
def test_the_norm_and_its_gradients_are_those_of_the_torch_version(tokens, width, monkeypatch):
    monkeypatch.setattr(norm, "_PROGRAMS", 2)
    inputs, gy = (draw(tokens, width), draw(width, seed=1)), draw(tokens, width, seed=2)
    truth = differentiate(lambda x, w: F.rms_norm(x, (width,), w, 1e-5), inputs, gy)

    def compute(x: Tensor, w: Tensor) -> Tensor:
        y: Tensor = norm.AddNorm.apply(x, None, w, 1e-5)
        return y

    y, *gradients = (v.double() for v in differentiate(compute, inputs, gy, torch.float32))
    torch.testing.assert_close(y, truth[0], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(gradients, truth[1:], rtol=1e-4, atol=1e-5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert compute(*(v.float() for v in inputs)).dtype == torch.bfloat16


@on_cpu
@pytest.mark.parametrize("used", ["both", "norm", "sum"])
def test_the_residual_sum_and_its_norm_are_those_of_the_torch_version(used):
    x, added, w, gy = (draw(2, 3, 5, seed=i) for i in range(4))
    low, w = added.bfloat16(), w[0, 0]
    weights = [1.0 if used != "norm" else 0.0, 1.0 if used != "sum" else 0.0]

    def solve(add: Any, x: Tensor, added: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        given = [t.clone().requires_grad_() for t in (x, added, w)]
        found = add(*given, 1e-5)
        loss = sum(k * (t.double() * gy).sum() for k, t in zip(weights, found, strict=True) if k)
        grads = torch.autograd.grad(loss, given, allow_unused=True)  # type: ignore[arg-type]
        zeros = (torch.zeros_like(g) if d is None else d for g, d in zip(given, grads, strict=True))
        return (*(t.detach() for t in found), *zeros)

    truth = solve(norm._add_by_parts, x, low.double(), w)
    found = solve(norm.AddNorm.apply, x.float(), low, w.float())
    kinds = [t.dtype for t in found]
    assert kinds == [torch.float32, torch.float32, torch.float32, torch.bfloat16, torch.float32]
    for got, wanted, kind in zip(found, truth, kinds, strict=True):
        tolerance = 1e-5 if kind == torch.float32 else 5e-3
        torch.testing.assert_close(got.double(), wanted, rtol=tolerance, atol=tolerance)


def by_triton(*given: Any, recompute: bool = False) -> Tensor:
    """As `mixer`, on a CPU too."""
    *tensors, directions, reverse, mask = given
    weights = join_weights(directions)
    return triton_mixer.triton_mixer(*tensors, mask, reverse, weights, recompute)


@on_cpu
@pytest.mark.parametrize(
    ("mirrored", "bias", "masked"), [(False, True, True), (True, False, False)]
)
def test_the_whole_mixer_agrees_with_its_definition_in_every_gradient(mirrored, bias, masked):
    given = problem(2, 6, 9, 2, d_model=5, rank=2, in_bias=bias, conv_bias=bias, padding=3 * masked)
    reverse = (mirrored, not mirrored)
    truth = run(given, torch.float64, mixer_by_parts, reverse)
    errors = differences(run(given, torch.float32, by_triton, reverse), truth)
    assert max(errors.values()) < 2e-6, errors


@on_cpu
def test_under_autocast_the_mixer_is_bfloat16_and_gradients_have_the_weights_dtypes():
    given = problem(1, 5, 9, 2, d_model=5, rank=2, in_bias=True)
    truth = run(given, torch.float64, mixer_by_parts)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = run(given, torch.float32, by_triton)
    assert {name: x.dtype for name, x in found.items() if x.dtype != torch.float32} == {
        "out": torch.bfloat16
    }
    errors = differences(found, truth)
    assert max(errors.values()) < 2.5e-2, errors


@pytest.fixture
def split(request, monkeypatch):
    """Whether time is cut into segments, as where a machine is not full."""
    if request.param:
        for name, value in (("split_below", 10**6), ("split_into", 64), ("least_tiles", 1)):
            monkeypatch.setitem(launch.CHOICES, name, value)


@on_cpu
@pytest.mark.usefixtures("split")
@pytest.mark.parametrize(
    "split", [False, pytest.param(True, marks=pytest.mark.slow)], indirect=True
)
def test_states_that_are_computed_again_give_the_same_bits():
    given = problem(1, 6, 5, 1, d_model=3, rank=1, in_bias=True)
    found, kept = [], []
    for recompute in (False, True):
        sizes: list[int] = []
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t, sizes=sizes: sizes.append(t.numel()) or t,  # type: ignore[func-returns-value, misc]
            lambda t: t,
        ):
            found.append(run(given, torch.float32, partial(by_triton, recompute=recompute)))
        kept.append(sum(sizes))
    assert all(torch.equal(found[0][k], found[1][k]) for k in found[0])
    # Two directions keep the states before two tiles of 4 steps, of 8 channels.
    assert kept[0] - kept[1] == 2 * 2 * 8


@on_cpu
def test_channels_that_fill_rows_up_change_nothing(monkeypatch):
    assert [triton_weights.pad_channels(236, word) for word in (2, 4)] == [240, 236]
    given = problem(1, 3, 5, 1, d_model=3, rank=1, in_bias=True)
    padded = run(given, torch.float32, by_triton)
    monkeypatch.setattr(triton_weights, "pad_channels", lambda channels, word: channels)
    torch.testing.assert_close(padded, run(given, torch.float32, by_triton), rtol=1e-5, atol=1e-5)


def solve_mixer(
    given: Inputs, provider: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Tensor]:
    """Output and gradients by a provider; in bfloat16 under autocast, as in training."""
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    kind = given["h"].device.type  # type: ignore[union-attr]
    monkeypatch.setenv("GENODIFF_SCAN", provider)

    def chosen(*inputs: Any) -> Tensor:
        out = mixer(*inputs)
        assert ("_MixerBackward" in type(out.grad_fn).__name__) == (provider == "triton")
        return out

    with torch.autocast(kind, torch.bfloat16, enabled=dtype == torch.bfloat16):
        return run(given, wide, by_triton if (provider, kind) == ("triton", "cpu") else chosen)


def assert_errors_of_torch(
    given: Inputs, dtype: torch.dtype, most: float, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Tensor]:
    """See that no error is over `most` times that of torch's mixer on the same numbers."""
    truth = solve_mixer(given, "torch", torch.float64, monkeypatch)
    found = {p: solve_mixer(given, p, dtype, monkeypatch) for p in ("torch", "triton")}
    errors = {p: differences(found[p], truth) for p in found}
    ratios = {k: errors["triton"][k] / errors["torch"][k] for k in truth}
    assert max(ratios.values()) < most, (ratios, errors["triton"])
    return found["triton"]


@contextmanager
def nan_in_new_memory() -> Iterator[None]:
    """A context in which torch fills memory that nothing was written to with NaN."""
    torch.use_deterministic_algorithms(True)
    assert torch.utils.deterministic.fill_uninitialized_memory
    assert torch.empty(1).isnan()
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@on_cpu
@pytest.mark.usefixtures("split")
@pytest.mark.parametrize(
    ("low", "recompute", "padding", "split"),
    [(False, False, 4, False), (True, True, 0, True)],
    indirect=["split"],
)
def test_nothing_is_read_before_it_is_written(low, recompute, padding):
    """What memory held before would make a run differ from the same run in another process."""
    given = problem(2, 11, 9, 2, d_model=5, rank=2, in_bias=True, padding=padding)

    def mix(h: Tensor, *others: Any) -> Tensor:
        normed = norm.AddNorm.apply(h, None, torch.ones(5), 1e-5)
        return by_triton(normed.float(), *others, recompute=recompute)

    found = []
    for fresh in (nullcontext(), nan_in_new_memory()):
        with fresh, torch.autocast("cpu", torch.bfloat16, enabled=low):
            found.append(run(given, torch.float32, mix))
    assert all(torch.equal(a, b) for a, b in zip(*(f.values() for f in found), strict=True))


@on_cpu
def test_in_bfloat16_no_error_is_far_over_that_of_torchs_own_mixer(monkeypatch):
    given = problem(1, 40, 24, 4, d_model=12, rank=2, conv_bias=False)
    assert_errors_of_torch(given, torch.bfloat16, 1.5, monkeypatch)


@pytest.mark.gpu
@pytest.mark.parametrize(("dtype", "most"), [(torch.float32, 4.0), (torch.bfloat16, 1.5)])
def test_on_a_gpu_the_mixer_is_chosen_agrees_and_repeats_bit_for_bit(dtype, most, monkeypatch):
    drawn = problem(2, 1000, 236, 16, d_model=118, rank=8, conv_bias=False)
    given = {k: None if v is None else v.cuda() for k, v in drawn.items()}
    first = assert_errors_of_torch(given, dtype, most, monkeypatch)
    again = solve_mixer(given, "triton", dtype, monkeypatch)
    assert all(torch.equal(first[k], again[k]) for k in first)
