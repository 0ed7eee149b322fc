"""Where float32 matrix products run on a CPU: in MKL, torch's default, or in oneDNN.

On AMD processors MKL is slow: a quarter to a half of the machine's speed. The setting that sends
float32 products to oneDNN is called 'bf16', because oneDNN may then round their inputs to bfloat16.
It does so only where matrix tiles (AMX) exist; elsewhere the arithmetic stays float32. The choice
depends on the processor and on a check against float64, and never on a timing: a run that resumes
must take the same path to the same bits.

Both libraries divide a sum over many tokens between threads, and the division changes the bits.
`sum_over_tokens` divides it by the number of tokens alone. With oneDNN the bits then do not depend
on the number of threads; with MKL they may. Where the C library runs, `linear.py` and the mixer
need neither.
"""

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from genodiff.kernels.defaults import own_defaults
from genodiff.kernels.direction import is_recorded
from genodiff.kernels.parallel import map_parts

_ROUTED = "bf16"
_EXACT = 1e-5  # rounding to bfloat16 would show as 1e-3
_PIECE, _PIECES = 2048, 16  # least tokens in a piece of a sum, and most pieces


@contextmanager
def routed_matmul(enabled: bool = True) -> Iterator[bool]:
    """A context that sends float32 products on the CPU to oneDNN, if that is exact and faster.

    Yields whether it does. The setting is torch's, for the whole process; it is restored at the
    end.
    """
    routed = enabled and routing()[0]
    with _precision(_ROUTED if routed else None):
        yield routed


@contextmanager
def plain_matmul() -> Iterator[None]:
    """A context in which products take torch's default path, faster for batches of thin ones."""
    with _precision("none"):
        yield


def sum_over_tokens(a: Float[Tensor, "T M"], b: Float[Tensor, "T N"]) -> Float[Tensor, "M N"]:
    """aᵀ b, the sum over tokens in a weight's gradient.

    On a CPU the bits are the same for any number of threads.
    """
    pieces = min(-(-len(a) // _PIECE), _PIECES)
    if pieces < 2 or a.device.type != "cpu":
        return a.t() @ b
    size = -(-len(a) // pieces)
    first, *others = map_parts(
        lambda piece: piece[0].t() @ piece[1],
        list(zip(a.split(size), b.split(size), strict=True)),
        a.device,
    )
    for other in others:
        first += other
    return first


def linear(
    x: Float[Tensor, "*rows N"],
    weight: Float[Tensor, "M N"],
    bias: Float[Tensor, " M"] | None = None,
) -> Float[Tensor, "*rows M"]:
    """W x + b; the gradient of W is computed by `sum_over_tokens`."""
    if x.device.type != "cpu" or torch.is_autocast_enabled("cpu") or is_recorded():
        return F.linear(x, weight, bias)
    out: Tensor = _Linear.apply(x, weight, bias)
    return out


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return F.linear(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        flat, (for_x, for_weight, for_bias) = g.reshape(-1, len(weight)), ctx.needs_input_grad
        dx = g @ weight if for_x else None
        dweight = sum_over_tokens(flat, x.reshape(-1, weight.shape[1])) if for_weight else None
        return dx, dweight, flat.sum(0) if for_bias else None


@cache
def routing() -> tuple[bool, str]:
    """Whether `routed_matmul` uses oneDNN on this machine, and the reason, in words."""
    if not hasattr(torch.backends.mkldnn, "matmul") or not torch.backends.mkldnn.is_available():
        return False, "this torch has no switch for it"
    if torch.cpu._is_amx_tile_supported():
        return False, "this processor has matrix tiles, on which the switch would round to bfloat16"
    if torch.backends.cpu.get_cpu_capability() != "AVX512" or not _is_amd():
        return False, "MKL is as fast on this processor"
    error = _error()
    if error > _EXACT:
        return False, f"oneDNN's products differ from float64 by {error:.0e} here"
    return True, f"oneDNN is faster on this processor and agrees with float64 to {error:.0e}"


@contextmanager
def _precision(value: str | None) -> Iterator[None]:
    matmul = getattr(torch.backends.mkldnn, "matmul", None)
    if matmul is None or value is None or matmul.fp32_precision == value:
        yield
        return
    before = matmul.fp32_precision
    matmul.fp32_precision = value
    try:
        yield
    finally:
        matmul.fp32_precision = before


def _is_amd() -> bool:
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    try:
        return "AuthenticAMD" in Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:  # Windows says it there, and `platform.processor` would start a process
        return "AuthenticAMD" in os.environ.get("PROCESSOR_IDENTIFIER", "")


@own_defaults()
def _error() -> float:
    """The largest relative error of oneDNN's products of a mixer's shapes, gradients included."""
    worst = 0.0
    with _precision(_ROUTED), torch.no_grad(), torch.autocast("cpu", enabled=False):
        for rows, inputs, outputs in (
            (512, 118, 472),
            (512, 236, 118),
            (512, 236, 40),
            (512, 8, 236),
        ):
            x, w = (
                torch.sin(torch.arange(float(n * inputs)) * 0.37).view(n, inputs)
                for n in (rows, outputs)
            )
            g = torch.cos(torch.arange(float(rows * outputs)) * 0.73).view(rows, outputs)
            for a, b in ((x, w.t()), (g, w), (g.t(), x)):
                exact = a.double() @ b.double()
                worst = max(worst, float((a @ b - exact).norm() / exact.norm()))
    return worst
