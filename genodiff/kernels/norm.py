"""RMSNorm over the last axis: y = w ⊙ x / √(mean(x²) + ε). The input and one number per position
are kept for the backward pass.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from genodiff.kernels.library import call, fits
from genodiff.kernels.scan import chosen

_PIECE = 256  # rows of a task, as in native.c


def rms_norm(
    x: Float[Tensor, "*shape D"], weight: Float[Tensor, " D"], eps: float
) -> Float[Tensor, "*shape D"]:
    """y in the dtype of x, which is the weight's."""
    if fits(x, weight) and x.numel() and chosen().name == "native":
        y: Tensor = _Native.apply(x, weight, eps)
        return y
    y = _Torch.apply(x, weight, eps)
    return y


class _Native(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        x, weight = x.contiguous(), weight.contiguous()
        y, rows = torch.empty_like(x), x.numel() // x.shape[-1]
        scale, least = x.new_empty(rows), x.new_tensor([eps])
        call(
            "norm",
            dict(x=x, w=weight, scale=scale, eps=least, y=y),
            backward=False,
            rows=rows,
            D=x.shape[-1],
        )
        ctx.save_for_backward(x, weight, scale)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, scale = ctx.saved_tensors
        gy, dx, rows = gy.contiguous(), torch.empty_like(x), len(scale)
        part = x.new_empty(-(-rows // _PIECE), x.shape[-1])
        call(
            "norm",
            dict(x=x, w=weight, scale=scale, gy=gy, dx=dx, part=part),
            backward=True,
            rows=rows,
            D=x.shape[-1],
        )
        return dx, part.sum(0), None


class _Torch(torch.autograd.Function):
    """Keeps the input and one number per position, where autograd would keep four tensors of the
    input's size.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        scale = (
            torch.linalg.vector_norm(x, dim=-1, keepdim=True)
            .square_()
            .div_(x.shape[-1])
            .add_(eps)
            .rsqrt_()
        )
        ctx.save_for_backward(x, weight, scale)
        return (x * scale).mul_(weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, scale = ctx.saved_tensors
        normed, g = x * scale, gy * weight
        along = torch.linalg.vecdot(g, normed).unsqueeze(-1).div_(x.shape[-1])
        dx = g.addcmul_(normed, along, value=-1).mul_(scale)
        return dx, normed.mul_(gy).flatten(0, -2).sum(0), None
