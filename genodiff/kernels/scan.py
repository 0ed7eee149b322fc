"""The selective scan: one definition, several providers, and the choice between them.

`auto` takes the first provider that is available here; the environment variable GENODIFF_SCAN or the argument `provider` overrides it.
A provider is available when what it needs is importable and it reproduces the naive scan on a small problem, gradients included.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from genodiff.errors import UsageError
from genodiff.kernels.chunked import chunked_scan
from genodiff.kernels.library import instruction_set, why_not
from genodiff.kernels.naive import naive_scan
from genodiff.kernels.native import native_scan
from genodiff.kernels.triton_scan import fits as triton_fits
from genodiff.kernels.triton_scan import triton_scan
from genodiff.kernels.triton_scan import why_not as why_not_triton

ScanFunction = Callable[..., tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Provider:
    """A scan's name, whether it may be used here, and why (not), in words."""

    name: str
    available: bool
    reason: str


# In the order of preference. A provider takes `naive_scan`'s arguments and returns what it returns.
_PROVIDERS: dict[str, tuple[ScanFunction, str]] = {
    "triton": (triton_scan, "Triton kernels on an NVIDIA GPU; elsewhere as native"),
    "native": (native_scan, "in C, on float32 and a CPU; elsewhere as torch"),
    "torch": (chunked_scan, "block by block in pure torch, with its own backward"),
    "naive": (naive_scan, "step by step, for checking the others: slow"),
}


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
    """Outputs y (and the last state with `return_state`), see `naive.py` for the equations.

    Computed in float32, or float64 where an input is, whatever autocast says; y has the dtype of u.
    With `reverse`, time runs from L−1 to 0. Raises `UsageError` for an unknown or unavailable provider.
    """
    scan = _PROVIDERS[chosen(provider).name][0]
    inputs = (u, delta, A, B, C, D, z, delta_bias, h0)
    dtype = torch.float64 if any(x is not None and x.dtype == torch.float64 for x in inputs) else torch.float32
    with torch.autocast(u.device.type, enabled=False):
        own = scan is triton_scan and triton_fits(*inputs)  # takes low precision as it is
        cast: list[Any] = [x if x is None or own else x.to(dtype) for x in inputs]
        y, state = scan(*cast[:8], delta_softplus, reverse, cast[8])
    y = y.to(u.dtype)
    return (y, state) if return_state else y


def providers() -> list[Provider]:
    """All scans that genodiff knows, the preferred first, with what keeps each from running here."""
    return [_probe(name) for name in _PROVIDERS]


def chosen(provider: str = "auto") -> Provider:
    """The provider that `selective_scan` uses: the argument, else GENODIFF_SCAN, else the first one available."""
    name = provider if provider != "auto" else os.environ.get("GENODIFF_SCAN", "auto") or "auto"
    if name == "auto":
        return next(found for found in providers() if found.available)
    if name not in _PROVIDERS:
        raise UsageError(f"no scan '{name}'", fix=f"known: auto, {', '.join(_PROVIDERS)}")
    found = _probe(name)
    if not found.available:
        raise UsageError(f"the scan '{name}' cannot run here: {found.reason}", fix="use --scan auto")
    return found


@cache
def _probe(name: str) -> Provider:
    scan, about = _PROVIDERS[name]
    fault = why_not() if name == "native" else why_not_triton() if name == "triton" else None
    if fault is None and scan is not naive_scan and name != "triton":  # which has tested itself, on its device
        fault = _self_test(scan)
    if name == "native" and fault is None:
        about = f"{about} ({instruction_set()})"
    return Provider(name, fault is None, about if fault is None else fault)


def _self_test(scan: ScanFunction) -> str | None:
    """What is wrong with `scan` on a small problem, or None."""
    with torch.inference_mode(False), torch.enable_grad(), torch.autocast("cpu", enabled=False):
        for reverse in (False, True):
            wanted, got = _small_problem(naive_scan, reverse), _small_problem(scan, reverse)
            for a, b in zip(wanted, got, strict=True):
                if not torch.allclose(a, b, rtol=1e-4, atol=1e-4):
                    return f"differs from the naive scan by {float((a - b).abs().max()):.1e} on this machine"
    return None


def _small_problem(scan: ScanFunction, reverse: bool) -> list[Tensor]:
    batch, length, channels, states = 2, 37, 5, 3

    def wave(*shape: int, phase: float) -> Tensor:
        n = torch.arange(float(torch.Size(shape).numel()))
        return torch.sin(n * 0.7 + phase).reshape(shape).requires_grad_()

    u, delta, z = (wave(batch, length, channels, phase=p) for p in (0.0, 1.0, 2.0))
    B, C = (wave(batch, length, states, phase=p) for p in (3.0, 4.0))
    log_a, D, bias = wave(channels, states, phase=5.0), wave(channels, phase=6.0), wave(channels, phase=7.0)
    y, state = scan(u, delta, -torch.exp(log_a), B, C, D, z, bias, True, reverse, None)
    (F.silu(y).sum() + state.sum()).backward()
    return [y.detach(), state.detach(), *(x.grad for x in (u, delta, z, B, C, log_a, D, bias) if x.grad is not None)]
