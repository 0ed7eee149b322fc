"""The gate of a mixer in C, y ⊙ silu(z), and the projection W of what is gated.

Tensors are float32 on a CPU, one row for each of T tokens. Rows of z and of its gradient may lie
apart: in a mixer they are one half of the rows of [x, z].
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from genodiff.kernels import library
from genodiff.kernels.library import call


def gate_forward(
    y: Float[Tensor, "T E"], z: Float[Tensor, "T E"], weight: Float[Tensor, "D E"] | None = None
) -> Float[Tensor, "T D_or_E"]:
    """y ⊙ silu(z), projected where there is a weight."""
    out = torch.empty_like(y) if weight is None else y.new_empty(len(y), len(weight))
    tensors = dict(y=y, z=z, out=out, w=None if weight is None else weight.t().contiguous())
    _run_gate(tensors, backward=False, outputs=0 if weight is None else len(weight))
    return out


def gate_backward(
    g: Float[Tensor, "T D_or_E"],
    y: Float[Tensor, "T E"],
    z: Float[Tensor, "T E"],
    dz: Float[Tensor, "T E"],
    weight: Float[Tensor, "D E"] | None = None,
) -> tuple[Float[Tensor, "T E"], Float[Tensor, "D E"] | None]:
    """The gradients of y and of the weight; that of z is written to `dz`."""
    gy = torch.empty_like(y)
    tensors: dict[str, Tensor | None] = dict(y=y, z=z, g=g, gy=gy, dz=dz)
    if weight is None:
        _run_gate(tensors, backward=True)
        return gy, None
    piece = library.rows_per_task(library.SUM_PIECE, len(y))
    part = y.new_empty(-(-len(y) // piece), *weight.shape)
    tensors |= dict(w=weight.contiguous(), part=part)
    _run_gate(tensors, backward=True, outputs=len(weight), piece=piece)
    return gy, part.sum(0)


def _run_gate(
    tensors: dict[str, Tensor | None],
    *,
    backward: bool,
    outputs: int = 0,
    piece: int = library.PIECE,
) -> None:
    y = tensors["y"]
    assert y is not None
    if y.numel():
        rows, channels = y.shape
        call("gate", tensors, backward=backward, rows=rows, E=channels, D=outputs, piece=piece)


class _Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, y: Tensor, z: Tensor) -> Tensor:
        z = library.pack_channels(z)
        ctx.save_for_backward(y, z)
        return gate_forward(y.flatten(0, 1), z.flatten(0, 1)).view(y.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        y, z = (x.flatten(0, 1) for x in ctx.saved_tensors)
        dz = torch.empty_like(y)
        gy, _ = gate_backward(g.flatten(0, 1).contiguous(), y, z, dz)
        return gy.view(g.shape), dz.view(g.shape)


def native_gate(y: Float[Tensor, "B L E"], z: Float[Tensor, "B L E"]) -> Float[Tensor, "B L E"]:
    """y ⊙ silu(z), differentiable."""
    out: Tensor = _Gate.apply(y, z)
    return out
