"""RMSNorm in C: y = w ⊙ x / √(mean(x²) + ε), row by row, float32 on a CPU."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from genodiff.kernels.library import call

_PIECE = 256  # rows of a task, NORM_PIECE of native.c


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        x, weight = x.contiguous(), weight.contiguous()
        y, width = torch.empty_like(x), x.shape[-1]
        rows = x.numel() // width
        scale = x.new_empty(rows)  # 1 / √(mean(x²) + ε) of each row
        # The structures of the library hold pointers and integers only: ε goes as a tensor.
        tensors = dict(x=x, w=weight, scale=scale, eps=x.new_tensor([eps]), y=y)
        call("norm", tensors, backward=False, rows=rows, D=width)
        ctx.save_for_backward(x, weight, scale)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, scale = ctx.saved_tensors
        gy, dx, rows, width = gy.contiguous(), torch.empty_like(x), len(scale), x.shape[-1]
        part = x.new_empty(-(-rows // _PIECE), width)  # one share of the weight's gradient a task
        tensors = dict(x=x, w=weight, scale=scale, gy=gy, dx=dx, part=part)
        call("norm", tensors, backward=True, rows=rows, D=width)
        return dx, part.sum(0), None


def native_rms_norm(
    x: Float[Tensor, "*shape D"], weight: Float[Tensor, " D"], eps: float
) -> Float[Tensor, "*shape D"]:
    """As `rms_norm`, for tensors that the library can take; differentiable."""
    y: Tensor = _RMSNorm.apply(x, weight, eps)
    return y
