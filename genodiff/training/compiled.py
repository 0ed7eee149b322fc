"""The blocks of a network compiled by torch, where none of their kernels is genodiff's own.

A DiT's block on a GPU is a hundred launches of elementwise work beside its products; compiled, a
few. A Caduceus runs the Triton kernels, which torch would not look into.
"""

import importlib
from importlib.util import find_spec

import torch
from torch import nn

from genodiff.backbones.dit import DiT


def find_obstacle(network: nn.Module, device: str) -> str:
    """Why the blocks of a network are not compiled on this device, in words; "" if nothing."""
    if not isinstance(network, DiT) or network.settings.norm != "layer":
        return "only a DiT with LayerNorm has blocks without kernels of genodiff's own"
    if not device.startswith("cuda"):
        return "it is for a GPU"
    if find_spec("triton") is None:
        return "triton is not installed"
    if not hasattr(importlib.import_module("torch._inductor.config"), "deterministic"):
        return f"torch {torch.__version__} chooses kernels by timing them, so bits may differ"
    return ""


def compile_blocks(network: nn.Module, backend: str = "inductor") -> None:
    """Have each block compiled when it is first called, for each shape of its inputs.

    Names and weights stay as they are. No kernel is chosen by its time, so that the same inputs
    give the same bits in every process.
    """
    options = {"deterministic": True} if backend == "inductor" else None
    for block in network.blocks:  # type: ignore[union-attr]
        block.compile(backend=backend, dynamic=False, options=options)
