"""ReMDM: the ancestral sampler that may take a token back and draw it again.

    p(xs = mask | xt visible) = sigma
    p(xs visible | xt = mask) = (a(s) - (1 - sigma) a(t)) / (1 - a(t))

    a(t)       the share of the masks that is revealed at time t, by the schedule
    sigma      how likely a step masks a token again, 0 <= sigma <= min(1, (1 - a(s)) / a(t))

The share revealed after each step is that of the ancestral sampler, whatever sigma is. What was
visible from the start is never masked. The three samplers differ in sigma:

    remdm-cap        min(eta, largest)
    remdm-rescale    eta times the largest
    remdm-loop       0 until the share `alpha_on` is revealed at time `t_on`; then min(eta, largest)
                     while the share stays, until `t_off`; then 0 while the rest is revealed

When a position is masked or revealed depends on its `u_order` alone, so it is known before the
network runs. A step that reveals nothing costs no evaluation. With eta = 0 all but the loop draw
what the ancestral sampler draws, bit for bit.

Source: Wang et al. 2025, arXiv 2503.00307, sections 3 and 4. Its third way, by confidence, looks at
tokens and is not here.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from genodiff.diffusion.draw import draw_again
from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.diffusion.sampler import Filling, Sampled, SamplerOptions, revealed_share, sampler
from genodiff.errors import UsageError

Floats = NDArray[np.float64]


class RemaskPlan(NamedTuple):
    """What each step does to a position, (S,) each."""

    time: Floats  # of the schedule, at the step's start
    share: Floats  # of the masks, revealed after the step
    reveal: Floats  # the chance that a masked position is revealed
    remask: Floats  # the chance that a revealed position is masked again: sigma

    @property
    def chance(self) -> Floats:
        """That a position is revealed in the step, from the start."""
        before = np.concatenate([[0.0], self.share[:-1]])
        found: Floats = (1 - before) * self.reveal
        return found


def plan_cap(share: Floats, eta: float) -> RemaskPlan:
    """sigma = min(eta, largest), for the schedule's `share` (S,) after each step."""
    return _make_plan(share, np.minimum(_check_eta(eta), _find_largest(share)))


def plan_rescale(share: Floats, eta: float) -> RemaskPlan:
    """sigma = eta times the largest."""
    return _make_plan(share, _check_eta(eta) * _find_largest(share))


def plan_loop(share: Floats, eta: float, t_on: float, t_off: float, alpha_on: float) -> RemaskPlan:
    """Reveal up to the share `alpha_on`, then mask and reveal at that share, then the rest."""
    if not 0 <= t_off < t_on <= 1:
        what = f"t_on = {t_on:g} and t_off = {t_off:g} are not 1 >= t_on > t_off >= 0"
        raise UsageError(what, fix="leave them out (0.55 and 0.05)")
    if not 0 < alpha_on < 1:
        fix = "leave it out (0.9)"
        raise UsageError(f"alpha_on = {alpha_on:g} is not between 0 and 1", fix=fix)
    steps, on, off = len(share), 1 - t_on, 1 - t_off
    done = np.arange(steps + 1) / steps
    height = np.concatenate([[0.0], share])
    held = np.interp(alpha_on, height, done)  # where the schedule itself has revealed so much
    # The time of the schedule at each step: fast at first, then held, then fast again.
    late = held + (1 - held) * np.clip((done - off) / max(1 - off, 1e-12), 0, 1)
    place = np.where(done <= on, held * done / max(on, 1e-12), late)
    place[-1] = 1.0
    path = np.interp(place, done, height)
    path[-1] = 1.0
    slack = 1e-9  # j / steps beside a bound that is a decimal fraction
    inside = (done[:-1] >= on - slack) & (done[1:] <= off + slack)
    sigma = np.where(inside, np.minimum(_check_eta(eta), _find_largest(path[1:])), 0.0)
    return _make_plan(path[1:], sigma, 1 - place[:-1])


def _make_plan(share: Floats, sigma: Floats, time: Floats | None = None) -> RemaskPlan:
    before, steps = np.concatenate([[0.0], share[:-1]]), len(share)
    left = np.maximum(1 - before, 1e-300)
    reveal = np.clip((share - (1 - sigma) * before) / left, 0.0, 1.0)
    reveal[-1] = 1.0
    return RemaskPlan(1 - np.arange(steps) / steps if time is None else time, share, reveal, sigma)


