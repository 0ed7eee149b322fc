"""The bidirectional Mamba-1 mixer with shared projections, as one operation with its own backward.

    [x, z] = W_in h + b_in     c_d = silu(conv_d(x))     [r, B, C]_d = W_x,d c_d
    y_d = scan_d(c_d, W_dt,d r_d, A_d, B_d, C_d, D_d)
    out = W_out (silu(z) ⊙ Σ_d y_d)

`mixer_by_parts` is the definition, part by part under autograd. It runs wherever no fused version
can. Source: Gu and Dao, 2023, arXiv 2312.00752.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from genodiff.kernels import library
from genodiff.kernels.conv import causal_conv1d
from genodiff.kernels.direction import (
    DirectionState,
    DirectionWeights,
    join_weights,
    split_weights,
)
from genodiff.kernels.dispatch import Implementation, Operation, accept_all
from genodiff.kernels.gemm import linear
from genodiff.kernels.native.mixer import native_mixer
from genodiff.kernels.scan import selective_scan
from genodiff.kernels.triton import launch
from genodiff.kernels.triton.mixer import MOST_TAPS, triton_mixer

Weights = Sequence[Tensor | None]  # of all directions, from `join_weights`


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


def _run_by_parts(
    h: Tensor, in_weight: Tensor, in_bias: Tensor | None, out_weight: Tensor, mask: Tensor | None,
    reverse: tuple[bool, ...], weights: Weights, recompute: bool = False,
) -> Tensor:  # fmt: skip
    directions = split_weights(weights)
    return mixer_by_parts(h, in_weight, in_bias, out_weight, directions, reverse, mask)


def _triton_accepts(
    h: Tensor, in_weight: Tensor, in_bias: Tensor | None, out_weight: Tensor, mask: Tensor | None,
    reverse: tuple[bool, ...], weights: Weights, recompute: bool = False,
) -> bool:  # fmt: skip
    tensors, taps = (h, in_weight, in_bias, out_weight, mask, *weights), weights[0].shape[1]  # type: ignore[union-attr]
    return taps <= MOST_TAPS and launch.fits(*tensors, rows=len(h) * len(reverse))


def native_accepts(
    h: Tensor, in_weight: Tensor, in_bias: Tensor | None, out_weight: Tensor, mask: Tensor | None,
    reverse: tuple[bool, ...], weights: Weights, recompute: bool = False,
) -> bool:  # fmt: skip
    """Whether the fused version in C can take these arguments of `MIXER`."""
    # Under autocast products would be in its dtype, which the C library does not have.
    tensors = (h, in_weight, in_bias, out_weight, mask, *weights)
    return library.fits(*tensors) and not torch.is_autocast_enabled("cpu")


MIXER = Operation(
    Implementation("triton", triton_mixer, _triton_accepts),
    Implementation("native", native_mixer, native_accepts),
    Implementation("torch", _run_by_parts, accept_all),
    recorded=_run_by_parts,
)
