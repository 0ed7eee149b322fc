"""Batches: windows with all the randomness a training or evaluation step needs, as pure functions
of (seed, number).

Training samples are numbered 0, 1, 2, … for ever. With n windows per epoch, sample g is the (g mod
n)-th window of epoch g // n, in an order and at a tiling phase drawn for that epoch; its strand,
mask and time are drawn for g. Step s holds the samples s·B .. (s+1)·B − 1, dealt to micro-batches
and ranks in order. So neither workers, nor ranks, nor the number of micro-batches, nor a restart
can change what is seen: progress is one integer.
"""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import IterableDataset, get_worker_info

from genodiff.alphabet import DNA, SOFT
from genodiff.counter import Purpose, uniform_rows, uniforms
from genodiff.data.labels import NONE, WindowLabels
from genodiff.data.windows import PHASES, Ints, Windows
from genodiff.errors import UsageError

if TYPE_CHECKING:
    from genodiff.data.genomes.mixing import GenomeMix

SHARED = 1
"""`sub_index` of the draws that a whole step or evaluation shares; a sample's own have 0."""

_OTHER_STRAND = np.arange(256, dtype=np.uint8)
_OTHER_STRAND[: DNA.padded_size] = DNA.rc(_OTHER_STRAND[: DNA.padded_size])[::-1]
_OTHER_STRAND[SOFT : SOFT + DNA.padded_size] = _OTHER_STRAND[: DNA.padded_size] | SOFT


