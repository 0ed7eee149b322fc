"""Triton kernels of a mixer beside its scans: the short convolution with silu, the gate, and those
that put B and C into the order of a scan (`stage`), and their gradients back (`unstage`).

    y_t = silu(p_t) with p_t = b + Σ_k w_k x_{t−K+1+k}        out = (Σ_d y_d) ⊙ silu(z)

A program computes BT times by BE channels of a row. Sums are in float32, whatever the dtype of the
tensors.

All directions are in one launch, one after the other along the last axis of the grid. `ways` has
bit d set where direction d reads from right to left: at its time s it reads x_{L−1−s}. What belongs
to a direction, such as y_d, is stored in the order of its time, (directions · rows, L, E). So the
scan between these kernels knows no direction. Without ORDERED it is stored as x is.
"""
# mypy: ignore-errors

from typing import no_type_check

import triton
import triton.language as tl


@triton.jit
@no_type_check
def _sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
@no_type_check
def _turn(t, L, back):
    """The place of a direction's time t in the order of x, or the other way round."""
    return tl.where(back != 0, L - 1 - t, t)


@triton.jit
@no_type_check
def _load(x, t, L, back, e, there, stride):
    """x at the times t of a direction, which may lie outside of the row: there it is 0."""
    mask = ((t >= 0) & (t < L))[:, None] & there[None, :]
    at = _turn(t, L, back)[:, None] * stride + e[None, :]
    return tl.load(x + at, mask=mask, other=0.0).to(tl.float32)


@triton.jit
@no_type_check
def _linear(x, w, b, t, L, back, e, there, stride, K: tl.constexpr):
    """The convolution before silu."""
    acc = tl.load(b + e, mask=there, other=0.0).to(tl.float32)[None, :]
    for k in tl.static_range(K):
        w_k = tl.load(w + e * K + k, mask=there, other=0.0).to(tl.float32)
        acc += _load(x, t - (K - 1 - k), L, back, e, there, stride) * w_k[None, :]
    return acc


@triton.jit
@no_type_check
def conv_forward(
    x, w, b, y, L, E, rows, ways, x_b, x_l, K: tl.constexpr, ORDERED: tl.constexpr,
    BT: tl.constexpr, BE: tl.constexpr,
):  # fmt: skip
    """Write y (directions · rows, L, E) = silu(conv(x)), with w (directions, E, K)."""
    t, e = tl.program_id(0) * BT + tl.arange(0, BT), tl.program_id(1) * BE + tl.arange(0, BE)
    which, row = tl.program_id(2) // rows, (tl.program_id(2) % rows).to(tl.int64)
    back = (ways >> which) & 1
    there = e < E
    # row * 0 makes t 64 bits wide: t multiplied by a stride may exceed 32 bits.
    t = row * 0 + t
    z = _linear(x + row * x_b, w + which * E * K, b + which * E, t, L, back, e, there, x_l, K)
    y += (which * rows + row) * L * E
    to = t if ORDERED else _turn(t, L, back)
    tl.store(
        y + to[:, None] * E + e[None, :],
        (z * _sigmoid(z)).to(y.dtype.element_ty),
        mask=(t < L)[:, None] & there[None, :],
    )


