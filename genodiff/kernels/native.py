"""The selective scan, the causal convolution and the gate in C: what `library.py` loads, as functions of tensors.

float32 on a CPU; anything else goes to the torch versions. Work is divided by shape alone and partial sums are added in a fixed
order, so that results are the same, bit for bit, for any number of threads.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from genodiff.kernels.chunked import chunked_scan
from genodiff.kernels.library import call, fits

CHUNK = 64  # steps between saved states, as in native.c
CONV_PIECE = 256  # steps of a task of the convolution, as in native.c
_FEW_SEQUENCES = 8  # below this many, channels are divided over tasks as well
_LEAST_GROUP = 64  # channels of a task: what is done once a task and step would weigh too much with fewer


def rows(x: Tensor) -> Tensor:
    """`x` (B, L, C) with neighbouring channels side by side, copied only if they are not."""
    return x if x.stride(2) == 1 or x.shape[2] == 1 else x.contiguous()


def _group(batch: int, channels: int) -> int:
    """Channels of a task: all of them when there are sequences enough, else about an eighth; a function of the shape alone."""
    if batch >= _FEW_SEQUENCES:
        return max(channels, 1)
    share = -(-channels * batch // _FEW_SEQUENCES)
    return max(_LEAST_GROUP, -(-share // 16) * 16)


class LowRank(NamedTuple):
    """Step sizes before bias and softplus as a product, r w, which the scan works out as it goes along."""

    r: Float[Tensor, "B L R"]  # its rows may lie apart
    w: Float[Tensor, "R E"]


def _shape(u: Tensor, A: Tensor, delta: Tensor | LowRank) -> dict[str, int]:
    batch, length, channels = u.shape
    rank = delta.w.shape[0] if isinstance(delta, LowRank) else 0
    return {"batch": batch, "L": length, "E": channels, "N": A.shape[0], "R": rank, "group": _group(batch, channels), "chunk": CHUNK}


def _steps(delta: Tensor | LowRank) -> dict[str, Tensor | None]:
    return delta._asdict() if isinstance(delta, LowRank) else {"delta": delta}


def new_states(u: Float[Tensor, "B L E"], n: int) -> Float[Tensor, "B chunks N E"]:
    """Room for the state before each chunk."""
    return u.new_empty(u.shape[0], -(-u.shape[1] // CHUNK), n, u.shape[2])


def scan_forward(
    y: Tensor, u: Tensor, delta: Tensor | LowRank, A: Float[Tensor, "N E"], B: Tensor, C: Tensor, D: Tensor | None, bias: Tensor | None,
    *, softplus: bool, reverse: bool, states: Tensor | None = None, h0: Tensor | None = None, last: Tensor | None = None,
    accumulate: bool = False,
) -> None:  # fmt: skip
    """Write y, or add to it; fill `states` for the backward pass and `last` (B, E, N) where they are given."""
    if u.numel():
        tensors = _steps(delta) | dict(u=u, A=A, B=B, C=C, D=D, bias=bias, h0=h0, y=y, states=states, hlast=last)
        call("scan", tensors, backward=False, softplus=softplus, reverse=reverse, accumulate=accumulate, **_shape(u, A, delta))


class ScanGradients(NamedTuple):
    """The gradients of a scan's inputs; A as (N, E), delta as it came."""

    u: Tensor
    delta: Tensor | LowRank
    A: Tensor
    B: Tensor
    C: Tensor
    D: Tensor
    bias: Tensor
    h0: Tensor | None


