"""The selective scan: one definition, several providers, and the choice between them.

`auto` takes the first provider for the device that is available here; the argument `provider`,
`prefer` (the flag --scan) or the environment variable GENODIFF_SCAN, in this order, override it. A
provider is available when what it needs is here and it reproduces the naive scan on a small
problem, gradients included. To add one is an entry in `_PROVIDERS`.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from genodiff.errors import UsageError
from genodiff.kernels.library import instruction_set, why_not
from genodiff.kernels.mamba_ssm import mamba_ssm_scan, missing
from genodiff.kernels.naive import naive_scan
from genodiff.kernels.native import native_scan
from genodiff.kernels.torch_scan import chunked_scan
from genodiff.kernels.triton.scan import fits as triton_fits
from genodiff.kernels.triton.scan import triton_scan
from genodiff.kernels.triton.scan import why_not as why_not_triton

ScanFunction = Callable[..., tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Provider:
    """A scan's name, whether it may be used here, and why (not), in words."""

    name: str
    available: bool
    reason: str


@dataclass(frozen=True)
class _Entry:
    """A scan that takes `naive_scan`'s arguments and returns what it returns, whatever the device
    and dtype.
    """

    scan: ScanFunction
    about: str
    missing: Callable[[], str | None] = lambda: None  # what keeps it from running here
    device: str | None = None  # what it was made for; None: anything
    tests_itself: bool = False  # in `missing`


# In the order of preference.
_PROVIDERS: dict[str, _Entry] = {
    "triton": _Entry(
        triton_scan,
        "Triton kernels on an NVIDIA GPU; elsewhere as native",
        why_not_triton,
        "cuda",
        tests_itself=True,
    ),
    "mamba_ssm": _Entry(
        mamba_ssm_scan,
        "the published kernel, on float32 and a CUDA device; elsewhere as native",
        missing,
        "cuda",
    ),
    "native": _Entry(native_scan, "in C, on float32 and a CPU; elsewhere as torch", why_not, "cpu"),
    "torch": _Entry(chunked_scan, "block by block in pure torch, with its own backward"),
    "naive": _Entry(naive_scan, "step by step, for checking the others: slow"),
}
_preferred = "auto"


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
    With `reverse`, time runs from L−1 to 0. Raises `UsageError` for an unknown or unavailable
    provider.
    """
    scan = _PROVIDERS[chosen(provider, u.device.type).name].scan
    inputs = (u, delta, A, B, C, D, z, delta_bias, h0)
    dtype = (
        torch.float64
        if any(x is not None and x.dtype == torch.float64 for x in inputs)
        else torch.float32
    )
    with torch.autocast(u.device.type, enabled=False):
        own = scan is triton_scan and triton_fits(*inputs)  # takes low precision as it is
        cast: list[Any] = [x if x is None or own else x.to(dtype) for x in inputs]
        y, state = scan(*cast[:8], delta_softplus, reverse, cast[8])
    y = y.to(u.dtype)
    return (y, state) if return_state else y


def providers() -> list[Provider]:
    """All scans that genodiff knows, the preferred first, with what keeps each from running here."""
    return [_probe(name) for name in _PROVIDERS]


def prefer(name: str | None) -> None:
    """Use this provider in this process from now on; None or "auto" leaves the choice open. Raises
    `UsageError` as `chosen`.
    """
    global _preferred
    if name is not None and name != "auto":
        chosen(name)
    _preferred = name or "auto"


def chosen(provider: str = "auto", device: str = "cpu") -> Provider:
    """The provider that `selective_scan` uses on a device: the argument, else the preferred one,
    else GENODIFF_SCAN, else the first one available. Raises `UsageError` for an unknown or
    unavailable provider.
    """
    name = next(
        (
            n
            for n in (provider, _preferred, os.environ.get("GENODIFF_SCAN") or "auto")
            if n != "auto"
        ),
        None,
    )
    if name is None:
        suited = (n for n, entry in _PROVIDERS.items() if entry.device in (None, device))
        return next(found for found in map(_probe, suited) if found.available)
    if name not in _PROVIDERS:
        near = get_close_matches(name, _PROVIDERS, 1)
        guess = f"did you mean '{near[0]}'? " if near else ""
        raise UsageError(f"no scan '{name}'", fix=f"{guess}known: auto, {', '.join(_PROVIDERS)}")
    found = _probe(name)
    if not found.available:
        raise UsageError(
            f"the scan '{name}' cannot run here: {found.reason}", fix="use --scan auto"
        )
    return found


@cache
def _probe(name: str) -> Provider:
    entry = _PROVIDERS[name]
    fault = entry.missing()
    if fault is None and entry.scan is not naive_scan and not entry.tests_itself:
        fault = _self_test(entry.scan, entry.device or "cpu")
    about = f"{entry.about} ({instruction_set()})" if name == "native" else entry.about
    return Provider(name, fault is None, about if fault is None else fault)


def _self_test(scan: ScanFunction, device: str) -> str | None:
    """What is wrong with `scan` on a small problem, or None."""
    # It may run inside a checkpointed block, whose hooks count the tensors that are saved.
    unhooked = torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)
    with (
        torch.inference_mode(False),
        torch.enable_grad(),
        torch.autocast(device, enabled=False),
        unhooked,
    ):
        for reverse in (False, True):
            wanted = _small_problem(naive_scan, reverse, "cpu")
            try:
                got = _small_problem(scan, reverse, device)
            except RuntimeError as fault:
                return f"fails on this machine: {fault}"
            for a, b in zip(wanted, got, strict=True):
                if not torch.allclose(a, b.cpu(), rtol=1e-4, atol=1e-4):
                    return (
                        f"differs from the naive scan by "
                        f"{float((a - b.cpu()).abs().max()):.1e} on this machine"
                    )
    return None


def _small_problem(scan: ScanFunction, reverse: bool, device: str) -> list[Tensor]:
    batch, length, channels, states = 2, 37, 5, 3

    def wave(*shape: int, phase: float) -> Tensor:
        n = torch.arange(float(torch.Size(shape).numel()))
        return torch.sin(n * 0.7 + phase).reshape(shape).to(device).requires_grad_()

    u, delta, z = (wave(batch, length, channels, phase=p) for p in (0.0, 1.0, 2.0))
    B, C = (wave(batch, length, states, phase=p) for p in (3.0, 4.0))
    log_a, D, bias = (
        wave(channels, states, phase=5.0),
        wave(channels, phase=6.0),
        wave(channels, phase=7.0),
    )
    y, state = scan(u, delta, -torch.exp(log_a), B, C, D, z, bias, True, reverse, None)
    (F.silu(y).sum() + state.sum()).backward()
    return [
        y.detach(),
        state.detach(),
        *(x.grad for x in (u, delta, z, B, C, log_a, D, bias) if x.grad is not None),
    ]