@triton.jit
@no_type_check
def conv_slope(
    x, w, b, dy, dz, dw, L, E, rows, ways, tiles, x_b, x_l, K: tl.constexpr, ORDERED: tl.constexpr,
    BT: tl.constexpr, BE: tl.constexpr,
):  # fmt: skip
    """Write dz, the gradient before silu, in the order of dy, and the partial sums of dw, K ≤ 4.

    dw is (directions · rows, pieces, K + 1, E): the gradients of the taps, then of the bias. What a
    tap reads serves both z and dw. The sums stay in registers until a program's last tile, each by
    its own name: x_1 is what is read one time before, w_1 its weight, s_1 its sum.
    """
    piece, own = tl.program_id(0), tl.program_id(2).to(tl.int64)
    which, row = tl.program_id(2) // rows, own % rows
    back = (ways >> which) & 1
    e = tl.program_id(1) * BE + tl.arange(0, BE)
    there = e < E
    x += row * x_b
    w += (which * E + e) * K + K - 1
    bias = tl.load(b + which * E + e, mask=there, other=0.0).to(tl.float32)[None, :]
    w_0 = tl.load(w, mask=there, other=0.0).to(tl.float32)[None, :]
    s_0, of_bias = tl.zeros([BT, BE], tl.float32), tl.zeros([BT, BE], tl.float32)
    if K > 1:
        w_1 = tl.load(w - 1, mask=there, other=0.0).to(tl.float32)[None, :]
        s_1 = tl.zeros([BT, BE], tl.float32)
    if K > 2:
        w_2 = tl.load(w - 2, mask=there, other=0.0).to(tl.float32)[None, :]
        s_2 = tl.zeros([BT, BE], tl.float32)
    if K > 3:
        w_3 = tl.load(w - 3, mask=there, other=0.0).to(tl.float32)[None, :]
        s_3 = tl.zeros([BT, BE], tl.float32)
    for tile in range(0, tiles):
        t = own * 0 + (piece * tiles + tile) * BT + tl.arange(0, BT)
        mask = (t < L)[:, None] & there[None, :]
        x_0 = _load(x, t, L, back, e, there, x_l)
        z = x_0 * w_0 + bias
        if K > 1:
            x_1 = _load(x, t - 1, L, back, e, there, x_l)
            z += x_1 * w_1
        if K > 2:
            x_2 = _load(x, t - 2, L, back, e, there, x_l)
            z += x_2 * w_2
        if K > 3:
            x_3 = _load(x, t - 3, L, back, e, there, x_l)
            z += x_3 * w_3
        s = _sigmoid(z)
        at = (own * L + (t if ORDERED else _turn(t, L, back)))[:, None] * E + e[None, :]
        # silu'(p) = s + p s (1 − s), with s the sigmoid of p (here z).
        g = tl.load(dy + at, mask=mask, other=0.0).to(tl.float32) * (s * (1.0 + z * (1.0 - s)))
        tl.store(dz + at, g.to(dz.dtype.element_ty), mask=mask)
        of_bias += g
        s_0 += g * x_0
        if K > 1:
            s_1 += g * x_1
        if K > 2:
            s_2 += g * x_2
        if K > 3:
            s_3 += g * x_3
    dw += ((own * tl.num_programs(0) + piece) * (K + 1) + K) * E + e
    tl.store(dw, tl.sum(of_bias, 0), mask=there)
    tl.store(dw - E, tl.sum(s_0, 0), mask=there)
    if K > 1:
        tl.store(dw - 2 * E, tl.sum(s_1, 0), mask=there)
    if K > 2:
        tl.store(dw - 3 * E, tl.sum(s_2, 0), mask=there)
    if K > 3:
        tl.store(dw - 4 * E, tl.sum(s_3, 0), mask=there)


@triton.jit
@no_type_check
def conv_backward(
    dz, w, dx, L, E, rows, ways, dx_b, dx_l, DIRECTIONS: tl.constexpr, K: tl.constexpr,
    ORDERED: tl.constexpr, BT: tl.constexpr, BE: tl.constexpr,
):  # fmt: skip
    """Write dx (rows, L, E), the sum over directions of what dz says."""
    p, e = tl.program_id(0) * BT + tl.arange(0, BT), tl.program_id(1) * BE + tl.arange(0, BE)
    row = tl.program_id(2).to(tl.int64)
    there = e < E
    p = row * 0 + p
    acc = tl.zeros([BT, BE], tl.float32)
    for which in tl.static_range(DIRECTIONS):
        back = (ways >> which) & 1
        # Where dz is stored as x is, its own places are turned too.
        stored = 0 if ORDERED else back
        t = _turn(p, L, back)
        for k in tl.static_range(K):
            w_k = tl.load(w + (which * E + e) * K + k, mask=there, other=0.0).to(tl.float32)
            # The output to which input t contributes through tap k.
            of = _load(dz + (which * rows + row) * L * E, t + (K - 1 - k), L, stored, e, there, E)
            acc += of * w_k[None, :]
    mask = (p < L)[:, None] & there[None, :]
    at = dx + row * dx_b + p[:, None] * dx_l + e[None, :]
    tl.store(at, acc.to(dx.dtype.element_ty), mask=mask)