def scan_backward(
    gy: Tensor, u: Tensor, delta: Tensor | LowRank, A: Float[Tensor, "N E"], B: Tensor, C: Tensor, D: Tensor | None, bias: Tensor | None,
    states: Tensor, *, softplus: bool, reverse: bool, h0: Tensor | None = None, g_last: Tensor | None = None,
) -> ScanGradients:  # fmt: skip
    """The gradients, from y's and the last state's."""
    (batch, length, channels), n = u.shape, A.shape[0]
    parts = -(-channels // _group(batch, channels))
    du, dA = u.new_empty(u.shape), u.new_empty(batch, n, channels)
    dB, dC = (u.new_empty(parts, batch, length, n) for _ in range(2))
    dD, dbias = (u.new_empty(batch, channels) for _ in range(2))
    dh0 = None if h0 is None else torch.empty_like(h0)
    tensors = _steps(delta) | dict(u=u, A=A, B=B, C=C, D=D, bias=bias, states=states, gy=gy, ghlast=g_last)
    tensors |= dict(du=du, dA=dA, dB=dB, dC=dC, dD=dD, dbias=dbias, dh0=dh0)
    rank = len(delta.w) if isinstance(delta, LowRank) else 0
    low = LowRank(u.new_empty(parts, batch, length, rank), u.new_empty(batch, rank, channels))
    full = u.new_empty(u.shape if not rank else 0)
    tensors |= dict(dr=low.r, dw=low.w) if rank else dict(ddelta=full)
    if u.numel():
        call("scan", tensors, backward=True, softplus=softplus, reverse=reverse, **_shape(u, A, delta))
    ddelta = LowRank(_whole(low.r), low.w.sum(0)) if rank else full
    return ScanGradients(du, ddelta, dA.sum(0), _whole(dB), _whole(dC), dD.sum(0), dbias.sum(0), dh0)


def _whole(parts: Float[Tensor, "parts *shape"]) -> Float[Tensor, "*shape"]:
    """The sum over groups of channels."""
    return parts[0] if len(parts) == 1 else parts.sum(0)


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor | None,
        bias: Tensor | None, softplus: bool, reverse: bool, h0: Tensor | None, keep: bool,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        u, delta, B, C = rows(u), rows(delta), rows(B), rows(C)
        D, bias, h0 = (None if x is None else x.contiguous() for x in (D, bias, h0))
        A = A.t().contiguous()
        y, last = u.new_empty(u.shape), u.new_empty(u.shape[0], u.shape[2], A.shape[0])
        states = new_states(u, A.shape[0]) if keep else None
        scan_forward(y, u, delta, A, B, C, D, bias, softplus=softplus, reverse=reverse, states=states, h0=h0, last=last)
        ctx.save_for_backward(u, delta, A, B, C, D, bias, h0, states)
        ctx.softplus, ctx.reverse = softplus, reverse
        return y, last

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gy: Tensor, g_last: Tensor) -> tuple[Tensor | None, ...]:
        u, delta, A, B, C, D, bias, h0, states = ctx.saved_tensors
        g = scan_backward(
            rows(gy), u, delta, A, B, C, D, bias, states,
            softplus=ctx.softplus, reverse=ctx.reverse, h0=h0, g_last=g_last.contiguous(),
        )  # fmt: skip
        dD, dbias = None if D is None else g.D, None if bias is None else g.bias
        assert isinstance(g.delta, Tensor)
        return g.u, g.delta, g.A.t(), g.B, g.C, dD, dbias, None, None, g.h0, None


def native_scan(
    u: Float[Tensor, "B L E"],
    delta: Float[Tensor, "B L E"],
    A: Float[Tensor, "E N"],
    B: Float[Tensor, "B L N"],
    C: Float[Tensor, "B L N"],
    D: Float[Tensor, " E"] | None = None,
    z: Float[Tensor, "B L E"] | None = None,
    delta_bias: Float[Tensor, " E"] | None = None,
    delta_softplus: bool = False,
    reverse: bool = False,
    h0: Float[Tensor, "B E N"] | None = None,
) -> tuple[Float[Tensor, "B L E"], Float[Tensor, "B E N"]]:
    """As `naive_scan`: outputs y and the state after the last step. Where no gradient is asked for, nothing is saved."""
    inputs = (u, delta, A, B, C, D, z, delta_bias, h0)
    if not fits(*inputs) or not u.numel():
        return chunked_scan(u, delta, A, B, C, D, z, delta_bias, delta_softplus, reverse, h0)
    keep = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs)
    y, last = _Scan.apply(u, delta, A, B, C, D, delta_bias, delta_softplus, reverse, h0, keep)
    return y if z is None else _Gate.apply(y, z), last


