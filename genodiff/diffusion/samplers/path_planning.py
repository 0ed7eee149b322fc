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
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from genodiff.diffusion.draw import TIE, draw_again
from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.diffusion.sampler import Filling, Sampled, SamplerOptions, sampler, take_best
from genodiff.diffusion.samplers.confidence import round_shares, steps_with_any
from genodiff.errors import UsageError


def count_planned(
    n: int, share: Float[Tensor, " S"], eta: float = 2.0, noise: float = 1.0
) -> float:
    """The number of steps in which the schedule's share of n masks, rounded, grows."""
    _check(eta, noise)
    return steps_with_any(n, share)


@sampler("p2", fits=("masked",), evaluations=count_planned, judges_tokens=True)
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
    filling = _Plan(diffusion, denoiser, xt, options)
    filling.u_order, filling.eta, filling.noisy = options.u_order, eta, noise == 1
    for step, rows, counts in round_shares(filling, options.steps):
        logits, sigma = filling.evaluate(rows, 1 - step / options.steps)
        plan = partial(filling.plan, step, counts)
        filling.x[rows] = filling.decide(rows, logits, sigma, plan)
    return filling.done()


class _Plan(Filling):
    """Sequences on their way, and how their positions are ranked."""

    u_order: Tensor
    eta: float
    noisy: bool

    def plan(
        self, step: int, counts: Tensor, rows: Tensor, logits: Tensor, error: float
    ) -> tuple[Tensor, Tensor]:
        """The sequences after the step, `counts` positions kept of each, as a `Choice`."""
        x, open_here, masked = self.x[rows], self.masked[rows], self.is_masked(rows)
        lead = self.diffusion.target_logits(logits).double()
        logp = lead.log_softmax(-1)
        column, close = torch.zeros_like(x), torch.zeros_like(masked)
        drawn = open_here if self.noisy else masked
        u = draw_again(self.u_token[rows], step)[drawn]
        column[drawn], close[drawn] = self.draw(lead[drawn], u, error)
        kept_before = open_here & ~masked
        if self.noisy:
            own, best = add_noise(logp, column, self.u_order[rows], step)
        else:
            column[kept_before] = self.diffusion.columns(x[kept_before])
            own, best = logp.gather(-1, column[..., None])[..., 0], logp.amax(-1)
        weight = torch.where(kept_before, self.eta, 1.0)
        score = torch.round((weight * own).clamp(min=-1e12) / TIE)
        level = torch.where(open_here, score, -torch.inf)
        keep, least, left_out = take_best(level, self.u_order[rows], counts[rows])
        after = torch.where(masked, self.targets[column], x)
        after = torch.where(open_here & ~keep, self.diffusion.mask_id, after)
        # An error in every logit moves a log-probability by twice that.
        slack, least = 4 * error * max(1.0, self.eta), least * TIE
        # A close draw may become another token, whose score is at most the best token's.
        matters = close & (weight * best >= (least - slack)[:, None])
        return after, (least - left_out * TIE <= slack) | matters.any(-1)


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
