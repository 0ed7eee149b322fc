"""The ancestral sampler: MDLM's reverse chain on a grid of `steps` equal steps in time.

Count first: the step at which a position is revealed depends on nothing but its uniform, so it is
drawn before the denoiser runs. A (sequence, step) pair that reveals nothing costs no evaluation, so
there is nothing to cache, and a sequence needs at most min(steps, masks) evaluations.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from genodiff.diffusion.draw import Draw
from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.diffusion.sampler import Filling, Sampled, revealed_share, sampler, steps_that_reveal


@sampler("ancestral", fits=("masked", "score"), evaluations=steps_that_reveal)
@torch.no_grad()
def ancestral(
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
) -> Sampled:
    """The reverse chain of `steps` equal steps in time, exactly: every position takes its step from
    `u_order`.

    On the linear schedule a sequence of L masks takes steps (1 - (1 - 1/steps)^L) evaluations on
    average.
    """
    filling = Filling(diffusion, denoiser, xt, u_token, Draw(temperature, top_p), refine, tolerance)
    share = revealed_share(diffusion.schedule, steps).to(xt.device)
    step = torch.searchsorted(share, u_order.double().contiguous(), right=True).clamp(max=steps - 1)
    for j in step[filling.masked].unique().tolist():
        due = filling.masked & (step == j)
        rows = due.any(-1).nonzero()[:, 0]
        t = torch.full_like(u_order[rows, 0], 1 - j / steps)
        filling.reveal(rows, due[rows], *filling.evaluate(rows, t, due[rows]))
    return filling.done()
