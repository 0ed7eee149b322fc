"""The Triton mixer: interpreted against its definition, and on a GPU."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import interpreted
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import genodiff.kernels.triton.mixer as triton_mixer
import genodiff.kernels.triton.norm as triton_norm
import genodiff.kernels.triton.weights as triton_weights
from genodiff.kernels.conv import causal_conv1d
from genodiff.kernels.direction import DirectionWeights, join_weights
from genodiff.kernels.mixer import mixer, mixer_by_parts
from genodiff.kernels.norm import _add_by_parts
from genodiff.kernels.triton import launch

GPU = torch.cuda.is_available()
pytestmark = pytest.mark.triton
on_cpu = pytest.mark.skipif(
    bool(interpreted.MISSING) or GPU,
    reason=interpreted.MISSING or "the interpreter is for machines without a GPU",
)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(
        *shape, generator=torch.Generator().manual_seed(seed + sum(shape)), dtype=torch.float64
    )


@on_cpu
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("length", "channels", "width"), [(1, 3, 4), (9, 9, 4), (17, 5, 1), (20, 8, 3)]
)
def test_the_convolution_and_its_gradients_are_those_of_the_torch_version(
    length, channels, width, reverse
):
    x = normal(2, length, channels)
    w = normal(channels, width)
    b = normal(channels, seed=1)
    gy = normal(2, length, channels, seed=2)
    truth = [t.clone().requires_grad_() for t in (x, w, b)]
    y = causal_conv1d(*truth, reverse=reverse)
    y.backward(gy)
    single = [t.float() for t in (x, w, b)]
    got = triton_mixer.triton_conv(*(t.requires_grad_() for t in single), reverse)
    torch.testing.assert_close(got.double(), y.detach(), rtol=1e-5, atol=1e-6)
    got.backward(gy.float())
    for a, b in zip(single, truth, strict=True):
        torch.testing.assert_close(a.grad.double(), b.grad, rtol=1e-4, atol=1e-5)  # type: ignore[union-attr]


@on_cpu
@pytest.mark.parametrize(("tokens", "width"), [(1, 1), (7, 5), (300, 12)])
def test_the_norm_and_its_gradients_are_those_of_the_torch_version(tokens, width, monkeypatch):
    monkeypatch.setattr(triton_norm, "_PROGRAMS", 2)
    x, w, gy = normal(tokens, width), normal(width, seed=1), normal(tokens, width, seed=2)
    truth = [t.clone().requires_grad_() for t in (x, w)]
    y = F.rms_norm(truth[0], (width,), truth[1], 1e-5)
    y.backward(gy)
    single = [t.float().requires_grad_() for t in (x, w)]
    got = triton_norm.triton_rms_norm(*single, 1e-5)
    torch.testing.assert_close(got.double(), y, rtol=1e-5, atol=1e-6)
    got.backward(gy.float())
    for a, b in zip(single, truth, strict=True):
        torch.testing.assert_close(a.grad.double(), b.grad, rtol=1e-4, atol=1e-5)  # type: ignore[union-attr]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert triton_norm.triton_rms_norm(*single, 1e-5).dtype == torch.bfloat16


@on_cpu
@pytest.mark.parametrize("used", ["both", "norm", "sum"])
def test_the_residual_sum_and_its_norm_are_those_of_the_torch_version(used):
    x, added, w, gy = (normal(2, 3, 5, seed=i) for i in range(4))
    low, w = added.bfloat16(), w[0, 0]
    weights = [1.0 if used != "norm" else 0.0, 1.0 if used != "sum" else 0.0]

    def solve(add: Any, x: Tensor, added: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        given = [t.clone().requires_grad_() for t in (x, added, w)]
        found = add(*given, 1e-5)
        loss = sum(k * (t.double() * gy).sum() for k, t in zip(weights, found, strict=True) if k)
        grads = torch.autograd.grad(loss, given, allow_unused=True)  # type: ignore[arg-type]
        zeros = (torch.zeros_like(g) if d is None else d for g, d in zip(given, grads, strict=True))
        return (*(t.detach() for t in found), *zeros)

    truth = solve(_add_by_parts, x, low.double(), w)
    found = solve(triton_norm.triton_add_norm, x.float(), low, w.float())
    kinds = [t.dtype for t in found]
    assert kinds == [torch.float32, torch.float32, torch.float32, torch.bfloat16, torch.float32]
    for got, wanted, kind in zip(found, truth, kinds, strict=True):
        tolerance = 1e-5 if kind == torch.float32 else 5e-3
        torch.testing.assert_close(got.double(), wanted, rtol=tolerance, atol=tolerance)


def problem(
    width: int, channels: int, rank: int, states: int, batch: int, length: int, bias: bool
) -> dict[str, Tensor | None]:
    """A mixer whose products keep the size of their inputs, as a network's do."""
    inputs: dict[str, Tensor | None] = {
        "h": normal(batch, length, width), "in_weight": normal(2 * channels, width) / width**0.5,
        "in_bias": normal(2 * channels, seed=5) * 0.1 if bias else None,
        "out_weight": normal(width, channels) / channels**0.5,
    }  # fmt: skip
    for i in (0, 1):
        inputs |= {
            f"conv_weight{i}": normal(channels, 4, seed=i) * 0.5, f"conv_bias{i}": normal(channels,
            seed=i) * 0.1 if bias else None,
            f"x_weight{i}": normal(rank + 2 * states, channels, seed=i) / channels**0.5,
            f"dt_weight{i}": normal(channels, rank, seed=i) / rank**0.5,
            f"dt_bias{i}": normal(channels, seed=10 + i) - 1, f"A{i}": -torch.exp(normal(channels,
            states, seed=i)),
            f"D{i}": normal(channels, seed=20 + i),
        }  # fmt: skip
    return inputs


