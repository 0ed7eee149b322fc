"""The analytic sampler of score entropy: the network too says how fast a position is revealed.

    p(xs = v | xt = mask)    = s_v (e^(sigma(t) - sigma(s)) - 1) = r h_v
    p(xs = mask | xt = mask) = 1 - r sum_v h_v

    r      (alpha(s) - alpha(t)) / (1 - alpha(t)), the chance of MDLM
    s_v    h_v alpha(t) / (1 - alpha(t)), the score

Where the ratios h sum to one, it is the ancestral sampler; the last step reveals whatever is left.
A position is revealed at the first step at which its chance to be masked still has fallen to
1 - u_order or below, so here too a sequence's result depends on its own uniforms alone. A sequence
in which nothing has changed is not evaluated again unless the network is told the time.

Source: Lou, Meng and Ermon 2024, arXiv 2310.16834, theorem 4.2 (Tweedie's tau-leaping), with an
absorbing state.
"""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.diffusion.objectives.sedd import log_ratios
from genodiff.diffusion.sampler import (
    Filling,
    Sampled,
    SamplerOptions,
    revealed_share,
    sampler,
    steps_that_reveal,
)


@sampler("analytic", fits=("score",), evaluations=steps_that_reveal)
@torch.no_grad()
def analytic(
    diffusion: MaskedDiffusion, denoiser: Denoiser, xt: Int[Tensor, "B L"], options: SamplerOptions
) -> Sampled:
    """At most min(steps, masks + 1) evaluations of a network that ignores time, else `steps`.

    The moment of a reveal is a sum over evaluations, in which rounding adds up: `refine`, where it
    is given, does all the work, each sequence by itself, and `tolerance` plays no part.
    """
    if options.refine is not None:
        denoiser, options = _one_by_one(options.refine), replace(options, refine=None)
    filling, u_order, steps = (
        Filling(diffusion, denoiser, xt, options),
        options.u_order,
        options.steps,
    )
    share = revealed_share(diffusion.schedule, steps).to(xt.device)
    # r of each step: the share revealed in it, of what was masked before it.
    chance = torch.cat([share[:1], 1 - (1 - share[1:]) / (1 - share[:-1])])
    # In logarithms: the chance to be masked still, and where it must fall to.
    stayed, edge = torch.zeros_like(u_order, dtype=torch.float64), torch.log1p(-u_order.double())
    logits, told = torch.zeros(0), u_order.new_zeros(len(xt))
    stale = torch.ones(len(xt), dtype=torch.bool, device=xt.device)  # changed since its evaluation
    for j in range(steps):
        rows = (filling.x == diffusion.mask_id).any(-1).nonzero()[:, 0]
        again = rows if diffusion.time_conditioning else rows[stale[rows]]
        if len(again):
            t = torch.full_like(u_order[again, 0], 1 - j / steps)
            fresh, told[again] = filling.evaluate(again, t)
            if not logits.numel():  # only the first evaluation tells the size of the vocabulary
                logits = fresh.new_zeros(*xt.shape, fresh.shape[-1])
            logits[again], stale[again] = fresh, False
        if not len(rows):
            break
        masked = filling.is_masked(rows)
        revealed = chance[j] * log_ratios(diffusion, logits[rows]).double().logsumexp(-1).exp()
        # Ratios that sum to more than one may ask for a chance above 1: the position is then due.
        stayed[rows] += torch.log1p(-revealed.clamp(max=1.0))
        due = masked & (stayed[rows] <= edge[rows]) if j + 1 < steps else masked
        some = due.any(-1)
        if some.any():
            filling.reveal(rows[some], due[some], logits[rows[some]], told[rows[some]])
            stale[rows[some]] = True
    return filling.done()


def _one_by_one(refine: Denoiser) -> Denoiser:
    """The denoiser on one sequence at a time: the last digits do not depend on the batch."""

    def denoiser(x: Int[Tensor, "B L"], sigma: Float[Tensor, "B"]) -> Float[Tensor, "B L V"]:
        return torch.cat([refine(x[i : i + 1], sigma[i : i + 1]) for i in range(len(x))])

    return denoiser
