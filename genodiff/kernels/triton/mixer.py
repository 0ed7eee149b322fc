"""The fused mixer on a GPU: products by torch; convolutions, scans and the gate by Triton.

The equations are in `kernels/mixer.py`. Under autocast, products and tensors are of its dtype, sums
and states float32. For the backward pass h, [x, z], Σ_d y_d, [r, B, C]_d and the scans' states are
kept. Convolutions and step sizes are computed again; dx and dz are written into one buffer. With
`recompute` the states are computed again too, for a layer at a time: they are a quarter of what is
kept.

The weights are packed by one kernel, and their gradients summed by one (`weights.py`). Rows of
channels begin at multiples of 16 bytes: there may be some channels more, which are zero.

Both directions go through each kernel together, as two groups of rows. Half as many launches fill
the machine twice as well.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from genodiff.kernels.direction import MixerInputs, ScanInputs, split_weights, want_gradient
from genodiff.kernels.triton.launch import kernels, use_device
from genodiff.kernels.triton.scan import pack_channels, scan_backward, scan_forward
from genodiff.kernels.triton.weights import (
    PackedWeights,
    WeightGradients,
    pack_weights,
    sum_gradients,
)

MOST_TAPS = 4  # of a filter: `conv_slope` names each
# Tiles of a share of a row in the gradients of the convolution's weights, and most shares.
_TILES, _PIECES = 8, 256


def compute_dtype(h: Tensor) -> torch.dtype:
    """The dtype of products and of what is kept."""
    kind = h.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else h.dtype


def _blocks(length: int, channels: int) -> tuple[int, int, tuple[int, int]]:
    """Times and channels of a program of the elementwise kernels, and the number of programs."""
    BT, BE = (8, 8) if kernels().interpreted else (32, 64)
    return BT, BE, (-(-length // BT), -(-channels // BE))


def _mark_ways(reverse: tuple[bool, ...]) -> int:
    """The directions that read from right to left, as bits."""
    return sum(1 << i for i, back in enumerate(reverse) if back)


def conv_forward(
    x: Tensor, weight: Tensor, bias: Tensor, reverse: tuple[bool, ...], ordered: bool
) -> Tensor:
    """silu of the convolutions, (directions · B, L, E), of x (B, L, E) with channels side by side.

    weight is (directions, E, K), bias (directions, E). With `ordered`, each direction's outputs are
    in the order in which it reads.
    """
    rows, length, channels = x.shape
    y = torch.empty(len(reverse) * rows, length, channels, device=x.device, dtype=x.dtype)
    BT, BE, grid = _blocks(length, channels)
    kernels().conv_forward[(*grid, len(y))](
        x, weight, bias, y, length, channels, rows, _mark_ways(reverse), x.stride(0), x.stride(1),
        K=weight.shape[2], ORDERED=ordered, BT=BT, BE=BE
    )  # fmt: skip
    return y


def conv_backward(
    dy: Tensor, x: Tensor, weight: Tensor, bias: Tensor, reverse: tuple[bool, ...], ordered: bool,
    dx: Tensor,
) -> Tensor:  # fmt: skip
    """The gradients of the taps, then of the bias, in shares (directions · B, pieces, K + 1, E).

    They are float32, to be summed over rows and pieces. That of x goes to dx. dy is contiguous.
    """
    (rows, length, channels), (n, _, K) = x.shape, weight.shape
    BT, BE, grid = _blocks(length, channels)
    # Half of a tile at a time: with a whole one all registers are taken, and some spill.
    ways, half = _mark_ways(reverse), BT // 2
    halves = -(-length // half)
    tiles = max(_TILES, -(-halves // _PIECES))
    pieces = -(-halves // tiles)
    dz = torch.empty_like(dy)
    dw = torch.empty(len(dy), pieces, K + 1, channels, device=x.device, dtype=torch.float32)
    kernels().conv_slope[(pieces, grid[1], len(dy))](
        x, weight, bias, dy, dz, dw, length, channels, rows, ways, tiles, x.stride(0),
        x.stride(1), K=K, ORDERED=ordered, BT=half, BE=BE
    )  # fmt: skip
    kernels().conv_backward[(halves, grid[1], rows)](
        dz, weight, dx, length, channels, rows, ways, dx.stride(0), dx.stride(1), DIRECTIONS=n,
        K=K, ORDERED=ordered, BT=half, BE=BE
    )  # fmt: skip
    return dw


def triton_mixer(*given: Any) -> Tensor:
    """As `mixer`, of `MixerInputs` that the kernels can take."""
    x = MixerInputs(*given)
    keep, dtype = want_gradient(*x.tensors), compute_dtype(x.h)
    out: Tensor = _Mixer.apply(*x[:6], keep, x.recompute, dtype, *x.weights)
    return out


class TritonConv(torch.autograd.Function):
    """As `causal_conv1d` with a silu, for tensors that the kernels can take."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        reverse: bool,
        activation: str | None,
    ) -> Tensor:
        x = pack_channels(x)
        own = [
            weight.contiguous()[None],
            (weight.new_zeros(len(weight)) if bias is None else bias.contiguous())[None],
        ]
        ctx.save_for_backward(x, *own)
        ctx.reverse, ctx.bias = (reverse,), bias is not None
        with use_device(x):
            return conv_forward(x, own[0], own[1], ctx.reverse, ordered=False)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias = ctx.saved_tensors
        dx = torch.empty(x.shape, device=x.device, dtype=x.dtype)
        with use_device(x):
            shares = conv_backward(gy.contiguous(), x, weight, bias, ctx.reverse, False, dx)
        sums = shares.sum((0, 1))
        dw, db = sums[:-1].t().to(weight.dtype), sums[-1].to(bias.dtype)
        return dx, dw, db if ctx.bias else None, None, None


