"""The bidirectional Mamba-1 mixer with shared projections, as one operation with its own backward.

    [x, z] = W_in h + b_in     c_d = silu(conv_d(x))     [r, B, C]_d = W_x,d c_d
    y_d = scan_d(c_d, W_dt,d r_d, A_d, B_d, C_d, D_d)
    out = W_out (silu(z) ⊙ Σ_d y_d)

`mixer_by_parts` is the definition, part by part under autograd; it runs wherever the fused version
cannot. That one keeps h, x and z, Σ_d y_d, [r, B, C]_d and the scans' chunk states. The step sizes
W_dt,d r_d are worked out inside the scan and never in memory, nor is what is gated: W_x,d and W_out
are applied, and their gradients summed, where the convolution and the gate have just put rows into
the cache. No product is torch's: the bits do not depend on the number of threads. The backward pass
recomputes the convolutions, and writes the gradients of x and z into one buffer. Source: Gu and
Dao, 2023, arXiv 2312.00752.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from genodiff.kernels import native
from genodiff.kernels.conv import causal_conv1d
from genodiff.kernels.gemm import linear
from genodiff.kernels.library import fits
from genodiff.kernels.scan import chosen, selective_scan
from genodiff.kernels.triton.mixer import fits as triton_fits
from genodiff.kernels.triton.mixer import triton_mixer


@dataclass(frozen=True)
class Reading:
    """The weights of one direction. A < 0; the rank R of the step sizes is `dt_weight`'s width."""

    conv_weight: Float[Tensor, "E K"]
    conv_bias: Float[Tensor, " E"] | None
    x_weight: Float[Tensor, "P E"]
    dt_weight: Float[Tensor, "E R"]
    dt_bias: Float[Tensor, " E"]
    A: Float[Tensor, "E N"]
    D: Float[Tensor, " E"]


_WEIGHTS = tuple(field.name for field in fields(Reading))


def mixer(
    h: Float[Tensor, "B L D"],
    in_weight: Float[Tensor, "two_E D"],
    in_bias: Float[Tensor, " two_E"] | None,
    out_weight: Float[Tensor, "D E"],
    readings: Sequence[Reading],
    reverse: Sequence[bool],
    mask: Float[Tensor, "B L 1"] | None = None,
) -> Float[Tensor, "B L D"]:
    """`out` without a bias. `reverse` says for each reading whether it goes from the right end to
    the left; `mask` is 0 on padding to the right of the sequences, which then has no influence.
    """
    weights = [getattr(reading, name) for reading in readings for name in _WEIGHTS]
    inputs = (h, in_weight, in_bias, out_weight, mask, *weights)
    autocast = torch.is_autocast_enabled(h.device.type)
    keep = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs)
    provider = chosen(device=h.device.type).name
    if provider == "triton" and triton_fits(*inputs):
        return triton_mixer(h, in_weight, in_bias, out_weight, mask, tuple(reverse), weights, keep)
    if provider not in ("native", "triton") or not fits(*inputs) or not h.numel() or autocast:
        return mixer_by_parts(h, in_weight, in_bias, out_weight, readings, reverse, mask)
    out: Tensor = _Mixer.apply(
        h, in_weight, in_bias, out_weight, mask, tuple(reverse), keep, *weights
    )
    return out


def mixer_by_parts(
    h: Float[Tensor, "B L D"],
    in_weight: Float[Tensor, "two_E D"],
    in_bias: Float[Tensor, " two_E"] | None,
    out_weight: Float[Tensor, "D E"],
    readings: Sequence[Reading],
    reverse: Sequence[bool],
    mask: Float[Tensor, "B L 1"] | None = None,
) -> Float[Tensor, "B L D"]:
    """As `mixer`, one operation after the other."""
    x, z = linear(h, in_weight, in_bias).chunk(2, -1)
    if mask is not None:
        x = x * mask
    first, *others = (
        read(x, reading, back, mask) for reading, back in zip(readings, reverse, strict=True)
    )
    return linear(sum(others, first) * F.silu(z), out_weight)


def read(
    x: Float[Tensor, "B L E"],
    reading: Reading,
    reverse: bool,
    mask: Float[Tensor, "B L 1"] | None = None,
) -> Float[Tensor, "B L E"]:
    """y_d of one direction, under autograd."""
    c = causal_conv1d(x, reading.conv_weight, reading.conv_bias, reverse)
    return _scan(c if mask is None else c * mask, reading, reverse)[0]


class Edge(NamedTuple):
    """What a direction carries from one piece of a sequence into the next: inputs of the
    convolution, state of the scan.
    """

    inputs: Tensor  # (B, K - 1, E)
    state: Tensor  # (B, E, N)


def no_edge(reading: Reading, batch: int = 1) -> Edge:
    """What comes into the first piece: nothing."""
    (channels, width), n = reading.conv_weight.shape, reading.A.shape[1]
    return Edge(
        reading.D.new_zeros(batch, width - 1, channels), reading.D.new_zeros(batch, channels, n)
    )


def carry(
    x: Float[Tensor, "B L E"], reading: Reading, reverse: bool, edge: Edge
) -> tuple[Float[Tensor, "B L E"], Edge]:
    """y_d of one direction on one piece of a sequence, and what it carries on in the direction of
    reading.
    """
    length, before = x.shape[1], edge.inputs.shape[1]
    joined = torch.cat([x, edge.inputs] if reverse else [edge.inputs, x], 1)
    c = causal_conv1d(joined, reading.conv_weight, reading.conv_bias, reverse)
    y, state = _scan(c[:, :length] if reverse else c[:, before:], reading, reverse, edge.state)
    return y, Edge(joined[:, :before] if reverse else joined[:, length:], state)


