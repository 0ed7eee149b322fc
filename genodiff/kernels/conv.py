"""The short causal convolution of a Mamba mixer, channels last.

    y_t = act(b + Σ_k w_k x_{t−K+1+k})        in reverse: y_t = act(b + Σ_k w_k x_{t+K−1−k})

In reverse it looks ahead instead of back, as if time were flipped before and after. The version in
torch goes through blocks of time that fit a core's cache. Only the inputs are saved for the
backward pass.

In C, in a mixer, the outputs are also projected, p_t = V y_t. The equations of its backward pass
stand in `conv.h`. Its tensors are float32 on a CPU, with the last axis contiguous.
"""

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from genodiff.kernels import library
from genodiff.kernels.dispatch import Implementation, Operation
from genodiff.kernels.library import call
from genodiff.kernels.mamba_ssm import fits_published_conv, published_conv
from genodiff.kernels.parallel import map_parts
from genodiff.kernels.triton import launch
from genodiff.kernels.triton.mixer import MOST_TAPS, TritonConv


def conv_forward(
    x: Float[Tensor, "B L E"],
    weight: Float[Tensor, "E K"],
    bias: Float[Tensor, " E"] | None,
    *,
    reverse: bool,
    silu: bool,
    v: Float[Tensor, "P E"] | None = None,
    block: int | None = None,
) -> tuple[Float[Tensor, "B L E"], Float[Tensor, "B L P"] | None]:
    """The outputs y and, where there is `v`, their projection, made while they are in the cache.

    With `block`, a divisor of L, each block is a sequence of its own.
    """
    y, flags = x.new_empty(x.shape), dict(reverse=reverse, silu=silu, backward=False)
    p = None if v is None else x.new_empty(*x.shape[:2], len(v))
    _run_conv(dict(x=x, bias=bias, y=y, p=p), weight, None if v is None else v.t(), block, **flags)
    return y, p


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
) -> list[Tensor]:
    """The gradients of the weight, of the bias and, (P, E), of the projection `v`.

    That of x is written to `dx`, or added; `gp` is that of what was projected.
    """
    pieces, width = x.shape[0] * -(-x.shape[1] // _steps_per_task(x)), weight.shape[1]
    # One share for each task: dw (K rows), dbias (one), dv (P).
    part = x.new_empty(pieces, width + 1 + (0 if v is None else len(v)), x.shape[2])
    tensors = dict(x=x, bias=bias, gy=gy, gp=gp, dx=dx, part=part)
    flags = dict(reverse=reverse, silu=silu, accumulate=accumulate)
    _run_conv(tensors, weight, v, block, backward=True, **flags)
    sums = part.sum(0)
    return [sums[:width].t(), sums[width], sums[width + 1 :]]


def _run_conv(
    tensors: dict[str, Tensor | None],
    weight: Tensor,
    v: Tensor | None,
    block: int | None,
    **numbers: Any,
) -> None:
    x = tensors["x"]
    assert x is not None
    batch, length, channels = x.shape
    tensors |= {"w": weight.t().contiguous(), "v": None if v is None else v.contiguous()}
    numbers |= {"batch": batch, "L": length, "E": channels, "K": weight.shape[1]}
    numbers |= {"block": length if block is None else block, "piece": _steps_per_task(x)}
    call("conv", tensors, P=0 if v is None else v.numel() // max(channels, 1), **numbers)


def _steps_per_task(x: Float[Tensor, "B L E"]) -> int:
    return library.rows_per_task(library.PIECE, x.shape[0] * x.shape[1])


class _NativeConv(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, reverse: bool,
        activation: str | None,
    ) -> Tensor:  # fmt: skip
        x, weight = library.pack_channels(x), weight.contiguous()
        bias = None if bias is None else bias.contiguous()
        ctx.save_for_backward(x, weight, bias)
        ctx.way = dict(reverse=reverse, silu=activation == "silu")
        return conv_forward(x, weight, bias, **ctx.way)[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias = ctx.saved_tensors
        gy, dx = library.pack_channels(gy), x.new_empty(x.shape)
        dw, db, _ = conv_backward(gy, x, weight, bias, **ctx.way, dx=dx)
        return dx, dw.contiguous(), None if bias is None else db, None, None


_NUMBERS = 2**17  # numbers in a block, about


def causal_conv1d(
    x: Float[Tensor, "B L E"],
    weight: Float[Tensor, "E K"],
    bias: Float[Tensor, " E"] | None = None,
    reverse: bool = False,
    activation: str | None = "silu",
    before: Float[Tensor, "B W E"] | None = None,
) -> Float[Tensor, "B L E"]:
    """Outputs, in the dtype of x.

    `before` holds the W positions before x, in the order of the sequence: those to its left, or
    with `reverse` to its right. Positions further out count as zero. `activation` is "silu" or
    None. Raises `ValueError` for another.
    """
    if before is not None and before.shape[1]:
        near = min(weight.shape[1] - 1, before.shape[1])
        known = before[:, :near] if reverse else before[:, before.shape[1] - near :]
        wide = torch.cat([x, known] if reverse else [known, x], 1)
        y = causal_conv1d(wide, weight, bias, reverse, activation)
        return y[:, : x.shape[1]] if reverse else y[:, near:]
    if activation not in ("silu", None):
        raise ValueError(f"activation is 'silu' or None, not {activation!r}")
    y = CONV(x, weight, bias, reverse, activation)
    return y


def _blocks(x: Tensor) -> list[slice]:
    steps = max(64, _NUMBERS // max(x.shape[2], 1))
    return [slice(start, min(start + steps, x.shape[1])) for start in range(0, x.shape[1], steps)]


def _taps(
    width: int, reverse: bool, block: slice, length: int
) -> Iterator[tuple[int, slice, slice]]:
    """For each tap (k, the outputs of a block that it reaches, the inputs that it reads for them).

    Outputs are counted from the block's start.
    """
    for k in range(width):
        offset = width - 1 - k if reverse else k - width + 1
        low, high = max(block.start, -offset), min(block.stop, length - offset)
        if low < high:
            here = slice(low - block.start, high - block.start)
            yield k, here, slice(low + offset, high + offset)


def _before_activation(
    x: Tensor, taps: Tensor, bias: Tensor | None, spans: list[tuple[int, slice, slice]], steps: int
) -> Tensor:
    y = taps.new_zeros(steps, taps.shape[1]) if bias is None else bias.expand(steps, -1).clone()
    for k, here, there in spans:
        y[here].addcmul_(x[there], taps[k])
    return y


class _Conv(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, reverse: bool,
        activation: str | None,
    ) -> Tensor:  # fmt: skip
        ctx.save_for_backward(x, weight, bias)
        ctx.reverse, ctx.silu = reverse, activation == "silu"
        taps, length = weight.t().contiguous(), x.shape[1]
        y = torch.empty_like(x, memory_format=torch.contiguous_format)

        def work(row: int) -> None:
            for block in _blocks(x):
                spans = list(_taps(len(taps), reverse, block, length))
                out = _before_activation(x[row], taps, bias, spans, block.stop - block.start)
                y[row, block] = F.silu(out, inplace=True) if ctx.silu else out

        map_parts(work, range(len(x)), x.device)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias = ctx.saved_tensors
        taps, length = weight.t().contiguous(), x.shape[1]
        dx = torch.zeros(x.shape, dtype=taps.dtype, device=x.device)

        def work(row: int) -> Tensor:
            sums = taps.new_zeros(len(taps) + 1, taps.shape[1])
            for block in _blocks(x):
                spans = list(_taps(len(taps), ctx.reverse, block, length))
                g = gy[row, block].to(taps.dtype)
                if ctx.silu:
                    out = _before_activation(x[row], taps, bias, spans, len(g))
                    g = torch.ops.aten.silu_backward(g, out)
                ones = g.new_ones(1, len(g))
                sums[-1] += (ones @ g)[0]
                for k, here, there in spans:
                    dx[row, there].addcmul_(g[here], taps[k])
                    sums[k] += (ones[:, here] @ (g[here] * x[row, there]))[0]
            return sums

        sums = sum(
            map_parts(work, range(len(x)), x.device), taps.new_zeros(len(taps) + 1, taps.shape[1])
        )
        return dx.to(x.dtype), sums[:-1].t(), None if bias is None else sums[-1], None, None


def graph_conv(
    x: Tensor, weight: Tensor, bias: Tensor | None, reverse: bool, activation: str | None
) -> Tensor:
    """As `causal_conv1d`, in operations of torch that can be recorded."""
    width, taps = weight.shape[1], weight.to(x.dtype)
    ahead = (0, width - 1) if reverse else (width - 1, 0)
    wide = F.pad(x.transpose(1, 2), ahead)
    kernel = (taps.flip(1) if reverse else taps)[:, None]
    shift = None if bias is None else bias.to(x.dtype)
    y = F.conv1d(wide, kernel, shift, groups=x.shape[2]).transpose(1, 2)
    return F.silu(y) if activation == "silu" else y


def _triton_accepts(
    x: Tensor, weight: Tensor, bias: Tensor | None, reverse: bool, activation: str | None
) -> bool:
    silu, taps = activation == "silu", weight.shape[1]
    return silu and taps <= MOST_TAPS and launch.fits(x, weight, bias, rows=len(x))


CONV = Operation(
    Implementation("triton", TritonConv.apply, _triton_accepts),
    Implementation("mamba_ssm", published_conv, lambda *given: fits_published_conv(*given[:3])),
    Implementation("native", _NativeConv.apply, lambda *given: library.fits(*given[:3])),
    Implementation("torch", _Conv.apply),
    recorded=graph_conv,
)
