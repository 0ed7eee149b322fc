"""The causal convolution in C and, in a mixer, the projection of its outputs.

    y_t = act(b + Σ_k w_k x_{t−K+1+k})        p_t = V y_t

The equations of the backward pass stand in `conv.h`. Tensors are float32 on a CPU, with the last
axis contiguous.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from genodiff.kernels.library import call
from genodiff.kernels.native import tasks


def conv_forward(
    x: Float[Tensor, "B L E"],
    weight: Float[Tensor, "E K"],
    bias: Float[Tensor, " E"] | None,
    *,
    reverse: bool,
    silu: bool,
    v: Float[Tensor, "P E"] | None = None,
    p: Float[Tensor, "B L P"] | None = None,
    block: int | None = None,
) -> Float[Tensor, "B L E"]:
    """The outputs y; where there is `v`, their projection is written to `p`.

    With `block`, a divisor of L, each block is a sequence of its own.
    """
    y = x.new_empty(x.shape)
    _run_conv(
        dict(x=x, bias=bias, y=y, p=p),
        weight,
        None if v is None else v.t(),
        reverse=reverse,
        silu=silu,
        backward=False,
        block=block,
    )
    return y


class ConvGradients(NamedTuple):
    """The gradients of the convolution's weight and bias, and of the projection."""

    weight: Float[Tensor, "E K"]
    bias: Float[Tensor, " E"]
    v: Float[Tensor, "P E"]


def conv_backward(
    gy: Float[Tensor, "B L E"],
    x: Float[Tensor, "B L E"],
    weight: Float[Tensor, "E K"],
    bias: Float[Tensor, " E"] | None,
    *,
    reverse: bool,
    silu: bool,
    dx: Float[Tensor, "B L E"],
    accumulate: bool = False,
    v: Float[Tensor, "P E"] | None = None,
    gp: Float[Tensor, "B L P"] | None = None,
    block: int | None = None,
) -> ConvGradients:
    """Write the gradient of x to `dx`, or add it; `gp` is the gradient of the projection."""
    pieces, width = x.shape[0] * -(-x.shape[1] // _steps_per_task(x)), weight.shape[1]
    # One share for each task: dw (K rows), dbias (one), dv (P).
    part = x.new_empty(pieces, width + 1 + (0 if v is None else len(v)), x.shape[2])
    tensors = dict(x=x, bias=bias, gy=gy, gp=gp, dx=dx, part=part)
    flags = dict(reverse=reverse, silu=silu, accumulate=accumulate)
    _run_conv(tensors, weight, v, backward=True, block=block, **flags)
    sums = part.sum(0)
    return ConvGradients(sums[:width].t(), sums[width], sums[width + 1 :])


def _run_conv(
    tensors: dict[str, Tensor | None],
    weight: Tensor,
    v: Tensor | None,
    block: int | None,
    **numbers: Any,
) -> None:
    x = tensors["x"]
    assert x is not None
    if not x.numel():
        return
    batch, length, channels = x.shape
    tensors |= {"w": weight.t().contiguous(), "v": None if v is None else v.contiguous()}
    numbers |= {"batch": batch, "L": length, "E": channels, "K": weight.shape[1]}
    numbers |= {"block": length if block is None else block}
    numbers |= {"P": 0 if v is None else v.numel() // channels, "piece": _steps_per_task(x)}
    call("conv", tensors, **numbers)


def _steps_per_task(x: Float[Tensor, "B L E"]) -> int:
    return tasks.rows_per_task(tasks.PIECE, x.shape[0] * x.shape[1])


class _Conv(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, reverse: bool, silu: bool
    ) -> Tensor:
        x, weight = tasks.pack_channels(x), weight.contiguous()
        bias = None if bias is None else bias.contiguous()
        ctx.save_for_backward(x, weight, bias)
        ctx.reverse, ctx.silu = reverse, silu
        return conv_forward(x, weight, bias, reverse=reverse, silu=silu)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias = ctx.saved_tensors
        gy, dx = tasks.pack_channels(gy), x.new_empty(x.shape)
        found = conv_backward(gy, x, weight, bias, reverse=ctx.reverse, silu=ctx.silu, dx=dx)
        return dx, found.weight.contiguous(), None if bias is None else found.bias, None, None


def native_conv(
    x: Float[Tensor, "B L E"],
    weight: Float[Tensor, "E K"],
    bias: Float[Tensor, " E"] | None,
    reverse: bool,
    activation: str | None,
) -> Float[Tensor, "B L E"]:
    """As `causal_conv1d`, for tensors that the library can take; differentiable."""
    y: Tensor = _Conv.apply(x, weight, bias, reverse, activation == "silu")
    return y
