"""A linear layer: in C, with the same bits for any number of threads, or with torch's products.

In C it is x Wᵀ + b over T rows, float32 on a CPU.
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from genodiff.kernels import gemm, library
from genodiff.kernels.dispatch import Implementation, Operation, accept_all
from genodiff.kernels.library import call


def linear_forward(
    x: Float[Tensor, "T K"], weight: Float[Tensor, "N K"], bias: Float[Tensor, " N"] | None
) -> Float[Tensor, "T N"]:
    """x Wᵀ + b."""
    y, bias = x.new_empty(len(x), len(weight)), None if bias is None else bias.contiguous()
    tensors = dict(x=x, w=weight.t().contiguous(), bias=bias, y=y)
    _run_linear(tensors, len(weight), backward=False, piece=library.PIECE)
    return y


def linear_backward(
    g: Float[Tensor, "T N"],
    x: Float[Tensor, "T K"],
    weight: Float[Tensor, "N K"],
    bias: Float[Tensor, " N"] | None,
) -> tuple[Float[Tensor, "T K"], Float[Tensor, "N K"], Float[Tensor, " N"] | None]:
    """The gradients of x, of the weight and of the bias, where there is one."""
    dx, piece = torch.empty_like(x), library.rows_per_task(library.SUM_PIECE, len(x))
    # One share for each task: dw, then dbias.
    part = x.new_empty(-(-len(x) // piece), weight.numel() + (0 if bias is None else len(bias)))
    tensors = dict(x=x, w=weight.contiguous(), bias=bias, g=g, dx=dx, part=part)
    _run_linear(tensors, len(weight), backward=True, piece=piece)
    sums = part.sum(0)
    d_bias = None if bias is None else sums[weight.numel() :]
    return dx, sums[: weight.numel()].view(weight.shape), d_bias


def _run_linear(
    tensors: dict[str, Tensor | None], outputs: int, *, backward: bool, piece: int
) -> None:
    x = tensors["x"]
    assert x is not None
    if x.numel():
        rows, inputs = x.shape
        call("linear", tensors, backward=backward, rows=rows, K=inputs, N=outputs, piece=piece)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        x = x.contiguous()
        ctx.save_for_backward(x, weight, bias)
        return linear_forward(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        return linear_backward(g.contiguous(), *ctx.saved_tensors)


def native_linear(
    x: Float[Tensor, "*rows K"], weight: Float[Tensor, "N K"], bias: Float[Tensor, " N"] | None
) -> Float[Tensor, "*rows N"]:
    """W x + b, for tensors that the library can take; differentiable."""
    y: Tensor = _Linear.apply(x.reshape(-1, x.shape[-1]), weight, bias)
    return y.view(*x.shape[:-1], len(weight))


def _native_accepts(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    return library.fits(x, weight, bias) and not torch.is_autocast_enabled("cpu")


LINEAR = Operation(
    Implementation("native", native_linear, _native_accepts),
    Implementation("torch", gemm.linear, accept_all),
    recorded=F.linear,
)


def linear(
    x: Float[Tensor, "*rows K"],
    weight: Float[Tensor, "N K"],
    bias: Float[Tensor, " N"] | None = None,
) -> Float[Tensor, "*rows N"]:
    """W x + b."""
    y: Tensor = LINEAR(x, weight, bias)
    return y
