"""The bidirectional Mamba-1 mixer with shared projections, as one operation with its own backward.

    [x, z] = W_in h + b_in     c_d = silu(conv_d(x))     [r, B, C]_d = W_x,d c_d
    y_d = scan_d(c_d, W_dt,d r_d, A_d, B_d, C_d, D_d)
    out = W_out (silu(z) ⊙ Σ_d y_d)

`mixer_by_parts` is the definition, part by part under autograd. It runs wherever no fused version
can. Source: Gu and Dao, 2023, arXiv 2312.00752.

In C the mixer is fused, forward and backward. For the backward pass h, x and z, Σ_d y_d, [r, B,
C]_d and the scans' chunk states are kept; the convolutions are computed again. Two things never are
in memory as a whole. The step sizes W_dt,d r_d are computed inside the scan. What is gated is
projected by W_out where the gate has just put rows into the cache, and W_x,d is applied where the
convolution has. No product is torch's: the bits do not depend on the number of threads.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.autograd.function import once_differentiable

from genodiff.kernels import library
from genodiff.kernels.conv import causal_conv1d, conv_backward, conv_forward
from genodiff.kernels.direction import (
    Blocks,
    DirectionState,
    DirectionWeights,
    LowRank,
    MixerInputs,
    ScanInputs,
    allocate_states,
    gate_backward,
    gate_forward,
    join_weights,
    scan_backward,
    scan_forward,
    split_weights,
    want_gradient,
)
from genodiff.kernels.dispatch import Implementation, Operation
from genodiff.kernels.gemm import linear
from genodiff.kernels.linear import linear_backward, linear_forward
from genodiff.kernels.scan import selective_scan
from genodiff.kernels.triton import launch
from genodiff.kernels.triton.mixer import MOST_TAPS, triton_mixer


def native_mixer(*given: Any) -> Tensor:
    """As `mixer`, or `mix_blocks`, of `MixerInputs` that the library can take.

    States are kept, whatever `recompute` says.
    """
    x = MixerInputs(*given)
    out: Tensor = _Mixer.apply(*x[:6], x.size, want_gradient(*x.tensors), *x.weights)
    return out


def _contiguous(weights: Sequence[Tensor | None]) -> list[DirectionWeights]:
    return split_weights([None if x is None else x.contiguous() for x in weights])


def join(
    noised: Shaped[Tensor, "B L *rest"], clean: Shaped[Tensor, "B L *rest"], size: int
) -> Shaped[Tensor, "B two_L *rest"]:
    """A row of two streams of blocks: z¹ x¹ z² x² …, each noised block before its clean one.

    The states of a scan or convolution before a noised block are then directly before it. L is a
    multiple of `size`.
    """
    both = [x.unflatten(1, (-1, size)) for x in (noised, clean)]
    return torch.stack(both, 2).flatten(1, 3)


def separate(
    x: Shaped[Tensor, "B two_L *rest"], size: int
) -> tuple[Shaped[Tensor, "B L *rest"], Shaped[Tensor, "B L *rest"]]:
    """(noised, clean)."""
    noised, clean = x.unflatten(1, (-1, 2, size)).unbind(2)
    return noised.flatten(1, 2), clean.flatten(1, 2)


def read_before(
    clean: Shaped[Tensor, "B L E"], size: int, known: int
) -> Shaped[Tensor, "B n known E"]:
    """The `known` inputs before each block, zeros before the first."""
    at = torch.arange(0, clean.shape[1], size, device=clean.device)[:, None]
    at = at + torch.arange(known, device=clean.device)
    before: Tensor = F.pad(clean, (0, 0, known, 0))[:, at]
    return before


class _Reading:
    """A direction's way through x, (B, L, E): each row as one sequence, or in blocks of `size`.

    Then a row has two streams, block after block (`kernels/blocks.py`). Ahead, the convolution
    reads the clean stream and, as another row, the noised blocks, each after the `known` clean
    inputs before it.
    """

    def __init__(self, weights: DirectionWeights, reverse: bool, size: int | None) -> None:
        self.weights, self.reverse, self.size = weights, reverse, size
        self.blocks = None if size is None else Blocks(size, 1 if reverse else 2)
        self.known = weights.conv_weight.shape[1] - 1

    def convolve(self, x: Tensor, project: bool) -> tuple[Tensor, Tensor | None]:
        """c and, where it is asked for, its projection."""
        w = self.weights
        convolve = partial(
            conv_forward, weight=w.conv_weight, bias=w.conv_bias, v=w.x_weight if project else None,
            reverse=self.reverse, silu=True,
        )  # fmt: skip
        if self.size is None or self.reverse:
            return convolve(x, block=self.size)
        noised, clean = separate(x, self.size)
        c, p = convolve(clean)
        c2, p2 = convolve(self._put_before(clean, noised), block=self.known + self.size)
        both = join(self._own(c2), c, self.size)
        return both, None if p is None or p2 is None else join(self._own(p2), p, self.size)

    def convolve_back(
        self, gc: Tensor, gp: Tensor, x: Tensor, dx: Tensor, accumulate: bool
    ) -> list[Tensor]:
        """The gradients of the weights; that of x is written to `dx`, or added."""
        w = self.weights
        convolve_back = partial(
            conv_backward, weight=w.conv_weight, bias=w.conv_bias, v=w.x_weight,
            reverse=self.reverse, silu=True,
        )  # fmt: skip
        if self.size is None or self.reverse:
            return convolve_back(gc, x, gp=gp, dx=dx, accumulate=accumulate, block=self.size)
        (noised, clean), (gc_noised, gc), (gp_noised, gp) = (
            separate(of, self.size) for of in (x, gc, gp)
        )
        wide, g_clean = self._put_before(clean, noised), torch.empty_like(clean)
        first = convolve_back(gc, clean, gp=gp, dx=g_clean)
        g_wide = torch.empty_like(wide)
        gc, gp = (self._put_before(None, of) for of in (gc_noised, gp_noised))
        second = convolve_back(gc, wide, gp=gp, dx=g_wide, block=self.known + self.size)
        for k in range(self.known):
            # Before block b stand the inputs at b size − known + k; those before the first are 0.
            at = torch.arange(0, clean.shape[1], self.size) + (k - self.known)
            inside = at >= 0
            g_clean.index_add_(1, at[inside], self._split(g_wide)[:, inside, k])
        both = join(self._own(g_wide), g_clean, self.size)
        dx.add_(both) if accumulate else dx.copy_(both)
        return [a + b for a, b in zip(first, second, strict=True)]

    def _put_before(self, clean: Tensor | None, x: Tensor) -> Tensor:
        """Blocks of x, each after what is clean before it, or zeros: (B, n (known + size), E)."""
        assert self.size is not None
        parts = x.unflatten(1, (-1, self.size))
        if clean is None:
            return F.pad(parts, (0, 0, self.known, 0)).flatten(1, 2)
        return torch.cat([read_before(clean, self.size, self.known), parts], 2).flatten(1, 2)

    def _split(self, wide: Tensor) -> Tensor:
        assert self.size is not None
        return wide.unflatten(1, (-1, self.known + self.size))

    def _own(self, wide: Tensor) -> Tensor:
        return self._split(wide)[:, :, self.known :].flatten(1, 2)


def _prepare_scan(
    way: _Reading, x: Tensor, mask: Tensor | None, projected: Tensor | None = None
) -> tuple[Tensor, ScanInputs]:
    """[r, B, C], (B, L, R + 2N), which a forward pass may have kept, and the inputs of the scan."""
    weights = way.weights
    rank, n = weights.dt_weight.shape[1], weights.A.shape[1]
    c, found = way.convolve(x, projected is None)
    if mask is not None:
        c.mul_(mask)
        if found is not None:
            found.mul_(mask)
    projected = found if projected is None else projected
    assert projected is not None
    r, B, C = projected.split([rank, n, n], -1)
    delta, A = LowRank(r, weights.dt_weight.t().contiguous()), weights.A.t().contiguous()
    return projected, ScanInputs(c, delta, A, B, C, weights.D, weights.dt_bias)


class _Mixer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, h: Tensor, in_weight: Tensor, in_bias: Tensor | None, out_weight: Tensor,
        mask: Tensor | None, reverse: tuple[bool, ...], size: int | None, keep: bool,
        *weights: Tensor | None,
    ) -> Tensor:  # fmt: skip
        batch, length, _ = h.shape
        channels = out_weight.shape[1]
        xz = linear_forward(h.reshape(batch * length, -1).contiguous(), in_weight, in_bias)
        x, z = xz[:, :channels].unflatten(0, (batch, length)), xz[:, channels:]
        if mask is not None:
            x.mul_(mask)
        y, kept = h.new_empty(batch, length, channels), []
        for i, (direction, back) in enumerate(zip(_contiguous(weights), reverse, strict=True)):
            way = _Reading(direction, back, size)
            projected, inputs = _prepare_scan(way, x, mask)
            states = allocate_states(inputs, way.blocks) if keep else None
            # The first direction writes y, the second adds to it.
            scan_forward(
                y, inputs, softplus=True, reverse=back, states=states, accumulate=i > 0,
                blocks=way.blocks,
            )  # fmt: skip
            kept += [projected, states]
        out = gate_forward(y.view(batch * length, channels), z, out_weight)
        ctx.save_for_backward(h, in_weight, in_bias, out_weight, mask, xz, y, *kept, *weights)
        ctx.reverse, ctx.size = reverse, size
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
            way = _Reading(direction, back, ctx.size)
            _, inputs = _prepare_scan(way, x, mask, projected)
            g = scan_backward(gy, inputs, states, softplus=True, reverse=back, blocks=way.blocks)
            assert isinstance(g.delta, LowRank)
            d_projected = torch.cat([g.delta.r, g.B, g.C], -1)
            if mask is not None:
                g.u.mul_(mask)
                d_projected.mul_(mask)
            d_conv, d_bias, d_x = way.convolve_back(g.u, d_projected, x, dx, i > 0)
            of_bias = None if direction.conv_bias is None else d_bias
            grads += [d_conv, of_bias, d_x, g.delta.w.t(), g.bias, g.A.t(), g.D]
        if mask is not None:
            dx.mul_(mask)
        dh, d_in_weight, d_in_bias = linear_backward(
            dxz, h.reshape(tokens, -1).contiguous(), in_weight, in_bias
        )
        return dh.view(h.shape), d_in_weight, d_in_bias, d_out_weight, *[None] * 4, *grads


def mixer(
    h: Float[Tensor, "B L D"],
    in_weight: Float[Tensor, "two_E D"],
    in_bias: Float[Tensor, " two_E"] | None,
    out_weight: Float[Tensor, "D E"],
    directions: Sequence[DirectionWeights],
    reverse: Sequence[bool],
    mask: Float[Tensor, "B L 1"] | None = None,
    recompute: bool = False,
) -> Float[Tensor, "B L D"]:
    """`out`, without a bias.

    `reverse` says of each direction whether it runs from right to left. `mask` is 0 on padding to
    the right of the sequences, which then has no influence. With `recompute` a GPU computes the
    scans' states again in the backward pass, and keeps about half as much for it.
    """
    weights = join_weights(directions)
    ways = tuple(reverse)
    out: Tensor = MIXER(h, in_weight, in_bias, out_weight, mask, ways, weights, recompute)
    return out


def mixer_by_parts(
    h: Float[Tensor, "B L D"],
    in_weight: Float[Tensor, "two_E D"],
    in_bias: Float[Tensor, " two_E"] | None,
    out_weight: Float[Tensor, "D E"],
    directions: Sequence[DirectionWeights],
    reverse: Sequence[bool],
    mask: Float[Tensor, "B L 1"] | None = None,
) -> Float[Tensor, "B L D"]:
    """As `mixer`, one operation after the other."""
    x, z = linear(h, in_weight, in_bias).chunk(2, -1)
    if mask is not None:
        x = x * mask
    first, *others = (
        scan_direction(x, weights, back, mask)
        for weights, back in zip(directions, reverse, strict=True)
    )
    return linear(sum(others, first) * F.silu(z), out_weight)


def scan_direction(
    x: Float[Tensor, "B L E"],
    weights: DirectionWeights,
    reverse: bool,
    mask: Float[Tensor, "B L 1"] | None = None,
) -> Float[Tensor, "B L E"]:
    """y_d of one direction, under autograd."""
    c = causal_conv1d(x, weights.conv_weight, weights.conv_bias, reverse)
    return scan_projected(c if mask is None else c * mask, weights, reverse)[0]


def scan_piece(
    x: Float[Tensor, "B L E"], weights: DirectionWeights, reverse: bool, before: DirectionState
) -> tuple[Float[Tensor, "B L E"], DirectionState]:
    """y_d of one direction on one piece of a sequence, and the state after the piece.

    `before` is the state before it: left of the piece, or with `reverse` right of it.
    """
    length, known = x.shape[1], before.inputs.shape[1]
    joined = torch.cat([x, before.inputs] if reverse else [before.inputs, x], 1)
    c = causal_conv1d(joined, weights.conv_weight, weights.conv_bias, reverse)
    # The outputs at the known inputs belong to the piece before.
    own = c[:, :length] if reverse else c[:, known:]
    y, state, _ = scan_projected(own, weights, reverse, before.state)
    return y, DirectionState(joined[:, :known] if reverse else joined[:, length:], state)


def scan_projected(
    c: Float[Tensor, "B L E"],
    weights: DirectionWeights,
    reverse: bool,
    h0: Float[Tensor, "B E N"] | None = None,
) -> tuple[Float[Tensor, "B L E"], Float[Tensor, "B E N"], Float[Tensor, "B L E"]]:
    """y_d, the last state, and the step sizes before their bias, of what the convolution gave."""
    rank, n = weights.dt_weight.shape[1], weights.A.shape[1]
    r, B, C = linear(c, weights.x_weight).split([rank, n, n], -1)
    delta = linear(r, weights.dt_weight)
    found = selective_scan(
        c, delta, weights.A, B, C, weights.D, delta_bias=weights.dt_bias, delta_softplus=True,
        reverse=reverse, h0=h0, return_state=True,
    )  # fmt: skip
    assert isinstance(found, tuple)
    return *found, delta


def _run_by_parts(*given: Any) -> Tensor:
    x = MixerInputs(*given)
    return mixer_by_parts(*x[:4], split_weights(x.weights), x.reverse, x.mask)


def _triton_accepts(*given: Any) -> bool:
    x = MixerInputs(*given)
    assert x.weights[0] is not None
    fits = launch.fits(*x.tensors, rows=len(x.h) * len(x.reverse))
    return fits and x.weights[0].shape[1] <= MOST_TAPS


def native_accepts(*given: Any) -> bool:
    """Whether the fused version in C can take these `MixerInputs`."""
    # Under autocast products would be in its dtype, which the C library does not have.
    return library.fits(*MixerInputs(*given).tensors) and not torch.is_autocast_enabled("cpu")


MIXER = Operation(
    Implementation("triton", triton_mixer, _triton_accepts),
    Implementation("native", native_mixer, native_accepts),
    Implementation("torch", _run_by_parts),
    recorded=_run_by_parts,
)
