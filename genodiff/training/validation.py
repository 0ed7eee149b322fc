"""The objective's figure during training: always the same windows and masks."""

import math

import torch

from genodiff.backbones.backbone import Backbone
from genodiff.data.loader import EvalBatches
from genodiff.diffusion.objective import Objective
from genodiff.runs.inputs import make_inputs


@torch.no_grad()
def validate(
    objective: Objective, backbone: Backbone, batches: EvalBatches, device: torch.device | str
) -> tuple[float, float]:
    """Bits per token and its 95 % half-width over windows.

    `backbone` is used as it is; hand in the averaged one. The half-width takes windows as
    independent draws.
    """
    nats, bases = [], []
    for batch in batches:
        found = objective.bound(*make_inputs(batch, backbone, device))
        nats.append((found.scale * found.ce.sum(-1)).cpu())
        bases.append(batch.maskable.sum(-1).double().cpu())
    total, size = torch.cat(nats).double(), torch.cat(bases)
    mean = float(total.sum() / size.sum())
    spread = float(((total - mean * size) ** 2).sum().sqrt() / size.sum())
    return mean / math.log(2), 1.96 * spread / math.log(2)
