"""The selective scan: one definition (`naive.py`), and the implementations to choose from.

`graph_scan` takes their place while `torch.export` or `torch.jit.trace` records. Nothing in it
depends on numbers in tensors or loops over time, so a recorded program holds for other batches and
lengths. The scan h_t = a_t h_{t−1} + b_t doubles its reach k in each of log₂ L rounds (Hillis and
Steele, 1986):

    b_t ← b_t + a_t b_{t−k}        a_t ← a_t a_{t−k}        k = 1, 2, 4, ...

It holds L · E · N numbers at once: for inference on sequences of some thousand bases.
"""

from itertools import takewhile
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from genodiff.kernels import library
from genodiff.kernels.direction import ScanInputs, native_scan
from genodiff.kernels.dispatch import Implementation, Operation
from genodiff.kernels.mamba_ssm import fits_published_scan, mamba_ssm_scan
from genodiff.kernels.naive import run_naively
from genodiff.kernels.torch_scan import chunked_scan
from genodiff.kernels.triton import launch
from genodiff.kernels.triton.scan import triton_scan

LONGEST = 1 << 20
"""Positions that a recorded program of any length can take."""


def graph_scan(x: ScanInputs, softplus: bool, reverse: bool) -> tuple[Tensor, Tensor]:
    """As `naive_scan`, in operations of torch that can be recorded."""
    dt = x.delta if x.bias is None else x.delta + x.bias
    if softplus:
        dt = F.softplus(dt)
    a, b = torch.exp(dt[..., None] * x.A), (dt * x.u)[..., None] * x.B[:, :, None, :]
    if reverse:
        a, b = a.flip(1), b.flip(1)
    if x.h0 is not None:
        b = torch.cat([b[:, :1] + a[:, :1] * x.h0[:, None], b[:, 1:]], 1)
    length = x.u.shape[1]
    # A length that is a symbol must not be compared with numbers: all rounds are recorded then.
    known = length if isinstance(length, int) else LONGEST
    place = torch.arange(length, device=x.u.device)
    for k in takewhile(lambda k: k < known, (1 << i for i in range(LONGEST.bit_length()))):
        before = (place - k).clamp(min=0)
        reached = (place >= k)[:, None, None]
        b = b + torch.where(reached, a * b.index_select(1, before), 0.0)
        a = torch.where(reached, a * a.index_select(1, before), a)
    state = b[:, -1]
    y = ((b.flip(1) if reverse else b) * x.C[:, :, None, :]).sum(-1)
    return (y if x.D is None else y + x.D * x.u), state


def _is_wide(*inputs: Tensor | None) -> bool:
    return any(x is not None and x.dtype == torch.float64 for x in inputs)


def _mamba_ssm_accepts(*inputs: Tensor | None) -> bool:
    return not _is_wide(*inputs) and fits_published_scan(*inputs)


def _native_accepts(*inputs: Tensor | None) -> bool:
    on_cpu = all(x is None or (x.device.type == "cpu" and x.numel() > 0) for x in inputs)
    return on_cpu and not _is_wide(*inputs) and library.is_loaded()


# Chosen by the inputs, and called with them in float32, or float64 where one is; Triton's with the
# inputs as they come.
SCAN = Operation(
    Implementation(
        "triton", triton_scan, lambda *inputs: launch.fits(*inputs, rows=len(inputs[0]))
    ),
    Implementation("mamba_ssm", mamba_ssm_scan, _mamba_ssm_accepts),
    Implementation("native", native_scan, _native_accepts),
    Implementation("torch", chunked_scan),
    Implementation("naive", run_naively),
    recorded=graph_scan,
)


def selective_scan(
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
    return_state: bool = False,
    provider: str = "auto",
) -> Float[Tensor, "B L E"] | tuple[Float[Tensor, "B L E"], Float[Tensor, "B E N"]]:
    """Outputs y and, with `return_state`, the last state; `naive.py` has the equations.

    Computed in float32, or in float64 where an input is, whatever autocast says; y has the dtype of
    u. With `reverse`, time runs from L−1 to 0. Raises `UsageError` for an unknown or unavailable
    provider.
    """
    x = ScanInputs(u, delta, A, B, C, D, delta_bias, h0)
    scan = SCAN.choose(*x, provider=provider)
    if scan.provider != "triton":
        dtype = torch.float64 if _is_wide(*x, z) else torch.float32
        x = ScanInputs._make(None if of is None else of.to(dtype) for of in x)
    with torch.autocast(u.device.type, enabled=False):
        y, state = scan.run(x, delta_softplus, reverse)
        y = y if z is None else y * F.silu(z.to(y.dtype))
    found: Any = (y.to(u.dtype), state) if return_state else y.to(u.dtype)
    return found
