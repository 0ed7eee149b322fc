"""The published CUDA kernels: mamba-ssm's scan and causal-conv1d's convolution.

They take channels before time, run from left to right only, and have no initial state. Other
implementations do what they cannot. Both packages are an optional extra, `genodiff[cuda]`, and
compile at install. Source: Gu and Dao, 2023, arXiv 2312.00752.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

_WIDTHS = (2, 3, 4)  # widths K of the filters that causal-conv1d takes


@cache
def _published() -> tuple[Callable[..., Any] | None, str]:
    """mamba-ssm's scan, or None and what is missing."""
    if not torch.cuda.is_available():
        return None, "runs on CUDA devices only, and torch sees none"
    try:
        from mamba_ssm.ops.selective_scan_interface import selective_scan_fn
    except Exception as fault:  # a broken extension raises anything
        return (
            None,
            f"cannot be imported ({type(fault).__name__}: {fault}): pip install "
            f"--no-build-isolation 'genodiff[cuda]'",
        )
    return selective_scan_fn, ""


@cache
def _published_conv() -> Callable[..., Any] | None:
    try:
        from causal_conv1d import causal_conv1d_fn
    except Exception:
        return None
    found: Callable[..., Any] = causal_conv1d_fn
    return found


def find_missing() -> str | None:
    """What keeps mamba-ssm's scan from running here, in words; None if nothing."""
    scan, fault = _published()
    return fault if scan is None else None


def _channels_first(x: Tensor | None, reverse: bool) -> Tensor | None:
    if x is None:
        return None
    return (x.flip(1) if reverse else x).transpose(1, 2)


def mamba_ssm_scan(
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
    """As `naive_scan`, for float32 on a CUDA device and no `h0`."""
    scan, _ = _published()
    assert scan is not None
    assert h0 is None
    return call_with_layout(scan, u, delta, A, B, C, D, z, delta_bias, delta_softplus, reverse)


def call_with_layout(
    scan: Callable[..., Any], u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor,
    D: Tensor | None, z: Tensor | None,
    delta_bias: Tensor | None, delta_softplus: bool, reverse: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Call a scan that has mamba-ssm's signature and layout with ours."""
    u, delta, B, C, z = (_channels_first(x, reverse) for x in (u, delta, B, C, z))  # type: ignore[assignment]
    y, state = scan(u, delta, A, B, C, D, z, delta_bias, delta_softplus, return_last_state=True)
    y = y.transpose(1, 2)
    return (y.flip(1) if reverse else y), state


def fits_published_conv(x: Tensor, weight: Tensor) -> bool:
    """Whether `published_conv` takes these tensors: (B, L, E) and (E, K), on a GPU."""
    return (
        x.is_cuda
        and weight.shape[1] in _WIDTHS
        and x.dtype == weight.dtype
        and x.numel() > 0
        and _published_conv() is not None
    )


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
    y: Tensor = conv(_channels_first(x, reverse), weight, bias, activation=activation).transpose(
        1, 2
    )
    return y.flip(1) if reverse else y
