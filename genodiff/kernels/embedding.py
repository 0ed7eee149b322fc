"""Rows of a table by token, with a gradient that is the same bits every time.

    rows = table[tokens]        ∂table = one_hot(tokens)ᵀ ∂rows

On a GPU torch (2.11) adds the gradient's rows by atomics where tokens are few and come often, as
those of DNA do: two runs then differ from their first step. For a small table the gradient is a
product instead, whose sums have a fixed order.
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

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
