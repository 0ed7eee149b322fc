"""The analytic sampler of score entropy: the network also sets how fast a position is revealed.

    p(xs = v | xt = mask)    = s_v (e^(sigma(t) - sigma(s)) - 1) = r h_v
    p(xs = mask | xt = mask) = 1 - r sum_v h_v

    r      (alpha(s) - alpha(t)) / (1 - alpha(t)), the probability of a reveal in MDLM
    h_v    the ratio that the network predicts for token v
    s_v    h_v alpha(t) / (1 - alpha(t)), the score

If the ratios h sum to one, it is the ancestral sampler. The last step reveals all that is left. A
position is revealed at the first step where its probability to be still masked is at most
1 - u_order. So the result of a sequence depends only on its own uniform numbers. An unchanged
sequence is not evaluated again, unless the network is conditioned on time.

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
    count_revealing_steps,
    revealed_share,
    sampler,
)


@sampler("analytic", fits=("score",), evaluations=count_revealing_steps)
def analytic(
    diffusion: MaskedDiffusion, denoiser: Denoiser, xt: Int[Tensor, "B L"], options: SamplerOptions
) -> Sampled:
    """Fill the masks of xt.

    Evaluates a network that ignores time at most min(steps, masks + 1) times, any other at most
    `steps` times. `tolerance` is not used.
    """
    # The step of a reveal depends on a sum over evaluations, in which rounding errors add up. So
    # the exact denoiser `refine`, if given, makes all evaluations, one sequence at a time.
    if options.refine is not None:
        denoiser, options = _evaluate_singly(options.refine), replace(options, refine=None)
    filling, steps = Filling(diffusion, denoiser, xt, options), options.steps
    u_order = options.u_order
    share = revealed_share(diffusion.schedule, steps).to(xt.device)
    # r of each step: the share of the still masked positions that it reveals.
    chance = torch.cat([share[:1], 1 - (1 - share[1:]) / (1 - share[:-1])])
    # Logarithms of the probability to be still masked, and of the level at which to reveal.
    stayed, edge = torch.zeros_like(u_order, dtype=torch.float64), torch.log1p(-u_order.double())
    logits, told = torch.zeros(0), u_order.new_zeros(len(xt))
    stale = torch.ones(len(xt), dtype=torch.bool, device=xt.device)  # changed since its evaluation
    for j in range(steps):
        rows = (filling.x == diffusion.mask_id).any(-1).nonzero()[:, 0]
        again = rows if diffusion.time_conditioning else rows[stale[rows]]
        if len(again):
            fresh, told[again] = filling.evaluate(again, 1 - j / steps)
            if not logits.numel():  # the first evaluation shows the vocabulary size
                logits = fresh.new_zeros(*xt.shape, fresh.shape[-1])
            logits[again], stale[again] = fresh, False
        if not len(rows):
            break
        masked = filling.is_masked(rows)
        revealed = chance[j] * log_ratios(diffusion, logits[rows]).double().logsumexp(-1).exp()
        # Ratios that sum to more than one may give a probability above 1: reveal the position then.
        stayed[rows] += torch.log1p(-revealed.clamp(max=1.0))
        due = masked & (stayed[rows] <= edge[rows]) if j + 1 < steps else masked
        some = due.any(-1)
        if some.any():
            filling.reveal(rows[some], due[some], logits[rows[some]], told[rows[some]])
            stale[rows[some]] = True
    return filling.done()


def _evaluate_singly(refine: Denoiser) -> Denoiser:
    """The denoiser on one sequence at a time, so that rounding does not depend on the batch."""

    def denoiser(x: Int[Tensor, "B L"], sigma: Float[Tensor, " B"]) -> Float[Tensor, "B L V"]:
        return torch.cat([refine(x[i : i + 1], sigma[i : i + 1]) for i in range(len(x))])

    return denoiser