def directions(x: dict[str, Tensor | None]) -> list[DirectionWeights]:
    names = ("conv_weight", "conv_bias", "x_weight", "dt_weight", "dt_bias", "A", "D")
    return [DirectionWeights(*(x[f"{name}{i}"] for name in names)) for i in (0, 1)]  # type: ignore[arg-type]


def gradients(out: Tensor, gy: Tensor, x: dict[str, Tensor | None]) -> dict[str, Tensor]:
    wanted = {k: v for k, v in x.items() if v is not None}
    found = torch.autograd.grad((out.double() * gy).sum(), list(wanted.values()))
    return {"out": out.detach().double()} | {
        k: g.double() for k, g in zip(wanted, found, strict=True)
    }


def by_triton(
    x: dict[str, Tensor | None],
    reverse: tuple[bool, bool],
    mask: Tensor | None,
    recompute: bool = False,
) -> Tensor:
    weights = join_weights(directions(x))
    return triton_mixer.triton_mixer(
        x["h"], x["in_weight"], x["in_bias"], x["out_weight"], mask, reverse, weights, recompute
    )  # type: ignore[arg-type]


@on_cpu
@pytest.mark.parametrize(
    ("mirrored", "bias", "masked"), [(False, True, True), (True, False, False)]
)
def test_the_whole_mixer_agrees_with_its_definition_in_every_gradient(mirrored, bias, masked):
    given = problem(5, 9, 2, 2, 2, 6, bias)
    mask = (
        (torch.arange(6) < torch.tensor([6, 4])[:, None]).double()[:, :, None] if masked else None
    )
    gy, reverse = normal(2, 6, 5, seed=7), (mirrored, not mirrored)
    x = {k: None if v is None else v.clone().requires_grad_() for k, v in given.items()}
    out = mixer_by_parts(
        x["h"], x["in_weight"], x["in_bias"], x["out_weight"], directions(x), reverse, mask
    )  # type: ignore[arg-type]
    truth = gradients(out, gy, x)
    x = {k: None if v is None else v.float().requires_grad_() for k, v in given.items()}
    found = gradients(by_triton(x, reverse, None if mask is None else mask.float()), gy, x)
    errors = {k: float((found[k] - truth[k]).norm() / truth[k].norm()) for k in truth}
    assert max(errors.values()) < 2e-6, errors


@on_cpu
def test_under_autocast_the_mixer_is_bfloat16_and_gradients_have_the_weights_dtypes():
    given = problem(5, 9, 2, 2, 1, 5, True)
    x = {k: None if v is None else v.clone().requires_grad_() for k, v in given.items()}
    gy = normal(1, 5, 5, seed=7)
    out = mixer_by_parts(
        x["h"], x["in_weight"], x["in_bias"], x["out_weight"], directions(x), (False, True)
    )  # type: ignore[arg-type]
    truth = gradients(out, gy, x)
    x = {k: None if v is None else v.float().requires_grad_() for k, v in given.items()}
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = by_triton(x, (False, True), None)
    assert out.dtype == torch.bfloat16
    got = torch.autograd.grad((out.double() * gy).sum(), [v for v in x.values() if v is not None])
    assert {g.dtype for g in got} == {torch.float32}
    errors = {
        k: float((g - truth[k]).norm() / truth[k].norm())
        for k, g in zip([k for k in x if x[k] is not None], got, strict=True)
    }
    assert max(errors.values()) < 2.5e-2, errors


@on_cpu
@pytest.mark.parametrize("split", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_states_that_are_computed_again_give_the_same_bits(split, monkeypatch):
    if split:
        for name, value in (("split_below", 10**6), ("split_into", 64), ("least_tiles", 1)):
            monkeypatch.setitem(launch.CHOICES, name, value)
    given, gy = problem(3, 5, 1, 1, 1, 6, True), normal(1, 6, 3, seed=7)
    found, kept = [], []
    for recompute in (False, True):
        x = {k: None if v is None else v.float().requires_grad_() for k, v in given.items()}
        sizes: list[int] = []
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t, sizes=sizes: sizes.append(t.numel()) or t,  # type: ignore[func-returns-value, misc]
            lambda t: t,
        ):
            out = by_triton(x, (False, True), None, recompute)
        kept.append(sum(sizes))
        found.append(gradients(out, gy, x))
    assert all(torch.equal(found[0][k], found[1][k]) for k in found[0])
    # Two directions keep the states before two tiles of 4 steps, of 8 channels.
    assert kept[0] - kept[1] == 2 * 2 * 8


