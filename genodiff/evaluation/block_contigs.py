"""The bound of block diffusion on whole intervals: each block after all of its interval before it.

    −log p(x) ≤ Σ_b E_k (n_b / k) Σ over masked i in b of −log p_i(x_i | x¹ … x^(b−1), z^b)

Of the past the network keeps its states (`backbones.blocks.BlockPast`), so each base is read once
clean and once noised for each repeat, however long the past is. The network's memory does not
depend on the length; the interval's bases, masks and costs are held. What a window has of the sum
is that of its own bases, so its figures stand beside the same lines as those of windows alone.
Blocks begin where the interval does, and the first ones have a short past, as in training.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from genodiff.backbones.blocks import BlockPast
from genodiff.backbones.caduceus import Caduceus
from genodiff.counter import Purpose, uniform_rows, uniforms
from genodiff.data.windows import Windows
from genodiff.diffusion.masked import times
from genodiff.diffusion.objectives.block import BlockDiffusion, mask_blocks
from genodiff.evaluation.bound import Bound, make_bound
from genodiff.evaluation.contigs import SpanBases, find_spans

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
    total, before = sum(end - start for start, end, _ in spans), 0
    for number, (start, end, rows) in enumerate(spans):
        bases, length = SpanBases(windows, start, end, rows), end - start
        tokens[:, rows] = bases.share(bases.maskable.double()[0])
        draws = slots[number * repeats : (number + 1) * repeats]
        u = uniform_rows(seed, Purpose.EVAL_MASK, draws.numpy(), length, _OF_INTERVALS)
        maskable = bases.maskable.expand(repeats, -1)
        masked, scale = mask_blocks(maskable, t[draws], torch.from_numpy(u), objective.block)
        costs, past = torch.zeros_like(scale), BlockPast(network, 1)
        for at in range(0, length, objective.block):
            here = slice(at, min(at + objective.block, length))
            read = _read_block(objective, past, bases.x0[:, here], masked[:, here])
            costs[:, here] = scale[:, here] * read.double()
            if progress is not None:
                progress(before + here.stop, total)
        before += length
        for repeat, own in enumerate(costs):
            nats[:, repeat, rows] = bases.share(own)
    return make_bound(nats, tokens, None)


def _read_block(objective: BlockDiffusion, past: BlockPast, x0: Tensor, masked: Tensor) -> Tensor:
    """(R, n): nats of each masked base of the block that follows, which then is past."""
    device = past.network.embedding.device
    clean = x0.long().to(device)
    some, masked = clean.expand(len(masked), -1), masked.to(device)
    nats = torch.zeros(masked.shape, device=device)
    if masked.any():
        every = torch.zeros(len(masked), dtype=torch.long, device=device)
        logits = past.read(objective.diffusion.mask(some, masked), every)
        nats = torch.where(masked, objective.diffusion.nll(logits, some, masked), 0.0)
    past.add(clean)
    return nats.cpu()
