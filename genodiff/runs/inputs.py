"""A batch as an objective takes it."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from genodiff.data.loader import Batch
from genodiff.diffusion.masked import Clean, Denoiser
from genodiff.diffusion.objective import Draws


class Inputs(NamedTuple):
    """The arguments of `Objective.loss` and `Objective.bound`."""

    denoiser: Denoiser
    clean: Clean
    draws: Draws


def make_inputs(
    batch: Batch,
    backbone: Callable[..., Tensor],
    device: torch.device | str,
    soft_weight: float | None = None,
) -> Inputs:
    """`batch` on `device`; its lengths only where a window is padded.

    With `soft_weight`, maskable tokens weigh that much where soft-masked, else 1.
    """
    # Lengths that stay on the host are read without waiting for a GPU.
    padded = not bool((batch.lengths == batch.x0.shape[1]).all())
    moved = (batch.x0, batch.maskable, batch.u_mask, batch.u_time, batch.slot, batch.soft)
    x0, maskable, u_mask, u_time, slot, soft = (part.to(device) for part in moved)
    weight = None if soft_weight is None else torch.where(soft, soft_weight, 1.0) * maskable
    return Inputs(
        batch.denoiser(backbone),
        Clean(x0, maskable, weight, batch.lengths.to(device) if padded else None),
        Draws(u_mask, u_time, batch.u_shared, slot, batch.n_slots),
    )
