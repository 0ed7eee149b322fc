"""RMSNorm over the last axis: y = w ⊙ x / √(mean(x²) + ε).

For the backward pass the input and one number per row are kept. In C it is float32, row by row. On
a GPU the sum that a block makes of the residual stream goes along: x + added and its norm are one
launch forward and one backward. Under autocast the output is of autocast's dtype at once, without a
float32 copy in between.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from genodiff.kernels import library
from genodiff.kernels.dispatch import Implementation, Operation
from genodiff.kernels.library import call
from genodiff.kernels.triton import launch
from genodiff.kernels.triton.launch import kernels, next_power_of_2, use_device
from genodiff.kernels.triton.mixer import compute_dtype

_PIECE = 256  # rows of a task, NORM_PIECE of native.c
_WIDEST = 4096  # most channels: a row is in the registers of one program
_PROGRAMS = 1024  # most shares of the weight's gradient


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


def _tiles(tokens: int, width: int) -> tuple[int, int, int]:
    """Rows of a program's tile, the width it is padded to, and how many tiles there are."""
    BD = next_power_of_2(width)
    BT = max(1, 2048 // BD)
    return BT, BD, -(-tokens // BT)


class AddNorm(torch.autograd.Function):
    """x + added (*shape, D) and its norm, in the dtype of x or of autocast.

    Where `added` is None, the norm of x alone.
    """

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


def _triton_accepts(x: Tensor, weight: Tensor, eps: float) -> bool:
    return x.shape[-1] <= _WIDEST and launch.fits(x, weight)


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


def graph_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """As `rms_norm`, in operations of torch that can be recorded."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


NORM = Operation(
    Implementation("triton", lambda x, *of: AddNorm.apply(x, None, *of), _triton_accepts),
    Implementation("native", _NativeNorm.apply, lambda *given: library.fits(*given[:2])),
    Implementation("torch", _RMSNorm.apply),
    recorded=graph_norm,
)

ADD_NORM = Operation(
    Implementation("triton", AddNorm.apply, _triton_adds),
    Implementation("torch", _add_by_parts),
    recorded=_add_by_parts,
)
