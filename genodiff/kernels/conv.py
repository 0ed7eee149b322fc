"""The short causal convolution of a Mamba mixer, channels last: y_t = act(b + Σ_k w_k x_{t−K+1+k}).

With `reverse` it looks ahead instead of back, as if time were flipped before and after: y_t = act(b + Σ_k w_k x_{t+K−1−k}).
Worked on in blocks of time that fit a core's cache; only the inputs are saved, and the backward pass recomputes the rest.
"""

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from genodiff.kernels.native import native_conv, native_conv_fits
from genodiff.kernels.scan import chosen

_NUMBERS = 2**17  # numbers in a block


def causal_conv1d(
    x: Float[Tensor, "B L E"],
    weight: Float[Tensor, "E K"],
    bias: Float[Tensor, " E"] | None = None,
    reverse: bool = False,
    activation: str | None = "silu",
) -> Float[Tensor, "B L E"]:
    """Outputs, in the dtype of x; positions outside the sequence count as zero. `activation` is "silu" or None."""
    if activation not in ("silu", None):
        raise ValueError(f"activation is 'silu' or None, not {activation!r}")
    if chosen().name == "native" and native_conv_fits(x, weight, bias):
        return native_conv(x, weight, bias, reverse, activation == "silu")
    y: Tensor = _Conv.apply(x, weight, bias, reverse, activation == "silu")
    return y


def _blocks(x: Tensor) -> Iterator[tuple[int, int, int]]:
    """(row, first time, last time + 1) of every block."""
    batch, length, channels = x.shape
    steps = max(64, _NUMBERS // max(channels, 1))
    for row in range(batch):
        for start in range(0, length, steps):
            yield row, start, min(start + steps, length)


def _taps(width: int, reverse: bool, start: int, stop: int, length: int) -> Iterator[tuple[int, slice, slice]]:
    """(k, the outputs of a block that tap k reaches, counted from its start, the inputs that it takes there)."""
    for k in range(width):
        offset = width - 1 - k if reverse else k - width + 1
        low, high = max(start, -offset), min(stop, length - offset)
        if low < high:
            yield k, slice(low - start, high - start), slice(low + offset, high + offset)


def _before_activation(x: Tensor, taps: Tensor, bias: Tensor | None, spans: list[tuple[int, slice, slice]], steps: int) -> Tensor:
    y = taps.new_zeros(steps, taps.shape[1]) if bias is None else bias.expand(steps, -1).clone()
    for k, here, there in spans:
        y[here].addcmul_(x[there], taps[k])
    return y


class _Conv(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, reverse: bool, silu: bool) -> Tensor:
        ctx.save_for_backward(x, weight, bias)
        ctx.reverse, ctx.silu = reverse, silu
        taps, length = weight.t().contiguous(), x.shape[1]
        y = torch.empty_like(x, memory_format=torch.contiguous_format)
        for row, start, stop in _blocks(x):
            spans = list(_taps(len(taps), reverse, start, stop, length))
            out = _before_activation(x[row], taps, bias, spans, stop - start)
            y[row, start:stop] = F.silu(out, inplace=True) if silu else out
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias = ctx.saved_tensors
        taps, length = weight.t().contiguous(), x.shape[1]
        dx = torch.zeros(x.shape, dtype=taps.dtype, device=x.device)
        dtaps, dbias = torch.zeros_like(taps), torch.zeros_like(taps[0])
        for row, start, stop in _blocks(x):
            spans = list(_taps(len(taps), ctx.reverse, start, stop, length))
            g = gy[row, start:stop].to(taps.dtype)
            if ctx.silu:
                out = _before_activation(x[row], taps, bias, spans, stop - start)
                g = torch.ops.aten.silu_backward(g, out)
            ones = g.new_ones(1, stop - start)
            dbias += (ones @ g)[0]
            for k, here, there in spans:
                dx[row, there].addcmul_(g[here], taps[k])
                dtaps[k] += (ones[:, here] @ (g[here] * x[row, there]))[0]
        return dx.to(x.dtype), dtaps.t(), None if bias is None else dbias, None, None
