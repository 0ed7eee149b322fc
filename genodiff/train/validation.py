"""The objective's figure on held-out windows during training: always the same windows and masks,
averaged weights.
"""

import math

import torch

from genodiff.backbones.backbone import Backbone
from genodiff.data.loader import EvalBatches
from genodiff.diffusion.objective import Draws, Objective


@torch.no_grad()
def validate(
    objective: Objective, backbone: Backbone, batches: EvalBatches, device: torch.device | str
) -> tuple[float, float]:
    """Bits per token (times or counts systematic over the windows) and its 95 % half-width over
    windows.

    `backbone` is used as it is; hand in the averaged one. The half-width takes windows as
    independent draws.
    """
    nats, bases = [], []
    for batch in batches:
        x0, maskable, u_mask = (
            part.to(device) for part in (batch.x0, batch.maskable, batch.u_mask)
        )
        draws = Draws(
            u_mask, batch.u_time.to(device), batch.u_shared, batch.slot.to(device), batch.n_slots
        )
        lengths = None if bool((batch.lengths == x0.shape[1]).all()) else batch.lengths.to(device)
        found = objective.bound(batch.denoiser(backbone), x0, maskable, draws, lengths)
        nats.append((found.scale * found.ce.sum(-1)).cpu())
        bases.append(maskable.sum(-1).double().cpu())
    total, size = torch.cat(nats).double(), torch.cat(bases)
    mean = float(total.sum() / size.sum())
    spread = float(((total - mean * size) ** 2).sum().sqrt() / size.sum())
    return mean / math.log(2), 1.96 * spread / math.log(2)
