"""Every tensor of a network in parts, one for each rank: PyTorch's FSDP2 (`fully_shard`).

Weights, their average, gradients and AdamW's moments are kept in parts. A layer's weights are
gathered while it computes, and its gradients are summed into the parts. A checkpoint holds whole
tensors, the same files as of one rank, so a run goes on with another number of ranks, in parts or
not.
"""

import sys
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn


def is_part(tensor: Tensor) -> bool:
    """Whether a tensor is kept in parts. What makes parts takes seconds to import; before it is
    imported there are none.
    """
    parts = sys.modules.get("torch.distributed.tensor")
    return parts is not None and isinstance(tensor, parts.DTensor)


def shard_network(network: nn.Module, mesh: Any) -> None:
    """Keep this rank's part of each tensor of `network`; the layers are gathered one by one."""
    fully_shard: Any = import_module("torch.distributed.fsdp").fully_shard
    exempt = {n for n, p in network.named_parameters() if hasattr(p, "_no_weight_decay")}
    for block in getattr(network, "blocks", ()):  # gathered together: its mixer, if it has one
        fully_shard(getattr(block, "mixer", block), mesh=mesh)
    # The outermost too: after a validation, which has no backward pass, it would stay whole.
    fully_shard(network, mesh=mesh, reshard_after_forward=True)
    for name, parameter in network.named_parameters():  # they are new ones, without the mark
        if name in exempt:
            parameter._no_weight_decay = True  # type: ignore[attr-defined]


def gather(tensor: Tensor) -> Tensor:
    """The whole of a tensor that may be in parts. All ranks call this together."""
    return tensor.full_tensor() if is_part(tensor) else tensor  # type: ignore[attr-defined]


def take_part(tensor: Tensor, like: Tensor) -> Tensor:
    """This rank's part of a whole tensor, as that of `like`; all of it where `like` is whole.

    All ranks call this together.
    """
    if not is_part(like) or tensor.shape != like.shape:
        return tensor.to(like.device)
    distribute: Any = import_module("torch.distributed.tensor").distribute_tensor
    parts: Any = like
    part: Tensor = distribute(tensor.to(like.device), parts.device_mesh, parts.placements)
    return part


def gather_all(tensors: dict[str, Tensor], *, keep: bool) -> dict[str, Tensor]:
    """Whole tensors in the CPU's memory, one after the other; empty unless this rank is to `keep`.

    All ranks call this together. Tensors that are whole already are kept as they are.
    """
    found = {}
    for name, tensor in tensors.items():
        whole = gather(tensor)
        if keep:
            found[name] = whole.cpu() if is_part(tensor) else whole
    return found


def is_sharded(network: nn.Module) -> bool:
    """Whether a network is in parts."""
    return any(is_part(p) for p in network.parameters())


def all_finite(tensor: Tensor) -> bool:
    """Whether every value is finite. All ranks call this together, and find the same."""
    return bool(torch.isfinite(gather(tensor)).all())