@on_cpu
def test_channels_that_fill_rows_up_change_nothing(monkeypatch):
    assert [triton_weights.pad_channels(236, word) for word in (2, 4)] == [240, 236]
    given, gy = problem(3, 5, 1, 1, 1, 3, True), normal(1, 3, 3, seed=7)
    found = []
    for padded in (True, False):
        if not padded:
            monkeypatch.setattr(triton_weights, "pad_channels", lambda channels, word: channels)
        x = {k: None if v is None else v.float().requires_grad_() for k, v in given.items()}
        found.append(gradients(by_triton(x, (False, True), None), gy, x))
    for name, value in found[1].items():
        torch.testing.assert_close(found[0][name], value, rtol=1e-5, atol=1e-5)


def solve_mixer(
    given: dict[str, Tensor | None],
    gy: Tensor,
    provider: str,
    dtype: torch.dtype,
    monkeypatch: pytest.MonkeyPatch,
) -> dict[str, Tensor]:
    """Output and gradients by a provider; in bfloat16 under autocast, as in training."""
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    x = {k: None if v is None else v.to(wide).requires_grad_() for k, v in given.items()}
    weights, ways, kind = directions(x), (False, True), gy.device.type
    low = torch.autocast(kind, torch.bfloat16, enabled=dtype == torch.bfloat16)
    monkeypatch.setenv("GENODIFF_SCAN", provider)
    if provider == "triton" and kind == "cpu":
        with low:
            return gradients(by_triton(x, ways, None), gy, x)
    with low:
        out = mixer(x["h"], x["in_weight"], None, x["out_weight"], weights, ways)  # type: ignore[arg-type]
    assert ("_MixerBackward" in type(out.grad_fn).__name__) == (provider == "triton")
    return gradients(out, gy, x)


def assert_errors_of_torch(
    given: dict[str, Tensor | None],
    gy: Tensor,
    dtype: torch.dtype,
    most: float,
    monkeypatch: pytest.MonkeyPatch,
) -> dict[str, Tensor]:
    """See that no error is over `most` times that of torch's mixer on the same numbers."""
    truth = solve_mixer(given, gy, "torch", torch.float64, monkeypatch)
    found = {p: solve_mixer(given, gy, p, dtype, monkeypatch) for p in ("torch", "triton")}

    def err(name: str, provider: str) -> float:
        return float((found[provider][name] - truth[name]).norm() / truth[name].norm())

    ratios = {k: err(k, "triton") / err(k, "torch") for k in truth}
    assert max(ratios.values()) < most, (ratios, {k: err(k, "triton") for k in truth})
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
@pytest.mark.parametrize(
    ("low", "recompute", "masked", "split"),
    [(False, False, True, False), (True, True, False, True)],
)
def test_nothing_is_read_before_it_is_written(low, recompute, masked, split, monkeypatch):
    """What memory held before would make a run differ from the same run in another process."""
    if split:
        for name, value in (("split_below", 10**6), ("split_into", 64), ("least_tiles", 1)):
            monkeypatch.setitem(launch.CHOICES, name, value)
    given, gy = problem(5, 9, 2, 2, 2, 11, True), normal(2, 11, 5, seed=7)
    lengths = torch.tensor([11, 7])[:, None]
    mask = (torch.arange(11) < lengths).float()[:, :, None] if masked else None
    found = []
    for fresh in (nullcontext(), nan_in_new_memory()):
        x = {k: None if v is None else v.float().requires_grad_() for k, v in given.items()}
        with fresh:
            with torch.autocast("cpu", torch.bfloat16, enabled=low):
                normed = triton_norm.triton_rms_norm(x["h"], torch.ones(5), 1e-5)  # type: ignore[arg-type]
                out = by_triton(x | {"h": normed.float()}, (False, True), mask, recompute)
            found.append(gradients(out, gy, x))
    assert all(torch.equal(a, b) for a, b in zip(*(f.values() for f in found), strict=True))


@on_cpu
def test_in_bfloat16_no_error_is_far_over_that_of_torchs_own_mixer(monkeypatch):
    given, gy = problem(12, 24, 2, 4, 1, 40, False), normal(1, 40, 12, seed=7)
    assert_errors_of_torch(given, gy, torch.bfloat16, 1.5, monkeypatch)


@pytest.mark.gpu
@pytest.mark.parametrize(("dtype", "most"), [(torch.float32, 4.0), (torch.bfloat16, 1.5)])
def test_on_a_gpu_the_mixer_is_chosen_agrees_and_repeats_bit_for_bit(dtype, most, monkeypatch):
    given = {
        k: None if v is None else v.cuda()
        for k, v in problem(118, 236, 8, 16, 2, 1000, False).items()
    }
    gy = normal(2, 1000, 118, seed=7).cuda()
    first = assert_errors_of_torch(given, gy, dtype, most, monkeypatch)
    again = solve_mixer(given, gy, "triton", dtype, monkeypatch)
    assert all(torch.equal(first[k], again[k]) for k in first)
