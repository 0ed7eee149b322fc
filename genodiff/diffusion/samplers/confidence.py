"""The confidence sampler: the positions whose best token is most probable come first.

Each step reveals as many as the schedule does, rounded. The order looks at a position's
distribution and never at the token drawn from it, so one position per step still follows the
denoiser's law.

Source: Chang et al. 2022, arXiv 2202.04200 (MaskGIT), whose order looks at the drawn token.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from genodiff.diffusion.draw import TIE
from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.diffusion.sampler import (
    Filling,
    Sampled,
    SamplerOptions,
    revealed_share,
    sampler,
    take_best,
)


def steps_with_any(n: int, share: Float[Tensor, " S"]) -> float:
    """The number of steps in which the schedule's share of n masks, rounded, grows."""
    return float((np.diff(np.round(n * share.numpy()), prepend=0.0) > 0).sum())


def round_shares(
    filling: Filling, steps: int
) -> Iterator[tuple[int, Int[Tensor, " A"], Int[Tensor, " B"]]]:
    """(step, rows, counts) of each step in which the schedule's share of rows' masks grows.

    `counts` are how many masks of every row are revealed after the step, rounded.
    """
    share = revealed_share(filling.diffusion.schedule, steps).to(filling.x.device)
    counts = torch.round(filling.masked.sum(-1)[:, None] * share).long()
    grows = counts.diff(dim=1, prepend=torch.zeros_like(counts[:, :1])) > 0
    for j in grows.any(0).nonzero()[:, 0].tolist():
        yield j, grows[:, j].nonzero()[:, 0], counts[:, j]


@sampler(
    "confidence", fits=("masked", "score"), evaluations=steps_with_any, steers=True, order="read"
)
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
    # The clamp keeps the noise of a uniform of 0 finite.
    noise = -order_temperature * torch.log(-torch.log(u_order.double().clamp(min=1e-300)))

    def choose(counts: Tensor, rows: Tensor, logits: Tensor, error: float) -> tuple[Tensor, Tensor]:
        """The best masked positions of each row, as many as are due."""
        best = diffusion.target_logits(logits).double().log_softmax(-1).amax(-1) + noise[rows]
        masked = filling.is_masked(rows)
        # Rounded to multiples of TIE, so that exact ties stay ties whatever rounding did to them.
        score = torch.where(masked, torch.round(best / TIE), -torch.inf)
        n = counts[rows] - (filling.masked[rows] & ~masked).sum(-1)
        due, least, left_out = take_best(score, u_order[rows], n)
        # An error in every logit moves a log-probability by twice that, and the difference of two
        # by four times.
        return due, (least - left_out) * TIE <= 4 * error

    for j, rows, counts in round_shares(filling, options.steps):
        logits, sigma = filling.evaluate(rows, 1 - j / options.steps)
        due = filling.decide(rows, logits, sigma, partial(choose, counts))
        filling.reveal(rows, due, logits, sigma)
    return filling.done()
