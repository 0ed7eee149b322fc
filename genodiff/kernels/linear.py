"""A linear layer and the table of an embedding, with the same bits in every run.

    y = x Wᵀ + b        rows = table[tokens],  ∂table = one_hot(tokens)ᵀ ∂rows

In C, the layer takes T rows in float32 on a CPU, and its bits are the same for any number of
threads; elsewhere it uses torch's products. On a GPU torch (2.11) adds the gradient of a table by
atomics where tokens are few and frequent, as those of DNA are: two runs then differ from their
first step. For a small table that gradient is a product instead, whose sums have a fixed order.
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from genodiff.kernels import gemm, library
from genodiff.kernels.dispatch import Implementation, Operation
from genodiff.kernels.library import call


def linear_forward(
    x: Float[Tensor, "T K"], weight: Float[Tensor, "N K"], bias: Float[Tensor, " N"] | None
) -> Float[Tensor, "T N"]:
    """x Wᵀ + b."""
    y, bias = x.new_empty(len(x), len(weight)), None if bias is None else bias.contiguous()
    tensors, sizes = dict(x=x, w=weight.t().contiguous(), bias=bias, y=y), _sizes(x, weight)
    call("linear", tensors, backward=False, **sizes, piece=library.PIECE)
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
    call("linear", tensors, backward=True, **_sizes(x, weight), piece=piece)
    sums = part.sum(0)
    d_bias = None if bias is None else sums[weight.numel() :]
    return dx, sums[: weight.numel()].view(weight.shape), d_bias


def _sizes(x: Tensor, weight: Tensor) -> dict[str, int]:
    return {"rows": len(x), "K": x.shape[1], "N": len(weight)}


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        rows = x.reshape(-1, x.shape[-1]).contiguous()
        ctx.save_for_backward(rows, weight, bias)
        return linear_forward(rows, weight, bias).view(*x.shape[:-1], len(weight))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        dx, *others = linear_backward(g.reshape(-1, g.shape[-1]).contiguous(), *ctx.saved_tensors)
        return dx.view(*g.shape[:-1], dx.shape[1]), *others


def _native_accepts(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    return library.fits(x, weight, bias) and not torch.is_autocast_enabled("cpu")


LINEAR = Operation(
    Implementation("native", _Linear.apply, _native_accepts),
    Implementation("torch", gemm.linear),
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


_FEW = 1024  # rows of a table; of more, torch sorts the tokens, and adds in their order
_NUMBERS = 1 << 24  # most of a one-hot matrix that is held at once


def look_up(
    tokens: Int[Tensor, "*shape"], table: Float[Tensor, "V D"]
) -> Float[Tensor, "*shape D"]:
    """The row of each token.

    >>> look_up(torch.tensor([1, 0]), torch.eye(2)).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    # Called as it is, so that who watches for it (`scoring/one_hot.py`) sees it.
    rows = F.embedding(tokens, table)
    if not _sums_by_atomics(table) or type(rows.grad_fn).__name__ != "EmbeddingBackward0":
        return rows
    found: Tensor = _Rows.apply(rows.detach(), tokens, table)
    return found


def _sums_by_atomics(table: Tensor) -> bool:
    """Whether torch's own gradient of a table may depend on the order in which threads end."""
    return table.is_cuda and len(table) <= _FEW


class _Rows(torch.autograd.Function):
    """`rows` as they are, with the gradient of the table that they are from."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, tokens: Tensor, table: Tensor) -> Tensor:
        ctx.save_for_backward(tokens)
        ctx.table = table.shape, table.dtype
        return rows.view_as(rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        (tokens,), ((size, width), dtype) = ctx.saved_tensors, ctx.table
        every = torch.arange(size, device=tokens.device)
        found = torch.zeros(size, width, device=g.device, dtype=dtype)
        pieces = max(1, _NUMBERS // size)
        with torch.autocast(g.device.type, enabled=False):
            for part, of in zip(
                tokens.reshape(-1).split(pieces), g.reshape(-1, width).split(pieces), strict=True
            ):
                found.addmm_((every[:, None] == part).to(dtype), of.to(dtype))
        return None, None, found
