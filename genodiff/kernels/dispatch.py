"""Which implementation of an operation runs here, and why.

There are six operations: scan, mixer, block mixer, conv, norm and linear. The module of each lists
its implementations in one table. Each implementation belongs to a provider:

    triton       compiled on an NVIDIA GPU             mamba_ssm    the published CUDA kernels
    native       compiled C on a CPU                   torch        anywhere
    naive        step by step, to check the others

A call chooses in two steps. `select_provider` finds the provider for the device: the argument, else
the preferred one (`prefer_provider`, the flag --scan), else the environment variable GENODIFF_SCAN,
else the first in `PROVIDERS` that is available. `Operation.choose` then takes the first
implementation, from that provider's downwards, that accepts the tensors. A provider is available
when what it needs is installed and its scan passes a self-test (`naive.py`).
"""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple

import torch

from genodiff.errors import UsageError
from genodiff.kernels import library, mamba_ssm
from genodiff.kernels.defaults import own_defaults
from genodiff.kernels.direction import is_recorded, native_scan
from genodiff.kernels.mamba_ssm import mamba_ssm_scan
from genodiff.kernels.naive import ScanFunction, find_error
from genodiff.kernels.torch_scan import chunked_scan
from genodiff.kernels.triton import launch
from genodiff.kernels.triton.scan import triton_scan


@dataclass(frozen=True)
class Provider:
    """A family of implementations: what it is, what it needs, and the scan that tests it."""

    name: str
    about: str
    scan: ScanFunction | None  # None: nothing to test
    find_missing: Callable[[], str | None] = lambda: None  # what is not installed, in words
    device: str | None = None  # the type of device it is written for; None: any
    dtypes: tuple[torch.dtype, ...] = (torch.float32,)
    of_state: bool = True  # whether the last state has a gradient

    @property
    def available(self) -> bool:
        """Whether it runs on this machine."""
        return _find_fault(self) is None

    @property
    def reason(self) -> str:
        """What it is, or why it not available."""
        fault = _find_fault(self)
        if fault is not None:
            return fault
        return (
            f"{self.about} ({library.instruction_set()})" if self.name == "native" else self.about
        )


_log = logging.getLogger("genodiff")

# In the order of preference.
PROVIDERS = {
    provider.name: provider
    for provider in (
        Provider("triton", "Triton kernels on an NVIDIA GPU; elsewhere as native",
                 triton_scan, launch.find_missing, "cuda", (torch.float32, torch.bfloat16)),
        Provider("mamba_ssm",
                 "the published kernel, on float32 and a CUDA device; elsewhere as native",
                 mamba_ssm_scan, mamba_ssm.find_missing, "cuda", of_state=False),
        Provider("native", "in C, for float32 on a CPU; otherwise as torch",
                 native_scan, library.find_missing, "cpu"),
        Provider("torch", "block by block in pure torch, with a custom backward pass",
                 chunked_scan),
        Provider("naive", "step by step, the slow reference", None),
    )
}  # fmt: skip
_preferred = "auto"


@cache
@own_defaults()
def _find_fault(provider: Provider) -> str | None:
    """What keeps a provider from running here, found once for each process; None if nothing."""
    missing = provider.find_missing()
    if missing is not None or provider.scan is None:
        return missing
    device = provider.device or "cpu"
    return find_error(provider.scan, device, provider.dtypes, provider.of_state)


def prefer_provider(name: str | None) -> None:
    """Use this provider in this process from now on; None or "auto" lifts the preference.

    Raises `UsageError` as `select_provider`.
    """
    global _preferred
    if name is not None and name != "auto":
        select_provider(name)
    _preferred = name or "auto"


def name_preferred() -> str:
    """What `prefer_provider` was last told, for a process that is to do the same."""
    return _preferred


def select_provider(name: str = "auto", device: str = "cpu") -> Provider:
    """The provider for a type of device ("cpu" or "cuda"); "auto" leaves the choice open.

    Raises `UsageError` for one that is unknown or not available.
    """
    asked = (name, _preferred, os.environ.get("GENODIFF_SCAN") or "auto")
    name = next((one for one in asked if one != "auto"), "auto")
    if name == "auto":
        return _first_available(device)
    if name not in PROVIDERS:
        near = get_close_matches(name, PROVIDERS, 1)
        guess = f"did you mean '{near[0]}'? " if near else ""
        raise UsageError(f"no scan '{name}'", fix=f"{guess}known: auto, {', '.join(PROVIDERS)}")
    provider = PROVIDERS[name]
    if not provider.available:
        raise UsageError(
            f"the scan '{name}' cannot run here: {provider.reason}", fix="use --scan auto"
        )
    return provider


@cache  # a kernel call asks this each time
def _first_available(device: str) -> Provider:
    fitting = [p for p in PROVIDERS.values() if p.device in (None, device)]
    chosen = next(p for p in fitting if p.available)
    if device == "cuda" and chosen is not fitting[0]:
        best = fitting[0]
        what = "this GPU runs the kernels of '%s', which are slower than those of '%s': %s"
        _log.warning(what, chosen.name, best.name, best.reason)
    return chosen


class Implementation(NamedTuple):
    """One way to compute an operation."""

    provider: str
    run: Callable[..., Any]
    accepts: Callable[..., bool] = lambda *_: True  # whether it takes these arguments


class Operation:
    """An operation and its implementations, in the order of `PROVIDERS`; the last accepts all.

    `recorded` takes the place of them all while `torch.export` or `torch.jit.trace` records.
    """

    def __init__(self, *implementations: Implementation, recorded: Callable[..., Any]) -> None:
        self.implementations = implementations
        self._recorded = Implementation("torch", recorded)
        order = list(PROVIDERS)
        self._candidates = {
            name: [i for i in implementations if order.index(i.provider) >= order.index(name)]
            or [implementations[-1]]
            for name in order
        }

    def choose(self, *arguments: Any, provider: str = "auto") -> Implementation:
        """The implementation for these arguments, the first of which is a tensor on the device."""
        if is_recorded():
            return self._recorded
        name = select_provider(provider, arguments[0].device.type).name
        return next(i for i in self._candidates[name] if i.accepts(*arguments))

    def __call__(self, *arguments: Any) -> Any:
        return self.choose(*arguments).run(*arguments)
