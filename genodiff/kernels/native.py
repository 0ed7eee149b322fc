"""The selective scan, and the causal convolution and the gate with the projections that follow
them, in C: what `library.py` loads, as functions of tensors.

float32 on a CPU; anything else goes to the torch versions. Work is divided by shape alone and
partial sums are added in a fixed order, so that results are the same, bit for bit, for any number
of threads.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from genodiff.kernels.library import call, fits
from genodiff.kernels.torch_scan import chunked_scan

CHUNK = 64  # steps between saved states, as in native.c
_PIECE = 256  # steps of a task of the convolution, rows of one of the gate
_SUM = 1024  # rows of a task of the gate that has a share of a weight's gradient
_SHARES = 64  # of a gradient that tasks may have, about: each is as large as the weight
_FEW_SEQUENCES = 8  # below this many, channels are divided over tasks as well
_LEAST_GROUP = (
    64  # channels of a task: what is done once a task and step would weigh too much with fewer
)


def rows(x: Tensor) -> Tensor:
    """`x` (B, L, C) with neighbouring channels side by side, copied only if they are not."""
    return x if x.stride(2) == 1 or x.shape[2] == 1 else x.contiguous()


def _group(batch: int, channels: int) -> int:
    """Channels of a task: all of them when there are sequences enough, else about an eighth; a
    function of the shape alone.
    """
    if batch >= _FEW_SEQUENCES:
        return max(channels, 1)
    share = -(-channels * batch // _FEW_SEQUENCES)
    return max(_LEAST_GROUP, -(-share // 16) * 16)


class LowRank(NamedTuple):
    """Step sizes before bias and softplus as a product, r w, which the scan works out as it goes
    along.
    """

    r: Float[Tensor, "B L R"]  # its rows may lie apart
    w: Float[Tensor, "R E"]


def _shape(u: Tensor, A: Tensor, delta: Tensor | LowRank) -> dict[str, int]:
    batch, length, channels = u.shape
    rank = delta.w.shape[0] if isinstance(delta, LowRank) else 0
    return {
        "batch": batch,
        "L": length,
        "E": channels,
        "N": A.shape[0],
        "R": rank,
        "group": _group(batch, channels),
        "chunk": CHUNK,
    }


def _steps(delta: Tensor | LowRank) -> dict[str, Tensor | None]:
    return delta._asdict() if isinstance(delta, LowRank) else {"delta": delta}


def new_states(u: Float[Tensor, "B L E"], n: int) -> Float[Tensor, "B chunks N E"]:
    """Room for the state before each chunk."""
    return u.new_empty(u.shape[0], -(-u.shape[1] // CHUNK), n, u.shape[2])


def scan_forward(
    y: Tensor, u: Tensor, delta: Tensor | LowRank, A: Float[Tensor, "N E"], B: Tensor, C: Tensor,
    D: Tensor | None, bias: Tensor | None,
    *, softplus: bool, reverse: bool, states: Tensor | None = None, h0: Tensor | None = None,
    last: Tensor | None = None,
    accumulate: bool = False,
) -> None:  # fmt: skip
    """Write y, or add to it; fill `states` for the backward pass and `last` (B, E, N) where they
    are given.
    """
    if u.numel():
        tensors = _steps(delta) | dict(
            u=u, A=A, B=B, C=C, D=D, bias=bias, h0=h0, y=y, states=states, hlast=last
        )
        call(
            "scan",
            tensors,
            backward=False,
            softplus=softplus,
            reverse=reverse,
            accumulate=accumulate,
            **_shape(u, A, delta),
        )


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
    gy: Tensor, u: Tensor, delta: Tensor | LowRank, A: Float[Tensor, "N E"], B: Tensor, C: Tensor,
    D: Tensor | None, bias: Tensor | None,
    states: Tensor, *, softplus: bool, reverse: bool, h0: Tensor | None = None,
    g_last: Tensor | None = None,
) -> ScanGradients:  # fmt: skip
    """The gradients, from y's and the last state's."""
    (batch, length, channels), n = u.shape, A.shape[0]
    parts = -(-channels // _group(batch, channels))
    du, dA = u.new_empty(u.shape), u.new_empty(batch, n, channels)
    dB, dC = (u.new_empty(parts, batch, length, n) for _ in range(2))
    dD, dbias = (u.new_empty(batch, channels) for _ in range(2))
    dh0 = None if h0 is None else torch.empty_like(h0)
    tensors = _steps(delta) | dict(
        u=u, A=A, B=B, C=C, D=D, bias=bias, states=states, gy=gy, ghlast=g_last
    )
    tensors |= dict(du=du, dA=dA, dB=dB, dC=dC, dD=dD, dbias=dbias, dh0=dh0)
    rank = len(delta.w) if isinstance(delta, LowRank) else 0
    low = LowRank(u.new_empty(parts, batch, length, rank), u.new_empty(batch, rank, channels))
    full = u.new_empty(u.shape if not rank else 0)
    tensors |= dict(dr=low.r, dw=low.w) if rank else dict(ddelta=full)
    if u.numel():
        call(
            "scan",
            tensors,
            backward=True,
            softplus=softplus,
            reverse=reverse,
            **_shape(u, A, delta),
        )
    ddelta = LowRank(_whole(low.r), low.w.sum(0)) if rank else full
    return ScanGradients(
        du, ddelta, dA.sum(0), _whole(dB), _whole(dC), dD.sum(0), dbias.sum(0), dh0
    )


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
        scan_forward(
            y,
            u,
            delta,
            A,
            B,
            C,
            D,
            bias,
            softplus=softplus,
            reverse=reverse,
            states=states,
            h0=h0,
            last=last,
        )
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
    """As `naive_scan`: outputs y and the state after the last step. Where no gradient is asked for,
    nothing is saved.
    """
    inputs = (u, delta, A, B, C, D, z, delta_bias, h0)
    if not fits(*inputs) or not u.numel():
        return chunked_scan(u, delta, A, B, C, D, z, delta_bias, delta_softplus, reverse, h0)
    keep = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs)
    y, last = _Scan.apply(u, delta, A, B, C, D, delta_bias, delta_softplus, reverse, h0, keep)
    return y if z is None else _Gate.apply(y, z), last


def conv_forward(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    *,
    reverse: bool,
    silu: bool,
    v: Tensor | None = None,
    p: Tensor | None = None,
) -> Float[Tensor, "B L E"]:
    """The convolution's outputs; with v (P, E), their projection goes to `p` (B, L, P)."""
    y = x.new_empty(x.shape)
    _run_conv(
        dict(x=x, bias=bias, y=y, p=p),
        weight,
        None if v is None else v.t(),
        reverse=reverse,
        silu=silu,
        backward=False,
    )
    return y


