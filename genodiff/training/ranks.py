"""The processes of one training run: rank, size, orderly exit, and tensors in parts, one for each.

In parts (PyTorch's FSDP2, `fully_shard`) are weights, their average, gradients and AdamW's moments.
A layer's weights are gathered while it computes, and its gradients are summed into the parts. A
checkpoint holds whole tensors, the same files as of one rank, so a run goes on with another number
of ranks, in parts or not.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from genodiff.errors import UsageError

TIMEOUT = 120
"""Seconds that a rank or a worker may keep the others waiting."""


class World(NamedTuple):
    """Rank of this process and number of processes, as set by torchrun."""

    rank: int
    size: int
    local: int
    in_parts: bool = False
    """Each of several ranks keeps a part of every tensor."""


def read_world() -> World:
    """Read the ranks from the environment. Raises `UsageError` if only some variables are set."""
    size = os.environ.get("WORLD_SIZE", "1")
    if size == "1":
        return World(0, 1, 1)
    needed = ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    missing = [name for name in needed if name not in os.environ]
    if missing or not size.isdecimal():
        what = f"WORLD_SIZE={size}, but {', '.join(missing) or 'that'} is not set"
        raise UsageError(what, fix="start with torchrun, or unset it")
    return World(int(os.environ["RANK"]), int(size), int(os.environ["LOCAL_WORLD_SIZE"]))


def join_ranks(world: World, device: str) -> None:
    """Join the process group of ranks started by torchrun; other groups are started by the trainer.

    torchrun's store outlives its ranks and keeps the entries of dead ones: a rank that reads the
    old address of another waits for a process that is gone (pytorch issues 135712 and 167288). The
    entries of each attempt therefore get a prefix of their own.
    """
    shared = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    if world.size == 1 or not shared or _is_in_group():
        return
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    timeout = timedelta(seconds=TIMEOUT)
    store = torch.distributed.TCPStore(address, port, world.size, is_master=False, timeout=timeout)
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    torch.distributed.init_process_group(
        "nccl" if device.startswith("cuda") else "gloo",
        store=torch.distributed.PrefixStore(f"genodiff/{attempt}", store),
        rank=world.rank, world_size=world.size, timeout=timeout,
    )  # fmt: skip


@contextmanager
def end_process_group() -> Iterator[None]:
    """End the process group started within the block; an existing one is left alone.

    Its threads would abort a process that exits while they run.
    """
    before = _is_in_group()
    try:
        yield
    finally:
        if _is_in_group() and not before:
            torch.distributed.destroy_process_group()


def _is_in_group() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()


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
