"""The confidence sampler: the positions whose best token is most probable come first.

Each step reveals as many as the schedule does, rounded. The order looks at a position's
distribution and never at the token drawn from it, so one position per step still follows the
denoiser's law.

Source: Chang et al. 2022, arXiv 2202.04200 (MaskGIT), whose order looks at the drawn token.
"""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from genodiff.diffusion.draw import TIE
from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.diffusion.sampler import Filling, Sampled, SamplerOptions, revealed_share, sampler


def steps_with_any(n: int, share: Float[Tensor, " S"]) -> float:
    """The number of steps in which the schedule's share of n masks, rounded, grows."""
    return float((np.diff(np.round(n * share.numpy()), prepend=0.0) > 0).sum())


@sampler(
    "confidence", fits=("masked", "score"), evaluations=steps_with_any, steers=True, order="read"
)
@torch.no_grad()
def confidence(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    xt: Int[Tensor, "B L"],
    options: SamplerOptions,
    order_temperature: float = 0.0,
) -> Sampled:
    """The most predictable positions first; ties are settled by the smaller `u_order`.

    `order_temperature` adds that much Gumbel noise, from `u_order`, to the log-probabilities that
    are compared: infinity would be a random order.
    """
    filling, u_order = Filling(diffusion, denoiser, xt, options), options.u_order
    share = revealed_share(diffusion.schedule, options.steps).to(xt.device)
    revealed = torch.round(filling.masked.sum(-1)[:, None] * share).long()
    n_due = revealed.diff(dim=1, prepend=torch.zeros_like(revealed[:, :1]))
    # The clamp keeps the noise of a uniform of 0 finite.
    noise = -order_temperature * torch.log(-torch.log(u_order.double().clamp(min=1e-300)))

    def choose(rows: Tensor, logits: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
        """The n best masked positions of each row, and their lead on the best one left out."""
        best = diffusion.target_logits(logits).double().log_softmax(-1).amax(-1) + noise[rows]
        # Rounded to multiples of TIE, so that exact ties stay ties whatever rounding did to them.
        score = torch.where(filling.is_masked(rows), torch.round(best / TIE), -torch.inf)
        # Sorted by the uniform first: the stable sort by score then leaves ties in that order.
        by_u = u_order[rows].argsort(dim=-1, stable=True)
        order = by_u.gather(1, score.gather(1, by_u).argsort(dim=-1, stable=True, descending=True))
        first_n = torch.arange(score.shape[1]).to(n) < n[:, None]
        due = torch.zeros_like(score, dtype=torch.bool).scatter(1, order, first_n)
        worst_due = score.masked_fill(~due, torch.inf).amin(-1)
        return due, (worst_due - score.masked_fill(due, -torch.inf).amax(-1)) * TIE

    for j in n_due.any(0).nonzero()[:, 0].tolist():
        rows = n_due[:, j].nonzero()[:, 0]
        t = torch.full_like(u_order[rows, 0], 1 - j / options.steps)
        logits, sigma = filling.evaluate(rows, t)
        due, gap = choose(rows, logits, n_due[rows, j])
        if options.refine is not None:
            # An error of `tolerance` in every logit moves a log-probability by twice that, and the
            # difference of two by four times.
            for i in (gap <= 4 * options.tolerance).nonzero()[:, 0].tolist():
                row = rows[i : i + 1]
                due[i], _ = choose(row, filling.refined(row, sigma[i : i + 1]), n_due[row, j])
        filling.reveal(rows, due, logits, sigma)
    return filling.done()
