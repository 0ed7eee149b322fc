"""The bound of windows that see their contig around them: one mask over a whole block.

An interval of the split (a contig, or what a BED gives) is cut into blocks of 65,536 bases, or of
eight trained lengths where these are more. A block with n bases that count is masked at exactly k
of them, k drawn systematically over blocks and repeats, and its bound (n / k) S_k is shared out
over the windows that `measure_bound` would score alone: a window's part is (n / k) Σ CE of its own
masked bases. Figures stand beside the same lines over the same bases, and differ from those of
windows alone by what the network makes of the longer context.

Windows of a block share k, so a block is what the interval counts as one observation. One k for a
whole chromosome would leave next to nothing to estimate an error from.

Memory: the network's is that of one piece (`backbones.streaming`), beside about 20 bytes for each
base of the interval.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genodiff.alphabet import DNA, SOFT
from genodiff.counter import Purpose, uniforms
from genodiff.data.loader import golden_stride
from genodiff.data.windows import Windows
from genodiff.diffusion.masked import MaskedDiffusion, counts, exact_count_mask, times
from genodiff.evaluation.bound import Bound, make_bound

BLOCK = 1 << 16  # bases, at least
_LENGTHS = 8  # trained lengths, at least
_OF_BLOCKS = 2  # `sub_index` of these draws: 0 and 1 are those of windows
_ALL = slice(None)

Floats = NDArray[np.float64]
Streamer = Callable[[Tensor], Iterator[tuple[int, Tensor]]]
"""Ids (L,) of one sequence -> (start, logits of the bases from there on), from left to right."""


def measure_contig_bound(
    diffusion: MaskedDiffusion,
    streamer: Streamer,
    windows: Windows,
    *,
    repeats: int = 1,
    seed: int = 1,
    device: torch.device | str = "cpu",
    progress: Callable[[int, int], None] | None = None,
    block: int | None = None,
) -> Bound:
    """The bound of every window within its block; `block` bases are those of the module."""
    spans = find_blocks(windows, block or max(BLOCK, _LENGTHS * windows.seq_len))
    n_slots = len(spans) * repeats
    nats, tokens = np.zeros((2, repeats, len(windows))), np.zeros((2, len(windows)))
    rate, block_of = np.zeros((repeats, len(windows))), np.zeros(len(windows), np.int64)
    shared = float(uniforms(seed, Purpose.EVAL_TIME, 0, 1, _OF_BLOCKS)[0])
    stride, slots = golden_stride(n_slots), torch.arange(n_slots)
    t = times("systematic", torch.zeros(n_slots, dtype=torch.float64), shared, slots, n_slots)
    for number, (start, end, rows) in enumerate(spans):
        block_of[rows] = number
        bases = SpanBases(windows, start, end, rows)
        x0, maskable = bases.x0, bases.maskable
        tokens[:, rows] = bases.share(maskable.double()[0])
        n = maskable.sum(-1)
        for repeat in range(repeats):
            draw = number * repeats + repeat
            slot = draw * stride % n_slots  # neighbours, and repeats of a block, are spread evenly
            k = counts(t[slot : slot + 1], n)
            u = torch.from_numpy(uniforms(seed, Purpose.EVAL_MASK, draw, end - start, _OF_BLOCKS))
            masked = exact_count_mask(maskable, k, u[None])
            sums = np.zeros((2, len(rows)))
            for at, logits in streamer(diffusion.mask(x0, masked)[0].to(device)):
                piece = slice(at, at + len(logits))
                ce = diffusion.nll(
                    logits[None], x0[:, piece].to(device), masked[:, piece].to(device)
                )[0]
                sums += bases.share(ce, piece)
            scale = float(n / k.clamp(min=1))
            nats[:, repeat, rows] = scale * sums
            rate[repeat, rows] = 1 / scale if int(n) else 0.0
            if progress is not None:
                progress(draw + 1, n_slots)
    return make_bound(nats, tokens, rate, block_of)


def find_blocks(windows: Windows, size: int) -> list[tuple[int, int, NDArray[np.int64]]]:
    """The intervals of `find_spans` cut between windows into blocks of about `size` bases."""
    blocks = []
    for start, end, rows in find_spans(windows):
        number = (windows.flat_start[rows] - start) // size
        cuts = np.flatnonzero(number[1:] != number[:-1]) + 1
        parts = np.split(rows, cuts)
        starts = [start, *windows.flat_start[rows[cuts]].tolist(), end]
        blocks += [(starts[i], starts[i + 1], part) for i, part in enumerate(parts)]
    return blocks


def find_spans(windows: Windows) -> list[tuple[int, int, NDArray[np.int64]]]:
    """Flat (start, end) of each interval that has windows, and the numbers of those windows."""
    first = windows.store.offsets[windows.intervals.contig] + windows.intervals.start
    end = first + windows.intervals.end - windows.intervals.start
    order = np.argsort(first)
    owner = order[np.searchsorted(first[order], windows.flat_start, "right") - 1]
    return [
        (int(first[i]), int(end[i]), np.flatnonzero(owner == i))
        for i in order.tolist()
        if (owner == i).any()
    ]


class SpanBases:
    """The bases (1, L) of a span of the store, and which of its windows each one is of."""

    def __init__(self, windows: Windows, start: int, end: int, rows: NDArray[np.int64]) -> None:
        data = windows.store.flat[start:end]
        self.x0 = torch.from_numpy((data & ~np.uint8(SOFT)).astype(np.int16))[None]
        self.maskable = torch.from_numpy(np.isin(self.x0.numpy(), DNA.targets))
        place = np.full(len(data), len(rows), np.int64)  # what lies in no window has the last row
        for i, row in enumerate(rows.tolist()):
            at = int(windows.flat_start[row]) - start
            place[at : at + int(windows.length[row])] = i
        self._rows = len(rows) + 1
        self._place = np.where(data >= SOFT, self._rows, 0) + place

    def share(self, values: Tensor, at: slice = _ALL) -> Floats:
        """(2, windows): sums over the bases of each window, upper case and soft-masked.

        `values` (n,) are those of the bases `at`.
        """
        weights = values.double().cpu().numpy()
        sums = np.bincount(self._place[at], weights, 2 * self._rows).astype(np.float64)
        return sums.reshape(2, -1)[:, :-1]
