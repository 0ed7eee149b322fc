"""Triton kernels of a mixer other than its scans: the short convolution with silu, and the gate.

    y_t = silu(p_t) with p_t = b + Σ_k w_k x_{t−K+1+k}        out = y ⊙ silu(z)

A program computes BT times by BE channels of a row. Sums are in float32, whatever the dtype of the
tensors.
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
def _tap(
    x,
    t,
    k: tl.constexpr,
    e,
    there,
    L,
    stride,
    K: tl.constexpr,
    REVERSE: tl.constexpr,
    BACK: tl.constexpr,
):
    """The inputs of tap k for outputs t: x_{t−K+1+k}, or x_{t+K−1−k} in reverse; 0 outside the row.

    BACK swaps the direction: it loads the outputs to which input t contributes through tap k.
    """
    offset: tl.constexpr = (K - 1 - k) if REVERSE != BACK else (k - K + 1)
    at = t + offset
    mask = ((at >= 0) & (at < L))[:, None] & there[None, :]
    return tl.load(x + at[:, None] * stride + e[None, :], mask=mask, other=0.0).to(tl.float32)


@triton.jit
@no_type_check
def _linear(x, w, b, t, e, there, L, stride, K: tl.constexpr, REVERSE: tl.constexpr):
    """The convolution before silu."""
    acc = tl.load(b + e, mask=there, other=0.0).to(tl.float32)[None, :]
    for k in tl.static_range(K):
        acc += (
            _tap(x, t, k, e, there, L, stride, K, REVERSE, False)
            * tl.load(w + e * K + k, mask=there, other=0.0).to(tl.float32)[None, :]
        )
    return acc


@triton.jit
@no_type_check
def conv_forward(
    x, w, b, y, L, E, x_b, x_l, K: tl.constexpr, REVERSE: tl.constexpr, BT: tl.constexpr,
    BE: tl.constexpr,
):  # fmt: skip
    """Write y (rows, L, E) = silu(conv(x))."""
    t, e = tl.program_id(0) * BT + tl.arange(0, BT), tl.program_id(1) * BE + tl.arange(0, BE)
    row = tl.program_id(2).to(tl.int64)
    there = e < E
    # row * 0 makes t 64 bits wide: t multiplied by a stride may exceed 32 bits.
    z = _linear(x + row * x_b, w, b, row * 0 + t, e, there, L, x_l, K, REVERSE)
    y += row * L * E
    tl.store(
        y + (row * 0 + t)[:, None] * E + e[None, :],
        (z * _sigmoid(z)).to(y.dtype.element_ty),
        mask=(t < L)[:, None] & there[None, :],
    )


@triton.jit
@no_type_check
def conv_slope(
    x, w, b, dy, dz, dw, L, E, tiles, x_b, x_l, K: tl.constexpr, REVERSE: tl.constexpr,
    BT: tl.constexpr, BE: tl.constexpr,
):  # fmt: skip
    """Write dz (rows, L, E), the gradient before silu, and the partial sums of dw.

    dw is (rows, pieces, K + 1, E): the gradients of the taps, then of the bias. The caller fills it
    with zeros.
    """
    piece, row = tl.program_id(0), tl.program_id(2).to(tl.int64)
    e = tl.program_id(1) * BE + tl.arange(0, BE)
    there = e < E
    x += row * x_b
    dw += (row * tl.num_programs(0) + piece) * (K + 1) * E + e
    for tile in range(0, tiles):
        t = row * 0 + (piece * tiles + tile) * BT + tl.arange(0, BT)
        mask = (t < L)[:, None] & there[None, :]
        z = _linear(x, w, b, t, e, there, L, x_l, K, REVERSE)
        s = _sigmoid(z)
        at = (row * L + t)[:, None] * E + e[None, :]
        # silu'(p) = s + p s (1 − s), with s the sigmoid of p (here z).
        g = tl.load(dy + at, mask=mask, other=0.0).to(tl.float32) * (s * (1.0 + z * (1.0 - s)))
        tl.store(dz + at, g.to(dz.dtype.element_ty), mask=mask)
        # dw is summed in memory, because K + 1 more sums would not fit in registers. No other
        # program writes to the same place.
        for k in tl.static_range(K):
            part = tl.sum(g * _tap(x, t, k, e, there, L, x_l, K, REVERSE, False), 0)
            tl.store(dw + k * E, tl.load(dw + k * E, mask=there, other=0.0) + part, mask=there)
        tl.store(dw + K * E, tl.load(dw + K * E, mask=there, other=0.0) + tl.sum(g, 0), mask=there)


@triton.jit
@no_type_check
def conv_backward(
    dz, w, dx, L, E, dx_b, dx_l, K: tl.constexpr, REVERSE: tl.constexpr, ONTO: tl.constexpr,
    BT: tl.constexpr, BE: tl.constexpr,
):  # fmt: skip
    """Write dx, computed from dz. With ONTO, add it to the content of dx."""
    t, e = tl.program_id(0) * BT + tl.arange(0, BT), tl.program_id(1) * BE + tl.arange(0, BE)
    row = tl.program_id(2).to(tl.int64)
    there = e < E
    t = row * 0 + t
    acc = tl.zeros([BT, BE], tl.float32)
    for k in tl.static_range(K):
        w_k = tl.load(w + e * K + k, mask=there, other=0.0).to(tl.float32)
        acc += _tap(dz + row * L * E, t, k, e, there, L, E, K, REVERSE, True) * w_k[None, :]
    mask = (t < L)[:, None] & there[None, :]
    at = dx + row * dx_b + t[:, None] * dx_l + e[None, :]
    if ONTO:
        acc += tl.load(at, mask=mask, other=0.0).to(tl.float32)
    tl.store(at, acc.to(dx.dtype.element_ty), mask=mask)


@triton.jit
@no_type_check
def gate_forward(y, z, out, tokens, E, z_l, BT: tl.constexpr, BE: tl.constexpr):
    """Write out (tokens, E) = y silu(z)."""
    t, e = (
        tl.program_id(0).to(tl.int64) * BT + tl.arange(0, BT),
        tl.program_id(1) * BE + tl.arange(0, BE),
    )
    mask = (t < tokens)[:, None] & (e < E)[None, :]
    y_ = tl.load(y + t[:, None] * E + e[None, :], mask=mask, other=0.0).to(tl.float32)
    z_ = tl.load(z + t[:, None] * z_l + e[None, :], mask=mask, other=0.0).to(tl.float32)
    tl.store(
        out + t[:, None] * E + e[None, :],
        (y_ * z_ * _sigmoid(z_)).to(out.dtype.element_ty),
        mask=mask,
    )


@triton.jit
@no_type_check
def gate_backward(g, y, z, out, gy, gz, tokens, E, z_l, gz_l, BT: tl.constexpr, BE: tl.constexpr):
    """Write gy and gz, computed from g, the gradient of out.

    It also recomputes out, which the gradient of the output weight needs.
    """
    t, e = (
        tl.program_id(0).to(tl.int64) * BT + tl.arange(0, BT),
        tl.program_id(1) * BE + tl.arange(0, BE),
    )
    mask = (t < tokens)[:, None] & (e < E)[None, :]
    at = t[:, None] * E + e[None, :]
    g_ = tl.load(g + at, mask=mask, other=0.0).to(tl.float32)
    y_ = tl.load(y + at, mask=mask, other=0.0).to(tl.float32)
    z_ = tl.load(z + t[:, None] * z_l + e[None, :], mask=mask, other=0.0).to(tl.float32)
    s = _sigmoid(z_)
    tl.store(out + at, (y_ * z_ * s).to(out.dtype.element_ty), mask=mask)
    tl.store(gy + at, (g_ * z_ * s).to(gy.dtype.element_ty), mask=mask)
    tl.store(
        gz + t[:, None] * gz_l + e[None, :],
        (g_ * y_ * s * (1.0 + z_ * (1.0 - s))).to(gz.dtype.element_ty),
        mask=mask,
    )
