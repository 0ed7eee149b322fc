"""Ancestral sampling where letters are noise: every position may change in every step.

    start    each open position has a token of the noise; or what stands there, noised to `start`
    a step   z_s ~ q(z_s | z_t, x_theta(z_t)) at every open position by itself (`mixed_noise`)

Times are `steps` equal ones from the start to 0. A sequence that no step has changed is not looked
at again, unless the network is told the time. What is given stays as it is: the network was trained
with noise everywhere, so for it a known flank is unusually clean.

With `correct` = c > 0 a share c of the steps' draws at each position first draws its clean token
and then noises that to s, which takes more back:

    (1 - c) q(z_s | z_t, x) + c sum over x' of p(x' | z_t) q(z_s | x')

For a perfect network both have the same law at s, position by position.

Sources: Schiff et al. 2024, arXiv 2412.10193, equation 13; Deschenaux et al. 2026, arXiv 2602.21185
(psi-samplers, predictor and corrector at once).
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from genodiff.diffusion.draw import Draw, draw_again
from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.diffusion.mixed_noise import MixedNoise, Noising
from genodiff.diffusion.sampler import Filling, Reveal, Sampled, SamplerOptions, sampler
from genodiff.errors import UsageError


def count_steps(n: int, share: Float[Tensor, " S"]) -> float:
    """Evaluations for n open positions, at most: one for each step."""
    return float(len(share) if n else 0)


class _Noisy(Filling):
    """Sequences whose tokens may be noise, on their way through a step."""

    noise: MixedNoise
    correct: float
    state: Tensor  # of the due positions
    share_t = share_s = 1.0

    def draw_columns(
        self, logits: Tensor, u: Tensor, tolerance: float, which: slice | Tensor
    ) -> tuple[Tensor, Tensor]:
        """States of the step's end, by temperature and nucleus of the guess."""
        log_x, doubt = self.draw.log_law_and_doubt(logits, tolerance)
        weights = self.noise.log_reverse(log_x, self.state[which], self.share_t, self.share_s)
        # An error d of the logits moves a guess's logarithm by 2 d / temperature at most.
        error = 2 * tolerance / self.draw.temperature if self.draw.temperature else 0.0
        if self.correct:
            clean = self.noise.log_reverse(log_x, self.state[which], self.share_t, 0.0)
            clean = clean[:, :-1].log_softmax(-1)
            again = self.noise.log_q(clean, torch.full_like(clean[:, 0], self.share_s))
            keep = math.log1p(-self.correct) if self.correct < 1 else -math.inf
            weights = keep + weights.log_softmax(-1)
            weights = torch.logaddexp(weights, math.log(self.correct) + again)
            error *= 2  # of what is normalised
        column, close = Draw(1.0, 1.0)(weights, u, error)
        return column, close | doubt


@sampler("uniform-ancestral", fits=("uniform",), evaluations=count_steps, remasks=True)
def uniform_ancestral(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    xt: Int[Tensor, "B L"],
    options: SamplerOptions,
    correct: float = 0.0,
) -> Sampled:
    """`steps` evaluations at most; masks in `xt` are the positions that are open."""
    if not 0 <= correct <= 1:
        raise UsageError(f"correct = {correct:g} is not between 0 and 1", fix="use 0 (never) to 1")
    if options.steps < 1:
        raise UsageError(f"{options.steps} sampling steps", fix="use 1 or more")
    if options.joint is not None:
        what = "constraints need joint draws of bases, and a network of uniform noise "
        what += "draws them independently"
        raise UsageError(what, fix="give a run of --objective mdlm")
    share, start, real = options.noising or Noising()
    noise = MixedNoise(diffusion, share)
    if not 0 < start <= 1:
        raise UsageError(f"noise at time {start:g}", fix="use a time above 0, and 1 at most")
    filling = _Noisy(diffusion, denoiser, xt, options)
    filling.noise, filling.correct, filling.targets = noise, correct, noise.tokens(xt)
    grid = torch.arange(options.steps, -1, -1, dtype=torch.float64) / options.steps
    shares = noise.share(start * grid)[0].to(xt.device)
    u_order, u_token = options.u_order.double(), options.u_token.double()
    stood = torch.where(filling.masked, diffusion.targets[0], xt) if real is None else real
    begun = noise.corrupt(stood, shares[0].expand(len(xt)), u_order, filling.masked)
    unknown = noise.states(stood) < 0  # no target: nothing is known of it
    begun = torch.where(unknown, noise.draw_noise(xt, u_order), begun)
    filling.x = torch.where(filling.masked, begun, xt)
    rows = filling.masked.any(-1).nonzero()[:, 0]
    due, changed = filling.masked[rows], torch.ones_like(rows, dtype=torch.bool)
    logits = sigma = torch.zeros(0)
    for step in range(options.steps if len(rows) else 0):
        new = changed.nonzero()[:, 0]
        if len(new):
            found, told = filling.ask(rows[new], noise.sigma(shares[step].expand(len(new))))
            logits = logits.index_copy(0, new, found) if step else found
            sigma = sigma.index_copy(0, new, told) if step else told
        filling.share_t, filling.share_s = shares[step : step + 2].tolist()
        filling.state = noise.states(filling.x[rows])[due]
        before, reveal = filling.x[rows], Reveal(rows, due, logits, sigma)
        at, position = reveal.places
        drawn = filling.choose(reveal, draw_again(u_token[rows], step))
        filling.x[rows[at], position] = drawn
        changed = (filling.x[rows] != before).any(-1) | diffusion.time_conditioning
    return filling.done()
