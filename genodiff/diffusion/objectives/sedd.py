"""SEDD, absorbing: score entropy of ratios of probabilities, which need not sum to one.

    s_v    p_t(v) / p_t(mask) given the rest, the concrete score; the true one is a x_v
    a      alpha / (1 - alpha)
    s_v = a h_v,   h_v = exp(logit_v) / K with K targets: logits of 0 mean "all equal"

    DWDSE = integral of sigma'(t) E sum over masked of [ sum_v s_v - a log s_x + a (log a - 1) ]
          = integral of w(t) E sum over masked of [ -log h_x + sum_v h_v - 1 ]

The second line is the first with the scale taken out: MDLM's integrand, to which an h that does not
sum to one adds sum h - 1 - log sum h >= 0. So the bound is never below MDLM's of the normalised
network, equal to it where h sums to one, and its mean comes from exact counts just as well.

Source: Lou, Meng and Ermon 2024, arXiv 2310.16834, equations 5 and 11, with its scaling of the
output by sigma.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from genodiff.diffusion.loss import (
    LossTerms,
    WindowBound,
    continuous_time_loss,
    exact_count_bound,
    exact_count_loss,
)
from genodiff.diffusion.masked import Clean, Denoiser, MaskedDiffusion, counts
from genodiff.diffusion.objective import OBJECTIVES, Draws, Objective
from genodiff.diffusion.sampler import Kind


def log_ratios(diffusion: MaskedDiffusion, logits: Float[Tensor, "*S V"]) -> Float[Tensor, "*S K"]:
    """log h of the targets; the log score is this and log(alpha / (1 - alpha))."""
    return diffusion.target_logits(logits) - math.log(len(diffusion.targets))


def score_entropy(
    diffusion: MaskedDiffusion,
    logits: Float[Tensor, "B L V"],
    x0: Int[Tensor, "B L"],
    masked: Bool[Tensor, "B L"],
) -> Float[Tensor, "B L"]:
    """-log h_x + sum h - 1 at the `masked` positions, 0 elsewhere; nats.

    The integrand of DWDSE is w(t) times this.
    """
    total = log_ratios(diffusion, logits).logsumexp(-1)
    return torch.where(masked, diffusion.nll(logits, x0, masked) - total + torch.expm1(total), 0.0)


@OBJECTIVES.register("sedd")
@dataclass(frozen=True)
class Sedd(Objective):
    """Score entropy, from exact counts of masks or from times."""

    exact_count: bool = True

    kind: ClassVar[Kind] = "score"
    # It reveals at the rate that the scores tell; the others take the scores normalised.
    first_samplers: ClassVar[tuple[str, ...]] = ("analytic",)
    curve: ClassVar[bool] = True

    def loss(self, denoiser: Denoiser, clean: Clean, draws: Draws) -> LossTerms:
        given, cost = (self.diffusion, denoiser, clean), partial(score_entropy, self.diffusion)
        t = draws.times(self.time_sampling)
        if self.exact_count:
            return exact_count_loss(*given, counts(t, clean.n), draws.u_mask, cost=cost)
        return continuous_time_loss(*given, t, draws.u_mask, cost=cost)

    def bound(self, denoiser: Denoiser, clean: Clean, draws: Draws) -> WindowBound:
        given, cost = (self.diffusion, denoiser, clean), partial(score_entropy, self.diffusion)
        return exact_count_bound(*given, draws.counts(clean), draws.u_mask, cost)
