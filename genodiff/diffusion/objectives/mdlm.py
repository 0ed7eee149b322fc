"""MDLM: a weighted cross-entropy at masked positions, and its simplifications, one by one.

    whole            the bound of `loss`: exact counts (default), continuous time, or T steps
    no carry-over    a visible token is not given, so it is paid for at the end: - sum over
                     positions of log x_theta(x0)_x0
    no zero-masking  x_theta may say "mask"; with x_m its chance there, a step from t to s costs at
                     a masked position

                     KL(q(zs|zt,x0) || p(zs|zt)) = r (-log x_x + A(t)) + (1 - r) (A(t) - A(s))
                     r = (alpha(s) - alpha(t)) / (1 - alpha(t)),
                     A(t) = log(1 + x_m alpha(t) / (1 - alpha(t)))

                     and in the limit of infinitely many steps
                     w(t) [-log x_x + A(t) - x_m / (1 - alpha + alpha x_m)]
    open schedule    where alpha(1) > 0, what is still visible at t = 1 is drawn from a uniform
                     prior and costs alpha(1) ln K; step 1 reveals whatever is left
    no Rao-Blackwell only what happens in the step that is drawn is paid for, not its mean: 1 if
    revealed, else 0, for r

Sources: Sahoo et al. 2024, arXiv 2406.07524, section 3 and table 8 (the ablation); Austin et al.
2021, arXiv 2107.03006. All of them are upper bounds on -log p of the same kind; the means with and
without Rao-Blackwellisation are equal.
"""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from genodiff.diffusion.loss import (
    LossTerms,
    WindowBound,
    as_loss,
    continuous_time_loss,
    discrete_time_loss,
    exact_count_bound,
    exact_count_loss,
)
from genodiff.diffusion.masked import Clean, Denoiser, MaskedDiffusion, bell, counts
from genodiff.diffusion.objective import OBJECTIVES, Draws, Objective, as_bound
from genodiff.diffusion.schedule import Linear
from genodiff.errors import UsageError

_UNLIKELY = 1e-18  # steps whose chance is below are left out of a mean over steps


