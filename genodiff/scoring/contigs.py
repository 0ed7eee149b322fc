"""The bound of windows that see all of their contig: one mask over a whole interval, scored piece
by piece.

An interval of the split (a contig, or what a BED gives) with n bases that count is masked at
exactly k of them, k drawn systematically over intervals and repeats, and its bound (n / k) S_k is
shared out over the windows that `perplexity` would score alone: a window's part is (n / k) Σ CE of
its own masked bases. Figures stand beside the same lines over the same bases, and differ from those
of windows alone by what the network makes of the longer context.

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
from genodiff.data.windows import Windows
from genodiff.diffusion.masked import MaskedDiffusion, counts, exact_count_mask, times

_OF_INTERVALS = 2  # `sub_index` of these draws: 0 and 1 are those of windows

Floats = NDArray[np.float64]
Streamer = Callable[[Tensor], Iterator[tuple[int, Tensor]]]
"""Ids (L,) of one sequence -> (start, logits of the bases from there on), from left to right."""


def contig_bound(
    diffusion: MaskedDiffusion,
    streamer: Streamer,
    windows: Windows,
    *,
    repeats: int = 1,
    seed: int = 1,
    device: torch.device | str = "cpu",
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Nats (2, repeats, windows), tokens (2, windows) and rate (repeats, windows); see `Bound`."""
    spans = find_spans(windows)
    n_slots = len(spans) * repeats
    nats, tokens = np.zeros((2, repeats, len(windows))), np.zeros((2, len(windows)))
    rate = np.zeros((repeats, len(windows)))
    shared = float(uniforms(seed, Purpose.EVAL_TIME, 0, 1, _OF_INTERVALS)[0])
    slots = torch.arange(n_slots)
    t = times("systematic", torch.zeros(n_slots, dtype=torch.float64), shared, slots, n_slots)
    for number, (start, end, rows) in enumerate(spans):
        data = windows.store.flat[start:end]
        x0 = torch.from_numpy((data & ~np.uint8(SOFT)).astype(np.int16))[None]
        maskable = torch.from_numpy(np.isin(x0.numpy(), DNA.targets))
        soft = data >= SOFT
        row_of = _row_of(windows, rows, start, len(data))
        place = (
            np.where(soft, len(rows) + 1, 0) + row_of
        )  # what lies in no window has the row after the last
        width = 2 * (len(rows) + 1)
        tokens[:, rows] = np.bincount(place[maskable.numpy()[0]], minlength=width).reshape(2, -1)[
            :, :-1
        ]
        n = maskable.sum(-1)
        for repeat in range(repeats):
            slot = (
                repeat * len(spans) + number
            )  # so that an interval's own rates are spread as all of them are
            k = counts(t[slot : slot + 1], n)
            u = torch.from_numpy(uniforms(seed, Purpose.EVAL_MASK, slot, len(data), _OF_INTERVALS))
            masked = exact_count_mask(maskable, k, u[None])
            sums = np.zeros(width)
            for at, logits in streamer(diffusion.mask(x0, masked)[0].to(device)):
                piece = slice(at, at + len(logits))
                ce = diffusion.nll(
                    logits[None], x0[:, piece].to(device), masked[:, piece].to(device)
                )[0]
                sums += np.bincount(place[piece], ce.double().cpu().numpy(), width)
            scale = float(n / k.clamp(min=1))
            nats[:, repeat, rows] = scale * sums.reshape(2, -1)[:, :-1]
            rate[repeat, rows] = 1 / scale if int(n) else 0.0
            if progress is not None:
                progress(number * repeats + repeat + 1, n_slots)
    return nats, tokens, rate


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


def _row_of(
    windows: Windows, rows: NDArray[np.int64], start: int, length: int
) -> NDArray[np.int64]:
    """For each base of an interval, which of its windows holds it; len(rows) where none does."""
    found = np.full(length, len(rows), np.int64)
    for i, row in enumerate(rows.tolist()):
        at = int(windows.flat_start[row]) - start
        found[at : at + int(windows.length[row])] = i
    return found
