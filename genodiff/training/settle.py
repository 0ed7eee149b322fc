"""What a configuration leaves open ("auto"), decided for the machine that a run begins on.

A run that goes on keeps what it began with, whatever it goes on on. On a GPU the defaults are those
that are fast there: bfloat16, processes that prepare batches, pinned memory, fused AdamW.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from genodiff.io.process import count_usable_cores, is_command_line
from genodiff.runs.config import RunConfig
from genodiff.runs.resolve import RECOMPUTED, keep_choices
from genodiff.training.devices import check_batch_is_given
from genodiff.training.footprint import fit_batch
from genodiff.training.ranks import read_world

_log = logging.getLogger("genodiff")
_MOST_WORKERS = 4  # beyond, they wait for one another: drawing masks is 20 ms of 1,024 windows


def settle_config(config: RunConfig, device: str, folder: Path) -> RunConfig:
    """The configuration without "auto", but for the workers, which no result depends on.

    Raises `UsageError` where several processes leave the batch open, `MachineError` where no window
    fits.
    """
    config = keep_choices(folder, config)
    if config.train.precision == "auto":
        precision = "bf16" if device.startswith("cuda") else "fp32"
        train = config.train.model_copy(update={"precision": precision})
        config = config.model_copy(update={"train": train})
    if config.train.batch_size and config.train.accumulate:
        return config
    if read_world().size > 1:
        check_batch_is_given(config)
    config = fit_batch(config, device)
    parts = config.train.accumulate
    _log.info(
        "for the free memory: %d windows a step%s%s",
        config.train.batch_size,
        f", in {parts} parts" if parts > 1 else "",
        "".join(
            f", {what} recomputed"
            for name, what in zip(RECOMPUTED, ("states of scans", "blocks"), strict=True)
            if getattr(config.backbone, name, False)
        ),
    )
    return config


def count_workers(config: RunConfig, device: str) -> int:
    """Processes that prepare batches: none that a script which imports genodiff did not ask for."""
    if config.train.workers != "auto":
        return config.train.workers
    if not device.startswith("cuda") or not is_command_line():
        return 0
    return max(1, min(_MOST_WORKERS, count_usable_cores() // read_world().local - 1))


@contextmanager
def set_gpu_arithmetic(*, deterministic: bool = False) -> Iterator[None]:
    """A context in which a GPU's products are as exact as their dtype says.

    float32 is not cut to TF32. Sums of bfloat16 products stay float32, also where a long sum (over
    tokens, in a weight's gradient) is split: torch's default lets the parts be rounded to bfloat16.
    With `deterministic`, torch computes with operations alone that give the same bits every time,
    and raises `RuntimeError` where it has none. The settings are torch's, for the whole process,
    and restored at the end.
    """
    products = torch.backends.cuda.matmul
    names = ("allow_tf32", "allow_bf16_reduced_precision_reduction")
    before = {name: getattr(products, name) for name in names}
    mode = torch.get_deterministic_debug_mode()
    memory: Any = torch.utils.deterministic
    fills = memory.fill_uninitialized_memory
    try:
        for name in names:
            setattr(products, name, False)
        if deterministic:
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read at the first product
            torch.use_deterministic_algorithms(True)
            memory.fill_uninitialized_memory = False  # none is read here
        yield
    finally:
        for name, value in before.items():
            setattr(products, name, value)
        torch.set_deterministic_debug_mode(mode)
        memory.fill_uninitialized_memory = fills
