"""The ancestral sampler: MDLM's reverse chain on a grid of `steps` equal steps in time.

Count first: the step at which a position is revealed depends on nothing but its uniform, so it is
drawn before the denoiser runs. A (sequence, step) pair that reveals nothing costs no evaluation, so
there is nothing to cache, and a sequence needs at most min(steps, masks) evaluations.

Source: Sahoo et al. 2024, arXiv 2406.07524, section 3.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.diffusion.sampler import (
    Filling,
    Sampled,
    SamplerOptions,
    count_revealing_steps,
    revealed_share,
    sampler,
)


@sampler(
    "ancestral",
    fits=("masked", "score"),
    evaluations=count_revealing_steps,
    steers=True,
    order="fixed",
)
def ancestral(
    diffusion: MaskedDiffusion, denoiser: Denoiser, xt: Int[Tensor, "B L"], options: SamplerOptions
) -> Sampled:
    """The law of the chain exactly: every position takes its step from its own `u_order`.

    On the linear schedule a sequence of L masks takes steps (1 - (1 - 1/steps)^L) evaluations on
    average.
    """
    filling, steps = Filling(diffusion, denoiser, xt, options), options.steps
    share = revealed_share(diffusion.schedule, steps).to(xt.device)
    # `right`: a uniform on the edge between two steps belongs to the later one, as [0, 1) asks.
    # The clamp is for a uniform in single precision that rounds to 1.
    step = torch.searchsorted(share, options.u_order.double().contiguous(), right=True)
    step = step.clamp(max=steps - 1)
    for j in step[filling.masked].unique().tolist():  # no other step reveals anything
        due = filling.masked & (step == j)
        rows = due.any(-1).nonzero()[:, 0]
        filling.reveal(rows, due[rows], *filling.evaluate(rows, 1 - j / steps, due[rows]))
    return filling.done()
