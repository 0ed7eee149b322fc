"""RMSNorm on a GPU: one pass over the input forward, and one backward.

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


def _tiles(tokens: int, width: int) -> tuple[int, int, int]:
    """Rows of a program's tile, the width it is padded to, and how many tiles there are."""
    BD = next_power_of_2(width)
    BT = max(1, 2048 // BD)
    return BT, BD, -(-tokens // BT)


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float, dtype: torch.dtype) -> Tensor:
        x, weight = x.contiguous(), weight.contiguous()
        width = x.shape[-1]
        tokens = x.numel() // width
        y, scale = (
            torch.empty(x.shape, device=x.device, dtype=dtype),
            torch.empty(tokens, device=x.device),
        )
        BT, BD, tiles = _tiles(tokens, width)
        with use_device(x):
            kernels().norm_forward[(tiles,)](
                x, weight, y, scale, tokens, eps, D=width, BT=BT, BD=BD
            )
        ctx.save_for_backward(x, weight, scale)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, scale = ctx.saved_tensors
        gy, dx, width = gy.contiguous(), torch.empty_like(x), x.shape[-1]
        tokens = scale.numel()
        BT, BD, tiles = _tiles(tokens, width)
        each = -(-tiles // _PROGRAMS)
        programs = -(-tiles // each)
        dw = torch.empty(programs, width, device=x.device)
        with use_device(x):
            kernels().norm_backward[(programs,)](
                gy, x, weight, scale, dx, dw, tokens, each, D=width, BT=BT, BD=BD
            )
        return dx, dw.sum(0).to(weight.dtype), None, None
