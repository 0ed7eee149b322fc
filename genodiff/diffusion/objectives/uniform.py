"""Uniform noise, and the dial between letters and masks: what a wrong letter, a right one cost.

With a = q(z_t | x) and b = q(z_t | x_theta) of a position (`mixed_noise`), z what stands there, and
r = a_z / b_z, the bound in continuous time is the integral over t, and the sum over positions, of

    rate(t) pi_z / a_z  [ KL(a || b) + r - 1 - log r ],        rate = -k'(t) / k(t)

Two steps give it. The forward process jumps from j to i at rate(t) pi_i, so time turned round jumps
from i to j at rate(t) pi_i a_j / a_i, and the model at rate(t) pi_i b_j / b_i. And two jump
processes with rates R and S from where one is differ by the mean of sum S - R + R log(R / S). At
t = 1 nothing is left of x, so the prior costs nothing, and at t = 0 nothing is to be guessed. Both
terms in brackets are never negative. Where noise is masks alone, a and b are equal at the mask, and
what is left is MDLM's -alpha' / (1 - alpha) times -log x_theta.

All is in double precision: at the noisy end KL is of the order of k^2, a difference of logarithms
that are nearly equal.

Sources: Schiff et al. 2024, arXiv 2412.10193, equation 14, without masks; von Rütte et al. 2025,
arXiv 2503.04482, theorem 3.2, for mixtures. The weights are the bound's own, none is clipped.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from genodiff.diffusion.loss import LossTerms, as_loss
from genodiff.diffusion.masked import Clean, Denoiser
from genodiff.diffusion.mixed_noise import LEAST, MixedNoise
from genodiff.diffusion.objective import OBJECTIVES, Draws, Objective, WindowBound, as_bound
from genodiff.diffusion.sampler import Kind
from genodiff.diffusion.schedule import Linear
from genodiff.errors import UsageError


@OBJECTIVES.register("uniform")
@dataclass(frozen=True)
class UniformNoise(Objective):
    """Letters drawn anew, of which `mask_share` are masks: 0 is uniform noise, 1 is MDLM."""

    mask_share: float = 0.0

    kind: ClassVar[Kind] = "uniform"
    first_samplers: ClassVar[tuple[str, ...]] = ("uniform-ancestral",)

    def __post_init__(self) -> None:
        if not 0 <= self.mask_share <= 1:
            what = f"a mask share of {self.mask_share}"
            raise UsageError(what, fix="give --mask-share 0 (uniform noise only) to 1 (masks only)")

    @property
    def noise(self) -> MixedNoise:
        """The process."""
        return MixedNoise(self.diffusion, self.mask_share)

    def check_fills_masks(self) -> None:
        if self.mask_share == 0:
            what = "a network trained with uniform noise has never seen a mask"
            raise UsageError(what, fix="give a run of --objective mdlm, or of --mask-share above 0")

    def loss(self, denoiser: Denoiser, clean: Clean, draws: Draws) -> LossTerms:
        t = draws.times(self.time_sampling)
        return as_loss(find_costs(self.noise, denoiser, clean, t, draws.u_mask), clean)

    @torch.no_grad()
    def bound(self, denoiser: Denoiser, clean: Clean, draws: Draws) -> WindowBound:
        # It depends on the shares of noise, not on when they are; this schedule has them all.
        closed = MixedNoise(replace(self.diffusion, schedule=Linear()), self.mask_share)
        t = draws.times("systematic").to(clean.x0.device)
        return as_bound(find_costs(closed, denoiser, clean, t, draws.u_mask, surely=True))


def find_costs(
    noise: MixedNoise,
    denoiser: Denoiser,
    clean: Clean,
    t: Float[Tensor, " B"],
    u: Float[Tensor, "B L"],
    *,
    surely: bool = False,
) -> Float[Tensor, "B L"]:
    """Nats of each position: their mean over t and u is its share of the bound.

    With `surely`, what a network that knows nothing would pay for the same draws is exchanged for
    its mean, ln K. It is most of what a network pays, and of how it scatters.
    """
    share, speed = noise.share(t)
    z = noise.corrupt(clean.x0, share, u, clean.maskable)
    logits = clean.logits(denoiser, z, noise.sigma(share))
    given = (clean.x0, z, clean.maskable, share, speed)
    costs = noise_cost(noise, logits, *given)
    if not surely:
        return costs
    nothing = noise_cost(noise, torch.zeros_like(logits), *given)
    return costs - nothing + torch.where(clean.maskable, math.log(noise.size), 0.0)


def noise_cost(
    noise: MixedNoise,
    logits: Float[Tensor, "B L V"],
    x0: Int[Tensor, "B L"],
    z: Int[Tensor, "B L"],
    maskable: Bool[Tensor, "B L"],
    share: Float[Tensor, " B"],
    speed: Float[Tensor, " B"],
) -> Float[Tensor, "B L"]:
    """The integrand at each maskable position, 0 elsewhere; nats, in double precision.

    `share` is 1 - k and `speed` its derivative. A clean token that is no target costs infinity, for
    the network gives it no chance.
    """
    share = share[:, None].expand(x0.shape)
    log_x = noise.diffusion.target_logits(logits).double().log_softmax(-1)
    column = noise.diffusion.columns(x0)
    x = column[..., None] == torch.arange(noise.size, device=column.device)
    sure = torch.full_like(log_x, -torch.inf).masked_fill(x, 0.0)
    log_a, log_b = noise.log_q(sure, share), noise.log_q(log_x, share)
    # A state that has no chance costs nothing. Where a has none, b may have some: x_theta's.
    never = log_a.isneginf()
    differ = log_a.masked_fill(never, 0.0) - log_b.masked_fill(never, 0.0)
    kl = (log_a.exp() * differ).sum(-1)
    state = noise.states(torch.where(maskable, z, noise.diffusion.targets[0]))[..., None]
    log_r = differ.gather(-1, state)[..., 0]
    weight = (noise.log_pi(x0.device)[state] - log_a.gather(-1, state))[..., 0].exp()
    rate = speed[:, None] / (1 - share).clamp(min=LEAST)
    costs = rate * weight * (kl + torch.expm1(log_r) - log_r)
    costs = torch.where(column < 0, torch.inf, costs)
    return torch.where(maskable, costs, 0.0)
