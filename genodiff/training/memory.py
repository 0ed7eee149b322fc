"""Training with a memory of the train split: what each window may recall.

The network is told what the memory says of a masked window, and the loss is that of the mixture

    p' = w0 · p + copy

so the network learns what is left. A window never reads its own locus, on either strand, nor the
bases within its length of it: windows of the next epoch's tiling overlap this one's.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.data.loader import Batch, EvalBatches, TrainBatches
from genodiff.diffusion.masked import Denoiser
from genodiff.errors import UsageError
from genodiff.memory.remembering import remembering
from genodiff.memory.text import MOST_WINDOW
from genodiff.runs.config import RunConfig
from genodiff.runs.feed import Feed
from genodiff.runs.training_memory import leave_out_own, open_memory_of_run

Ints = NDArray[np.integer]
Remember = Callable[[Denoiser, Batch], Denoiser]
"""A denoiser, and a batch, to the denoiser that remembers, for the windows of that batch."""


class RunMemory(NamedTuple):
    """A run's memory in training and in validation, and what the run says of it."""

    train: Remember | None = None
    valid: Remember | None = None
    identity: dict[str, Any] = {}  # noqa: RUF012


def open_run_memory(
    config: RunConfig,
    feed: Feed,
    train: TrainBatches,
    valid: EvalBatches | None,
    remembered: dict[str, Any] | None,
) -> RunMemory:
    """The memory of a run whose network reads one; nothing for any other.

    `remembered` is what a run that goes on says of its data. Raises `DataError` where its memory
    was another one, `UsageError` for windows that are too long.
    """
    if not config.backbone.reads_memory:
        return RunMemory()
    if config.data.seq_len > MOST_WINDOW:
        what = f"--memory takes windows of at most {MOST_WINDOW:,} bases, not "
        raise UsageError(f"{what}{config.data.seq_len:,}", fix="leave it out")
    own = None if remembered is None else remembered.get("memory")
    legacy = config.data.legacy_caduceus_tiling
    found = open_memory_of_run(feed.store, legacy_caduceus_tiling=legacy, remembered=own)

    def remember(denoiser: Denoiser, starts: Ints, lengths: Ints) -> Denoiser:
        own = leave_out_own(found.memory, feed.store, starts.tolist(), lengths.tolist())
        return remembering(denoiser, found.memory, without=own)

    def remember_train(denoiser: Denoiser, batch: Batch) -> Denoiser:
        return remember(denoiser, *train.place(batch.index.numpy()))

    def remember_valid(denoiser: Denoiser, batch: Batch) -> Denoiser:
        assert valid is not None
        windows = valid.windows
        rows = batch.index.numpy() % len(windows)
        return remember(denoiser, windows.flat_start[rows], windows.length[rows])

    with_valid = None if valid is None else remember_valid
    return RunMemory(remember_train, with_valid, {"memory": found.told})