class _Projected:
    """The directions' convolutions and projections of x, in both passes: the inputs of their scans.

    Each direction is a group of rows, in the order in which it reads.
    """

    def __init__(
        self,
        weights: PackedWeights,
        x: Tensor,
        reverse: tuple[bool, ...],
        mask: Tensor | None,
        projected: Tensor | None,
    ) -> None:
        n = len(reverse)
        self.rank, self.n = weights.dt.shape[2], weights.A2.shape[1]
        self.c = conv_forward(x, weights.conv, weights.conv_bias, reverse, ordered=True)
        if mask is not None:
            self.c.mul_(mask)
        self.flat = self.c.view(n, -1, x.shape[2])
        self.projected = (
            torch.bmm(self.flat, weights.x.transpose(1, 2)) if projected is None else projected
        )
        self.r = self.projected[..., : self.rank]
        delta = torch.bmm(self.r, weights.dt.transpose(1, 2)).view(self.c.shape)
        B, C = self.split_states(self.projected)
        self.inputs = ScanInputs(self.c, delta, weights.A2, B, C, weights.D, weights.bias)

    def split_states(self, projected: Tensor) -> tuple[Tensor, Tensor]:
        """The parts of (directions, tokens, R + 2N) that belong to B and C, as (rows, L, N)."""
        rows = projected.view(*self.c.shape[:2], -1)
        B, C = rows[..., self.rank :].split(self.n, 2)
        return B, C


def _order(mask: Tensor | None, reverse: tuple[bool, ...]) -> Tensor | None:
    """A mask (B, L, 1) of all directions' rows, each in the order in which it reads."""
    if mask is None:
        return None
    return torch.cat([mask.flip(1) if back else mask for back in reverse])


def _widen(bias: Tensor, channels: int) -> Tensor:
    """The bias (2E) of [x, z] for so many channels."""
    lacking = channels - len(bias) // 2
    return F.pad(bias.view(2, -1), (0, lacking)).flatten() if lacking else bias


