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
    y: Tensor = _AddNorm.apply(x, None, weight, eps)
    return y


def triton_add_norm(
    x: Float[Tensor, "*shape D"],
    added: Float[Tensor, "*shape D"],
    weight: Float[Tensor, " D"],
    eps: float,
) -> tuple[Float[Tensor, "*shape D"], Float[Tensor, "*shape D"]]:
    """x + added, and its norm: one pass over both, forward and backward."""
    found: tuple[Tensor, Tensor] = _AddNorm.apply(x, added, weight, eps)
    return found


def _tiles(tokens: int, width: int) -> tuple[int, int, int]:
    """Rows of a program's tile, the width it is padded to, and how many tiles there are."""
    BD = next_power_of_2(width)
    BT = max(1, 2048 // BD)
    return BT, BD, -(-tokens // BT)


class _AddNorm(torch.autograd.Function):
    """x + added and its norm, or the norm of x alone."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, added: Tensor | None, weight: Tensor, eps: float
    ) -> Tensor | tuple[Tensor, Tensor]:
        ctx.dtypes = tuple(t.dtype for t in (x, added) if t is not None)
        y = torch.empty(x.shape, device=x.device, dtype=compute_dtype(x))
        x, weight, width = x.contiguous(), weight.contiguous(), x.shape[-1]
        total = x
        tokens = x.numel() // width
        scale = torch.empty(tokens, device=x.device, dtype=torch.float32)
        if added is not None:
            kind = torch.promote_types(x.dtype, added.dtype)
            added, total = added.contiguous(), torch.empty(x.shape, device=x.device, dtype=kind)
        BT, BD, tiles = _tiles(tokens, width)
        with use_device(x):
            kernels().norm_forward[(tiles,)](
                x, x if added is None else added, weight, total, y, scale, tokens, eps,
                ADD=added is not None, D=width, BT=BT, BD=BD,
            )  # fmt: skip
        ctx.save_for_backward(total, weight, scale)
        # The last sum of a network has no gradient of its own: zeros for it would cost a launch.
        ctx.set_materialize_grads(False)
        return y if added is None else (total, y)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        total, weight, scale = ctx.saved_tensors
        *g_total, gy = grads
        gy = torch.zeros_like(total) if gy is None else gy.contiguous()  # only the sum was used
        width, tokens = total.shape[-1], scale.numel()
        different = list(dict.fromkeys(ctx.dtypes))
        found = {
            dtype: torch.empty(total.shape, device=total.device, dtype=dtype) for dtype in different
        }
        dx, d_added = found[different[0]], found[different[-1]]
        skip = g_total[0].contiguous() if g_total and g_total[0] is not None else None
        BT, BD, tiles = _tiles(tokens, width)
        each = -(-tiles // _PROGRAMS)
        programs = -(-tiles // each)
        dw = torch.empty(programs, width, device=total.device, dtype=torch.float32)
        with use_device(total):
            kernels().norm_backward[(programs,)](
                gy, gy if skip is None else skip, total, weight, scale, dx, d_added, dw, tokens,
                each, SKIP=skip is not None, TWICE=len(different) > 1, D=width, BT=BT, BD=BD,
            )  # fmt: skip
        of_x, *of_added = (found[dtype] for dtype in ctx.dtypes)
        d_weight = dw.sum(0).to(weight.dtype)
        return of_x, of_added[0] if of_added else None, d_weight, None