@OBJECTIVES.register("mdlm")
@dataclass(frozen=True)
class Mdlm(Objective):
    """Masked diffusion; `time_steps` None is continuous time.

    There `exact_count` masks exactly k of n, else each position is masked by a coin.

    Without zero-masking the cost depends on the time and not on the count alone: times are drawn,
    `exact_count` or not.
    """

    exact_count: bool = True
    time_steps: int | None = None
    carry_over: bool = True
    zero_masking: bool = True
    rao_blackwell: bool = True
    bell: float | None = None
    """Train on mask rates whose logit is normal with this standard deviation; None: uniform."""
    bell_center: float = 0.5
    bell_weighted: bool = False
    """Weight each window by 1 / density of its rate, so that the loss keeps its mean."""

    def __post_init__(self) -> None:
        if self.time_steps is not None and self.time_steps < 1:
            fix = "give 1 or more, or none for continuous time"
            raise UsageError(f"{self.time_steps} time steps", fix=fix)
        if self.bell is None:
            if self.bell_center != 0.5 or self.bell_weighted:
                what = "a centre or weights of bell-shaped mask rates, and no bell"
                raise UsageError(what, fix="give --bell, such as 0.3")
        elif not (self.bell > 0 and 0 < self.bell_center < 1):
            what = f"a bell of width {self.bell:g} around {self.bell_center:g}"
            raise UsageError(what, fix="give a width above 0 and a centre between 0 and 1")
        elif self.time_steps is not None or not (self.zero_masking and self.rao_blackwell):
            what = "bell-shaped mask rates are for continuous time"
            raise UsageError(what, fix="leave --bell out, or the steps and --zero-masking false")
        if not self.rao_blackwell and self.time_steps is None:
            what = "without Rao-Blackwellisation the loss needs steps to draw from"
            raise UsageError(what, fix="give --time-steps 1000")

    @property
    def curve(self) -> bool:  # type: ignore[override]
        return self.exact_count and self.zero_masking and self.time_steps is None

    @property
    def bound_counts_masks(self) -> bool:  # type: ignore[override]
        return self.carry_over and self.zero_masking and self.time_steps is None

    @property
    def evaluations(self) -> int:  # type: ignore[override]
        return 1 if self.carry_over else 2  # the second is the reconstruction's

    def loss(self, denoiser: Denoiser, clean: Clean, draws: Draws) -> LossTerms:
        given = (self.diffusion, denoiser, clean)
        t, u = draws.times(self.time_sampling), draws.u_mask
        if not (self.zero_masking and self.rao_blackwell):
            terms = as_loss(self._costs(denoiser, clean, t, u), clean)
        elif self.time_steps is not None:
            terms = discrete_time_loss(*given, t, u, self.time_steps)
        else:
            weight: Tensor | float = 1.0
            if self.bell is not None:
                t, inverse = bell(t, self.bell_center, self.bell)
                weight = inverse if self.bell_weighted else 1.0
            if self.exact_count:
                terms = exact_count_loss(*given, counts(t, clean.n), u, weight)
            else:
                terms = continuous_time_loss(*given, t, u, weight)
        if self.carry_over:
            return terms
        more = as_loss(self._reconstruction(denoiser, clean), clean)
        nats, unweighted = (terms[i] + more[i] for i in range(2))
        return LossTerms(nats, unweighted, terms.n_tokens)

    @torch.no_grad()
    def bound(self, denoiser: Denoiser, clean: Clean, draws: Draws) -> WindowBound:
        t, u = draws.times("systematic").to(clean.x0.device), draws.u_mask
        if self.zero_masking and self.time_steps is None:
            # The count form, whatever the training drew: it varies least.
            found = exact_count_bound(self.diffusion, denoiser, clean, draws.counts(clean), u)
        elif self.time_steps is None:
            # In continuous time the bound depends on the shares that are masked, not on when. A
            # schedule may leave out the smallest and the largest shares; this one has them all.
            closed = replace(self.diffusion, schedule=Linear())
            found = as_bound(replace(self, diffusion=closed)._costs(denoiser, clean, t, u))
        elif not self.diffusion.time_conditioning:
            costs = self._mean_costs(denoiser, clean, t, u, self.time_steps)
            found = as_bound(costs + prior_cost(self.diffusion, clean))
        else:
            # The mean of a step, whatever the training paid for: the same figure, and it varies
            # less.
            costs = replace(self, rao_blackwell=True)._costs(denoiser, clean, t, u)
            found = as_bound(costs + prior_cost(self.diffusion, clean))
        if self.carry_over:
            return found
        reconstruction = self._reconstruction(denoiser, clean).double()
        return as_bound(found.scale[:, None] * found.ce + reconstruction)

    def _costs(
        self, denoiser: Denoiser, clean: Clean, t: Float[Tensor, " B"], u: Float[Tensor, "B L"]
    ) -> Float[Tensor, "B L"]:
        """Nats of each position, the reconstruction left out.

        Their mean over t and u is the position's share of the bound.
        """
        first = torch.zeros_like(t, dtype=torch.bool)
        if self.time_steps is not None:
            i = torch.ceil(t * self.time_steps).clamp(1, self.time_steps)
            t, s, first = i / self.time_steps, (i - 1) / self.time_steps, i == 1
        masked = self.diffusion.draw_mask(t, u, clean.maskable)
        nll, x_mask = self._evaluate(denoiser, clean, masked, t)
        share_t = self.diffusion.schedule.masked(t)[:, None]
        if self.time_steps is None:
            weight = self.diffusion.schedule.weight(t)[:, None]
            costs = nll + torch.log1p(x_mask * (1 - share_t) / share_t)
            costs = weight * (costs - x_mask / (share_t + (1 - share_t) * x_mask))
        else:
            share_s = torch.where(first, 0.0, self.diffusion.schedule.masked(s))[:, None]
            reveal = None if self.rao_blackwell else (u >= share_s).to(u.dtype)
            costs = self.time_steps * step_cost(nll, x_mask, share_t, share_s, reveal)
        return torch.where(masked, costs, 0.0)

    def _mean_costs(
        self,
        denoiser: Denoiser,
        clean: Clean,
        t: Float[Tensor, " B"],
        u: Float[Tensor, "B L"],
        steps: int,
    ) -> Float[Tensor, "B L"]:
        """The mean of `_costs` over the steps that could have drawn the mask; it varies least.

        Where k of n are masked, step i has a chance p(i | k) that goes with
        Binomial(k; n, 1 - alpha(i/T)). Only for a network that is not told the time.
        """
        step = torch.ceil(t * steps).clamp(1, steps)
        masked = self.diffusion.draw_mask(step / steps, u, clean.maskable)
        nll, x_mask = self._evaluate(denoiser, clean, masked, t)
        grid = torch.arange(steps + 1, dtype=torch.float64, device=t.device) / steps
        share = self.diffusion.schedule.masked(grid).clamp(max=1)
        share[0] = 0.0  # step 1 reveals whatever is left
        k, n = masked.sum(-1, keepdim=True), clean.n[:, None]
        logs = torch.special.xlogy(k, share[1:]) + torch.special.xlog1py(n - k, -share[1:])
        chance = logs.softmax(-1)
        costs = torch.zeros_like(nll, dtype=torch.float64)
        for row, here in enumerate(masked):
            i = (chance[row] > _UNLIKELY).nonzero()  # as a column: steps beside positions
            x_here, mask_here = (one[row, here].expand(len(i), -1) for one in (nll, x_mask))
            each = step_cost(x_here, mask_here, share[i + 1], share[i])
            costs[row, here] = steps * (chance[row, i] * each).sum(0)
        return costs

    def _evaluate(
        self, denoiser: Denoiser, clean: Clean, masked: Bool[Tensor, "B L"], t: Float[Tensor, " B"]
    ) -> tuple[Float[Tensor, "B L"], Float[Tensor, "B L"]]:
        """`_nll` of one evaluation of the network, told the times t."""
        xt = self.diffusion.mask(clean.x0, masked)
        return self._nll(clean.logits(denoiser, xt, self.diffusion.sigma(t)), clean.x0, masked)

    def _nll(
        self, logits: Float[Tensor, "B L V"], x0: Int[Tensor, "B L"], masked: Bool[Tensor, "B L"]
    ) -> tuple[Float[Tensor, "B L"], Float[Tensor, "B L"]]:
        """-log x_x at the `masked` positions, and x_m everywhere."""
        nll = self.diffusion.nll(logits, x0, masked)
        if self.zero_masking:
            return nll, torch.zeros_like(nll)
        log_mask = log_mask_chance(self.diffusion, logits)
        return torch.where(masked, nll - log1mexp(log_mask), 0.0), log_mask.exp()

    def _reconstruction(self, denoiser: Denoiser, clean: Clean) -> Float[Tensor, "B L"]:
        """-log x_theta(x0)_x0 at every maskable position, nothing being masked."""
        x0 = clean.x0
        sigma = self.diffusion.sigma(torch.zeros(len(x0), dtype=torch.float64, device=x0.device))
        return self._nll(clean.logits(denoiser, x0, sigma), x0, clean.maskable)[0]


