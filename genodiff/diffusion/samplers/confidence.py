"""The confidence sampler: the most predictable positions first, as many per step as the schedule
reveals.
"""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from genodiff.diffusion.draw import TIE, Draw
from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.diffusion.sampler import Filling, Sampled, revealed_share, sampler


def steps_with_any(n: int, share: Float[Tensor, "S"]) -> float:
    """The number of steps in which the schedule's share of n masks, rounded, grows."""
    return float((np.diff(np.round(n * share.numpy()), prepend=0.0) > 0).sum())


@sampler("confidence", fits=("masked", "score"), evaluations=steps_with_any)
@torch.no_grad()
def confidence(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    xt: Int[Tensor, "B L"],
    *,
    u_order: Float[Tensor, "B L"],
    u_token: Float[Tensor, "B L"],
    steps: int,
    temperature: float = 1.0,
    top_p: float = 1.0,
    refine: Denoiser | None = None,
    tolerance: float = 1e-4,
    order_temperature: float = 0.0,
) -> Sampled:
    """The positions whose best token is most probable come first; ties are settled by the smaller
    `u_order`.

    Each step reveals the schedule's share of the masks, rounded. The order looks at a position's
    distribution and never at the token drawn from it, so one position per step still follows the
    denoiser's law. `order_temperature` adds that much Gumbel noise, from `u_order`, to the
    log-probabilities that are compared: infinity would be a random order.
    """
    filling = Filling(diffusion, denoiser, xt, u_token, Draw(temperature, top_p), refine, tolerance)
    share = revealed_share(diffusion.schedule, steps).to(xt.device)
    revealed = torch.round(filling.masked.sum(-1)[:, None] * share).long()
    n_due = revealed.diff(dim=1, prepend=torch.zeros_like(revealed[:, :1]))
    noise = -order_temperature * torch.log(-torch.log(u_order.double().clamp(min=1e-300)))

    def choose(rows: Tensor, logits: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
        """The n best masked positions of each row, and the gap in score to the best one left out."""
        best = diffusion.target_logits(logits).double().log_softmax(-1).amax(-1) + noise[rows]
        score = torch.where(filling.is_masked(rows), torch.round(best / TIE), -torch.inf)
        by_u = u_order[rows].argsort(dim=-1, stable=True)
        order = by_u.gather(1, score.gather(1, by_u).argsort(dim=-1, stable=True, descending=True))
        due = torch.zeros_like(score, dtype=torch.bool).scatter(
            1, order, torch.arange(score.shape[1]).to(n) < n[:, None]
        )
        gap = score.masked_fill(~due, torch.inf).amin(-1) - score.masked_fill(due, -torch.inf).amax(
            -1
        )
        return due, gap * TIE

    for j in n_due.any(0).nonzero()[:, 0].tolist():
        rows = n_due[:, j].nonzero()[:, 0]
        logits, sigma = filling.evaluate(rows, torch.full_like(u_order[rows, 0], 1 - j / steps))
        due, gap = choose(rows, logits, n_due[rows, j])
        close = (
            (gap <= 4 * tolerance).nonzero()[:, 0]
            if refine is not None
            else gap.new_zeros(0).long()
        )
        for i in close.tolist():
            row = rows[i : i + 1]
            due[i], _ = choose(row, filling.refined(row, sigma[i : i + 1]), n_due[row, j])
        filling.reveal(rows, due, logits, sigma)
    return filling.done()
