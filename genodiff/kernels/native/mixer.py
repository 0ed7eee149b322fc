"""The fused mixer in C, forward and backward. The equations are in `kernels/mixer.py`.

For the backward pass h, x and z, Σ_d y_d, [r, B, C]_d and the scans' chunk states are kept; the
convolutions are computed again. Two things never are in memory as a whole. The step sizes W_dt,d
r_d are computed inside the scan. What is gated is projected by W_out where the gate has just put
rows into the cache, and W_x,d is applied where the convolution has. No product is torch's: the bits
do not depend on the number of threads.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from genodiff.kernels.direction import DirectionWeights, ScanInputs, split_weights
from genodiff.kernels.native.conv import conv_backward, conv_forward
from genodiff.kernels.native.gate import gate_backward, gate_forward
from genodiff.kernels.native.linear import linear_backward, linear_forward
from genodiff.kernels.native.scan import LowRank, allocate_states, scan_backward, scan_forward


def native_mixer(
    h: Tensor, in_weight: Tensor, in_bias: Tensor | None, out_weight: Tensor, mask: Tensor | None,
    reverse: tuple[bool, ...], weights: Sequence[Tensor | None], recompute: bool = False,
) -> Tensor:  # fmt: skip
    """As `mixer`, for tensors that the library can take; `weights` is from `join_weights`.

    States are kept, whatever `recompute` says.
    """
    inputs = (h, in_weight, in_bias, out_weight, mask, *weights)
    keep = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs)
    out: Tensor = _Mixer.apply(h, in_weight, in_bias, out_weight, mask, reverse, keep, *weights)
    return out


def _contiguous(weights: Sequence[Tensor | None]) -> list[DirectionWeights]:
    return split_weights([None if x is None else x.contiguous() for x in weights])


class _Projected:
    """A direction's convolution and projections of x, in both passes: the inputs of its scan.

    `projected` is [r, B, C], (B, L, R + 2N), where the forward pass has kept it.
    """

    def __init__(
        self,
        weights: DirectionWeights,
        x: Tensor,
        reverse: bool,
        mask: Tensor | None,
        projected: Tensor | None = None,
    ) -> None:
        rank, self.n = weights.dt_weight.shape[1], weights.A.shape[1]
        into: dict[str, Tensor] = {}
        if projected is None:
            # Written in one pass with the convolution, while its outputs are in the cache.
            projected = x.new_empty(*x.shape[:2], len(weights.x_weight))
            into = {"v": weights.x_weight, "p": projected}
        self.projected = projected
        c = conv_forward(
            x, weights.conv_weight, weights.conv_bias, reverse=reverse, silu=True, **into
        )
        if mask is not None:
            c.mul_(mask)
            if into:
                projected.mul_(mask)
        r, B, C = projected.split([rank, self.n, self.n], -1)
        delta = LowRank(r, weights.dt_weight.t().contiguous())
        A = weights.A.t().contiguous()
        self.inputs = ScanInputs(c, delta, A, B, C, weights.D, weights.dt_bias)


class _Mixer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, h: Tensor, in_weight: Tensor, in_bias: Tensor | None, out_weight: Tensor,
        mask: Tensor | None, reverse: tuple[bool, ...], keep: bool, *weights: Tensor | None,
    ) -> Tensor:  # fmt: skip
        batch, length, _ = h.shape
        channels = out_weight.shape[1]
        xz = linear_forward(h.reshape(batch * length, -1).contiguous(), in_weight, in_bias)
        x, z = xz[:, :channels].unflatten(0, (batch, length)), xz[:, channels:]
        if mask is not None:
            x.mul_(mask)
        y, kept = h.new_empty(batch, length, channels), []
        for i, (direction, back) in enumerate(zip(_contiguous(weights), reverse, strict=True)):
            s = _Projected(direction, x, back, mask)
            states = allocate_states(x, s.n) if keep else None
            # The first direction writes y, the second adds to it.
            scan_forward(y, s.inputs, softplus=True, reverse=back, states=states, accumulate=i > 0)
            kept += [s.projected, states]
        out = gate_forward(y.view(batch * length, channels), z, out_weight)
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
        # The gradients of x and z are written into the two halves of one buffer: autograd would
        # fill two buffers with zeros and add them.
        dx, dz = dxz[:, :channels].unflatten(0, (batch, length)), dxz[:, channels:]
        gy, d_out_weight = gate_backward(g_out, y.view(tokens, channels), z, dz, out_weight)
        gy, grads = gy.view(y.shape), []
        for i, (direction, back) in enumerate(zip(_contiguous(weights), ctx.reverse, strict=True)):
            projected, states = kept[2 * i : 2 * i + 2]
            s = _Projected(direction, x, back, mask, projected)
            g = scan_backward(gy, s.inputs, states, softplus=True, reverse=back)
            assert isinstance(g.delta, LowRank)
            d_projected = torch.cat([g.delta.r, g.B, g.C], -1)
            if mask is not None:
                g.u.mul_(mask)
                d_projected.mul_(mask)
            conv = conv_backward(
                g.u, x, direction.conv_weight, direction.conv_bias, reverse=back, silu=True, dx=dx,
                accumulate=i > 0, v=direction.x_weight, gp=d_projected,
            )  # fmt: skip
            d_conv_bias = None if direction.conv_bias is None else conv.bias
            grads += [conv.weight, d_conv_bias, conv.v, g.delta.w.t(), g.bias, g.A.t(), g.D]
        if mask is not None:
            dx.mul_(mask)
        dh, d_in_weight, d_in_bias = linear_backward(
            dxz, h.reshape(tokens, -1).contiguous(), in_weight, in_bias
        )
        return dh.view(h.shape), d_in_weight, d_in_bias, d_out_weight, None, None, None, *grads
