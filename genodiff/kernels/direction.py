"""One direction of a mixer: its weights, its state between pieces, its scan and gate in C.

The equations of the scan are in `naive.py` and in `native/scan.h`. The C functions take A as
(N, E), in float32 on a CPU: channels are contiguous, for vectors of neighbouring channels. The
backward pass receives the state before each chunk of `CHUNK` steps, and recomputes the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from genodiff.kernels import library
from genodiff.kernels.library import call, pack_channels


@dataclass(frozen=True)
class DirectionWeights:
    """The weights of one direction. A < 0; P = R + 2N, with R the rank of the step sizes."""

    conv_weight: Float[Tensor, "E K"]
    conv_bias: Float[Tensor, " E"] | None
    x_weight: Float[Tensor, "P E"]
    dt_weight: Float[Tensor, "E R"]
    dt_bias: Float[Tensor, " E"]
    A: Float[Tensor, "E N"]
    D: Float[Tensor, " E"]


_NAMES = tuple(field.name for field in fields(DirectionWeights))


def join_weights(directions: Sequence[DirectionWeights]) -> list[Tensor | None]:
    """The weights of all directions as one list, for an autograd function."""
    return [getattr(direction, name) for direction in directions for name in _NAMES]


def split_weights(weights: Sequence[Tensor | None]) -> list[DirectionWeights]:
    """The directions whose weights `join_weights` put into one list."""
    step = len(_NAMES)
    return [DirectionWeights(*weights[i : i + step]) for i in range(0, len(weights), step)]  # type: ignore[arg-type]


class _Rates(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *logs: Tensor) -> tuple[Tensor, ...]:
        wide = [x.to(torch.promote_types(x.dtype, torch.float32)) for x in logs]
        rates = torch._foreach_neg(torch._foreach_exp(wide))
        ctx.save_for_backward(*rates)
        ctx.dtypes = [x.dtype for x in logs]
        return tuple(rates)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        # The slope of −e^x is −e^x.
        found = torch._foreach_mul(grads, ctx.saved_tensors)
        return tuple(g.to(dtype) for g, dtype in zip(found, ctx.dtypes, strict=True))


def compute_rates(logs: Sequence[Float[Tensor, "E N"]]) -> Sequence[Float[Tensor, "E N"]]:
    """A = −exp(A_log) of all directions, in float32 or wider: on a GPU together in two launches."""
    if is_recorded():
        return [-torch.exp(x.to(torch.promote_types(x.dtype, torch.float32))) for x in logs]
    rates: tuple[Tensor, ...] = _Rates.apply(*logs)
    return rates


class ScanInputs(NamedTuple):
    """What a scan reads, or the gradients of that.

    Each implementation says in which form it takes `delta`, A, D and `bias`.
    """

    u: Float[Tensor, "B L E"]
    delta: Any
    A: Tensor
    B: Float[Tensor, "B L N"]
    C: Float[Tensor, "B L N"]
    D: Tensor | None
    bias: Tensor | None
    h0: Float[Tensor, "B E N"] | None = None


class MixerInputs(NamedTuple):
    """What each version of a mixer is given, in this order; `kernels/mixer.py` has the shapes."""

    h: Tensor
    in_weight: Tensor
    in_bias: Tensor | None
    out_weight: Tensor
    mask: Tensor | None
    reverse: tuple[bool, ...]
    weights: Sequence[Tensor | None]  # of all directions, from `join_weights`
    recompute: bool = False
    size: int | None = None  # of blocks, in rows of two streams: `kernels/blocks.py`

    @property
    def tensors(self) -> tuple[Tensor | None, ...]:
        return (*self[:5], *self.weights)


def want_gradient(*tensors: Tensor | None) -> bool:
    """Whether a backward pass may follow. Under `no_grad` what asks for a gradient has none."""
    return torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors)


class DirectionState(NamedTuple):
    """What a direction takes from one piece of a sequence into the next."""

    inputs: Float[Tensor, "B K_minus_1 E"]  # the last ones of the convolution
    state: Float[Tensor, "B E N"]  # of the scan


def zero_state(weights: DirectionWeights, batch: int = 1) -> DirectionState:
    """The state before the first piece."""
    (channels, width), n = weights.conv_weight.shape, weights.A.shape[1]
    inputs = weights.D.new_zeros(batch, width - 1, channels)
    return DirectionState(inputs, weights.D.new_zeros(batch, channels, n))


def is_recorded() -> bool:
    """Whether the calls of this moment are being recorded."""
    exporting = getattr(torch.compiler, "is_exporting", torch.compiler.is_compiling)  # torch 2.6
    return bool(exporting()) or torch.jit.is_tracing()


CHUNK = 64  # steps between saved states, as in native.c
_FEW_SEQUENCES = 8  # below this many sequences, channels are divided over tasks as well
# Least channels of a task. Some work is done once for each task and step, such as reading B and C;
# with fewer channels it would weigh too much.
_LEAST_GROUP = 64


def _group(batch: int, channels: int) -> int:
    """Channels of a task: all if there are sequences enough, else about an eighth."""
    if batch >= _FEW_SEQUENCES:
        return max(channels, 1)
    share = -(-channels * batch // _FEW_SEQUENCES)
    return max(_LEAST_GROUP, -(-share // 16) * 16)  # whole vectors of 16 lanes


class LowRank(NamedTuple):
    """Step sizes before bias and softplus as a product r w, which never is in memory as a whole."""

    r: Float[Tensor, "B L R"]  # its rows may lie apart
    w: Float[Tensor, "R E"]


class Blocks(NamedTuple):
    """Blocks of `size` steps, a divisor of the length.

    With one stream each block begins at zero. With two they stand in pairs: both of a pair begin at
    the state before it, and the second goes on.
    """

    size: int
    streams: int


def _count_chunks(length: int, blocks: Blocks | None) -> int:
    """As `scan_chunks` of scan.h."""
    if blocks is None:
        return -(-length // CHUNK)
    if whole := CHUNK // (blocks.size * blocks.streams) * blocks.streams * blocks.size:
        return -(-length // whole)
    return -(-blocks.size // CHUNK) * (length // blocks.size)


def _shape(x: ScanInputs, blocks: Blocks | None) -> dict[str, int]:
    batch, length, channels = x.u.shape
    return {
        "batch": batch,
        "block": blocks.size if blocks else 0,
        "streams": blocks.streams if blocks else 1,
        "L": length,
        "E": channels,
        "N": x.A.shape[0],
        "R": len(x.delta.w) if isinstance(x.delta, LowRank) else 0,
        "group": _group(batch, channels),
        "chunk": CHUNK,
    }


def _name(x: ScanInputs) -> dict[str, Tensor | None]:
    steps = x.delta._asdict() if isinstance(x.delta, LowRank) else {"delta": x.delta}
    return {name: of for name, of in x._asdict().items() if name != "delta"} | steps


def allocate_states(x: ScanInputs, blocks: Blocks | None = None) -> Float[Tensor, "B chunks N E"]:
    """Room for the state before each chunk."""
    batch, length, _ = x.u.shape
    return x.u.new_empty(batch, _count_chunks(length, blocks), *x.A.shape)


def scan_forward(
    y: Float[Tensor, "B L E"],
    x: ScanInputs,
    *,
    softplus: bool,
    reverse: bool,
    states: Float[Tensor, "B chunks N E"] | None = None,
    last: Float[Tensor, "B E N"] | None = None,
    accumulate: bool = False,
    blocks: Blocks | None = None,
) -> None:
    """Write y, or add to it; fill `states` and the `last` state where they are given.

    A is (N, E), D and bias are (E), and the step sizes a tensor or `LowRank`.
    """
    tensors = _name(x) | dict(y=y, states=states, hlast=last)
    flags = dict(softplus=softplus, reverse=reverse, accumulate=accumulate)
    call("scan", tensors, backward=False, **flags, **_shape(x, blocks))


def scan_backward(
    gy: Float[Tensor, "B L E"],
    x: ScanInputs,
    states: Float[Tensor, "B chunks N E"],
    *,
    softplus: bool,
    reverse: bool,
    g_last: Float[Tensor, "B E N"] | None = None,
    blocks: Blocks | None = None,
) -> ScanInputs:
    """The gradients of all inputs, from those of y and of the last state.

    That of delta has the form in which delta came.
    """
    u, delta, h0 = x.u, x.delta, x.h0
    (batch, length, channels), n = u.shape, x.A.shape[0]
    parts = -(-channels // _group(batch, channels))
    du, dA = u.new_empty(u.shape), u.new_empty(batch, n, channels)
    # A sum over channels has a part for each group of them, a sum over rows one for each row.
    dB, dC = (u.new_empty(parts, batch, length, n) for _ in range(2))
    dD, dbias = (u.new_empty(batch, channels) for _ in range(2))
    dh0 = None if h0 is None else torch.empty_like(h0)
    tensors = _name(x) | dict(states=states, gy=gy, ghlast=g_last, h0=None)
    tensors |= dict(du=du, dA=dA, dB=dB, dC=dC, dD=dD, dbias=dbias, dh0=dh0)
    rank = len(delta.w) if isinstance(delta, LowRank) else 0
    low = LowRank(u.new_empty(parts, batch, length, rank), u.new_empty(batch, rank, channels))
    full = u.new_empty(u.shape if not rank else 0)
    tensors |= dict(dr=low.r, dw=low.w) if rank else dict(ddelta=full)
    flags = dict(softplus=softplus, reverse=reverse)
    call("scan", tensors, backward=True, **flags, **_shape(x, blocks))
    ddelta = LowRank(_sum_parts(low.r), low.w.sum(0)) if rank else full
    dB, dC = _sum_parts(dB), _sum_parts(dC)
    return ScanInputs(du, ddelta, dA.sum(0), dB, dC, dD.sum(0), dbias.sum(0), dh0)


def _sum_parts(parts: Float[Tensor, " parts *shape"]) -> Float[Tensor, "*shape"]:
    return parts[0] if len(parts) == 1 else parts.sum(0)


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, softplus: bool, reverse: bool, keep: bool, *inputs: Any
    ) -> tuple[Tensor, Tensor]:
        u, delta, A, B, C, *rest = inputs
        u, delta, B, C = (pack_channels(of) for of in (u, delta, B, C))
        rest = [None if of is None else of.contiguous() for of in rest]
        x = ScanInputs(u, delta, A.t().contiguous(), B, C, *rest)
        y, last = u.new_empty(u.shape), u.new_empty(u.shape[0], *A.shape)
        states = allocate_states(x) if keep else None
        ctx.flags = dict(softplus=softplus, reverse=reverse)
        scan_forward(y, x, **ctx.flags, states=states, last=last)
        ctx.save_for_backward(*x, states)
        return y, last

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gy: Tensor, g_last: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, states = ctx.saved_tensors
        x = ScanInputs(*inputs)
        g = scan_backward(
            pack_channels(gy), x, states, **ctx.flags, g_last=g_last.contiguous()
        )._asdict()
        g["A"] = g["A"].t()
        grads = (None if of is None else g[name] for name, of in x._asdict().items())
        return None, None, None, *grads


def native_scan(x: ScanInputs, softplus: bool, reverse: bool) -> tuple[Tensor, Tensor]:
    """As `naive_scan`, for tensors that the library can take, and none of them empty.

    Where no gradient is asked for, nothing is saved.
    """
    found: tuple[Tensor, Tensor] = _Scan.apply(softplus, reverse, want_gradient(*x), *x)
    return found


# The gate of a mixer, y ⊙ silu(z), and the projection W of what is gated. Tensors have one row for
# each of T tokens. Rows of z and of its gradient may lie apart: in a mixer they are half of [x, z].


def gate_forward(
    y: Float[Tensor, "T E"], z: Float[Tensor, "T E"], weight: Float[Tensor, "D E"]
) -> Float[Tensor, "T D"]:
    """W (y ⊙ silu(z))."""
    out, sizes = y.new_empty(len(y), len(weight)), _gate_sizes(y, weight)
    tensors = dict(y=y, z=z, out=out, w=weight.t().contiguous())
    call("gate", tensors, backward=False, **sizes, piece=library.PIECE)
    return out


def gate_backward(
    g: Float[Tensor, "T D"],
    y: Float[Tensor, "T E"],
    z: Float[Tensor, "T E"],
    dz: Float[Tensor, "T E"],
    weight: Float[Tensor, "D E"],
) -> tuple[Float[Tensor, "T E"], Float[Tensor, "D E"]]:
    """The gradients of y and of the weight; that of z is written to `dz`."""
    gy, piece = torch.empty_like(y), library.rows_per_task(library.SUM_PIECE, len(y))
    part = y.new_empty(-(-len(y) // piece), *weight.shape)
    tensors = dict(y=y, z=z, g=g, gy=gy, dz=dz, w=weight.contiguous(), part=part)
    call("gate", tensors, backward=True, **_gate_sizes(y, weight), piece=piece)
    return gy, part.sum(0)


def _gate_sizes(y: Tensor, weight: Tensor) -> dict[str, int]:
    return {"rows": len(y), "E": y.shape[1], "D": len(weight)}
