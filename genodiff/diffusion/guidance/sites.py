"""Guidance at the sites that a step reveals: each draw is tilted towards what the reward likes.

    p(x_i = v | xt, guided)  proportional to  x_theta(v | xt) psi(xt with x_i = v)

`exact` asks the potential of all tokens v at each revealed site: for one position at a time and the
true psi it draws from p(x) e^(beta r(x)) / Z exactly. `first-order` reads all of them off one
gradient, r(x with v) = r(x) + g_iv - g_i,x_i, at each completion: it is exact for rewards that are
linear in the letters of one site. Sites of one step are tilted each by itself.

Source: Schiff et al. 2024, arXiv 2412.10193 (D-CBG, and its first-order form), there at all
positions at once; here only at those that are about to be revealed.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from genodiff.diffusion.guided import (
    Aim,
    Counted,
    Guided,
    GuidedChain,
    Potential,
    check_count,
    draw_completions,
    guidance,
    make_potential,
    no_estimate,
)
from genodiff.diffusion.sampler import Filling, Reveal, Steer


class _Sites(Steer):
    """Tilts the logits of due sites by the potential of each token there."""

    tilts = True

    def __init__(self, potential: Potential, drawn: int) -> None:
        self.potential, self.drawn = potential, drawn

    def tilt(self, filling: Filling, step: Reveal) -> Float[Tensor, "n K"]:
        """log psi with each token at each due site, less the largest of the site."""
        found, drawn = [], draw_completions(filling, step, self.drawn)
        for a, row in enumerate(step.rows.tolist()):
            sites = step.due[a].nonzero()[:, 0]
            found.append(self.weigh(row, filling.x[row], sites, drawn[a], filling.targets))
        weights = torch.cat(found)
        return weights - weights.amax(-1, keepdim=True)

    def weigh(
        self,
        row: int,
        x: Int[Tensor, " L"],
        sites: Int[Tensor, " n"],
        drawn: Int[Tensor, "m L"],
        targets: Int[Tensor, " K"],
    ) -> Float[Tensor, "n K"]:
        """log psi of the sequence with each target at each site."""
        n, k = len(sites), len(targets)
        changed = x.repeat(n, k, 1)
        changed.scatter_(2, sites[:, None, None].expand(n, k, 1), targets.expand(n, k)[..., None])
        return self.potential(row, changed.reshape(n * k, -1), drawn).reshape(n, k)


class _Slopes(_Sites):
    """The same by one gradient at each completion."""

    def __init__(self, reward: Counted, strength: float, drawn: int) -> None:
        self.reward, self.strength, self.drawn = reward, strength, drawn

    def weigh(
        self, row: int, x: Tensor, sites: Tensor, drawn: Tensor, targets: Tensor
    ) -> Float[Tensor, "n K"]:
        """log mean over completions of e^(strength (r + change)), to first order."""
        found, slope = self.reward.gradient(row, drawn)
        at_site = slope[:, sites]  # (m, n, K)
        own = (drawn[:, sites][..., None] == targets).double()
        change = at_site - (at_site * own).sum(-1, keepdim=True)
        values = self.strength * (found[:, None, None] + change)
        return values.logsumexp(0) - math.log(len(drawn))


def _count_exact(masks: int, reveals: int, targets: int, drawn: float = 4.0) -> int:
    return masks * targets * check_count("drawn", drawn)


def _count_slopes(masks: int, reveals: int, targets: int, drawn: float = 4.0) -> int:
    return reveals * check_count("drawn", drawn)


@guidance("exact", needs="reward", calls=_count_exact, tilts=True)
def exact(chain: GuidedChain, xt: Int[Tensor, "B L"], aim: Aim, drawn: float = 4.0) -> Guided:
    """The reward of every token at every revealed site, in `drawn` completions each."""
    reward = Counted(aim, len(xt))
    potential = aim.potential or make_potential(reward, aim.strength, chain.diffusion.mask_id)
    done = chain.run(xt, steer=_Sites(potential, check_count("drawn", drawn)))
    return Guided(*done, reward.calls, no_estimate(len(xt)))


@guidance("first-order", needs="gradient", calls=_count_slopes, tilts=True)
def first_order(chain: GuidedChain, xt: Int[Tensor, "B L"], aim: Aim, drawn: float = 4.0) -> Guided:
    """The slopes of the reward at `drawn` completions of each step."""
    reward = Counted(aim, len(xt))
    done = chain.run(xt, steer=_Slopes(reward, aim.strength, check_count("drawn", drawn)))
    return Guided(*done, reward.calls, no_estimate(len(xt)))
