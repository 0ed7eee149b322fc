"""The first-hitting sampler: the reverse chain in continuous time, one position per evaluation.

Source: Zheng et al. 2024, arXiv 2409.02908.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from genodiff.diffusion.in_order import fill_in_order
from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.diffusion.sampler import Filling, Sampled, SamplerOptions, one_per_mask, sampler


@sampler(
    "first-hitting",
    fits=("masked", "score"),
    evaluations=one_per_mask,
    uses_steps=False,
    steers=True,
    order="fixed",
)
def first_hitting(
    diffusion: MaskedDiffusion, denoiser: Denoiser, xt: Int[Tensor, "B L"], options: SamplerOptions
) -> Sampled:
    """One position per evaluation, the smallest `u_order` first: a chain of infinitely many steps.

    With a perfect denoiser its law is the data's.
    """
    filling, u_order = Filling(diffusion, denoiser, xt, options), options.u_order
    order = u_order.masked_fill(~filling.masked, torch.inf).argsort(dim=-1, stable=True)
    # Time runs from 1 to 0 and alpha from `end` to 1: the time of a reveal is where alpha has
    # covered the share `u_order` of its way.
    end = diffusion.schedule.alpha(torch.ones_like(u_order))
    when = diffusion.schedule.inverse(end + (1 - end) * u_order)
    return fill_in_order(filling, order, lambda rows, first: when[rows, first])
