"""MLM: BERT's masked language modelling. Some tokens are to be guessed, most behind a mask.

    15 % of the maskable positions are selected; of these
    80 %  show the mask       10 %  show a random target       10 %  show what they are
    loss = mean of -log p(x_l | xt) over selected positions l

What it is trained on is no bound on a likelihood: it is a mean over contexts with 15 % of the
tokens missing. But the network is a masked denoiser, so used one token at a time it has a
likelihood, and its `bound` is MDLM's of the same network (MDLM, table 4: BERT on C4 has a
perplexity of at most 78). It is poor because high mask rates are never trained, not because the
figure is another one. What MLM is good at stands in the curve: its bin around a rate of 0.15 is the
loss above (its first bin, nearly all context being seen, is close to a pseudo-log-likelihood).

Source: Devlin et al. 2019, arXiv 1810.04805; Salazar et al. 2020, arXiv 1910.14659
(pseudo-likelihood).
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from genodiff.diffusion.loss import (
    LossTerms,
    WindowBound,
    as_loss,
    cross_entropy,
    exact_count_bound,
)
from genodiff.diffusion.masked import Clean, Denoiser
from genodiff.diffusion.objective import OBJECTIVES, Draws, Objective
from genodiff.errors import UsageError

MASKED, RANDOM = 0.8, 0.1  # of the selected; the rest stays visible


def show(
    x0: Int[Tensor, "*S"],
    masked: Bool[Tensor, "*S"],
    randomised: Bool[Tensor, "*S"],
    token: Int[Tensor, "*S"],
    mask_id: int,
) -> Int[Tensor, "*S"]:
    """x0 with the mask's id where `masked`, and `token` where `randomised` and not masked."""
    return torch.where(masked, mask_id, torch.where(randomised, token, x0))


@OBJECTIVES.register("mlm")
@dataclass(frozen=True)
class Mlm(Objective):
    """BERT's loss; `mask_rate` of the tokens are selected.

    The uniform that selects a token also says what is shown in its place.
    """

    mask_rate: float = 0.15

    # One token at a time first: the law that `bound` is about.
    first_samplers: ClassVar[tuple[str, ...]] = ("first-hitting", "confidence")
    curve: ClassVar[bool] = True
    bound_counts_masks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.mask_rate <= 1:
            fix = "give a share above 0, such as 0.15"
            raise UsageError(f"a mask rate of {self.mask_rate}", fix=fix)

    def loss(self, denoiser: Denoiser, clean: Clean, draws: Draws) -> LossTerms:
        """Nats over the mask rate: per token they are the mean over selected positions."""
        x0, part = clean.x0, draws.u_mask / self.mask_rate  # uniform by itself where below 1
        selected = clean.maskable & (part < 1)
        targets = torch.tensor(self.diffusion.targets, device=x0.device)
        choice = ((part - MASKED) / RANDOM * len(targets)).long().clamp(0, len(targets) - 1)
        hidden = selected & (part < MASKED), selected & (part < MASKED + RANDOM)
        xt = show(x0, *hidden, targets[choice].to(x0.dtype), self.diffusion.mask_id)
        sigma = torch.zeros(len(x0), dtype=torch.float64, device=x0.device)
        nats = cross_entropy(self.diffusion, denoiser, clean, selected, sigma, xt=xt)
        return as_loss(nats / self.mask_rate, clean)

    def bound(self, denoiser: Denoiser, clean: Clean, draws: Draws) -> WindowBound:
        k = draws.counts(clean)
        return exact_count_bound(self.diffusion, denoiser, clean, k, draws.u_mask)