def _scan(
    c: Tensor, reading: Reading, reverse: bool, h0: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    rank, n = reading.dt_weight.shape[1], reading.A.shape[1]
    r, B, C = linear(c, reading.x_weight).split([rank, n, n], -1)
    found = selective_scan(
        c, linear(r, reading.dt_weight), reading.A, B, C, reading.D, delta_bias=reading.dt_bias,
        delta_softplus=True,
        reverse=reverse, h0=h0, return_state=True,
    )  # fmt: skip
    assert isinstance(found, tuple)
    return found


def _readings(weights: Sequence[Tensor | None]) -> list[Reading]:
    """The readings whose weights stand one after the other, each contiguous."""
    whole = [None if x is None else x.contiguous() for x in weights]
    return [Reading(*whole[i : i + len(_WEIGHTS)]) for i in range(0, len(whole), len(_WEIGHTS))]  # type: ignore[arg-type]


class _Inputs:
    """What a direction computes from x in both passes: the inputs of its scan."""

    def __init__(
        self,
        reading: Reading,
        x: Tensor,
        reverse: bool,
        mask: Tensor | None,
        projected: Tensor | None = None,
    ) -> None:
        rank, self.n = reading.dt_weight.shape[1], reading.A.shape[1]
        self.projected = (
            x.new_empty(*x.shape[:2], len(reading.x_weight)) if projected is None else projected
        )
        into = {"v": reading.x_weight, "p": self.projected} if projected is None else {}
        self.c = native.conv_forward(
            x, reading.conv_weight, reading.conv_bias, reverse=reverse, silu=True, **into
        )
        if mask is not None:
            self.c.mul_(mask)
            if projected is None:
                self.projected.mul_(mask)
        r, self.B, self.C = self.projected.split([rank, self.n, self.n], -1)
        self.delta = native.LowRank(r, reading.dt_weight.t().contiguous())


class _Mixer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, h: Tensor, in_weight: Tensor, in_bias: Tensor | None, out_weight: Tensor,
        mask: Tensor | None,
        reverse: tuple[bool, ...], keep: bool, *weights: Tensor | None,
    ) -> Tensor:  # fmt: skip
        batch, length, _ = h.shape
        channels = out_weight.shape[1]
        xz = native.linear_forward(h.reshape(batch * length, -1).contiguous(), in_weight, in_bias)
        x, z = xz[:, :channels].unflatten(0, (batch, length)), xz[:, channels:]
        if mask is not None:
            x.mul_(mask)
        y, kept = h.new_empty(batch, length, channels), []
        for i, (reading, back) in enumerate(zip(_readings(weights), reverse, strict=True)):
            s = _Inputs(reading, x, back, mask)
            states = native.new_states(x, s.n) if keep else None
            native.scan_forward(
                y, s.c, s.delta, reading.A.t().contiguous(), s.B, s.C, reading.D, reading.dt_bias,
                softplus=True, reverse=back, states=states, accumulate=i > 0,
            )  # fmt: skip
            kept += [s.projected, states]
        out = native.gate_forward(y.view(batch * length, channels), z, out_weight)
        ctx.save_for_backward(h, in_weight, in_bias, out_weight, mask, xz, y, *kept, *weights)
        ctx.reverse = reverse
        return out.view(h.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g_out: Tensor) -> tuple[Tensor | None, ...]:
        h, in_weight, in_bias, out_weight, mask, xz, y, *rest = ctx.saved_tensors
        kept, weights = rest[: 2 * len(ctx.reverse)], rest[2 * len(ctx.reverse) :]
        batch, length, channels = y.shape
        tokens = batch * length
        x, z = xz[:, :channels].unflatten(0, (batch, length)), xz[:, channels:]
        g_out, dxz = g_out.reshape(tokens, -1).contiguous(), torch.empty_like(xz)
        dx = dxz[:, :channels].unflatten(0, (batch, length))
        gy, d_out_weight = native.gate_backward(
            g_out, y.view(tokens, channels), z, dxz[:, channels:], out_weight
        )
        gy, grads = gy.view(y.shape), []
        for i, (reading, back) in enumerate(zip(_readings(weights), ctx.reverse, strict=True)):
            projected, states = kept[2 * i : 2 * i + 2]
            s = _Inputs(reading, x, back, mask, projected)
            g = native.scan_backward(
                gy,
                s.c,
                s.delta,
                reading.A.t().contiguous(),
                s.B,
                s.C,
                reading.D,
                reading.dt_bias,
                states,
                softplus=True,
                reverse=back,
            )
            assert isinstance(g.delta, native.LowRank)
            d_projected = torch.cat([g.delta.r, g.B, g.C], -1)
            if mask is not None:
                g.u.mul_(mask)
                d_projected.mul_(mask)
            of_conv = native.conv_backward(
                g.u, x, reading.conv_weight, reading.conv_bias, reverse=back, silu=True, dx=dx,
                accumulate=i > 0,
                v=reading.x_weight, gp=d_projected,
            )  # fmt: skip
            d_conv_bias = None if reading.conv_bias is None else of_conv.bias
            grads += [of_conv.weight, d_conv_bias, of_conv.v, g.delta.w.t(), g.bias, g.A.t(), g.D]
        if mask is not None:
            dx.mul_(mask)
        dh, d_in_weight, d_in_bias = native.linear_backward(
            dxz, h.reshape(tokens, -1).contiguous(), in_weight, in_bias
        )
        return dh.view(h.shape), d_in_weight, d_in_bias, d_out_weight, None, None, None, *grads
