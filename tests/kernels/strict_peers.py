"""Stand-ins on a CPU for what runs on a GPU alone: tensors that say they are there, and the two
published packages, with the checks that their sources make before a kernel is launched.

causal-conv1d 1.6 (csrc/causal_conv1d.cpp) and mamba-ssm 2.2 (csrc/selective_scan.cpp).
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from genodiff.kernels.naive import naive_scan

_TYPES = (torch.float32, torch.bfloat16, torch.float16)


class OnGpu(Tensor):
    """A tensor in the CPU's memory that says it is in a GPU's."""

    @property
    def is_cuda(self) -> bool:  # type: ignore[override]
        return True

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return torch.device("cuda")


def on_gpu(x: Any) -> Any:
    """A tensor, the tensors of a list, or another value as it is, as if on a GPU."""
    if isinstance(x, Tensor):
        return x.as_subclass(OnGpu)
    return [on_gpu(part) for part in x] if isinstance(x, list) else x


def _check(well: bool, what: str) -> None:
    if not well:
        raise RuntimeError(f"Expected {what} to be true, but got false.")


def causal_conv1d_fn(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str | None = None
) -> Tensor:
    """x (B, E, L), weight (E, K), bias (E)."""
    if x.stride(2) != 1 and x.stride(1) != 1:
        x = x.contiguous()
    y: Tensor = _Conv.apply(x, weight, bias, activation)
    return y


class _Conv(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, activation: str | None
    ) -> Tensor:
        _check(x.is_cuda and weight.is_cuda, "x.is_cuda()")
        _check(x.dtype in _TYPES and weight.dtype in _TYPES, "input_type == Float")
        _check(bias is None or (bias.dtype == weight.dtype and bias.is_cuda), "bias' type")
        _check(2 <= weight.shape[1] <= 4, "width between 2 and 4")
        _check_layout(x)
        ctx.save_for_backward(x, weight, bias)
        ctx.activation = activation
        return _convolve(x, weight, bias, activation)

    @staticmethod
    def backward(ctx: Any, dout: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias = ctx.saved_tensors
        if x.stride(1) == 1 and dout.stride(1) != 1:
            dout = dout.transpose(1, 2).contiguous().transpose(1, 2)
        _check_layout(dout)
        with torch.enable_grad():
            given = [None if t is None else t.detach().requires_grad_() for t in (x, weight, bias)]
            y = _convolve(*given, ctx.activation)  # type: ignore[arg-type]
        wanted = [t for t in given if t is not None]
        found = torch.autograd.grad(y, wanted, dout)
        return (*found, *[None] * (4 - len(found)))


def _check_layout(x: Tensor) -> None:
    _check(x.stride(2) == 1 or x.stride(1) == 1, "x.stride(1) == 1")
    if x.stride(1) == 1 and x.stride(2) > 1:
        _check(x.shape[1] % 8 == 0, "dim % 8 == 0")
        _check(x.stride(0) % 8 == 0 and x.stride(2) % 8 == 0, "x.stride(2) % 8 == 0")
        _check(x.data_ptr() % 16 == 0, "an address for loads of 16 bytes")


def _convolve(x: Tensor, weight: Tensor, bias: Tensor | None, activation: str | None) -> Tensor:
    wide = F.pad(x.double(), (weight.shape[1] - 1, 0))
    shift = None if bias is None else bias.double()
    y = F.conv1d(wide, weight.double()[:, None], shift, groups=x.shape[1])
    return (F.silu(y) if activation == "silu" else y).to(x.dtype)


def selective_scan_fn(
    u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor | None = None,
    z: Tensor | None = None, delta_bias: Tensor | None = None, delta_softplus: bool = False,
    return_last_state: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Channels before time; the last state has no gradient, as in mamba-ssm."""
    assert return_last_state
    _check(u.dtype in _TYPES and A.dtype == torch.float32, "input_type == Float")
    _check(all(x.dtype == u.dtype for x in (delta, B, C)), "delta.scalar_type() == input_type")
    _check(A.shape[1] <= 256, "dstate <= 256")
    for x in (D, delta_bias):
        _check(x is None or x.dtype == torch.float32, "D.scalar_type() == Float")
    _check(delta_bias is None or delta_bias.stride(-1) == 1, "delta_bias.stride(-1) == 1")
    _check(all(x is None or x.is_cuda for x in (u, delta, A, B, C, D, z)), "u.is_cuda()")
    timed = [None if x is None else x.transpose(1, 2) for x in (u, delta, B, C, z)]
    y, state = naive_scan(
        timed[0], timed[1], A, timed[2], timed[3], D, timed[4], delta_bias, delta_softplus
    )  # type: ignore[arg-type]
    return y.transpose(1, 2), _NoGradient.apply(state)


class _NoGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, state: Tensor) -> Tensor:
        return state.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return torch.zeros_like(gradient)
