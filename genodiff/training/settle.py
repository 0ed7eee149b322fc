"""What a configuration leaves open ("auto"), decided for the machine that a run begins on.

A run that goes on keeps what it began with, whatever it goes on on. On a GPU the defaults are those
that are fast there: bfloat16, processes that prepare batches, pinned memory, fused AdamW.

The memory of a training step says how much of a batch fits into what is free:

    weights    20 bytes each: weight, gradient, AdamW's two moments, the average of the weights
               (and 2 for the copy in bfloat16)
    positions  what the backward pass needs, what works in it, and the logits

Of a Caduceus on a GPU the positions are counted (`BackboneSettings.count_step_bytes`); elsewhere
what autograd keeps is measured on one small row.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from genodiff.alphabet import Alphabet
from genodiff.backbones.backbone import Backbone
from genodiff.errors import MachineError
from genodiff.io.process import count_usable_cores, is_command_line, read_memory
from genodiff.runs.config import RunConfig
from genodiff.runs.feed import find_alphabet
from genodiff.runs.model import build_backbone, build_diffusion, build_objective
from genodiff.runs.resolve import RECOMPUTED, keep_choices
from genodiff.training.devices import check_batch_is_given
from genodiff.training.ranks import read_world

_USABLE = 0.9  # of the free memory: allocators leave gaps
_LOGITS = 16  # bytes for each: in the products' dtype, in float32, their log-softmax, its gradient
_MOST_TOKENS = 1 << 17  # of a step whose batch size is left open


class Footprint(NamedTuple):
    """Bytes of a training step."""

    fixed: float
    per_window: float

    def count_bytes(self, windows: int) -> int:
        """With this many windows at a time."""
        return int(self.fixed + windows * self.per_window)

    def count_windows(self, free: int) -> int:
        """The most windows at a time that fit into `free` bytes; 0 where none does."""
        return max(0, int((_USABLE * free - self.fixed) / self.per_window))


def count_footprint(config: RunConfig, precision: str) -> Footprint | None:
    """Of a step on a GPU, from the network's shape; None where only a measurement tells."""
    word = 4 if precision == "fp32" else 2
    found = config.backbone.count_step_bytes(config.data.seq_len, word)
    return None if found is None else _sum_up(config, found.kept + found.working, word)


def measure_footprint(config: RunConfig, backbone: Backbone, device: str) -> Footprint:
    """Of a step on this device: counted where that is known, else measured."""
    precision = config.train.precision
    # What a recomputed block takes cannot be measured from outside.
    recomputed = getattr(config.backbone, "checkpointing", False)
    if device.startswith("cuda") or recomputed:
        counted = count_footprint(config, precision)
        if counted is not None:
            return counted
    word = 2 if precision == "bf16" else 4
    kept = measure_kept_bytes(backbone, config, find_alphabet(config), device)
    return _sum_up(config, kept, word)


def _sum_up(config: RunConfig, position: float, word: int) -> Footprint:
    alphabet = find_alphabet(config)
    evaluations = build_objective(config, build_diffusion(config, alphabet)).evaluations
    size = alphabet.padded_size
    weights = config.backbone.n_parameters(size) * (20 + (2 if word == 2 else 0))
    return Footprint(weights, config.data.seq_len * (evaluations * position + _LOGITS * size))


def measure_kept_bytes(
    backbone: Backbone, config: RunConfig, alphabet: Alphabet, device: str
) -> float:
    """Bytes per position that autograd keeps between forward and backward; the logits left out."""
    length = min(config.data.seq_len, 512)
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage._cdata] = storage.nbytes()
        return tensor

    kind = torch.device(device).type
    with (
        torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor),
        torch.autocast(kind, torch.bfloat16, enabled=config.train.precision == "bf16"),
    ):
        # It is let go at the end: a storage that was freed could give its address to another.
        logits = backbone(spread_tokens(alphabet, 1, length, device))
    own = {parameter.untyped_storage()._cdata for parameter in backbone.parameters()}
    found = sum(size for at, size in kept.items() if at not in own) / length
    del logits
    return found


def spread_tokens(alphabet: Alphabet, rows: int, length: int, device: str) -> Tensor:
    """Tokens (rows, length) to try a network on: all targets and the mask."""
    targets = torch.tensor((*alphabet.targets, alphabet.mask_id), device=device)
    at = torch.arange(rows * length, device=device).remainder(7919)
    return targets[at.remainder(len(targets))].view(rows, length)


def find_free_bytes(device: str) -> int | None:
    """The memory that a run on this device may take; None where the system does not say."""
    if device.startswith("cuda"):
        return torch.cuda.mem_get_info(torch.device(device))[0]
    return read_memory()[1]


def fit_batch(config: RunConfig, device: str) -> RunConfig:
    """The configuration with a batch size and its parts for the free memory, where left open.

    Where not even one window fits otherwise, states of scans are recomputed, or else whole blocks.
    Raises `MachineError` where it does not fit then.
    """
    free = find_free_bytes(device)
    if free is None:
        raise MachineError("the free memory is not known here", fix="give --batch-size a number")
    for tried in (config, *_recompute(config, device)):
        backbone = build_backbone(tried, find_alphabet(tried)).to(device)
        windows = measure_footprint(tried, backbone, device).count_windows(free)
        if windows:
            return _divide(tried, windows)
    what = f"not one window of {config.data.seq_len:,} fits into {free / 1e9:.1f} GB"
    raise MachineError(what, fix="give a smaller --seq-len or --preset")


def _recompute(config: RunConfig, device: str) -> Iterator[RunConfig]:
    """The configuration with less that is kept, then with less still."""
    for name in RECOMPUTED:
        # States are recomputed by a GPU's kernels alone, and what they take is counted there.
        if hasattr(config.backbone, name) and (
            name == "checkpointing" or device.startswith("cuda")
        ):
            backbone = config.backbone.model_copy(update={name: True})
            yield config.model_copy(update={"backbone": backbone})


def _divide(config: RunConfig, windows: int) -> RunConfig:
    """The batch size and its parts, where open, with at most so many windows at a time."""
    batch, parts = config.train.batch_size, config.train.accumulate
    if not batch:
        unit = parts or 1
        room = _MOST_TOKENS // config.data.seq_len // unit
        room = min(room, windows) if parts else room
        batch = unit << (max(1, room).bit_length() - 1)  # a power of two for each part
    if not parts:
        parts = next(n for n in range(1, batch + 1) if batch % n == 0 and batch // n <= windows)
    chosen = config.train.model_copy(update={"batch_size": batch, "accumulate": parts})
    return config.model_copy(update={"train": chosen})


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
