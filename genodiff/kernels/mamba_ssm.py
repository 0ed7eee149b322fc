"""The published CUDA kernels: mamba-ssm's scan and causal-conv1d's convolution.

They take channels before time, run from left to right only, and have no initial state. Other
implementations do what they cannot. Both packages are an optional extra, `genodiff[cuda]`, and
compile at install. Source: Gu and Dao, 2023, arXiv 2312.00752.
"""

import logging
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from genodiff.errors import UsageError
from genodiff.kernels.direction import ScanInputs

_WIDTHS = (2, 3, 4)  # widths K of the filters that causal-conv1d takes
_VECTOR, _BYTES = 8, 16  # its channels, and distances of rows and times, are multiples; its loads
_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
_MOST_STATES = 256  # N of mamba-ssm's scan
_log = logging.getLogger("genodiff")


def _find_peer(module: str, name: str, extension: str) -> tuple[Callable[..., Any] | None, str]:
    """A function of a published package, or None and what is missing.

    mamba-ssm's sources since June 2026 install without their extension, unless asked for it: such a
    package can be imported, and every call fails.
    """
    package = module.partition(".")[0]
    install = "pip install --no-build-isolation"
    if package == "mamba_ssm":
        install = f"MAMBA_KEEP_CUDA_BUILD=TRUE {install}"
    try:
        if find_spec(package) is None:
            return None, f"{package} is not installed: {install} 'genodiff[cuda]'"
        if find_spec(extension) is None:
            raise ImportError(f"it lacks its CUDA extension {extension}")
        found: Callable[..., Any] = getattr(import_module(module), name)
    except Exception as fault:  # a broken extension raises anything
        again = f"{install} --no-deps --force-reinstall --no-cache-dir {package}"
        return None, f"{package} is broken ({type(fault).__name__}: {fault}): {again}"
    return found, ""


@cache
def _published() -> tuple[Callable[..., Any] | None, str]:
    """mamba-ssm's scan, or None and what is missing."""
    if not torch.cuda.is_available():
        return None, "runs on CUDA devices only, and torch sees none"
    module = "mamba_ssm.ops.selective_scan_interface"
    return _find_peer(module, "selective_scan_fn", "selective_scan_cuda")


@cache
def _published_conv() -> Callable[..., Any] | None:
    """causal-conv1d's convolution, or None; that it is broken is said once."""
    found, fault = _find_peer("causal_conv1d", "causal_conv1d_fn", "causal_conv1d_cuda")
    if "is broken" in fault:
        _log.warning("%s; until then other kernels compute the convolutions", fault)
    return found


def find_missing() -> str | None:
    """What keeps mamba-ssm's scan from running here, in words; None if nothing."""
    return _published()[1] or None


def _channels_first(x: Tensor, reverse: bool) -> Tensor:
    return (x.flip(1) if reverse else x).transpose(1, 2)


def mamba_ssm_scan(x: ScanInputs, softplus: bool, reverse: bool) -> tuple[Tensor, Tensor]:
    """As `naive_scan`, for float32 on a CUDA device and no `h0`."""
    scan, _ = _published()
    assert scan is not None
    assert x.h0 is None
    # Both packages take channels before time.
    u, delta, B, C = (_channels_first(of, reverse) for of in (x.u, x.delta, x.B, x.C))
    bias = None if x.bias is None else x.bias.contiguous()
    y, state = scan(u, delta, x.A, B, C, x.D, None, bias, softplus, return_last_state=True)
    if state.requires_grad:
        state.register_hook(_refuse_gradient)
    y = y.transpose(1, 2)
    return (y.flip(1) if reverse else y), state


def _refuse_gradient(gradient: Tensor | None) -> None:
    """mamba-ssm leaves out what the gradient of the last state says: better an error."""
    if gradient is not None:
        raise UsageError(
            "mamba-ssm's scan has no gradient of the last state", fix="use another --scan"
        )


def fits_published_scan(*tensors: Tensor | None) -> bool:
    """Whether `mamba_ssm_scan` takes u, delta, A, B, C, D, bias and h0, once float32.

    They are on a GPU, none is empty, and they may have any strides.
    """
    A, h0 = tensors[2], tensors[-1]
    assert A is not None
    return (
        h0 is None
        and A.shape[1] <= _MOST_STATES
        and all(x is None or (x.is_cuda and x.numel() > 0) for x in tensors)
        and _may_add_in_any_order()
        and _published()[0] is not None
    )


def _may_add_in_any_order() -> bool:
    """Whether gradients may depend on chance: both packages sum some of them by atomics."""
    return not torch.are_deterministic_algorithms_enabled()


def fits_published_conv(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Whether `published_conv` takes these tensors: (B, L, E), (E, K) and (E), on a GPU.

    All have one of `_DTYPES`, and none is empty. Strides that its kernels do not take are copied
    away.
    """
    return (
        weight.shape[1] in _WIDTHS
        and x.shape[2] % _VECTOR == 0
        and x.dtype in _DTYPES
        and all(
            t is None or (t.is_cuda and t.dtype == x.dtype and t.numel() > 0)
            for t in (x, weight, bias)
        )
        and _may_add_in_any_order()
        and _published_conv() is not None
    )


def _align(x: Tensor) -> Tensor:
    """`x` (B, L, E) with channels side by side, at distances that causal-conv1d takes."""
    batch, time, channel = x.stride()
    apart = channel == 1 and time > 0 and batch % _VECTOR == time % _VECTOR == 0
    return x if apart and x.data_ptr() % _BYTES == 0 else x.contiguous()


def published_conv(
    x: Float[Tensor, "B L E"],
    weight: Float[Tensor, "E K"],
    bias: Float[Tensor, " E"] | None,
    reverse: bool,
    activation: str | None,
) -> Float[Tensor, "B L E"]:
    """As `causal_conv1d`, for tensors that `fits_published_conv`."""
    conv = _published_conv()
    assert conv is not None
    first = _channels_first(_align(x), reverse)
    y: Tensor = conv(first, weight, bias, activation=activation).transpose(1, 2)
    if y.requires_grad:  # its backward pass takes the gradient as it comes
        y.register_hook(lambda gradient: None if gradient is None else _align(gradient))
    return y.flip(1) if reverse else y
