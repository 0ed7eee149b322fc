"""A mixer over two streams of blocks: the clean past, and each block after it.

    clean     x¹ … x^n          noised     z^b, which stands where x^b stood
    y of x^b  as of the whole clean stream
    y of z^b  as of x¹ … x^(b−1), z^b

A row has both, z¹ x¹ z² x² … (`mixer.join`). A block needs of its past the last inputs of the
convolution and the state of the scan. In C one scan reads a row: z^b from the state before it, then
x^b from the same state. Elsewhere the states before all blocks come from one call on all clean
blocks, each begun at zero, and a recurrence over them:

    h_(b+1) = P_b h_b + S_b        P_b = Π_t exp(Δ_t A) over block b, S_b its last state from zero

so the blocks of both streams are rows of the next call. Source: Arriola et al. 2025, arXiv
2503.09573 (block diffusion); the states take the place of its cache of keys and values.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from genodiff.kernels.conv import causal_conv1d
from genodiff.kernels.direction import (
    DirectionState,
    DirectionWeights,
    MixerInputs,
    join_weights,
    split_weights,
)
from genodiff.kernels.dispatch import Implementation, Operation
from genodiff.kernels.gemm import linear
from genodiff.kernels.mixer import (
    native_accepts,
    native_mixer,
    read_before,
    scan_direction,
    scan_piece,
    scan_projected,
    separate,
)


def mix_blocks(
    h: Float[Tensor, "B two_L D"],
    in_weight: Float[Tensor, "two_E D"],
    in_bias: Float[Tensor, " two_E"] | None,
    out_weight: Float[Tensor, "D E"],
    directions: Sequence[DirectionWeights],
    size: int,
    mask: Float[Tensor, "B two_L 1"] | None = None,
) -> Float[Tensor, "B two_L D"]:
    """A mixer's `out` (`kernels/mixer.py`) over rows of two streams.

    The first direction reads as `scan_blocks`, the second each block alone, from its right end.
    `mask` is 0 on padding at the end of each stream.
    """
    weights = join_weights(directions)
    given = in_weight, in_bias, out_weight, mask, (False, True), weights
    out: Tensor = BLOCK_MIXER(h, *given, False, size)
    return out


def _mix_by_parts(*given: Any) -> Tensor:
    of = MixerInputs(*given)
    assert of.size is not None
    ahead, back = split_weights(of.weights)
    x, z = linear(of.h, of.in_weight, of.in_bias).chunk(2, -1)
    x = x if of.mask is None else x * of.mask
    y = scan_blocks(x, ahead, of.size) + read_back(x, back, of.size, of.mask)
    return linear(y * F.silu(z), of.out_weight)


BLOCK_MIXER = Operation(
    Implementation("native", native_mixer, native_accepts),
    Implementation("torch", _mix_by_parts),
    recorded=_mix_by_parts,
)


def scan_blocks(
    x: Float[Tensor, "B two_L E"], weights: DirectionWeights, size: int
) -> Float[Tensor, "B two_L E"]:
    """y of a direction that runs to the right over rows of two streams in blocks of `size`."""
    before = find_states(separate(x, size)[1], weights, size)
    twice = DirectionState(*(part.repeat_interleave(2, 0) for part in before))
    y, _ = scan_piece(cut(x, size), weights, False, twice)
    return y.reshape(x.shape)


def read_back(
    x: Float[Tensor, "B two_L E"],
    weights: DirectionWeights,
    size: int,
    mask: Float[Tensor, "B two_L 1"] | None = None,
) -> Float[Tensor, "B two_L E"]:
    """y of a direction that runs to the left, in each block from zero."""
    own = None if mask is None else cut(mask, size)
    return scan_direction(cut(x, size), weights, True, own).reshape(x.shape)


def cut(x: Float[Tensor, "B L E"], size: int) -> Float[Tensor, "B_n size E"]:
    """The blocks as rows."""
    return x.reshape(-1, size, x.shape[-1])


def find_states(x: Float[Tensor, "B L E"], weights: DirectionWeights, size: int) -> DirectionState:
    """What stands before each block of x, (B n, …) in reading order, for a way to the right."""
    batch, length, channels = x.shape
    n, known = length // size, weights.conv_weight.shape[1] - 1
    inputs = read_before(x, size, known).flatten(0, 1)
    c = causal_conv1d(cut(x, size), weights.conv_weight, weights.conv_bias, before=inputs)
    _, last, delta = scan_projected(c, weights, False)
    steps = F.softplus(delta.to(last.dtype) + weights.dt_bias.to(last.dtype)).sum(1)
    kept = torch.exp(steps[..., None] * weights.A.to(last.dtype))
    shape = batch, n, channels, weights.A.shape[1]
    state = recur(kept.reshape(shape), last.reshape(shape))
    return DirectionState(inputs, state.flatten(0, 1))


def recur(kept: Float[Tensor, "B n E N"], last: Float[Tensor, "B n E N"]) -> Tensor:
    """h (B, n, E, N): h_0 = 0, h_(b+1) = kept_b h_b + last_b."""
    found: Tensor = _Recurrence.apply(kept, last)
    return found


def recur_naively(kept: Float[Tensor, "B n E N"], last: Float[Tensor, "B n E N"]) -> Tensor:
    """As `recur`, its definition, under autograd."""
    h = [torch.zeros_like(last[:, 0])]
    for b in range(last.shape[1] - 1):
        h.append(kept[:, b] * h[b] + last[:, b])
    return torch.stack(h, 1)


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, kept: Tensor, last: Tensor) -> Tensor:
        h = torch.zeros_like(last)
        for b in range(last.shape[1] - 1):
            torch.addcmul(last[:, b], kept[:, b], h[:, b], out=h[:, b + 1])
        ctx.save_for_backward(kept, h)
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        kept, h = ctx.saved_tensors
        of_last = torch.zeros_like(h)  # of block b: that of h_(b+1), all paths to the right in it
        for b in range(h.shape[1] - 2, -1, -1):
            torch.addcmul(g[:, b + 1], kept[:, b + 1], of_last[:, b + 1], out=of_last[:, b])
        return of_last * h, of_last
