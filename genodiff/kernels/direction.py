"""One direction of a mixer: its weights, what its scan reads, and its state between the pieces of
a sequence.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable


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
    """What a scan reads, and the order of its gradients.

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
