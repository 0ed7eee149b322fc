"""One direction of a mixer over two streams of blocks: the clean past, and each block after it.

    clean     x¹ … x^n          noised     z^b, which stands where x^b stood
    y of x^b  as of the whole clean stream
    y of z^b  as of x¹ … x^(b−1), z^b

A block needs of its past the last inputs of the convolution and the state of the scan. The states
before all blocks come from one call on all blocks, each begun at zero, and a recurrence over them:

    h_(b+1) = P_b h_b + S_b        P_b = Π_t exp(Δ_t A) over block b, S_b its last state from zero

so the blocks of both streams are rows of the next call. Source: Arriola et al. 2025, arXiv
2503.09573 (block diffusion); the states take the place of its cache of keys and values.
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from genodiff.kernels.conv import causal_conv1d
from genodiff.kernels.direction import DirectionState, DirectionWeights
from genodiff.kernels.mixer import scan_piece, scan_projected


def scan_blocks(
    x: Float[Tensor, "two_B L E"], weights: DirectionWeights, size: int
) -> Float[Tensor, "two_B L E"]:
    """y of a direction that runs to the right; `x` holds the clean rows, then the noised ones.

    L is a multiple of `size`, the length of a block.
    """
    clean = x[: len(x) // 2]
    before = find_states(clean, weights, size)
    twice = DirectionState(*(torch.cat([part, part]) for part in before))
    y, _ = scan_piece(cut(x, size), weights, False, twice)
    return y.reshape(x.shape)


def cut(x: Float[Tensor, "B L E"], size: int) -> Float[Tensor, "B_n size E"]:
    """The blocks as rows."""
    return x.reshape(-1, size, x.shape[-1])


def find_states(x: Float[Tensor, "B L E"], weights: DirectionWeights, size: int) -> DirectionState:
    """What stands before each block of x, (B n, …) in reading order, for a way to the right."""
    batch, length, channels = x.shape
    n, known = length // size, weights.conv_weight.shape[1] - 1
    # n + 1 stretches of `known` inputs: one ends where each block begins, the last where x ends.
    at = torch.arange(0, length, size, device=x.device)[:, None]
    at = at + torch.arange(known, device=x.device)
    inputs = F.pad(x, (0, 0, known, 0))[:, at].flatten(0, 1)
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
