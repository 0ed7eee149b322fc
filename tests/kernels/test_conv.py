"""The causal convolution against torch's, in both directions and for every length."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scans import PROVIDERS, differentiate, needs_library
from torch import Tensor

from genodiff.kernels import conv
from genodiff.kernels.conv import causal_conv1d, graph_conv


@pytest.mark.parametrize("provider", PROVIDERS)
@settings(max_examples=20)
@given(st.integers(1, 3), st.integers(1, 40), st.integers(1, 19), st.integers(1, 6), st.booleans(),
       st.booleans(), st.booleans())  # fmt: skip
def test_outputs_and_gradients_are_those_of_torchs_convolution(
    provider, batch, length, channels, width, has_bias, reverse, silu
):
    generator = torch.Generator().manual_seed(length)
    shapes = ((batch, length, channels), (channels, width), (channels,), (batch, length, channels))
    x, weight, bias, gy = (torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes)
    inputs = [x, weight, bias] if has_bias else [x, weight]

    def convolve(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return causal_conv1d(x, weight, bias, reverse, "silu" if silu else None)

    def truth(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return graph_conv(x, weight, bias, reverse, "silu" if silu else None)

    wanted = differentiate(truth, inputs, gy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GENODIFF_SCAN", provider)
        for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
            for a, b in zip(differentiate(convolve, inputs, gy, dtype), wanted, strict=True):
                torch.testing.assert_close(a.double(), b, rtol=tolerance, atol=10 * tolerance)


@needs_library
@settings(max_examples=30)
@given(
    st.integers(1, 2), st.sampled_from([1, 2, 3, 6, 7, 31, 32, 33, 36, 67, 256, 257, 300]),
    st.sampled_from([1, 7, 15, 16, 17, 33, 48]),
    st.integers(1, 5), st.sampled_from([1, 3, 8, 9, 16, 17, 40, 49]), st.booleans(), st.booleans(),
    st.booleans(),
)  # fmt: skip
def test_the_projection_beside_the_convolution(
    batch, length, channels, width, outputs, reverse, silu, accumulate
):
    g = torch.Generator().manual_seed(length + outputs)
    shapes = ((batch, length, channels), (channels, width), (channels,), (outputs, channels))
    x, weight, bias, v = (torch.randn(s, generator=g).double().requires_grad_() for s in shapes)
    gy, before = (torch.randn(x.shape, generator=g).double() for _ in range(2))
    y = graph_conv(x, weight, bias, reverse, "silu" if silu else None)
    p = y @ v.t()
    gp = torch.randn(p.shape, generator=g).double()
    wanted_x, *wanted = torch.autograd.grad((y, p), (x, weight, bias, v), (gy, gp))
    x_, weight_, bias_, v_, gy_, gp_, dx = (
        t.detach().float() for t in (x, weight, bias, v, gy, gp, before)
    )
    way = {"reverse": reverse, "silu": silu, "v": v_}
    both = conv.conv_forward(x_, weight_, bias_, **way)
    way |= {"dx": dx, "accumulate": accumulate, "gp": gp_}
    found = conv.conv_backward(gy_, x_, weight_, bias_, **way)
    pairs = zip(
        (*both, dx, *found),
        (y, p, wanted_x + before if accumulate else wanted_x, *wanted),
        strict=True,
    )
    for got, exact in pairs:
        # Sums of numbers of size 1 may cancel; their rounding errors do not.
        scale = max(float(exact.detach().norm()), exact.numel() ** 0.5)
        assert float((got.double() - exact.detach()).norm()) <= 1e-5 * scale


@pytest.mark.parametrize("reverse", [False, True])
def test_blocks_leave_no_seam(reverse, monkeypatch):
    monkeypatch.setenv("GENODIFF_SCAN", "torch")
    x, weight, bias, gy = (
        torch.randn(s, dtype=torch.float64) for s in ((2, 200, 3), (3, 4), (3,), (2, 200, 3))
    )

    def convolve(*inputs: Tensor) -> Tensor:
        return causal_conv1d(*inputs, reverse)

    whole = differentiate(convolve, (x, weight, bias), gy)
    monkeypatch.setattr(conv, "_NUMBERS", 3 * 70)
    assert len(conv._blocks(x)) == 3
    parts = differentiate(convolve, (x, weight, bias), gy)
    torch.testing.assert_close(whole, parts, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_low_precision_inputs_come_back_as_they_went(provider, monkeypatch):
    monkeypatch.setenv("GENODIFF_SCAN", provider)
    x, weight, bias = torch.randn(2, 30, 8), torch.randn(8, 4), torch.randn(8)
    low = x.bfloat16().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = causal_conv1d(low, weight, bias)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), causal_conv1d(x, weight, bias), rtol=0.05, atol=0.05)
    y.float().sum().backward()
    assert low.grad.dtype == torch.bfloat16  # type: ignore[union-attr]


def test_an_unknown_activation_is_refused():
    with pytest.raises(ValueError, match="gelu"):
        causal_conv1d(torch.zeros(1, 2, 3), torch.zeros(3, 4), activation="gelu")
