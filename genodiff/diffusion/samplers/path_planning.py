"""P2 (path planning): every step ranks all positions anew, and may take tokens back.

At each step the network sees the sequence and a token is drawn at every open position. With that
token's log x_theta as the score where there is a mask, and eta times as much where a token stands,
the highest scores are kept, as many as the schedule reveals, and all others are masked. A mask that
is kept takes the token that was drawn; a token that is kept stays as it is. With eta = 0 a revealed
token is never taken back; a larger eta takes back more. What was visible from the start stays.

    noise = 1    log x_theta is of logits with the Gumbel noise that drew the token, as in the
                 authors' code: the order is drawn, too
    noise = 0    it is bare, and where a token stands it is that token's own (algorithm 1)

The order looks at the tokens that were drawn. So its law is not the denoiser's, even where all
tokens are independent: likely tokens come out more often than they should. Without the noise they
do so in every step: on DNA each eta then drew one letter alone. With it the eta of 1 that is
published still loses G and C, and 2 does not (benchmarks/generation/CORRECTION.md). Use another
sampler where the law matters.

Source: Peng et al. 2025, arXiv 2502.03540, algorithm 1 with self-planning, and its code,
github.com/pengzhangzhi/Path-Planning.
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from genodiff.diffusion.draw import TIE, draw_again
from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.diffusion.sampler import Filling, Sampled, SamplerOptions, revealed_share, sampler
from genodiff.diffusion.samplers.confidence import steps_with_any
from genodiff.errors import UsageError


def count_planned(
    n: int, share: Float[Tensor, " S"], eta: float = 2.0, noise: float = 1.0
) -> float:
    """The number of steps in which the schedule's share of n masks, rounded, grows."""
    _check(eta, noise)
    return steps_with_any(n, share)


@sampler("p2", fits=("masked",), evaluations=count_planned, judges_tokens=True)
@torch.no_grad()
def path_planning(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    xt: Int[Tensor, "B L"],
    options: SamplerOptions,
    eta: float = 2.0,
    noise: float = 1.0,
) -> Sampled:
    """At most min(steps, masks) evaluations; equal scores go by the smaller `u_order`."""
    _check(eta, noise)
    plan = _Plan(Filling(diffusion, denoiser, xt, options), options, eta, noise == 1)
    share = revealed_share(diffusion.schedule, options.steps).to(xt.device)
    kept = torch.round(plan.filling.masked.sum(-1)[:, None] * share).long()
    grows = kept.diff(dim=1, prepend=torch.zeros_like(kept[:, :1])) > 0
    for j in grows.any(0).nonzero()[:, 0].tolist():
        rows = grows[:, j].nonzero()[:, 0]
        t = torch.full_like(options.u_order[rows, 0], 1 - j / options.steps)
        logits, sigma = plan.filling.evaluate(rows, t)
        found, doubt = plan.choose(rows, logits, kept[rows, j], j, options.tolerance)
        if options.refine is not None:
            for i in doubt.nonzero()[:, 0].tolist():
                row = rows[i : i + 1]
                exact = plan.filling.refined(row, sigma[i : i + 1])
                found[i] = plan.choose(row, exact, kept[row, j], j, 0.0)[0][0]
        plan.filling.x[rows] = found
    return plan.filling.done()


class _Plan:
    """Sequences on their way, and how their positions are ranked."""

    def __init__(self, filling: Filling, options: SamplerOptions, eta: float, noisy: bool) -> None:
        self.filling, self.options, self.eta, self.noisy = filling, options, eta, noisy
        targets = filling.diffusion.targets
        self.column_of = torch.zeros(max(targets) + 1, dtype=torch.int64, device=filling.x.device)
        self.column_of[list(targets)] = torch.arange(len(targets), device=filling.x.device)

    def choose(
        self,
        rows: Int[Tensor, " A"],
        logits: Float[Tensor, "A L V"],
        n: Int[Tensor, " A"],
        step: int,
        tolerance: float,
    ) -> tuple[Int[Tensor, "A L"], Bool[Tensor, " A"]]:
        """The sequences after the step, and whether errors of `tolerance` could change them."""
        filling, mask_id = self.filling, self.filling.diffusion.mask_id
        x, open_here, masked = filling.x[rows], filling.masked[rows], filling.is_masked(rows)
        lead = filling.diffusion.target_logits(logits).double()
        logp = lead.log_softmax(-1)
        column = torch.zeros_like(x)
        close = torch.zeros_like(masked)
        drawn = open_here if self.noisy else masked
        u = draw_again(self.options.u_token[rows], step)[drawn]
        column[drawn], close[drawn] = filling.draw(lead[drawn], u, tolerance)
        kept_before = open_here & ~masked
        if self.noisy:
            own, best = add_noise(logp, column, self.options.u_order[rows], step)
        else:
            column[kept_before] = self.column_of[x[kept_before]]
            own, best = logp.gather(-1, column[..., None])[..., 0], logp.amax(-1)
        eta = torch.where(kept_before, self.eta, 1.0)
        score = (eta * own).clamp(min=-1e12)
        level = torch.where(open_here, torch.round(score / TIE), -torch.inf)
        by_u = self.options.u_order[rows].argsort(dim=-1, stable=True)
        order = by_u.gather(1, level.gather(1, by_u).argsort(dim=-1, stable=True, descending=True))
        first_n = torch.arange(level.shape[1]).to(n) < n[:, None]
        keep = torch.zeros_like(masked).scatter(1, order, first_n)
        after = torch.where(masked, filling.targets[column], x)
        after = torch.where(open_here & ~keep, mask_id, after)
        # An error of `tolerance` in every logit moves a log-probability by twice that.
        slack = 4 * tolerance * max(1.0, self.eta)
        worst = level.masked_fill(~keep, torch.inf).amin(-1) * TIE
        best_left_out = level.masked_fill(keep, -torch.inf).amax(-1) * TIE
        # A close draw may become another token, whose score is at most the best token's.
        matters = close & (eta * best >= (worst - slack)[:, None])
        return after, (worst - best_left_out <= slack) | matters.any(-1)


def add_noise(
    logp: Float[Tensor, "*S K"], column: Int[Tensor, "*S"], u: Float[Tensor, "*S"], step: int
) -> tuple[Float[Tensor, "*S"], Float[Tensor, "*S"]]:
    """log p of the token `column` under logits with the Gumbel noise that drew it; and at most.

    Given which token won, the highest noised logit is a Gumbel, and every other is a Gumbel around
    its own logit that is cut off there. The second is a bound whichever token had won.
    """
    several = logp.shape[-1] + 1
    u = u[..., None].expand(*u.shape, several)
    numbers = torch.arange(several, device=u.device) + several * step
    noise = -torch.log(-torch.log(draw_again(u, numbers).clamp(min=2.0**-54)))
    top, free = noise[..., 0], logp + noise[..., 1:]
    # exp(noised logit - top) of each token that loses
    lost = 1 / (1 + torch.exp(top[..., None] - free))
    won = lost.gather(-1, column[..., None])[..., 0]
    total = lost.sum(-1)
    return -torch.log1p(total - won), -torch.log1p(total - lost.amax(-1))


def _check(eta: float, noise: float) -> None:
    if not 0 <= eta < math.inf:
        raise UsageError(f"eta = {eta:g} is not a number of 0 or more", fix="leave it out (2)")
    if noise not in (0, 1):
        raise UsageError(f"noise = {noise:g} is neither 0 nor 1", fix="leave it out (1)")