def prior_cost(diffusion: MaskedDiffusion, clean: Clean) -> Float[Tensor, "B L"]:
    """Nats of each position for what is still visible at t = 1; 0 where alpha(1) = 0.

    The chain then starts from masks and, with chance alpha(1), from a target drawn uniformly.
    """
    cost = diffusion.schedule.alpha(torch.ones((), dtype=torch.float64)).item()
    return torch.where(clean.maskable, cost * math.log(len(diffusion.targets)), 0.0).double()


def step_cost(
    nll: Float[Tensor, "B L"],
    x_mask: Float[Tensor, "B L"],
    masked_t: Float[Tensor, "B _"],
    masked_s: Float[Tensor, "B _"],
    reveal: Float[Tensor, "B L"] | None = None,
) -> Float[Tensor, "B L"]:
    """Nats of a step at a masked position; nll = -log x_x.

    `masked_t` and `masked_s` are 1 - alpha, of t > 0 and of s, which may be 0. With `reveal` (1
    where the step reveals the position, else 0) they are those of what happened, else their mean.
    """
    first = masked_s == 0
    a_t = torch.log1p(x_mask * (1 - masked_t) / masked_t)
    a_s = torch.log1p(torch.where(first, 0.0, x_mask * (1 - masked_s) / masked_s.clamp(min=1e-300)))
    r = 1 - masked_s / masked_t if reveal is None else reveal
    return r * (nll + a_t) + (1 - r) * torch.where(first, 0.0, a_t - a_s)


def log_mask_chance(
    diffusion: MaskedDiffusion, logits: Float[Tensor, "B L V"]
) -> Float[Tensor, "B L"]:
    """log x_m: the mask's share of the softmax over the targets and the mask."""
    of_mask = logits[..., diffusion.mask_id].to(torch.promote_types(logits.dtype, torch.float32))
    return -torch.nn.functional.softplus(diffusion.target_logits(logits).logsumexp(-1) - of_mask)


def log1mexp(log_p: Float[Tensor, "*S"]) -> Float[Tensor, "*S"]:
    """log(1 - p) from log p < 0, accurate at both ends."""
    near = log_p > -0.6931
    return torch.where(
        near,
        torch.log(-torch.expm1(torch.where(near, log_p, -1.0).clamp(max=-1e-30))),
        torch.log1p(-torch.exp(torch.where(near, -1.0, log_p))),
    )
