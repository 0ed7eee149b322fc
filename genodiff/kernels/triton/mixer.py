"""The fused mixer on a GPU: products by torch; convolutions, scans and the gate by Triton.

The equations are in `kernels/mixer.py`. Under autocast, products and tensors are of its dtype, sums
and states float32. For the backward pass h, [x, z], Σ_d y_d, [r, B, C]_d and the scans' states are
kept. Convolutions and step sizes are computed again; dx and dz are written into one buffer.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from genodiff.kernels.direction import DirectionWeights, join_weights, split_weights
from genodiff.kernels.triton.launch import kernels, use_device
from genodiff.kernels.triton.scan import pack_channels, scan_backward, scan_forward

_PIECES = 64  # most shares of a row in the gradients of the convolution's weights


def compute_dtype(h: Tensor) -> torch.dtype:
    """The dtype of products and of what is kept."""
    return (
        torch.get_autocast_dtype(h.device.type)
        if torch.is_autocast_enabled(h.device.type)
        else h.dtype
    )


def _blocks(length: int, channels: int) -> tuple[int, int, tuple[int, int]]:
    """Times and channels of a program of the elementwise kernels, and the number of programs."""
    if kernels().interpreted:
        BT, BE = 8, 8
    else:
        BT, BE = 32, 64
    return BT, BE, (-(-length // BT), -(-channels // BE))


def conv_forward(x: Tensor, weight: Tensor, bias: Tensor, reverse: bool) -> Tensor:
    """silu of the convolution, (B, L, E) contiguous, of x with channels side by side."""
    rows, length, channels = x.shape
    y = torch.empty(x.shape, device=x.device, dtype=x.dtype)
    BT, BE, grid = _blocks(length, channels)
    kernels().conv_forward[(*grid, rows)](
        x, weight, bias, y, length, channels, x.stride(0), x.stride(1), K=weight.shape[1],
        REVERSE=reverse, BT=BT, BE=BE
    )  # fmt: skip
    return y


def conv_backward(
    dy: Tensor, x: Tensor, weight: Tensor, bias: Tensor, reverse: bool, dx: Tensor, onto: bool
) -> tuple[Tensor, Tensor]:
    """The gradients of weight and bias, float32; that of x goes to dx, or is added to it. dy is
    contiguous.
    """
    (rows, length, channels), K = x.shape, weight.shape[1]
    BT, BE, grid = _blocks(length, channels)
    tiles = -(-grid[0] // _PIECES)
    pieces = -(-grid[0] // tiles)
    dz, dw = torch.empty_like(dy), torch.zeros(rows, pieces, K + 1, channels, device=x.device)
    kernels().conv_slope[(pieces, grid[1], rows)](
        x, weight, bias, dy, dz, dw, length, channels, tiles, x.stride(0), x.stride(1), K=K,
        REVERSE=reverse, BT=BT, BE=BE
    )  # fmt: skip
    kernels().conv_backward[(*grid, rows)](
        dz, weight, dx, length, channels, dx.stride(0), dx.stride(1), K=K, REVERSE=reverse,
        ONTO=onto, BT=BT, BE=BE
    )  # fmt: skip
    sums = dw.sum((0, 1))
    return sums[:-1].t(), sums[-1]


def triton_mixer(
    h: Tensor, in_weight: Tensor, in_bias: Tensor | None, out_weight: Tensor, mask: Tensor | None,
    reverse: tuple[bool, ...], weights: Sequence[Tensor | None],
) -> Tensor:  # fmt: skip
    """As `mixer`, for tensors that the kernels can take; `weights` is from `join_weights`."""
    inputs = (h, in_weight, in_bias, out_weight, mask, *weights)
    keep = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs)
    out: Tensor = _Mixer.apply(
        h, in_weight, in_bias, out_weight, mask, reverse, keep, compute_dtype(h), *weights
    )
    return out


class _Conv(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, reverse: bool) -> Tensor:
        x = pack_channels(x)
        own = [
            weight.contiguous(),
            weight.new_zeros(len(weight)) if bias is None else bias.contiguous(),
        ]
        ctx.save_for_backward(x, *own)
        ctx.reverse, ctx.bias = reverse, bias is not None
        with use_device(x):
            return conv_forward(x, own[0], own[1], reverse)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias = ctx.saved_tensors
        dx = torch.empty(x.shape, device=x.device, dtype=x.dtype)
        with use_device(x):
            dw, db = conv_backward(gy.contiguous(), x, weight, bias, ctx.reverse, dx, False)
        return dx, dw.to(weight.dtype), db.to(bias.dtype) if ctx.bias else None, None


def triton_conv(
    x: Tensor, weight: Tensor, bias: Tensor | None, reverse: bool, activation: str | None = "silu"
) -> Tensor:
    """As `causal_conv1d` with a silu, for tensors that the kernels can take; differentiable."""
    assert activation == "silu"
    y: Tensor = _Conv.apply(x, weight, bias, reverse)
    return y


class _ScanInputs:
    """What a direction computes from x in both passes: the inputs of its scan."""

    def __init__(
        self,
        weights: DirectionWeights,
        x: Tensor,
        reverse: bool,
        mask: Tensor | None,
        projected: Tensor | None,
    ) -> None:
        (rows, length, channels), dtype = x.shape, x.dtype
        conv_bias = weights.conv_bias
        self.conv_weight = weights.conv_weight.contiguous()
        self.conv_bias = (
            self.conv_weight.new_zeros(channels) if conv_bias is None else conv_bias.contiguous()
        )
        self.x_weight, self.dt_weight = weights.x_weight.to(dtype), weights.dt_weight.to(dtype)
        self.A, self.D, self.bias = weights.A, weights.D, weights.dt_bias
        self.rank, self.n = self.dt_weight.shape[1], self.A.shape[1]
        self.c = conv_forward(x, self.conv_weight, self.conv_bias, reverse)
        if mask is not None:
            self.c.mul_(mask)
        self.flat = self.c.view(rows * length, channels)
        self.projected = self.flat @ self.x_weight.t() if projected is None else projected
        self.r = self.projected[:, : self.rank]
        self.delta = (self.r @ self.dt_weight.t()).view(x.shape)
        self.B, self.C = self.split_states(self.projected, x.shape)

    def split_states(self, projected: Tensor, shape: torch.Size) -> tuple[Tensor, Tensor]:
        """The parts of (tokens, R + 2N) that belong to B and C, as (rows, L, N)."""
        B, C = (part.unflatten(0, shape[:2]) for part in projected[:, self.rank :].split(self.n, 1))
        return B, C


class _Mixer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, h: Tensor, in_weight: Tensor, in_bias: Tensor | None, out_weight: Tensor,
        mask: Tensor | None, reverse: tuple[bool, ...], keep: bool, dtype: torch.dtype,
        *weights: Tensor | None,
    ) -> Tensor:  # fmt: skip
        with torch.autocast(h.device.type, enabled=False), use_device(h):
            (rows, length, _), channels = h.shape, out_weight.shape[1]
            ctx.dtype, flat = h.dtype, h.to(dtype).reshape(rows * length, -1)
            w_in = in_weight.to(dtype).t()
            xz = flat @ w_in if in_bias is None else torch.addmm(in_bias.to(dtype), flat, w_in)
            x, z = xz[:, :channels].unflatten(0, (rows, length)), xz[:, channels:]
            m = None if mask is None else mask.to(dtype)
            if m is not None:
                x.mul_(m)
            y, kept = None, []
            for direction, back in zip(split_weights(weights), reverse, strict=True):
                s = _ScanInputs(direction, x, back, m, None)
                y, states = scan_forward(
                    s.c, s.delta, s.A, s.B, s.C, s.D, s.bias, softplus=True, reverse=back,
                    keep=keep, onto=y,
                )  # fmt: skip
                kept += [s.projected, states]
            assert y is not None
            gated = torch.empty(rows * length, channels, device=h.device, dtype=dtype)
            BT, BE, grid = _blocks(rows * length, channels)
            kernels().gate_forward[grid](
                y, z, gated, rows * length, channels, z.stride(0), BT=BT, BE=BE
            )
            out = (gated @ out_weight.to(dtype).t()).view(h.shape)
            if keep:
                ctx.save_for_backward(
                    flat, in_weight, in_bias, out_weight, m, xz, y, *kept, *weights
                )
            ctx.reverse = reverse
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g_out: Tensor) -> tuple[Tensor | None, ...]:
        flat, in_weight, in_bias, out_weight, mask, xz, y, *rest = ctx.saved_tensors
        kept, weights = rest[: 2 * len(ctx.reverse)], rest[2 * len(ctx.reverse) :]
        with torch.autocast(flat.device.type, enabled=False), use_device(flat):
            (rows, length, channels), dtype = y.shape, xz.dtype
            tokens = rows * length
            x, z = xz[:, :channels].unflatten(0, (rows, length)), xz[:, channels:]
            g_out, dxz = g_out.to(dtype).reshape(tokens, -1), torch.empty_like(xz)
            dx, dz = dxz[:, :channels].unflatten(0, (rows, length)), dxz[:, channels:]
            g, gated, gy = g_out @ out_weight.to(dtype), torch.empty_like(y), torch.empty_like(y)
            BT, BE, grid = _blocks(tokens, channels)
            kernels().gate_backward[grid](
                g, y, z, gated, gy, dz, tokens, channels, z.stride(0), dz.stride(0), BT=BT, BE=BE
            )
            d_out_weight, grads = g_out.t() @ gated.view(tokens, channels), []
            for i, (direction, back) in enumerate(
                zip(split_weights(weights), ctx.reverse, strict=True)
            ):
                projected, states = kept[2 * i : 2 * i + 2]
                s = _ScanInputs(direction, x, back, mask, projected)
                d_projected = torch.empty_like(projected)
                g = scan_backward(
                    gy, s.c, s.delta, s.A, s.B, s.C, s.D, s.bias, states, softplus=True,
                    reverse=back, to=s.split_states(d_projected, y.shape),
                )  # fmt: skip
                ddelta = g.delta.view(tokens, channels)
                torch.mm(ddelta, s.dt_weight, out=d_projected[:, : s.rank])
                dc = g.u.view(tokens, channels).addmm_(d_projected, s.x_weight).view(x.shape)
                if mask is not None:
                    dc.mul_(mask)
                d_conv, d_bias = conv_backward(dc, x, s.conv_weight, s.conv_bias, back, dx, i > 0)
                d_x_weight, d_dt_weight = d_projected.t() @ s.flat, ddelta.t() @ s.r
                found = [d_conv, d_bias, d_x_weight, d_dt_weight, g.bias, g.A, g.D]
                grads += [
                    None if w is None else gradient.to(w.dtype)
                    for gradient, w in zip(found, join_weights([direction]), strict=True)
                ]
            if mask is not None:
                dx.mul_(mask)
            dh = (dxz @ in_weight.to(dtype)).view(*y.shape[:2], -1)
            d_in_weight, d_in_bias = dxz.t() @ flat, None
            if in_bias is not None:
                d_in_bias = dxz.sum(0, dtype=torch.float32).to(in_bias.dtype)
        return (
            dh.to(ctx.dtype), d_in_weight.to(in_weight.dtype), d_in_bias,
            d_out_weight.to(out_weight.dtype), None, None, None, None, *grads
        )  # fmt: skip
