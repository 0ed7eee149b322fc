"""The processes of one training run: rank, size, and orderly exit."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import NamedTuple

import torch

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
    missing = [
        name
        for name in ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
        if name not in os.environ
    ]
    if missing or not size.isdecimal():
        raise UsageError(
            f"WORLD_SIZE={size}, but {', '.join(missing) or 'that'} is not set",
            fix="start with torchrun, or unset it",
        )
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
