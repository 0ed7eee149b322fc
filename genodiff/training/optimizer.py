"""AdamW, the learning rate as a function of the step, and the average of the weights.

lr(i) = lr · i / w                                          for i < w, the warm-up
lr(i) = lr · (r + (1 − r) (1 + cos(π (i − w) / (n − w))) / 2)
after it, n steps in all, r = lr_min_ratio
θ̄ ← d θ̄ + (1 − d) θ,   d = min(decay, (1 + j) / (10 + j)) at the j-th update, j = 1, 2, ...
(MDLM's EMA)
"""

import math
from copy import deepcopy
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import AdamW

from genodiff.runs.sections import OptimSettings
from genodiff.training.ranks import take_part

_EMBEDDINGS = ("embedding", "head", "classes", "recalled")


def has_weight_decay(name: str, parameter: nn.Parameter) -> bool:
    """Whether weight decay applies: to matrices that are no embeddings.

    A_log and D (`_no_weight_decay`) have none.
    """
    if getattr(parameter, "_no_weight_decay", False) or name.split(".")[-1] in _EMBEDDINGS:
        return False
    return parameter.ndim >= 2


def adamw(backbone: nn.Module, settings: OptimSettings) -> AdamW:
    """The optimiser of all parameters, in two groups: with and without weight decay."""
    groups: list[dict[str, Any]] = []
    for decays, decay in ((True, settings.weight_decay), (False, 0.0)):
        own = [p for n, p in backbone.named_parameters() if has_weight_decay(n, p) == decays]
        groups += [{"params": own, "weight_decay": decay}] if own else []
    return AdamW(groups, lr=settings.lr, betas=settings.betas, eps=settings.eps, fused=True)


def learning_rate(step: int, settings: OptimSettings, horizon: int | None) -> float:
    """The rate of the step after `step` steps of `horizon` (None: not known yet).

    The warm-up is at most a tenth of the horizon. While the horizon is unknown, the rate is the
    warm-up's.
    """
    warmup = settings.warmup_steps
    if settings.lr_schedule == "cosine" and horizon is not None:
        warmup = min(warmup, horizon // 10)
    if step < warmup:
        return settings.lr * step / warmup
    if settings.lr_schedule == "constant" or horizon is None:
        return settings.lr
    progress = min(1.0, (step - warmup) / max(1, horizon - warmup))
    falling = (1 + math.cos(math.pi * progress)) / 2
    return settings.lr * (settings.lr_min_ratio + (1 - settings.lr_min_ratio) * falling)


def ema_decay(update: int, decay: float) -> float:
    """The decay at the `update`-th update, from 1; small at first, to forget the start."""
    return min(decay, (1 + update) / (10 + update))


Network = TypeVar("Network", bound=nn.Module)


class WeightAverage(Generic[Network]):
    """A copy of a network, `module`, whose weights follow it; `updates` are done.

    torch's AveragedModel counts on the device: each update would wait for the GPU.
    """

    def __init__(self, backbone: Network, decay: float) -> None:
        self.module = deepcopy(backbone).eval().requires_grad_(False)
        self.decay, self.updates = decay, 0

    @torch.no_grad()
    def update(self, backbone: nn.Module) -> None:
        """Move towards the network's weights."""
        self.updates += 1
        weight = 1 - ema_decay(self.updates, self.decay)
        torch._foreach_lerp_(list(self.module.parameters()), list(backbone.parameters()), weight)


def read_moments(optimizer: AdamW, backbone: nn.Module) -> dict[str, Tensor]:
    """AdamW's state by parameter name: `exp_avg.NAME`, `exp_avg_sq.NAME`, `step.NAME`."""
    return {
        f"{key}.{name}": value
        for name, parameter in backbone.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def set_moments(optimizer: AdamW, backbone: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Put back what `read_moments` gave."""
    for name, parameter in backbone.named_parameters():
        state = {
            key: take_part(tensors[f"{key}.{name}"], parameter).clone()
            for key in ("step", "exp_avg", "exp_avg_sq")
            if f"{key}.{name}" in tensors
        }
        if state:
            optimizer.state[parameter] = state
