"""SEDD, absorbing: score entropy. The network tells ratios of probabilities, and nothing makes them
sum to one.

    s_v    = p_t(v) / p_t(mask) given the rest, the concrete score; the true one is x_v alpha / (1 -
           alpha)
    s_v    = h_v alpha / (1 - alpha),   h_v = exp(logit_v) / K,
    K targets; logits of 0 mean "all equal"

    DWDSE = integral of sigma'(t) E sum over masked of [ sum_v s_v - a log s_x + a (log a - 1) ],
    a = alpha / (1 - alpha)
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

from genodiff.diffusion.loss import LossTerms, count_and_scale, count_time, masked_cost
from genodiff.diffusion.masked import Denoiser, MaskedDiffusion, counts, exact_count_mask
from genodiff.diffusion.objective import OBJECTIVES, Draws, Objective, WindowBound, as_loss
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
    """-log h_x + sum h - 1 at the `masked` positions, 0 elsewhere; nats. sigma'(t) DWDSE is w(t)
    times this.
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

    @property
    def curve(self) -> bool:
        return True

    def loss(
        self,
        denoiser: Denoiser,
        x0: Int[Tensor, "B L"],
        maskable: Bool[Tensor, "B L"],
        weight: Float[Tensor, "B L"] | None,
        draws: Draws,
        lengths: Int[Tensor, "B"] | None = None,
    ) -> LossTerms:
        t = draws.times(self.time_sampling)
        if self.exact_count:
            k, scale = count_and_scale(maskable, counts(t, maskable.sum(-1)))
            masked, t = (
                exact_count_mask(maskable, k, draws.u_mask),
                count_time(self.diffusion, maskable, k),
            )
        else:
            masked, scale = (
                self.diffusion.draw_mask(t, draws.u_mask, maskable),
                self.diffusion.schedule.weight(t),
            )
        entropy = self._entropy(denoiser, x0, masked, t, lengths)
        return as_loss(scale.to(entropy.dtype)[:, None] * entropy, maskable, weight)

    @torch.no_grad()
    def bound(
        self,
        denoiser: Denoiser,
        x0: Int[Tensor, "B L"],
        maskable: Bool[Tensor, "B L"],
        draws: Draws,
        lengths: Int[Tensor, "B"] | None = None,
    ) -> WindowBound:
        k, scale = count_and_scale(
            maskable, counts(draws.times("systematic").to(x0.device), maskable.sum(-1))
        )
        masked = exact_count_mask(maskable, k, draws.u_mask)
        entropy = self._entropy(
            denoiser, x0, masked, count_time(self.diffusion, maskable, k), lengths
        )
        return WindowBound(entropy.double(), scale, k.double() / maskable.sum(-1).clamp(min=1))

    def _entropy(
        self,
        denoiser: Denoiser,
        x0: Int[Tensor, "B L"],
        masked: Bool[Tensor, "B L"],
        t: Float[Tensor, "B"],
        lengths: Int[Tensor, "B"] | None,
    ) -> Float[Tensor, "B L"]:
        xt, sigma = self.diffusion.mask(x0, masked), self.diffusion.sigma(t)
        return masked_cost(
            partial(score_entropy, self.diffusion),
            self.diffusion,
            denoiser,
            xt,
            x0,
            masked,
            sigma,
            lengths,
        )
