"""What a run may be asked for here: processes that share its steps, and loggers. No torch."""

import os
from collections.abc import Sequence
from importlib import import_module

from genodiff.errors import MachineError, UsageError, did_you_mean
from genodiff.runs.config import RunConfig


def check_devices(size: int, config: RunConfig, *, fsdp: bool = False) -> None:
    """Raises `UsageError` where so many ranks cannot share a step, or another launcher counts.

    With `fsdp` there must be several.
    """
    if fsdp and size == 1 and os.environ.get("WORLD_SIZE", "1") == "1":
        what = "--fsdp keeps tensors in parts, one for each rank, and there is one rank"
        raise UsageError(what, fix="give --devices 2 or more, or start with torchrun")
    if size < 1:
        raise UsageError(f"--devices {size} is below 1", fix="give 1 or more")
    if size == 1:
        return
    if "WORLD_SIZE" in os.environ:
        fix = "leave one of them out"
        raise UsageError("--devices and a launcher such as torchrun exclude each other", fix=fix)
    check_batch_is_given(config)
    parts = size * config.train.accumulate
    if config.train.batch_size % parts:
        what = f"a batch of {config.train.batch_size} windows cannot be divided among {size} ranks"
        if config.train.accumulate > 1:
            what += f" with --accumulate {config.train.accumulate}"
        raise UsageError(what, fix=f"give a --batch-size that is a multiple of {parts}")


def check_batch_is_given(config: RunConfig) -> None:
    """Raises `UsageError` where the batch of several processes is left open."""
    if not (config.train.batch_size and config.train.accumulate):
        what = "--batch-size and --accumulate cannot be auto with several processes"
        raise UsageError(what, fix="give --batch-size and --accumulate numbers")


LOGGERS = ("csv", "tensorboard", "wandb")
"""`csv` is metrics.csv, which is always written."""


def check_loggers(names: Sequence[str]) -> None:
    """Raises `UsageError` for an unknown logger, `MachineError` where its package is missing."""
    for name in names:
        if name not in LOGGERS:
            raise UsageError(f"no logger '{name}'; {did_you_mean(name, LOGGERS)}")
        try:
            import_module(name)
        except ImportError:
            what = f"--logger {name} needs the package {name}, which is not installed"
            raise MachineError(what, fix="pip install 'genodiff[loggers]'") from None