class _Mixer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, h: Tensor, in_weight: Tensor, in_bias: Tensor | None, out_weight: Tensor,
        mask: Tensor | None, reverse: tuple[bool, ...], keep: bool, recompute: bool,
        dtype: torch.dtype, *weights: Tensor | None,
    ) -> Tensor:  # fmt: skip
        with torch.autocast(h.device.type, enabled=False), use_device(h):
            rows, length, _ = h.shape
            ctx.dtype, flat = h.dtype, h.to(dtype).reshape(rows * length, -1)
            w = pack_weights(split_weights(weights), in_weight, out_weight, dtype)
            channels, ctx.channels = w.w_out.shape[1], out_weight.shape[1]
            xz = (
                flat @ w.w_in.t()
                if in_bias is None
                else torch.addmm(_widen(in_bias.to(dtype), channels), flat, w.w_in.t())
            )
            x, z = xz[:, :channels].unflatten(0, (rows, length)), xz[:, channels:]
            m = None if mask is None else mask.to(dtype)
            if m is not None:
                x.mul_(m)
            s = _Projected(w, x, reverse, _order(m, reverse), None)
            keep_states = keep and not recompute
            y, _, kept = scan_forward(s.inputs, softplus=True, reverse=False, keep=keep_states)
            gated = torch.empty(x.shape, device=h.device, dtype=dtype)
            total = torch.empty_like(gated) if keep else gated
            BT, BE, grid = _blocks(length, channels)
            kernels().gate_forward[(*grid, rows)](
                y, z, total, gated, length, channels, rows, _mark_ways(reverse), z.stride(0),
                KEEP=keep, DIRECTIONS=len(reverse), BT=BT, BE=BE
            )  # fmt: skip
            out = (gated.view(rows * length, channels) @ w.w_out.t()).view(h.shape)
            if keep:
                ctx.save_for_backward(flat, m, xz, total, s.projected, kept, *w)
            ctx.reverse = reverse
            given = (in_weight, in_bias, out_weight, *weights)
            ctx.dtypes = [None if w is None else w.dtype for w in given]
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g_out: Tensor) -> tuple[Tensor | None, ...]:
        flat, mask, xz, total, projected, kept, *packed = ctx.saved_tensors
        w, (of_in, of_bias, of_out, *dtypes) = PackedWeights(*packed), ctx.dtypes
        with torch.autocast(flat.device.type, enabled=False), use_device(flat):
            (rows, length, channels), dtype, n = total.shape, xz.dtype, len(ctx.reverse)
            tokens = rows * length
            x, z = xz[:, :channels].unflatten(0, (rows, length)), xz[:, channels:]
            g_out, dxz = g_out.to(dtype).reshape(tokens, -1), torch.empty_like(xz)
            dx, dz = dxz[:, :channels].unflatten(0, (rows, length)), dxz[:, channels:]
            g, gated = g_out @ w.w_out, torch.empty_like(total)
            gy = torch.empty(n * rows, length, channels, device=xz.device, dtype=dtype)
            BT, BE, grid = _blocks(length, channels)
            kernels().gate_backward[(*grid, rows)](
                g, total, z, gated, gy, dz, length, channels, rows, _mark_ways(ctx.reverse),
                z.stride(0), dz.stride(0), DIRECTIONS=n, BT=BT, BE=BE
            )  # fmt: skip
            d_out_weight = g_out.t() @ gated.view(tokens, channels)
            del g, gated  # the scans need most memory
            m = _order(mask, ctx.reverse)
            s = _Projected(w, x, ctx.reverse, m, projected)
            d_projected = torch.empty_like(projected)
            if kept is None:
                flags = dict(softplus=True, reverse=False, keep=True)
                kept = scan_forward(s.inputs, **flags, output=False)[2]
            found = scan_backward(
                gy, s.inputs, kept, softplus=True, reverse=False,
                to=s.split_states(d_projected), over=True,
            )  # fmt: skip
            del kept
            ddelta = found.delta.view(n, tokens, channels)
            torch.bmm(ddelta, w.dt, out=d_projected[..., : s.rank])
            dc = found.u.view(n, tokens, channels).baddbmm_(d_projected, w.x).view(s.c.shape)
            if m is not None:
                dc.mul_(m)
            d_conv = conv_backward(dc, x, w.conv, w.conv_bias, ctx.reverse, True, dx)
            if mask is not None:
                dx.mul_(mask)
            d_in_bias = None
            if of_bias is not None:
                d_in_bias = dxz.sum(0, dtype=torch.float32).view(2, channels)
                d_in_bias = d_in_bias[:, : ctx.channels].flatten().to(of_bias)
            assert found.D is not None
            assert found.bias is not None
            parts = WeightGradients(
                found.A, found.D, found.bias, d_conv,
                torch.bmm(d_projected.transpose(1, 2), s.flat),
                torch.bmm(ddelta.transpose(1, 2), s.r),
                dxz.t() @ flat, d_out_weight,
            )  # fmt: skip
            sums = sum_gradients(parts, w, ctx.channels)
            # In the order of `DirectionWeights`.
            by_name = (
                sums.conv, sums.conv_bias, sums.x, sums.dt, sums.bias, sums.A2, sums.D
            )  # fmt: skip
            grads = [
                None if of is None else gradient[i].to(of)
                for i in range(n)
                for of, gradient in zip(dtypes, by_name, strict=False)
            ]
            dh = (dxz @ w.w_in).view(rows, length, -1)
        return (
            dh.to(ctx.dtype), sums.w_in.to(of_in), d_in_bias, sums.w_out.to(of_out),
            None, None, None, None, None, *grads
        )  # fmt: skip
