"""RMSNorm on a GPU: one pass over the input forward, and one backward.

The sum that a block makes of the residual stream goes along: x + added and its norm in one launch.
Under autocast the output is of autocast's dtype at once, without a float32 copy in between.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from genodiff.kernels.triton.launch import kernels, next_power_of_2, use_device
from genodiff.kernels.triton.mixer import compute_dtype

WIDEST = 4096  # most channels: a row is in the registers of one program
_PROGRAMS = 1024  # most shares of the weight's gradient


def triton_rms_norm(
    x: Float[Tensor, "*shape D"], weight: Float[Tensor, " D"], eps: float
) -> Float[Tensor, "*shape D"]:
    """w ⊙ x / √(mean(x²) + ε), in the dtype of x or of autocast."""
    y: Tensor = _RMSNorm.apply(x, weight, eps, compute_dtype(x))
    return y


def triton_add_norm(
    x: Float[Tensor, "*shape D"],
    added: Float[Tensor, "*shape D"],
    weight: Float[Tensor, " D"],
    eps: float,
) -> tuple[Float[Tensor, "*shape D"], Float[Tensor, "*shape D"]]:
    """x + added, and its norm: one pass over both, forward and backward."""
    found: tuple[Tensor, Tensor] = _AddNorm.apply(x, added, weight, eps, compute_dtype(x))
    return found


def _tiles(tokens: int, width: int) -> tuple[int, int, int]:
    """Rows of a program's tile, the width it is padded to, and how many tiles there are."""
    BD = next_power_of_2(width)
    BT = max(1, 2048 // BD)
    return BT, BD, -(-tokens // BT)


def _forward(
    x: Tensor, added: Tensor | None, weight: Tensor, eps: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """(what the norm is of, y, scale); all inputs are contiguous."""
    width = x.shape[-1]
    tokens = x.numel() // width
    y, scale = (
        torch.empty(x.shape, device=x.device, dtype=dtype),
        torch.empty(tokens, device=x.device, dtype=torch.float32),
    )
    total = x
    if added is not None:
        kind = torch.promote_types(x.dtype, added.dtype)
        total = torch.empty(x.shape, device=x.device, dtype=kind)
    BT, BD, tiles = _tiles(tokens, width)
    with use_device(x):
        kernels().norm_forward[(tiles,)](
            x, x if added is None else added, weight, total, y, scale, tokens, eps,
            ADD=added is not None, D=width, BT=BT, BD=BD,
        )  # fmt: skip
    return total, y, scale


def _backward(
    gy: Tensor, g_total: Tensor | None, total: Tensor, weight: Tensor, scale: Tensor,
    dtypes: tuple[torch.dtype, ...],
) -> tuple[list[Tensor], Tensor]:  # fmt: skip
    """The gradient of the sum in each of these dtypes, and that of the weight."""
    gy, width, tokens = gy.contiguous(), total.shape[-1], scale.numel()
    different = list(dict.fromkeys(dtypes))
    found = {
        dtype: torch.empty(total.shape, device=total.device, dtype=dtype) for dtype in different
    }
    dx, d_added = found[different[0]], found[different[-1]]
    skip = gy if g_total is None else g_total.contiguous()
    BT, BD, tiles = _tiles(tokens, width)
    each = -(-tiles // _PROGRAMS)
    programs = -(-tiles // each)
    dw = torch.empty(programs, width, device=total.device, dtype=torch.float32)
    with use_device(total):
        kernels().norm_backward[(programs,)](
            gy, skip, total, weight, scale, dx, d_added, dw, tokens, each,
            SKIP=g_total is not None, TWICE=len(different) > 1, D=width, BT=BT, BD=BD,
        )  # fmt: skip
    return [found[dtype] for dtype in dtypes], dw.sum(0).to(weight.dtype)


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float, dtype: torch.dtype) -> Tensor:
        x, weight = x.contiguous(), weight.contiguous()
        _, y, scale = _forward(x, None, weight, eps, dtype)
        ctx.save_for_backward(x, weight, scale)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, scale = ctx.saved_tensors
        (dx,), dw = _backward(gy, None, x, weight, scale, (x.dtype,))
        return dx, dw, None, None


class _AddNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, added: Tensor, weight: Tensor, eps: float, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        weight = weight.contiguous()
        total, y, scale = _forward(x.contiguous(), added.contiguous(), weight, eps, dtype)
        ctx.save_for_backward(total, weight, scale)
        ctx.dtypes = (x.dtype, added.dtype)
        # The last sum of a network has no gradient of its own: zeros for it would cost a launch.
        ctx.set_materialize_grads(False)
        return total, y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g_total: Tensor | None, gy: Tensor | None) -> tuple[Tensor | None, ...]:
        total, weight, scale = ctx.saved_tensors
        if gy is None:  # only the sum was used
            gy = torch.zeros_like(total)
        (dx, d_added), dw = _backward(gy, g_total, total, weight, scale, ctx.dtypes)
        return dx, d_added, dw, None, None