def conv_forward(x: Tensor, weight: Tensor, bias: Tensor | None, *, reverse: bool, silu: bool) -> Float[Tensor, "B L E"]:
    """The convolution's outputs."""
    y = x.new_empty(x.shape)
    _run_conv(dict(x=x, w=weight.t().contiguous(), bias=bias, y=y), reverse=reverse, silu=silu, backward=False)
    return y


def conv_backward(
    gy: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None, *, reverse: bool, silu: bool, dx: Tensor, accumulate: bool = False
) -> tuple[Float[Tensor, "E K"], Float[Tensor, " E"]]:
    """Write dx, or add to it; return the gradients of the weight and the bias."""
    pieces = x.shape[0] * -(-x.shape[1] // CONV_PIECE)
    part = x.new_empty(pieces, weight.shape[1] + 1, x.shape[2])
    tensors = dict(x=x, w=weight.t().contiguous(), bias=bias, gy=gy, dx=dx, part=part)
    _run_conv(tensors, reverse=reverse, silu=silu, backward=True, accumulate=accumulate)
    sums = part.sum(0)
    return sums[:-1].t(), sums[-1]


def _run_conv(tensors: dict[str, Tensor | None], **numbers: Any) -> None:
    x, weight = tensors["x"], tensors["w"]
    assert x is not None
    assert weight is not None
    if x.numel():
        batch, length, channels = x.shape
        call("conv", tensors, batch=batch, L=length, E=channels, K=weight.shape[0], **numbers)


class _Conv(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, reverse: bool, silu: bool) -> Tensor:
        x, weight, bias = rows(x), weight.contiguous(), None if bias is None else bias.contiguous()
        ctx.save_for_backward(x, weight, bias)
        ctx.reverse, ctx.silu = reverse, silu
        return conv_forward(x, weight, bias, reverse=reverse, silu=silu)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias = ctx.saved_tensors
        dx = x.new_empty(x.shape)
        dweight, dbias = conv_backward(rows(gy), x, weight, bias, reverse=ctx.reverse, silu=ctx.silu, dx=dx)
        return dx, dweight.contiguous(), None if bias is None else dbias, None, None


def native_conv_fits(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Whether `native_conv` can take these tensors."""
    return fits(x, weight, bias) and x.numel() > 0


def native_conv(
    x: Float[Tensor, "B L E"], weight: Float[Tensor, "E K"], bias: Float[Tensor, " E"] | None, reverse: bool, silu: bool
) -> Float[Tensor, "B L E"]:
    """As `causal_conv1d`, for tensors that `native_conv_fits`."""
    return _Conv.apply(x, weight, bias, reverse, silu)


def gate_forward(y: Float[Tensor, "T E"], z: Float[Tensor, "T E"]) -> Float[Tensor, "T E"]:
    """y silu(z); z's rows may lie apart."""
    out = torch.empty_like(y)
    if y.numel():
        call("gate", dict(y=y, z=z, out=out), backward=False, rows=y.shape[0], E=y.shape[1])
    return out


def gate_backward(
    g: Float[Tensor, "T E"], y: Float[Tensor, "T E"], z: Float[Tensor, "T E"], dz: Float[Tensor, "T E"]
) -> tuple[Float[Tensor, "T E"], Float[Tensor, "T E"]]:
    """y silu(z) again and y's gradient, from the gate's; z's gradient goes to `dz`, whose rows may lie apart. Overwrites g."""
    out = torch.empty_like(y)
    if y.numel():
        call("gate", dict(y=y, z=z, g=g, out=out, gy=g, dz=dz), backward=True, rows=y.shape[0], E=y.shape[1])
    return out, g


class _Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, y: Tensor, z: Tensor) -> Tensor:
        z = rows(z)
        ctx.save_for_backward(y, z)
        return gate_forward(y.flatten(0, 1), z.flatten(0, 1)).view(y.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        y, z = (x.flatten(0, 1) for x in ctx.saved_tensors)
        dz = torch.empty_like(y)
        _, gy = gate_backward(g.flatten(0, 1).clone(memory_format=torch.contiguous_format), y, z, dz)
        return gy.view(g.shape), dz.view(g.shape)
