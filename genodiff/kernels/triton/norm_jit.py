"""Triton kernels of RMSNorm: y = w ⊙ x s with s = 1/√(mean(x²) + ε), and its gradients.

x may be a sum: the residual stream and what a block has added to it. The backward pass then adds
what the stream's own gradient is. All channels of a row are in one program, so that a mean needs no
second pass.
"""
# mypy: ignore-errors

from typing import no_type_check

import triton
import triton.language as tl


@triton.jit
@no_type_check
def norm_forward(
    x, added, w, total, y, scale, tokens, eps, ADD: tl.constexpr, D: tl.constexpr,
    BT: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """Write y (tokens, D) and s (tokens). With ADD, x + added too, as `total`, which y is of."""
    # 64 bits: tokens × D may exceed 32.
    t, e = tl.program_id(0).to(tl.int64) * BT + tl.arange(0, BT), tl.arange(0, BD)
    mask = (t < tokens)[:, None] & (e < D)[None, :]
    at = t[:, None] * D + e[None, :]
    x_ = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
    if ADD:
        x_ += tl.load(added + at, mask=mask, other=0.0).to(tl.float32)
        # Rounded as it is kept, so that the backward pass sees the same number.
        kept = x_.to(total.dtype.element_ty)
        tl.store(total + at, kept, mask=mask)
        x_ = kept.to(tl.float32)
    s = 1.0 / tl.sqrt(tl.sum(x_ * x_, 1) / D + eps)
    w_ = tl.load(w + e, mask=e < D, other=0.0).to(tl.float32)
    tl.store(y + at, (x_ * s[:, None] * w_[None, :]).to(y.dtype.element_ty), mask=mask)
    tl.store(scale + t, s, mask=t < tokens)


@triton.jit
@no_type_check
def norm_backward(
    gy, g_total, x, w, scale, dx, d_added, dw, tokens, tiles, SKIP: tl.constexpr,
    TWICE: tl.constexpr, D: tl.constexpr, BT: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """Write dx (tokens, D), and each program's share of dw, (programs, D).

    With n = x s and g = gy w:  dx = s (g − n mean(g n)),  dw = Σ gy n. With SKIP, g_total is added
    to dx, and with TWICE dx is written in a second dtype too. The shares are summed by the caller:
    without atomics, the same inputs give the same bits.
    """
    e = tl.arange(0, BD)
    w_ = tl.load(w + e, mask=e < D, other=0.0).to(tl.float32)
    sums = tl.zeros([BD], tl.float32)
    for tile in range(0, tiles):
        t = (tl.program_id(0).to(tl.int64) * tiles + tile) * BT + tl.arange(0, BT)
        mask = (t < tokens)[:, None] & (e < D)[None, :]
        at = t[:, None] * D + e[None, :]
        g = tl.load(gy + at, mask=mask, other=0.0).to(tl.float32)
        s = tl.load(scale + t, mask=t < tokens, other=0.0)[:, None]
        # Rows and channels that do not exist are loaded as 0, and add nothing to the sums.
        normed = tl.load(x + at, mask=mask, other=0.0).to(tl.float32) * s
        g_w = g * w_[None, :]
        along = tl.sum(g_w * normed, 1)[:, None] / D
        dx_ = (g_w - normed * along) * s
        if SKIP:
            dx_ += tl.load(g_total + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(dx + at, dx_.to(dx.dtype.element_ty), mask=mask)
        if TWICE:
            tl.store(d_added + at, dx_.to(d_added.dtype.element_ty), mask=mask)
        sums += tl.sum(g * normed, 0)
    tl.store(dw + tl.program_id(0) * D + e, sums, mask=e < D)
