"""The bound of block diffusion on whole intervals: each block after all of its interval before it.

    −log p(x) ≤ Σ_b E_k (n_b / k) Σ over masked i in b of −log p_i(x_i | x¹ … x^(b−1), z^b)

Of the past the network keeps its states (`backbones.blocks.BlockPast`), so each base is read once
clean and once noised for each repeat, however long the past is. The network's memory does not
depend on the length; beside it are about 30 bytes for each base of an interval. What a window has
of the sum is that of its own bases, so its figures stand beside the same lines as those of windows
alone. Blocks begin where the interval does, and the first ones have a short past, as in training.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from genodiff.alphabet import DNA, SOFT
from genodiff.backbones.blocks import BlockPast
from genodiff.backbones.caduceus import Caduceus
from genodiff.counter import Purpose, uniforms
from genodiff.data.windows import Windows
from genodiff.diffusion.masked import times
from genodiff.diffusion.objectives.block import BlockDiffusion, mask_blocks
from genodiff.evaluation.bound import Bound, make_bound
from genodiff.evaluation.contigs import find_row_of, find_spans

_OF_INTERVALS = 3  # `sub_index` of these draws: 0 to 2 are those of windows and of `contigs`


@torch.no_grad()
def measure_block_contigs(
    objective: BlockDiffusion,
    network: Caduceus,
    windows: Windows,
    *,
    repeats: int = 1,
    seed: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Bound:
    """The bound of every window in its interval, once for each of the repeats.

    Raises `UsageError` for a network that cannot read blocks, `GenodiffError` where the bound is
    not finite.
    """
    spans = find_spans(windows)
    nats, tokens = np.zeros((2, repeats, len(windows))), np.zeros((2, len(windows)))
    shared = float(uniforms(seed, Purpose.EVAL_TIME, 0, 1, _OF_INTERVALS)[0])
    slots = torch.arange(len(spans) * repeats)
    t = times("systematic", torch.zeros(len(slots), dtype=torch.float64), shared, slots, len(slots))
    total, read = sum(end - start for start, end, _ in spans), 0
    for number, (start, end, rows) in enumerate(spans):
        data = windows.store.flat[start:end]
        soft = data >= SOFT
        x0 = torch.from_numpy((data & ~np.uint8(SOFT)).astype(np.int16))[None]
        maskable = torch.from_numpy(np.isin(x0.numpy(), DNA.targets))
        # What lies in no window has the row after the last.
        place = np.where(soft, len(rows) + 1, 0) + find_row_of(windows, rows, start, len(data))
        width = 2 * (len(rows) + 1)
        counted = np.bincount(place[maskable.numpy()[0]], minlength=width)
        tokens[:, rows] = counted.reshape(2, -1)[:, :-1]
        sums, past = np.zeros((repeats, width)), BlockPast(network, 1)
        draws = [number * repeats + repeat for repeat in range(repeats)]
        masked, scale = _draw_masks(objective, maskable, t[draws], seed, draws)
        for at in range(0, len(data), objective.block):
            here = slice(at, min(at + objective.block, len(data)))
            costs = _read_block(objective, past, x0[:, here], masked[:, here], scale[:, here])
            for repeat, own in enumerate(costs):
                sums[repeat] += np.bincount(place[here], own, width)
            if progress is not None:
                read += here.stop - here.start
                progress(read, total)
        nats[:, :, rows] = sums.reshape(repeats, 2, -1)[:, :, :-1].transpose(1, 0, 2)
    return make_bound(nats, tokens, None)


def _draw_masks(
    objective: BlockDiffusion,
    maskable: torch.Tensor,
    t: torch.Tensor,
    seed: int,
    draws: list[int],
) -> tuple[torch.Tensor, torch.Tensor]:
    """(R, L): what is masked of an interval in each repeat, and n / k of its block."""
    found = []
    for time, draw in zip(t, draws, strict=True):
        u = uniforms(seed, Purpose.EVAL_MASK, draw, maskable.shape[1], _OF_INTERVALS)
        found.append(mask_blocks(maskable, time[None], torch.from_numpy(u)[None], objective.block))
    masked, scale = zip(*found, strict=True)
    return torch.cat(masked), torch.cat(scale).float()


def _read_block(
    objective: BlockDiffusion,
    past: BlockPast,
    x0: torch.Tensor,
    masked: torch.Tensor,
    scale: torch.Tensor,
) -> NDArray[np.float64]:
    """(R, n): nats of each base of the block that follows, which then is past."""
    device = past.network.embedding.device
    x0, masked = x0.long().to(device), masked.to(device)
    xt = objective.diffusion.mask(x0.expand(len(masked), -1), masked)
    some = masked.any(1).nonzero()[:, 0]
    costs = torch.zeros(masked.shape, dtype=torch.float64, device=device)
    if len(some):
        logits = past.read(xt[some], torch.zeros_like(some))
        nll = objective.diffusion.nll(logits, x0.expand(len(some), -1), masked[some])
        costs[some] = torch.where(masked[some], nll.double() * scale[some.cpu()].to(device), 0.0)
    past.add(x0)
    return costs.cpu().numpy()
