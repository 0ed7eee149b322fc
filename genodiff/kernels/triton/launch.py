"""What all launches of the Triton kernels share: the compiled kernels, pinned choices, and grids.

`choices.json` holds what is chosen for each kernel and dtype. It is pinned and nothing is tuned at
run time: a run that resumes takes the same path to the same bits.
"""

import json
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import Tensor

CHOICES: dict[str, Any] = json.loads(Path(__file__).with_name("choices.json").read_text())
JITTED = ("scan_jit", "mixer_jit", "norm_jit", "weights_jit")  # they import triton
# How their kernels' names begin.
_KERNELS = ("scan_", "conv_", "gate_", "norm_", "pack_", "sum_weights", "stage", "unstage")
_MOST_ROWS = 65_535  # CUDA's limit for the second and third axis of a grid


class _Fused(NamedTuple):
    """A kernel whose products and sums are contracted into one operation (fused multiply-add).

    Triton up to 3.9 does so by default, and 3.9 warns that a later one will not. It is asked for,
    so that a run that resumes under another Triton keeps its bits.
    """

    kernel: Any

    def __getitem__(self, grid: Any) -> Any:
        return partial(self.kernel[grid], enable_fp_fusion=True)


@cache
def kernels() -> SimpleNamespace:
    """All kernels by name; whether they are `interpreted`; T steps and BE channels of a tile."""
    found: dict[str, Any] = {}
    for name in JITTED:
        members = vars(import_module(f"genodiff.kernels.triton.{name}"))
        found |= {k: _Fused(v) for k, v in members.items() if k.startswith(_KERNELS)}
    interpreted = type(found["scan_forward"].kernel).__name__ == "InterpretedFunction"
    T, BE = (4, 8) if interpreted else (16, 32)  # the interpreter is slow: small tiles
    return SimpleNamespace(**found, interpreted=interpreted, T=T, BE=BE)


def find_missing() -> str | None:
    """What keeps the kernels from running on this machine, in words; None if nothing."""
    if find_spec("triton") is None:
        return "triton is not installed"
    if not torch.cuda.is_available():
        return "no CUDA device"
    if torch.version.hip is not None:
        return "the kernels are written for NVIDIA's matrix units"
    if torch.cuda.get_device_capability() < (8, 0):
        return "the GPU is older than compute capability 8.0"
    return None


@cache
def _is_interpreted() -> bool:
    return find_spec("triton") is not None and kernels().interpreted


def fits(*tensors: Tensor | None, rows: int = 1) -> bool:
    """Whether the kernels can take these tensors, which may have any strides.

    They are float32, bfloat16 or float16, on a GPU, and none is empty. `rows` is how many programs
    a grid has along its last axis.
    """
    dtypes = (torch.float32, torch.bfloat16, torch.float16)
    return rows <= _MOST_ROWS and all(
        x is None or (x.dtype in dtypes and x.numel() > 0 and (x.is_cuda or _is_interpreted()))
        for x in tensors
    )


def use_device(x: Tensor) -> Any:
    """A context in which Triton launches on the device of x."""
    return torch.cuda.device(x.device) if x.is_cuda else torch.no_grad()


def next_power_of_2(n: int) -> int:
    """The least power of 2 that is at least n, and at least 2."""
    return max(2, 1 << (n - 1).bit_length())
