"""Part of an evaluation's draws, measured apart and put together: `genodiff eval --shard i/n`.

What an evaluation draws is a function of the seed and of a window's number among all windows. A
shard has the i-th part of the batches that a whole evaluation would measure, so every batch is the
same, and with it every bit. The merged draws go through the same code as those of one run.
"""

import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from genodiff.data.loader import EvalBatches
from genodiff.errors import DataError, UsageError
from genodiff.io.atomic import write_bytes
from genodiff.io.identity import sha256_json
from genodiff.jobs.journal import Journal
from genodiff.jobs.shards import Shard
from genodiff.runs.model import TrainedModel
from genodiff.runs.training_memory import identify_memory
from genodiff.scoring.bound import WindowDraws, choose_windows, measure_batch
from genodiff.scoring.eval_data import open_data
from genodiff.scoring.eval_options import EvalOptions
from genodiff.scoring.window_memory import WindowMemory, open_window_memory

HOLDS = "draws of an evaluation's shard"
_ROWS = 5  # of a batch: nats of upper case and soft-masked, their tokens, and the masked share;
# with a memory, two more: the nats without it

Floats = NDArray[np.float64]


class ShardPlan(NamedTuple):
    """The batches of a shard, what they are of, and the digest of the whole request."""

    batches: EvalBatches
    numbers: range  # of the batches of one repeat
    windows: range
    request: str
    memory: WindowMemory | None = None


def plan_shard(model: TrainedModel, options: EvalOptions, shard: Shard) -> ShardPlan:
    """Raises `UsageError` for options that need all windows at once, or leave a shard empty."""
    for flag, given in (
        ("--t-steps", options.t_steps is not None),
        ("--context contig", options.context != "window"),
        ("--max-minutes", options.max_minutes is not None),
    ):
        if given:
            fix = "leave it out, or evaluate without shards"
            raise UsageError(f"--shard and {flag} exclude each other", fix=fix)
    data = open_data(model, options)
    memory = open_window_memory(model, options, data)
    windows = choose_windows(model, data.windows, options, memory)
    batches = EvalBatches(windows, options.batch_size, options.seed, options.repeats)
    first, last = shard.cut(len(batches) // options.repeats)
    if first == last:
        what = f"--shard {shard.number}/{shard.of} has no batch of {len(windows):,} windows"
        raise UsageError(what, fix="give fewer shards, or a smaller --batch-size")
    size = options.batch_size
    whole = {
        "checkpoint": model.digest, "fingerprint": data.store.fingerprint,
        "windows": len(windows), "options": _describe_options(options),
    }  # fmt: skip
    if memory is not None:
        whole["memory"], memory = identify_memory(memory.told), memory.of(windows)
    own = range(first * size, min(last * size, len(windows)))
    return ShardPlan(batches, range(first, last), own, sha256_json(whole), memory)


def _describe_options(options: EvalOptions) -> dict[str, Any]:
    given = {key: value for key, value in asdict(options).items() if key != "offline"}
    if options.memory in (None, "off"):  # as in requests of before there was a memory
        del given["memory"]
    return given


@torch.no_grad()
def measure_shard(
    model: TrainedModel,
    plan: ShardPlan,
    journal: Journal,
    progress: Callable[[int, int], None] | None = None,
) -> WindowDraws:
    """The draws of a shard's windows; each batch is kept in `journal`, and what is there is read.

    Raises `GenodiffError` where they are not finite.
    """
    device = next(model.backbone.parameters()).device
    places = [(r, k) for r in range(plan.batches.repeats) for k in plan.numbers]
    for done in range(journal.kept, len(places)):
        batch = plan.batches.batch(*places[done])
        found = measure_batch(model.objective, model.backbone, batch, device, plan.memory)
        journal.append(np.stack(found).tobytes())
        if progress is not None:
            progress(done + 1, len(places))
    with_memory = plan.memory is not None
    draws = WindowDraws.empty(plan.batches.repeats, len(plan.windows), memory=with_memory)
    kept = _ROWS + 2 * with_memory
    for (repeat, number), row in zip(places, journal.rows(), strict=True):
        values = np.frombuffer(row).reshape(kept, -1)
        at = number * plan.batches.batch_size - plan.windows.start
        draws.put(repeat, slice(at, at + values.shape[1]), list(values))
    return draws


def write_draws(path: str | Path, draws: WindowDraws) -> dict[str, Any]:
    """Write the draws of a shard; what a sidecar says of the file."""
    buffer = io.BytesIO()
    rows = [draws.nats, draws.rate[None]]
    np.save(buffer, np.concatenate(rows if draws.without is None else [*rows, draws.without]))
    np.save(buffer, draws.tokens)
    data = buffer.getvalue()
    write_bytes(path, data)
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def read_draws(paths: Sequence[str | Path]) -> WindowDraws:
    """The draws of all shards, in their order. Raises `DataError` for a file that is none."""
    values, tokens = [], []
    for path in paths:
        try:
            with open(path, "rb") as file:
                values.append(np.load(file, allow_pickle=False))
                tokens.append(np.load(file, allow_pickle=False))
        except (OSError, ValueError, EOFError) as fault:
            raise DataError(f"holds no draws: {fault}", file=path, fix="evaluate again") from None
    joined = np.concatenate(values, 2)
    without = joined[3:] if len(joined) > 3 else None
    return WindowDraws(joined[:2], np.concatenate(tokens, 1), joined[2], without)
