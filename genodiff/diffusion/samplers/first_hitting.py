"""The first-hitting sampler: the reverse chain in continuous time, one position per evaluation.

Source: Zheng et al. 2024, arXiv 2409.02908.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from genodiff.diffusion.draw import Draw
from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.diffusion.sampler import Filling, Sampled, one_per_mask, sampler


@sampler("first-hitting", fits=("masked", "score"), evaluations=one_per_mask, uses_steps=False)
@torch.no_grad()
def first_hitting(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    xt: Int[Tensor, "B L"],
    *,
    u_order: Float[Tensor, "B L"],
    u_token: Float[Tensor, "B L"],
    steps: int = 0,
    temperature: float = 1.0,
    top_p: float = 1.0,
    refine: Denoiser | None = None,
    tolerance: float = 1e-4,
) -> Sampled:
    """One position per evaluation, the smallest `u_order` first: a chain of infinitely many steps
    (Zheng et al. 2024).

    With a perfect denoiser its law is the data's. There are as many evaluations as masks; `steps`
    plays no part.
    """
    filling = Filling(diffusion, denoiser, xt, u_token, Draw(temperature, top_p), refine, tolerance)
    order = u_order.masked_fill(~filling.masked, torch.inf).argsort(dim=-1, stable=True)
    end = diffusion.schedule.alpha(torch.ones_like(u_order))
    when = diffusion.schedule.inverse(end + (1 - end) * u_order)
    n_masked = filling.masked.sum(-1)
    for j in range(max(n_masked.tolist(), default=0)):
        rows = (n_masked > j).nonzero()[:, 0]
        first = order[rows, j]
        due = torch.zeros_like(filling.masked[rows]).scatter(1, first[:, None], True)
        filling.reveal(rows, due, *filling.evaluate(rows, when[rows, first], due))
    return filling.done()
