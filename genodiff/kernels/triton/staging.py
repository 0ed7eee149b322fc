"""Triton kernels that put B and C into the order of the scan, and their gradients back."""
# mypy: ignore-errors

from typing import no_type_check

import triton
import triton.language as tl


@triton.jit
@no_type_check
def _locate(before, which, position, n, N: tl.constexpr, T: tl.constexpr):
    """Where B (`which` 0) or C of these positions and states is in (rows, tiles, 2N, T).

    `before` are the positions of the rows before, in 64 bits.
    """
    tile = before * (2 * N) + position // T * (2 * N * T)
    return (tile + position % T)[:, None] + ((which * N + n) * T)[None, :]


@triton.jit
@no_type_check
def stage(
    B, C, bc, L, padded, B_b, B_l, B_n, C_b, C_l, C_n, N: tl.constexpr, REVERSE: tl.constexpr,
    T: tl.constexpr, BN: tl.constexpr, BT: tl.constexpr,
):  # fmt: skip
    """Write bc (rows, tiles, 2N, T) in its dtype: B, then C, and zero past the end.

    Time runs in the order of the scan.
    """
    position, n = tl.program_id(0) * BT + tl.arange(0, BT), tl.arange(0, BN)
    row, which = tl.program_id(1).to(tl.int64), tl.program_id(2)
    # 64 bits: times a stride, a position may exceed 32.
    t = (L - 1 - position if REVERSE else position).to(tl.int64)
    live = (position < L)[:, None] & (n < N)[None, :]
    if which == 0:
        x = tl.load(B + row * B_b + t[:, None] * B_l + n[None, :] * B_n, mask=live, other=0.0).to(
            bc.dtype.element_ty
        )
    else:
        x = tl.load(C + row * C_b + t[:, None] * C_l + n[None, :] * C_n, mask=live, other=0.0).to(
            bc.dtype.element_ty
        )
    at = bc + _locate(row * padded, which, position, n, N, T)
    tl.store(at, x, mask=(position < padded)[:, None] & (n < N)[None, :])


@triton.jit
@no_type_check
def unstage(
    dbc, dB, dC, L, padded, slabs, slab, dB_b, dB_l, dB_n, dC_b, dC_l, dC_n,
    N: tl.constexpr, REVERSE: tl.constexpr, T: tl.constexpr, BN: tl.constexpr, BT: tl.constexpr,
):  # fmt: skip
    """Write dB and dC (rows, L, N): the sum of the slabs (rows, tiles, 2N, T), in their order."""
    position, n = tl.program_id(0) * BT + tl.arange(0, BT), tl.arange(0, BN)
    row, which = tl.program_id(1).to(tl.int64), tl.program_id(2)
    live = (position < L)[:, None] & (n < N)[None, :]
    at = dbc + _locate(row * padded, which, position, n, N, T)
    total = tl.zeros([BT, BN], tl.float32)
    for _ in range(slabs):
        total += tl.load(at, mask=live, other=0.0)
        at += slab
    t = (L - 1 - position if REVERSE else position).to(tl.int64)
    if which == 0:
        tl.store(
            dB + row * dB_b + t[:, None] * dB_l + n[None, :] * dB_n,
            total.to(dB.dtype.element_ty),
            mask=live,
        )
    else:
        tl.store(
            dC + row * dC_b + t[:, None] * dC_l + n[None, :] * dC_n,
            total.to(dC.dtype.element_ty),
            mask=live,
        )