class ConvGradients(NamedTuple):
    """Of the convolution's weight and bias, and of the projection."""

    weight: Float[Tensor, "E K"]
    bias: Float[Tensor, " E"]
    v: Float[Tensor, "P E"]


def conv_backward(
    gy: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None, *, reverse: bool, silu: bool,
    dx: Tensor, accumulate: bool = False,
    v: Tensor | None = None, gp: Tensor | None = None,
) -> ConvGradients:  # fmt: skip
    """Write dx, or add to it; with v, `gp` (B, L, P) is the gradient of the projection."""
    shares, width = x.shape[0] * -(-x.shape[1] // _steps_of_a_task(x)), weight.shape[1]
    part = x.new_empty(shares, width + 1 + (0 if v is None else len(v)), x.shape[2])
    tensors = dict(x=x, bias=bias, gy=gy, gp=gp, dx=dx, part=part)
    _run_conv(tensors, weight, v, reverse=reverse, silu=silu, backward=True, accumulate=accumulate)
    sums = part.sum(0)
    return ConvGradients(sums[:width].t(), sums[width], sums[width + 1 :])


def _run_conv(
    tensors: dict[str, Tensor | None], weight: Tensor, v: Tensor | None, **numbers: Any
) -> None:
    x = tensors["x"]
    assert x is not None
    if x.numel():
        tensors |= {"w": weight.t().contiguous(), "v": None if v is None else v.contiguous()}
        numbers["P"] = v.numel() // x.shape[2] if v is not None else 0
        batch, length, channels = x.shape
        call(
            "conv",
            tensors,
            batch=batch,
            L=length,
            E=channels,
            K=weight.shape[1],
            piece=_steps_of_a_task(x),
            **numbers,
        )


def _steps_of_a_task(x: Float[Tensor, "B L E"]) -> int:
    """Of the convolution: a function of the shape alone."""
    return _at_least(_PIECE, x.shape[0] * x.shape[1])


def _at_least(piece: int, rows: int) -> int:
    """Rows of a task, so many that not too many tasks have a share of a gradient."""
    return max(piece, -(-rows // _SHARES))


class _Conv(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, reverse: bool, silu: bool
    ) -> Tensor:
        x, weight, bias = rows(x), weight.contiguous(), None if bias is None else bias.contiguous()
        ctx.save_for_backward(x, weight, bias)
        ctx.reverse, ctx.silu = reverse, silu
        return conv_forward(x, weight, bias, reverse=reverse, silu=silu)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias = ctx.saved_tensors
        dx = x.new_empty(x.shape)
        found = conv_backward(rows(gy), x, weight, bias, reverse=ctx.reverse, silu=ctx.silu, dx=dx)
        return dx, found.weight.contiguous(), None if bias is None else found.bias, None, None


def native_conv_fits(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Whether `native_conv` can take these tensors."""
    return fits(x, weight, bias) and x.numel() > 0


def native_conv(
    x: Float[Tensor, "B L E"],
    weight: Float[Tensor, "E K"],
    bias: Float[Tensor, " E"] | None,
    reverse: bool,
    silu: bool,
) -> Float[Tensor, "B L E"]:
    """As `causal_conv1d`, for tensors that `native_conv_fits`."""
    return _Conv.apply(x, weight, bias, reverse, silu)


def gate_forward(
    y: Float[Tensor, "T E"], z: Float[Tensor, "T E"], weight: Float[Tensor, "D E"] | None = None
) -> Float[Tensor, "T D_or_E"]:
    """y silu(z), projected where there is a weight; z's rows may lie apart."""
    out = torch.empty_like(y) if weight is None else y.new_empty(len(y), len(weight))
    tensors = dict(y=y, z=z, out=out, w=None if weight is None else weight.t().contiguous())
    _run_gate(tensors, backward=False, outputs=0 if weight is None else len(weight))
    return out


def gate_backward(
    g: Float[Tensor, "T D_or_E"], y: Float[Tensor, "T E"], z: Float[Tensor, "T E"],
    dz: Float[Tensor, "T E"],
    weight: Float[Tensor, "D E"] | None = None,
) -> tuple[Float[Tensor, "T E"], Float[Tensor, "D E"] | None]:  # fmt: skip
    """The gradients of y and of the weight; z's goes to `dz`, whose rows may lie apart."""
    gy, piece = torch.empty_like(y), _at_least(_SUM, len(y))
    tensors: dict[str, Tensor | None] = dict(y=y, z=z, g=g, gy=gy, dz=dz)
    if weight is None:
        _run_gate(tensors, backward=True)
        return gy, None
    part = y.new_empty(-(-len(y) // piece), *weight.shape)
    tensors |= dict(w=weight.contiguous(), part=part)
    _run_gate(tensors, backward=True, outputs=len(weight), piece=piece)
    return gy, part.sum(0)


def _run_gate(
    tensors: dict[str, Tensor | None], *, backward: bool, outputs: int = 0, piece: int = _PIECE
) -> None:
    y = tensors["y"]
    assert y is not None
    if y.numel():
        call(
            "gate",
            tensors,
            backward=backward,
            rows=y.shape[0],
            E=y.shape[1],
            D=outputs,
            piece=piece,
        )


def linear_forward(
    x: Float[Tensor, "T K"], weight: Float[Tensor, "N K"], bias: Float[Tensor, " N"] | None
) -> Float[Tensor, "T N"]:
    """x Wᵀ + b."""
    y, bias = x.new_empty(len(x), len(weight)), None if bias is None else bias.contiguous()
    _run_linear(
        dict(x=x, w=weight.t().contiguous(), bias=bias, y=y),
        len(weight),
        backward=False,
        piece=_PIECE,
    )
    return y


def linear_backward(
    g: Float[Tensor, "T N"],
    x: Float[Tensor, "T K"],
    weight: Float[Tensor, "N K"],
    bias: Float[Tensor, " N"] | None,
) -> tuple[Float[Tensor, "T K"], Float[Tensor, "N K"], Float[Tensor, " N"] | None]:
    """The gradients of x, of the weight and of the bias, where there is one."""
    dx, piece = torch.empty_like(x), _at_least(_SUM, len(x))
    part = x.new_empty(-(-len(x) // piece), weight.numel() + (0 if bias is None else len(bias)))
    _run_linear(
        dict(x=x, w=weight.contiguous(), bias=bias, g=g, dx=dx, part=part),
        len(weight),
        backward=True,
        piece=piece,
    )
    sums = part.sum(0)
    return (
        dx,
        sums[: weight.numel()].view(weight.shape),
        None if bias is None else sums[weight.numel() :],
    )


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
    x: Float[Tensor, "T K"], weight: Float[Tensor, "N K"], bias: Float[Tensor, " N"] | None
) -> Float[Tensor, "T N"]:
    """x Wᵀ + b, for tensors that `fits`."""
    return _Linear.apply(x, weight, bias)


def _run_linear(
    tensors: dict[str, Tensor | None], outputs: int, *, backward: bool, piece: int
) -> None:
    x = tensors["x"]
    assert x is not None
    if x.numel():
        call(
            "linear",
            tensors,
            backward=backward,
            rows=x.shape[0],
            K=x.shape[1],
            N=outputs,
            piece=piece,
        )


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
        gy, _ = gate_backward(g.flatten(0, 1).contiguous(), y, z, dz)
        return gy.view(g.shape), dz.view(g.shape)
