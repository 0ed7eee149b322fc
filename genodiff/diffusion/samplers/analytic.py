"""The analytic sampler of score entropy: the network says how fast a position is revealed, not the
schedule alone.

    p(xs = v | xt = mask) = s_v (e^(sigma(t) - sigma(s)) - 1) = r h_v,
    p(xs = mask | xt = mask) = 1 - r sum_v h_v
    r = (alpha(s) - alpha(t)) / (1 - alpha(t)), the chance of MDLM;  s_v = h_v alpha(t) / (1 -
    alpha(t)), the score

Where the ratios h sum to one, it is the ancestral sampler; the last step reveals whatever is left.
A position is revealed at the first step at which its chance to be masked still has fallen to 1 -
u_order or below, so that here too a sequence's result depends on its own uniforms alone. A sequence
in which nothing has changed is not evaluated again unless the network is told the time.

Source: Lou, Meng and Ermon 2024, arXiv 2310.16834, theorem 4.2 (Tweedie's tau-leaping), with an
absorbing state.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from genodiff.diffusion.draw import Draw
from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.diffusion.objectives.sedd import log_ratios
from genodiff.diffusion.sampler import (
    Filling,
    Sampled,
    revealed_share,
    sampler,
    steps_that_reveal,
)


@sampler("analytic", fits=("score",), evaluations=steps_that_reveal)
@torch.no_grad()
def analytic(
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
    """At most min(steps, masks + 1) evaluations of a network that ignores time; `steps` of one that
    does not.

    The moment of a reveal is a sum over evaluations, in which rounding adds up: with `refine`, the
    network in double precision, that one does all the work, each sequence by itself, and
    `tolerance` plays no part.
    """
    alone = (
        denoiser
        if refine is None
        else lambda x, sigma: torch.cat(
            [refine(x[i : i + 1], sigma[i : i + 1]) for i in range(len(x))]
        )
    )
    filling = Filling(diffusion, alone, xt, u_token, Draw(temperature, top_p), None, tolerance)
    share = revealed_share(diffusion.schedule, steps).to(xt.device)
    chance = torch.cat([share[:1], 1 - (1 - share[1:]) / (1 - share[:-1])])
    stayed, edge = torch.zeros_like(u_order, dtype=torch.float64), torch.log1p(-u_order.double())
    logits, told = torch.zeros(0), torch.zeros_like(u_order[:, 0])
    stale = torch.ones(len(xt), dtype=torch.bool, device=xt.device)
    for j in range(steps):
        rows = (filling.x == diffusion.mask_id).any(-1).nonzero()[:, 0]
        again = rows if diffusion.time_conditioning else rows[stale[rows]]
        if len(again):
            fresh, told[again] = filling.evaluate(
                again, torch.full_like(u_order[again, 0], 1 - j / steps)
            )
            if not logits.numel():
                logits = fresh.new_zeros(*xt.shape, fresh.shape[-1])
            logits[again], stale[again] = fresh, False
        if not len(rows):
            break
        masked = filling.is_masked(rows)
        revealed = chance[j] * log_ratios(diffusion, logits[rows]).double().logsumexp(-1).exp()
        stayed[rows] += torch.log1p(-revealed.clamp(max=1.0))
        due = masked & (stayed[rows] <= edge[rows]) if j + 1 < steps else masked
        some = due.any(-1)
        if some.any():
            filling.reveal(rows[some], due[some], logits[rows[some]], told[rows[some]])
            stale[rows[some]] = True
    return filling.done()