class Batch(NamedTuple):
    """B windows of L tokens, right-padded, and the uniforms that decide their masks and times.

    `slot` and `n_slots` place each sample in the low-discrepancy set of times that `u_shared`
    shifts: the step's global batch in training, all windows and repeats in evaluation.
    """

    x0: Tensor  # (B, L) int64
    maskable: Tensor  # (B, L) bool: A, C, G, T (of text every token); not N, padding, specials
    soft: Tensor  # (B, L) bool: lower case in the FASTA
    lengths: Tensor  # (B,) int64
    u_mask: Tensor  # (B, L) float64 in [0, 1)
    u_time: Tensor  # (B,) float64 in [0, 1)
    u_shared: float | Tensor  # a number; a scalar on the device for a CUDA graph
    slot: Tensor  # (B,) int64
    n_slots: int
    index: Tensor  # type: ignore[assignment]  # (B,) int64: sample number
    segments: Tensor | None = None
    """(B, L) int64: documents that do not see one another (packed text, where asked for)."""
    labels: Tensor | None = None
    """(B,) int64: classes, -1 for none (conditional training)."""

    def take(self, rows: Tensor) -> "Batch":
        """The rows of a mask (B,)."""
        parts: dict[str, Any] = {
            name: part[rows.to(part.device)]
            for name, part in zip(self._fields, self, strict=True)
            if isinstance(part, Tensor) and part.ndim
        }
        return self._replace(**parts)

    def denoiser(self, backbone: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """`backbone` as the denoiser of these rows: told their segments or labels, if any."""
        known = {"segments": self.segments, "labels": self.labels}
        if all(part is None for part in known.values()):
            return backbone
        device = next(backbone.parameters()).device  # type: ignore[attr-defined]
        there = {name: part.to(device) for name, part in known.items() if part is not None}
        told = partial(backbone, **there)
        # `partial` hides them: the head would run on all rows, a memory would not be read.
        for name in ("selects_rows", "recalls"):
            setattr(told, name, getattr(backbone, name, False))
        return told


class TrainBatches:
    """Micro-batches of a training split; `batch_size` is that of a whole optimizer step."""

    def __init__(
        self,
        windows: Windows,
        seed: int,
        batch_size: int,
        accumulate: int = 1,
        rank: int = 0,
        world_size: int = 1,
        rc_augment: bool = False,
        labels: WindowLabels | None = None,
        label_dropout: float = 0.0,
        order: "GenomeMix | None" = None,
    ) -> None:
        """Raises `UsageError` unless `batch_size` divides evenly among micro-batches and ranks."""
        parts = accumulate * world_size
        if batch_size < 1 or accumulate < 1 or not 0 <= rank < world_size or batch_size % parts:
            what = f"a batch of {batch_size} windows cannot be divided among {accumulate} "
            what += f"micro-batches on {world_size} ranks"
            raise UsageError(what, fix=f"give a batch size that is a multiple of {parts}")
        self.windows, self.seed, self.rc_augment = windows, seed, rc_augment
        self.batch_size, self.accumulate = batch_size, accumulate
        self.rank, self.world_size = rank, world_size
        self.labels, self.label_dropout, self.order = labels, label_dropout, order
        self.rows = batch_size // parts

    def batch(self, k: int) -> Batch:
        """Micro-batch k of this rank, part of step k // accumulate: a function of (seed, k)."""
        step, micro = divmod(k, self.accumulate)
        first = (micro * self.world_size + self.rank) * self.rows
        slot = np.arange(first, first + self.rows)
        index = step * self.batch_size + slot
        starts, lengths = self.place(index)
        data = self.windows.gather(starts, lengths, self.windows.pad_id)
        turn = self.turned(index)
        if turn.any():
            data[turn] = complement_rows(data[turn], lengths[turn])
        shared = float(uniforms(self.seed, Purpose.TIME, step, 1, SHARED)[0])
        drawn = _Draws(self.seed, Purpose.MASK, Purpose.TIME, shared)
        batch = drawn.make_batch(self.windows, data, lengths, index, slot, self.batch_size)
        if self.labels is None:
            return batch
        hidden = uniform_rows(self.seed, Purpose.LABEL, index, 1)[:, 0] < self.label_dropout
        labels = np.where(hidden, NONE, self.labels.of(starts, lengths))
        return batch._replace(labels=torch.from_numpy(labels))

    def turned(self, index: Ints) -> NDArray[np.bool_]:
        """Which of these samples are read on the other strand."""
        if not self.rc_augment:
            return np.zeros(len(index), np.bool_)
        return uniform_rows(self.seed, Purpose.STRAND, index, 1)[:, 0] < 0.5

    def place(self, index: Ints) -> tuple[Ints, Ints]:
        """Flat start and length of the windows of these samples."""
        if self.order is not None:
            return self.order.place(index)
        n = self.windows.per_epoch
        starts, lengths = np.empty_like(index), np.empty_like(index)
        for epoch in np.unique(index // n):
            rows = index // n == epoch
            order, phase = _epoch(self.seed, int(epoch), self.windows)
            starts[rows], lengths[rows] = self.windows.tiling(phase).at(order[index[rows] % n])
        return starts, lengths


class BatchStream(IterableDataset[Batch]):
    """Micro-batches `first`, `first` + 1, … for `DataLoader(…, batch_size=None)`, which takes them
    from any number of workers in turn.
    """

    def __init__(self, batches: TrainBatches, first: int, stop: int | None = None) -> None:
        self.batches, self.first, self.stop = batches, first, stop

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        mine, step = (worker.id, worker.num_workers) if worker else (0, 1)
        k = self.first + mine
        while self.stop is None or k < self.stop:
            yield self.batches.batch(k)
            k += step


class EvalBatches:
    """Every window of a split, in order, `repeats` times. Sample number = repeat · len(windows) +
    window.

    The slots walk through all times in steps near the golden section of their number, so that every
    stretch of neighbouring windows (a contig, a repeat) meets all mask rates evenly, and not only
    the set as a whole.
    """

    def __init__(self, windows: Windows, batch_size: int, seed: int, repeats: int = 1) -> None:
        if batch_size < 1 or repeats < 1:
            fix = "give 1 or more of each"
            raise UsageError(f"batch size {batch_size}, {repeats} repeats", fix=fix)
        self.windows, self.batch_size, self.seed, self.repeats = windows, batch_size, seed, repeats
        self.n_slots = len(windows) * repeats
        self._stride = golden_stride(self.n_slots)
        shared = float(uniforms(seed, Purpose.EVAL_TIME, 0, 1, SHARED)[0])
        self._draws = _Draws(seed, Purpose.EVAL_MASK, Purpose.EVAL_TIME, shared)

    def __len__(self) -> int:
        return self.repeats * -(-len(self.windows) // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        for repeat in range(self.repeats):
            for number in range(len(self) // self.repeats):
                yield self.batch(repeat, number)

    def batch(self, repeat: int, number: int) -> Batch:
        """The batch of one repeat with this number."""
        first = number * self.batch_size
        window = np.arange(first, min(first + self.batch_size, len(self.windows)))
        windows, index = self.windows, repeat * len(self.windows) + window
        lengths = windows.length[window]
        data = windows.gather(windows.flat_start[window], lengths, windows.pad_id)
        slot = (window * self.repeats + repeat) * self._stride % self.n_slots
        return self._draws.make_batch(windows, data, lengths, index, slot, self.n_slots)


def complement_rows(data: NDArray[np.uint8], lengths: Ints) -> NDArray[np.uint8]:
    """The reverse complement of right-padded rows of stored bytes, case included; padding stays."""
    turned = _OTHER_STRAND[data[:, ::-1]]
    width = data.shape[1]
    for row in np.flatnonzero(lengths != width):
        turned[row] = np.roll(turned[row], int(lengths[row]) - width)
    return turned


class _Draws(NamedTuple):
    seed: int
    mask: Purpose
    time: Purpose
    shared: float

    def make_batch(
        self, windows: Windows, data: NDArray[Any], lengths: Ints, index: Ints, slot: Ints, n: int
    ) -> Batch:
        """The batch of gathered rows, with what is drawn for each sample `index`."""
        # Computed by numpy, so that no thread pool of torch wakes up for it (or is forked).
        tokens = windows.tokens(data, lengths)
        return Batch(
            x0=torch.from_numpy(tokens.x0),
            maskable=torch.from_numpy(tokens.maskable),
            soft=torch.from_numpy(tokens.soft),
            lengths=torch.from_numpy(windows.widths(lengths)),
            u_mask=torch.from_numpy(uniform_rows(self.seed, self.mask, index, windows.seq_len)),
            u_time=torch.from_numpy(uniform_rows(self.seed, self.time, index, 1)[:, 0]),
            u_shared=self.shared,
            slot=torch.from_numpy(slot),
            n_slots=n,
            index=torch.from_numpy(index),
            segments=None if tokens.segments is None else torch.from_numpy(tokens.segments),
        )


@lru_cache(maxsize=4)
def _epoch(seed: int, epoch: int, windows: Windows) -> tuple[Ints, int]:
    """An epoch's order of windows (by sorted uniforms: `permutation` may change), and its phase."""
    phase = int(uniforms(seed, Purpose.WINDOW_PHASE, epoch, 1)[0] * PHASES)
    n = len(windows.tiling(phase))
    return np.argsort(uniforms(seed, Purpose.WINDOW_ORDER, epoch, n), kind="stable"), phase


def golden_stride(n: int) -> int:
    """The number nearest to n / φ that has no divisor in common with n."""
    middle = n * (math.sqrt(5) - 1) / 2
    for distance in range(n + 1):
        for candidate in (math.floor(middle) - distance, math.floor(middle) + 1 + distance):
            if candidate >= 1 and math.gcd(candidate, n) == 1:
                return candidate
    return 1
