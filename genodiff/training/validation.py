"""The objective's figure during training: always the same windows and masks."""

import math

import torch

from genodiff.backbones.backbone import Backbone
from genodiff.data.loader import EvalBatches
from genodiff.diffusion.objective import Objective
from genodiff.runs.inputs import make_inputs
from genodiff.training.memory import Remember


@torch.no_grad()
def validate(
    objective: Objective,
    backbone: Backbone,
    batches: EvalBatches,
    device: torch.device | str,
    precision: str = "fp32",
    remember: Remember | None = None,
) -> tuple[float, float]:
    """Bits per token and its 95 % half-width over windows.

    `backbone` is used as it is; hand in the averaged one. `precision` is that of training: "bf16"
    computes under autocast. `remember` gives it a memory. The half-width takes windows as
    independent draws.
    """
    low = torch.autocast(torch.device(device).type, torch.bfloat16, enabled=precision == "bf16")
    nats, bases = [], []
    for batch in batches:
        inputs = make_inputs(batch, backbone, device)
        if remember is not None:
            inputs = inputs._replace(denoiser=remember(inputs.denoiser, batch))
        with low:
            found = objective.bound(*inputs)
        nats.append((found.scale * found.ce.sum(-1)).double())
        bases.append(batch.maskable.sum(-1).double())
    # Read at the end, once: a GPU works on the next batch meanwhile.
    total, size = torch.cat(nats).cpu(), torch.cat(bases)
    mean = float(total.sum() / size.sum())
    spread = float(((total - mean * size) ** 2).sum().sqrt() / size.sum())
    return mean / math.log(2), 1.96 * spread / math.log(2)