@triton.jit
@no_type_check
def gate_forward(
    y, z, total, out, L, E, rows, ways, z_l, KEEP: tl.constexpr, DIRECTIONS: tl.constexpr,
    BT: tl.constexpr, BE: tl.constexpr,
):  # fmt: skip
    """Write out = total ⊙ silu(z) with total (rows, L, E) = Σ_d y_d; with KEEP total too."""
    t, e = tl.program_id(0) * BT + tl.arange(0, BT), tl.program_id(1) * BE + tl.arange(0, BE)
    row = tl.program_id(2).to(tl.int64)
    t = row * 0 + t
    there = e < E
    mask = (t < L)[:, None] & there[None, :]
    sum_ = tl.zeros([BT, BE], tl.float32)
    for which in tl.static_range(DIRECTIONS):
        sum_ += _load(y + (which * rows + row) * L * E, t, L, (ways >> which) & 1, e, there, E)
    # Rounded as it is kept, so that the backward pass sees the same number.
    kept = sum_.to(total.dtype.element_ty)
    place = row * L + t
    at = place[:, None] * E + e[None, :]
    if KEEP:
        tl.store(total + at, kept, mask=mask)
    z_ = tl.load(z + place[:, None] * z_l + e[None, :], mask=mask, other=0.0).to(tl.float32)
    y_ = kept.to(tl.float32)
    tl.store(out + at, (y_ * z_ * _sigmoid(z_)).to(out.dtype.element_ty), mask=mask)


@triton.jit
@no_type_check
def gate_backward(
    g, total, z, out, gy, gz, L, E, rows, ways, z_l, gz_l, DIRECTIONS: tl.constexpr,
    BT: tl.constexpr, BE: tl.constexpr,
):  # fmt: skip
    """Write gy, to each direction in its own order, and gz, from g, the gradient of out.

    It also recomputes out, which the gradient of the output weight needs.
    """
    t, e = tl.program_id(0) * BT + tl.arange(0, BT), tl.program_id(1) * BE + tl.arange(0, BE)
    row = tl.program_id(2).to(tl.int64)
    t = row * 0 + t
    mask = (t < L)[:, None] & (e < E)[None, :]
    place = row * L + t
    at = place[:, None] * E + e[None, :]
    g_ = tl.load(g + at, mask=mask, other=0.0).to(tl.float32)
    y_ = tl.load(total + at, mask=mask, other=0.0).to(tl.float32)
    z_ = tl.load(z + place[:, None] * z_l + e[None, :], mask=mask, other=0.0).to(tl.float32)
    s = _sigmoid(z_)
    tl.store(out + at, (y_ * z_ * s).to(out.dtype.element_ty), mask=mask)
    for which in tl.static_range(DIRECTIONS):
        to = (which * rows + row) * L + _turn(t, L, (ways >> which) & 1)
        tl.store(
            gy + to[:, None] * E + e[None, :], (g_ * z_ * s).to(gy.dtype.element_ty), mask=mask
        )
    tl.store(
        gz + place[:, None] * gz_l + e[None, :],
        (g_ * y_ * s * (1.0 + z_ * (1.0 - s))).to(gz.dtype.element_ty),
        mask=mask,
    )


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
