"""Triton kernels around a mixer's weights: one packs them for a pass, one sums their gradients.

They take the place of some 25 small launches a layer. A program works on one part, named by the
second axis of the grid.
"""
# mypy: ignore-errors

from typing import no_type_check

import triton
import triton.language as tl

from genodiff.kernels.triton.tiles import LOG2E


@triton.jit
@no_type_check
def _copy(x, to, rows, of, into, BLOCK: tl.constexpr):
    """Copy x (rows, of) to (rows, into), in the dtype of `to`: cut, or filled up with zeros."""
    size = rows * into
    step = tl.num_programs(0) * BLOCK
    for start in range(tl.program_id(0) * BLOCK, size, step):
        i = start + tl.arange(0, BLOCK)
        column = i % into
        there = (i < size) & (column < of)
        x_ = tl.load(x + i // into * of + column, mask=there, other=0.0).to(tl.float32)
        tl.store(to + i, x_.to(to.dtype.element_ty), mask=i < size)


@triton.jit
@no_type_check
def _copy_rates(x, to, E, F, N: tl.constexpr, BLOCK: tl.constexpr):
    """A (E, N) as A log₂e, (N, F): the scans compute 2^x."""
    step = tl.num_programs(0) * BLOCK
    for start in range(tl.program_id(0) * BLOCK, F * N, step):
        i = start + tl.arange(0, BLOCK)
        e = i % F
        there = (i < F * N) & (e < E)
        x_ = tl.load(x + e * N + i // F, mask=there, other=0.0).to(tl.float32)
        tl.store(to + i, x_ * LOG2E, mask=i < F * N)


@triton.jit
@no_type_check
def _pack_direction(
    part, conv_, conv_bias_, A_, D_, bias_, x_, dt_, conv, conv_bias, A2, D, bias, x, dt, E, F, P,
    R, N: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One of the seven parts of a direction, into the place of that direction."""
    if part == 0:
        _copy(conv_, conv, 1, E * K, F * K, BLOCK)
    elif part == 1:
        _copy(conv_bias_, conv_bias, 1, E, F, BLOCK)
    elif part == 2:
        _copy_rates(A_, A2, E, F, N, BLOCK)
    elif part == 3:
        _copy(D_, D, 1, E, F, BLOCK)
    elif part == 4:
        _copy(bias_, bias, 1, E, F, BLOCK)
    elif part == 5:
        _copy(x_, x, P, E, F, BLOCK)
    else:
        _copy(dt_, dt, 1, E * R, F * R, BLOCK)


@triton.jit
@no_type_check
def pack_weights(
    conv_0, conv_bias_0, A_0, D_0, bias_0, x_0, dt_0, conv_1, conv_bias_1, A_1, D_1, bias_1, x_1,
    dt_1, w_in, w_out, conv, conv_bias, A2, D, bias, x, dt, w_in_to, w_out_to, E, F, width, P, R,
    N: tl.constexpr, K: tl.constexpr, CONVERTED: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Put weights of directions side by side: vectors as float32, matrices as they are used.

    E channels become F, whose weights beyond E are zero. W_in (2E, width) and W_out (width, E) are
    copied where CONVERTED. Then come seven parts of each direction. A lone direction is given as
    both, and the grid leaves the second one out.
    """
    part = tl.program_id(1)
    if part == 0:
        if CONVERTED:
            _copy(w_in, w_in_to, 2, E * width, F * width, BLOCK)
    elif part == 1:
        if CONVERTED:
            _copy(w_out, w_out_to, width, E, F, BLOCK)
    elif part < 9:
        _pack_direction(
            part - 2, conv_0, conv_bias_0, A_0, D_0, bias_0, x_0, dt_0, conv, conv_bias, A2, D,
            bias, x, dt, E, F, P, R, N, K, BLOCK,
        )  # fmt: skip
    else:
        _pack_direction(
            part - 9, conv_1, conv_bias_1, A_1, D_1, bias_1, x_1, dt_1, conv + F * K,
            conv_bias + F, A2 + F * N, D + F, bias + F, x + P * F, dt + F * R, E, F, P, R, N, K,
            BLOCK,
        )  # fmt: skip


@triton.jit
@no_type_check
def _sum_rows(x, rows, size, j, BM: tl.constexpr, BE: tl.constexpr):
    """The numbers j of x (rows, size) summed over its rows, in a fixed order."""
    total = tl.zeros([BE], tl.float32)
    for first in range(0, rows, BM):
        row = first + tl.arange(0, BM)
        mask = (row < rows)[:, None] & (j < size)[None, :]
        # 64 bits: rows × size may exceed 32.
        at = row.to(tl.int64)[:, None] * size + j[None, :]
        total += tl.sum(tl.load(x + at, mask=mask, other=0.0), 0)
    return total


@triton.jit
@no_type_check
def sum_weights(
    dA, dD, dbias, dconv, dx, ddt, dw_in, dw_out, A, D, bias, conv, conv_bias, x, dt, w_in, w_out,
    E, F, width, P, R, scan_rows, conv_rows, N: tl.constexpr, K: tl.constexpr, CAST: tl.constexpr,
    BLOCK: tl.constexpr, BM: tl.constexpr, BE: tl.constexpr,
):  # fmt: skip
    """Write the gradients of a mixer's weights in float32, each (directions, ...) as its weight.

    dA (directions, scan_rows, N, F), dD and dbias (directions, scan_rows, F), and dconv
    (directions, conv_rows, K + 1, F), which ends with the bias, are summed over rows. With CAST the
    gradients of matrices are copied. The first E of F channels are written. The parts are those of
    W_in and W_out, then six of each direction. No sum is atomic: the same inputs give the same
    bits.
    """
    step = tl.num_programs(0) * BE
    which = tl.maximum(tl.program_id(1) - 2, 0) // 6
    part = tl.where(tl.program_id(1) < 2, tl.program_id(1), 2 + (tl.program_id(1) - 2) % 6)
    far = which.to(tl.int64)
    if part == 0:
        if CAST:
            _copy(dw_in, w_in, 2, F * width, E * width, BLOCK)
    elif part == 1:
        if CAST:
            _copy(dw_out, w_out, width, F, E, BLOCK)
    elif part == 2:
        if CAST:
            _copy(dx + which * P * F, x + which * P * E, P, F, E, BLOCK)
    elif part == 3:
        if CAST:
            _copy(ddt + which * F * R, dt + which * E * R, 1, F * R, E * R, BLOCK)
    elif part == 4:
        for start in range(tl.program_id(0) * BE, N * F, step):
            j = start + tl.arange(0, BE)
            total = _sum_rows(dA + far * scan_rows * N * F, scan_rows, N * F, j, BM, BE)
            e = j % F
            mask = (j < N * F) & (e < E)
            tl.store(A + which * N * E + e * N + j // F, total, mask=mask)
    elif part == 5:
        for start in range(tl.program_id(0) * BE, (K + 1) * F, step):
            j = start + tl.arange(0, BE)
            size = (K + 1) * F
            total = _sum_rows(dconv + far * conv_rows * size, conv_rows, size, j, BM, BE)
            e, tap = j % F, j // F
            tl.store(conv + which * E * K + e * K + tap, total, mask=(tap < K) & (e < E))
            tl.store(conv_bias + which * E + e, total, mask=(tap == K) & (e < E))
    elif part == 6:
        for start in range(tl.program_id(0) * BE, E, step):
            j = start + tl.arange(0, BE)
            total = _sum_rows(dD + far * scan_rows * F, scan_rows, F, j, BM, BE)
            tl.store(D + which * E + j, total, mask=j < E)
    else:
        for start in range(tl.program_id(0) * BE, E, step):
            j = start + tl.arange(0, BE)
            total = _sum_rows(dbias + far * scan_rows * F, scan_rows, F, j, BM, BE)
            tl.store(bias + which * E + j, total, mask=j < E)
