"""The selective scan: one definition (`naive.py`), and the implementations to choose from."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from genodiff.kernels import library
from genodiff.kernels.direction import native_scan
from genodiff.kernels.dispatch import Implementation, Operation, accept_all
from genodiff.kernels.graph import graph_scan
from genodiff.kernels.mamba_ssm import fits_published_scan, mamba_ssm_scan
from genodiff.kernels.naive import naive_scan
from genodiff.kernels.torch_scan import chunked_scan
from genodiff.kernels.triton import launch
from genodiff.kernels.triton.scan import triton_scan

Tensors = tuple[Tensor | None, ...]  # u, delta, A, B, C, D, z, delta_bias, h0


def _is_wide(tensors: Tensors) -> bool:
    return any(x is not None and x.dtype == torch.float64 for x in tensors)


def _mamba_ssm_accepts(*tensors: Tensor | None) -> bool:
    return not _is_wide(tensors) and fits_published_scan(*tensors)


def _native_accepts(*tensors: Tensor | None) -> bool:
    on_cpu = all(x is None or (x.device.type == "cpu" and x.numel() > 0) for x in tensors)
    return on_cpu and not _is_wide(tensors) and library.is_loaded()


# Each is called with float32, or float64 where an input is; Triton's with the inputs as they come.
SCAN = Operation(
    Implementation("triton", triton_scan, lambda *given: launch.fits(*given, rows=len(given[0]))),
    Implementation("mamba_ssm", mamba_ssm_scan, _mamba_ssm_accepts),
    Implementation("native", native_scan, _native_accepts),
    Implementation("torch", chunked_scan, accept_all),
    Implementation("naive", naive_scan, accept_all),
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
    inputs: Tensors = (u, delta, A, B, C, D, z, delta_bias, h0)
    scan = SCAN.choose(*inputs, provider=provider)
    if scan.provider != "triton":
        dtype = torch.float64 if _is_wide(inputs) else torch.float32
        inputs = tuple(None if x is None else x.to(dtype) for x in inputs)
    *timed, start = inputs
    with torch.autocast(u.device.type, enabled=False):
        y, state = scan.run(*timed, delta_softplus, reverse, start)
    found: Any = (y.to(u.dtype), state) if return_state else y.to(u.dtype)
    return found
