"""A mixer's weights as its kernels take them, and their gradients as autograd takes them.

One launch packs the weights of both directions before the forward pass, and one sums and converts
the gradients at the end of the backward pass. Products have tensors of their own, which begin at
addresses that matrix units like. Where rows of E channels would not, the kernels are given more
channels, whose weights are zero: they stay zero, and their gradients are left out.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from genodiff.kernels.direction import DirectionWeights
from genodiff.kernels.triton.launch import kernels, use_device

_BLOCK = 512  # numbers that a program copies at a time
_SUMMED = 32  # channels of a program that sums, and rows that it loads at once
_PROGRAMS = 128  # most for each part
_GAP = 64  # numbers: parts of a buffer begin at multiples


class PackedWeights(NamedTuple):
    """The weights of all directions, side by side: (directions, ...). E is from `pad_channels`.

    Matrices of products are in the dtype of products, and everything else is float32.
    """

    conv: Tensor  # (n, E, K)
    conv_bias: Tensor  # (n, E)
    x: Tensor  # (n, R + 2N, E)
    dt: Tensor  # (n, E, R)
    A2: Tensor  # (n, N, E), A times log₂e
    D: Tensor  # (n, E)
    bias: Tensor  # (n, E)
    w_in: Tensor  # (2E, D)
    w_out: Tensor  # (D, E)


def pad_channels(channels: int, word: int) -> int:
    """Channels whose rows of numbers of `word` bytes begin at multiples of 16 bytes."""
    unit = 16 // word
    return -(-channels // unit) * unit


def _carve(shapes: list[tuple[int, ...]], like: Tensor, dtype: torch.dtype) -> list[Tensor]:
    """Tensors of these shapes in one buffer."""
    sizes = [torch.Size(shape).numel() for shape in shapes]
    spans = [-(-size // _GAP) * _GAP for size in sizes]
    flat = torch.empty(sum(spans), device=like.device, dtype=dtype)
    return [
        part[:size].view(shape)
        for part, size, shape in zip(flat.split(spans), sizes, shapes, strict=True)
    ]


def _grid(size: int, parts: int, block: int) -> tuple[int, int]:
    """Programs of a part of `size` numbers, and the parts."""
    return min(_PROGRAMS, -(-size // block)), parts


def pack_weights(
    directions: list[DirectionWeights], w_in: Tensor, w_out: Tensor, dtype: torch.dtype
) -> PackedWeights:
    """The weights of one direction or two, for products of this dtype."""
    n, first = len(directions), directions[0]
    (channels, K), (P, _) = first.conv_weight.shape, first.x_weight.shape
    N, R, width = first.A.shape[1], first.dt_weight.shape[1], len(w_out)
    wide = pad_channels(channels, dtype.itemsize)
    w_in, w_out = w_in.contiguous(), w_out.contiguous()
    given = [
        x.contiguous()
        for d in directions
        for x in (
            d.conv_weight, torch.zeros_like(d.D) if d.conv_bias is None else d.conv_bias,
            d.A, d.D, d.dt_bias, d.x_weight, d.dt_weight,
        )
    ]  # fmt: skip
    vectors = [(n, wide, K), (n, wide), (n, N, wide), (n, wide), (n, wide)]
    conv, conv_bias, A2, D, bias = _carve(vectors, w_in, torch.float32)
    matrices: list[tuple[int, ...]] = [(n, P, wide), (n, wide, R)]
    converted = w_in.dtype != dtype or w_out.dtype != dtype or wide != channels
    outer: list[tuple[int, ...]] = [(2 * wide, width), (width, wide)]
    x, dt, *shared = _carve(matrices + outer * converted, w_in, dtype)
    w_in_to, w_out_to = shared or (w_in, w_out)
    with use_device(w_in):
        kernels().pack_weights[_grid(max(2 * wide * width, P * wide), 2 + 7 * n, _BLOCK)](
            *given, *given[-7:] * (2 - n), w_in, w_out, conv, conv_bias, A2, D, bias, x, dt,
            w_in_to, w_out_to, channels, wide, width, P, R, N=N, K=K,
            CONVERTED=converted, BLOCK=_BLOCK, num_warps=1,
        )  # fmt: skip
    return PackedWeights(conv, conv_bias, x, dt, A2, D, bias, w_in_to, w_out_to)


class WeightGradients(NamedTuple):
    """The gradients of a mixer's weights before their sums: what `sum_gradients` takes."""

    A: Tensor  # (n · rows, segments, N, E), as of A, not of A2
    D: Tensor  # (n · rows, segments, E)
    bias: Tensor
    conv: Tensor  # (n · rows, pieces, K + 1, E), which ends with the bias
    x: Tensor  # (n, R + 2N, E)
    dt: Tensor  # (n, E, R)
    w_in: Tensor
    w_out: Tensor


def sum_gradients(g: WeightGradients, weights: PackedWeights, E: int) -> PackedWeights:
    """The gradients of the weights of E channels in float32.

    `A2` holds that of A, (n, E, N).
    """
    (n, wide, K), (_, N, _) = weights.conv.shape, weights.A2.shape
    (_, P, _), R, width = weights.x.shape, weights.dt.shape[2], len(weights.w_out)
    vectors: list[tuple[int, ...]] = [(n, E, K), (n, E), (n, E, N), (n, E), (n, E)]
    cast = g.w_in.dtype != torch.float32 or wide != E
    matrices: list[tuple[int, ...]] = [(n, P, E), (n, E, R), (2 * E, width), (width, E)] * cast
    conv, conv_bias, A, D, bias, *found = _carve([*vectors, *matrices], g.A, torch.float32)
    x, dt, w_in, w_out = found or (g.x, g.dt, g.w_in, g.w_out)
    scan_rows, conv_rows = (t.shape[0] // n * t.shape[1] for t in (g.A, g.conv))
    with use_device(g.A):
        kernels().sum_weights[_grid(N * wide, 2 + 6 * n, _SUMMED)](
            g.A, g.D, g.bias, g.conv, g.x, g.dt, g.w_in, g.w_out, A, D, bias, conv, conv_bias, x,
            dt, w_in, w_out, E, wide, width, P, R, scan_rows, conv_rows, N=N, K=K, CAST=cast,
            BLOCK=_BLOCK, BM=_SUMMED, BE=_SUMMED, num_warps=1,
        )  # fmt: skip
    return PackedWeights(conv, conv_bias, x, dt, A, D, bias, w_in, w_out)
