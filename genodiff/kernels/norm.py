"""RMSNorm over the last axis: y = w ⊙ x / √(mean(x²) + ε).

For the backward pass the input and one number per row are kept. In C it is float32, row by row.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from genodiff.kernels import library
from genodiff.kernels.dispatch import Implementation, Operation, accept_all
from genodiff.kernels.graph import graph_norm
from genodiff.kernels.library import call
from genodiff.kernels.triton import launch
from genodiff.kernels.triton.norm import WIDEST, triton_add_norm, triton_rms_norm

_PIECE = 256  # rows of a task, NORM_PIECE of native.c


class _NativeNorm(torch.autograd.Function):
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


def _triton_accepts(x: Tensor, weight: Tensor, eps: float) -> bool:
    return x.shape[-1] <= WIDEST and launch.fits(x, weight)


def rms_norm(
    x: Float[Tensor, "*shape D"], weight: Float[Tensor, " D"], eps: float
) -> Float[Tensor, "*shape D"]:
    """y in the dtype of x, which is the weight's; on a GPU under autocast, in autocast's."""
    y: Tensor = NORM(x, weight, eps)
    return y


def add_rms_norm(
    x: Float[Tensor, "*shape D"],
    added: Float[Tensor, "*shape D"],
    weight: Float[Tensor, " D"],
    eps: float,
) -> tuple[Float[Tensor, "*shape D"], Float[Tensor, "*shape D"]]:
    """x + added, and its norm in the dtype of the weight, or as `rms_norm` of autocast."""
    found: tuple[Tensor, Tensor] = ADD_NORM(x, added, weight, eps)
    return found


def _add_by_parts(x: Tensor, added: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    total = x + added
    return total, rms_norm(total.to(weight.dtype), weight, eps)


def _triton_adds(x: Tensor, added: Tensor, weight: Tensor, eps: float) -> bool:
    return (
        launch.fits(added)
        and x.shape == added.shape
        and torch.promote_types(x.dtype, added.dtype) == weight.dtype
        and _triton_accepts(x, weight, eps)
    )


class _RMSNorm(torch.autograd.Function):
    """In torch. Autograd would keep four tensors of the input's size."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        scale = norm.square_().div_(x.shape[-1]).add_(eps).rsqrt_()
        ctx.save_for_backward(x, weight, scale)
        return (x * scale).mul_(weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gy: Tensor) -> tuple[Tensor | None, ...]:
        # With n = x s and g = gy w:  dx = s (g − n mean(g n)),  dw = Σ gy n.
        x, weight, scale = ctx.saved_tensors
        normed, g = x * scale, gy * weight
        along = torch.linalg.vecdot(g, normed).unsqueeze(-1).div_(x.shape[-1])
        dx = g.addcmul_(normed, along, value=-1).mul_(scale)
        return dx, normed.mul_(gy).flatten(0, -2).sum(0), None


NORM = Operation(
    Implementation("triton", triton_rms_norm, _triton_accepts),
    Implementation("native", _NativeNorm.apply, lambda *given: library.fits(*given[:2])),
    Implementation("torch", _RMSNorm.apply, accept_all),
    recorded=graph_norm,
)

ADD_NORM = Operation(
    Implementation("triton", triton_add_norm, _triton_adds),
    Implementation("torch", _add_by_parts, accept_all),
    recorded=_add_by_parts,
)
