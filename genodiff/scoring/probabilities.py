"""What a model says of each base given the others: p(x_i | the visible rest).

    gaps            every masked position given all that is visible, from one pass
    leave-one-out   each position in turn masked, all others visible: p(x_i | x_{-i}), L passes
    every k         as leave-one-out, but positions i, i + k, i + 2k, ... are masked together: k
                    passes. They do not see one another, so it is an approximation; it comes nearer
                    with larger k.

A row holds the probabilities of the alphabet's targets (A, C, G, T) in that order and sums to 1. It
is the denoiser's distribution x_theta of Sahoo et al. 2024, arXiv 2406.07524, section 3.2 (SUBS).
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genodiff.backbones.caduceus import Caduceus
from genodiff.backbones.streaming import PIECE, stream
from genodiff.errors import GenodiffError, UsageError
from genodiff.runs.trained_model import TrainedModel

Ids = NDArray[np.uint8]
Probabilities = NDArray[np.float64]

LONGEST = 1 << 20
"""Bases of one sequence."""
_MOST_BASES = 1 << 18  # of a batch, padding included


def _check(model: TrainedModel, batch_size: int) -> None:
    """Raises `UsageError` for a network that fills no masks, and for an empty batch."""
    if batch_size < 1:
        raise UsageError(f"batch size {batch_size} is below 1", fix="give 1 or more")
    model.objective.check_fills_masks()


def fill_probabilities(
    model: TrainedModel, sequences: Iterable[Ids], *, batch_size: int = 32
) -> Iterator[Probabilities]:
    """For each sequence (L,) with masks, (L, K): probabilities at the masks, 0 elsewhere, in order.

    `batch_size` and the companions change the last bits only. Raises `UsageError` for a network
    that sees the left alone and for a sequence of more than `LONGEST` bases, `GenodiffError` for
    values that are not finite.
    """
    _check(model, batch_size)
    network = model.backbone
    for group in _batches(sequences, batch_size):
        width = max(map(len, group))
        if width > PIECE and isinstance(network, Caduceus):  # then it is alone in its group
            yield _stream(model, network, group[0])
        else:
            yield from _read(model, group, [ids == model.alphabet.mask_id for ids in group])


def leave_one_out(
    model: TrainedModel,
    ids: Ids,
    *,
    every: int | None = None,
    batch_size: int = 32,
    tick: Callable[[int], None] | None = None,
) -> Probabilities:
    """(L, K): each position given all others, those masked in `ids` staying masked throughout.

    With `every`, positions that many bases apart are masked together. `tick` is told how many bases
    each pass had. Raises as `fill_probabilities`.
    """
    _check(model, batch_size)
    if every is not None and every < 2:
        raise UsageError(f"every {every} is below 2", fix="give 2 or more; larger is more exact")
    _check_length(ids)
    n, mask = len(ids), model.alphabet.mask_id
    step = n if every is None else min(every, n)
    found = np.zeros((n, len(model.diffusion.targets)))
    rows = max(1, min(batch_size, _MOST_BASES // max(n, 1)))
    for first in range(0, step, rows):
        chosen = [np.arange(phase, n, step) for phase in range(first, min(first + rows, step))]
        wanted = [np.zeros(n, np.bool_) for _ in chosen]
        group = []
        for one, where in zip(wanted, chosen, strict=True):
            one[where] = True
            group.append(np.where(one, np.uint8(mask), ids))
        for where, values in zip(chosen, _read(model, group, wanted), strict=True):
            found[where] = values[where]
        if tick is not None:
            tick(n * len(group))
    return found


def _check_length(ids: Ids) -> None:
    if len(ids) > LONGEST:
        what = f"a sequence of {len(ids):,} bases is longer than {LONGEST:,}"
        raise UsageError(what, fix="cut it into pieces")


def _batches(sequences: Iterable[Ids], batch_size: int) -> Iterator[list[Ids]]:
    held: list[Ids] = []
    for ids in sequences:
        _check_length(ids)
        longest = max(len(one) for one in (*held, ids))
        if held and (len(held) == batch_size or longest * (len(held) + 1) > _MOST_BASES):
            yield held
            held = []
        held.append(ids)
        if longest > PIECE and len(held) > 1:
            yield held[:-1]
            held = held[-1:]
    if held:
        yield held


@torch.inference_mode()
def _read(
    model: TrainedModel, group: list[Ids], wanted: list[NDArray[np.bool_]]
) -> list[Probabilities]:
    """(L, K) of each of `group`, the wanted rows filled in."""
    device = next(model.backbone.parameters()).device
    width = max(map(len, group))
    xt = torch.full((len(group), width), model.alphabet.pad_id, dtype=torch.int64)
    for row, ids in zip(xt, group, strict=True):
        row[: len(ids)] = torch.from_numpy(ids.astype(np.int64))
    lengths = torch.tensor([len(ids) for ids in group])
    even = bool((lengths == width).all())
    share = [float((ids == model.alphabet.mask_id).mean()) for ids in group]
    # What the network is told of the noise: that of the time with this share of masks.
    visible = 1 - torch.tensor(share, dtype=torch.float64)
    sigma = model.diffusion.sigma(model.diffusion.schedule.inverse(visible)).to(device)
    logits = model.backbone(xt.to(device), sigma, None if even else lengths.to(device))
    out = []
    for row, where in zip(logits, wanted, strict=True):
        found = np.zeros((len(where), len(model.diffusion.targets)))
        found[where] = _softmax(model, row[torch.from_numpy(np.flatnonzero(where)).to(device)])
        out.append(found)
    return out


def _stream(model: TrainedModel, network: Caduceus, ids: Ids) -> Probabilities:
    """The same of one long sequence, piece by piece, equal to one pass."""
    device = network.embedding.device
    found = np.zeros((len(ids), len(model.diffusion.targets)))
    wanted = ids == model.alphabet.mask_id
    for start, logits in stream(network, torch.from_numpy(ids.astype(np.int64)).to(device)):
        where = np.flatnonzero(wanted[start : start + len(logits)])
        rows = logits[torch.from_numpy(where).to(device)]
        found[start + where] = _softmax(model, rows)
    return found


def _softmax(model: TrainedModel, logits: Tensor) -> Probabilities:
    found = model.diffusion.target_logits(logits).double().softmax(-1).cpu().numpy()
    if not np.isfinite(found).all():
        raise GenodiffError("the network's values are not finite", fix="use another checkpoint")
    return found