def _find_largest(share: Floats) -> Floats:
    """min(1, (1 - a(s)) / a(t)) of each step; 0 for the first, when nothing is revealed."""
    before = np.concatenate([[0.0], share[:-1]])
    largest = np.minimum(1.0, (1 - share) / np.where(before > 0, before, 1.0))
    return np.where(before > 0, largest, 0.0)


def _check_eta(eta: float) -> float:
    if not 0 <= eta <= 1:
        raise UsageError(f"eta = {eta:g} is not between 0 and 1", fix="use 0 (never) to 1")
    return eta


def _expect(n: int, plan: RemaskPlan) -> float:
    """The expected number of steps that reveal any of n masks."""
    return float((1 - (1 - plan.chance) ** n).sum())


def _count(
    plan: Callable[..., RemaskPlan], n: int, share: Float[Tensor, " S"], eta: float = 0.04
) -> float:
    """The evaluations for n masks by a plan with the one setting `eta`."""
    return _expect(n, plan(share.numpy(), eta))


count_cap, count_rescale = partial(_count, plan_cap), partial(_count, plan_rescale)


def count_loop(
    n: int,
    share: Float[Tensor, " S"],
    eta: float = 0.02,
    t_on: float = 0.55,
    t_off: float = 0.05,
    alpha_on: float = 0.9,
) -> float:
    """The evaluations of `remdm_loop` for n masks."""
    return _expect(n, plan_loop(share.numpy(), eta, t_on, t_off, alpha_on))


@sampler("remdm-cap", fits=("masked", "score"), evaluations=count_cap, remasks=True, steers=True)
def remdm_cap(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    xt: Int[Tensor, "B L"],
    options: SamplerOptions,
    eta: float = 0.04,
) -> Sampled:
    """At most `steps` evaluations; a step masks a token again with chance `eta` at most."""
    return _walk(diffusion, denoiser, xt, options, plan_cap, eta)


@sampler(
    "remdm-rescale", fits=("masked", "score"), evaluations=count_rescale, remasks=True, steers=True
)
def remdm_rescale(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    xt: Int[Tensor, "B L"],
    options: SamplerOptions,
    eta: float = 0.04,
) -> Sampled:
    """At most `steps` evaluations; `eta` is the share of the largest sigma."""
    return _walk(diffusion, denoiser, xt, options, plan_rescale, eta)


@sampler("remdm-loop", fits=("masked", "score"), evaluations=count_loop, remasks=True, steers=True)
def remdm_loop(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    xt: Int[Tensor, "B L"],
    options: SamplerOptions,
    eta: float = 0.02,
    t_on: float = 0.55,
    t_off: float = 0.05,
    alpha_on: float = 0.9,
) -> Sampled:
    """At most `steps` evaluations; between `t_on` and `t_off` the share revealed is `alpha_on`."""
    return _walk(diffusion, denoiser, xt, options, plan_loop, eta, t_on, t_off, alpha_on)


def _walk(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    xt: Int[Tensor, "B L"],
    options: SamplerOptions,
    make_plan: Callable[..., RemaskPlan],
    *own: float,
) -> Sampled:
    plan = make_plan(revealed_share(diffusion.schedule, options.steps).numpy(), *own)
    filling, u = Filling(diffusion, denoiser, xt, options), options.u_order.double()
    # The step of a position's first reveal, read off its uniform as the ancestral sampler does.
    first = 1 - np.cumprod(1 - plan.reveal)
    first[-1] = 1.0
    edges = torch.from_numpy(first).to(xt.device)
    due_first = torch.searchsorted(edges, u.contiguous(), right=True).clamp(max=options.steps - 1)
    again = torch.zeros_like(filling.masked)  # revealed before, at any step
    for j in range(options.steps):
        masked = filling.x == diffusion.mask_id
        due = masked & ~again & (due_first == j)
        # One uniform serves both fates: a position is either masked or visible.
        fate = draw_again(u, j)
        if (masked & again).any():
            due |= masked & again & (fate < plan.reveal[j])
        taken_back = again & ~masked & (fate < plan.remask[j])
        rows = due.any(-1).nonzero()[:, 0]
        if len(rows):
            drawn_before = draw_again(options.u_token, j)
            filling.u_token = torch.where(again, drawn_before, options.u_token.double())
            filling.reveal(rows, due[rows], *filling.evaluate(rows, float(plan.time[j]), due[rows]))
            again |= due
        # Last: the network has seen the tokens that the step takes back.
        filling.x[taken_back] = diffusion.mask_id
    return filling.done()
