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
from jaxtyping import Bool, Float, Int
from torch import Tensor

from genodiff.diffusion.draw import Draw, draw_again
from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.diffusion.mixed_noise import MixedNoise, Noising
from genodiff.diffusion.sampler import Filling, Sampled, SamplerOptions, of_rows, sampler
from genodiff.errors import UsageError


def count_steps(n: int, share: Float[Tensor, " S"]) -> float:
    """Evaluations for n open positions, at most: one for each step."""
    return float(len(share) if n else 0)


class _Noisy(Filling):
    """Sequences whose tokens may be noise, on their way through a step."""

    def __init__(
        self, noise: MixedNoise, denoiser: Denoiser, xt: Int[Tensor, "B L"],
        options: SamplerOptions, correct: float,
    ) -> None:  # fmt: skip
        super().__init__(noise.diffusion, denoiser, xt, options)
        self.noise, self.correct, self.targets = noise, correct, noise.tokens(xt)
        self.open, self._plain = self.masked, Draw(1.0, 1.0)
        self.state = torch.zeros(0, dtype=torch.int64)  # of the due positions
        self.share_t = self.share_s = 1.0

    def look(self, rows: Int[Tensor, " A"]) -> tuple[Float[Tensor, "A L V"], Float[Tensor, " A"]]:
        """The logits of these sequences, and what the network was told of the time."""
        self.nfe[rows] += 1
        self.exact.clear()
        share = torch.full((len(rows),), self.share_t, dtype=torch.float64, device=rows.device)
        sigma = self.noise.sigma(share)
        return of_rows(self.denoiser, rows)(self.x[rows], sigma), sigma

    def draw_columns(
        self,
        logits: Float[Tensor, "n K"],
        u: Float[Tensor, " n"],
        tolerance: float,
        which: slice | Bool[Tensor, " N"],
    ) -> tuple[Int[Tensor, " n"], Bool[Tensor, " n"]]:
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
            weights = torch.logaddexp(
                keep + weights.log_softmax(-1), math.log(self.correct) + again
            )
            error *= 2  # of what is normalised
        column, close = self._plain(weights, u, error)
        return column, close | doubt


@sampler("uniform-ancestral", fits=("uniform",), evaluations=count_steps, remasks=True)
@torch.no_grad()
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
        what = (
            "constraints need joint draws of bases, and a network of uniform noise "
            "draws them independently"
        )
        raise UsageError(what, fix="give a run of --objective mdlm")
    share, start, real = options.noising or Noising()
    noise = MixedNoise(diffusion, share)
    if not 0 < start <= 1:
        raise UsageError(f"noise at time {start:g}", fix="use a time above 0, and 1 at most")
    filling = _Noisy(noise, denoiser, xt, options, correct)
    grid = torch.arange(options.steps, -1, -1, dtype=torch.float64) / options.steps
    shares = noise.share(start * grid)[0].tolist()
    begin = torch.full((len(xt),), shares[0], dtype=torch.float64, device=xt.device)
    stood = torch.where(filling.open, diffusion.targets[0], xt) if real is None else real
    begun = noise.corrupt(stood, begin, options.u_order.double(), filling.open)
    unknown = noise.states(stood) < 0  # no target: nothing is known of it
    begun = torch.where(unknown, noise.draw_noise(xt, options.u_order.double()), begun)
    filling.x = torch.where(filling.open, begun, xt)
    rows = filling.open.any(-1).nonzero()[:, 0]
    if not len(rows):
        return filling.done()
    due, u = filling.open[rows], options.u_token.double()
    new = torch.arange(len(rows), device=xt.device)
    logits = sigma = None
    for step in range(options.steps):
        filling.share_t, filling.share_s = shares[step], shares[step + 1]
        if len(new):
            found, told = filling.look(rows[new])
            logits = found if logits is None else logits.index_copy(0, new, found)
            sigma = told if sigma is None else sigma.index_copy(0, new, told)
        assert logits is not None
        assert sigma is not None
        filling.state = noise.states(filling.x[rows])[due]
        fates = draw_again(u[rows], step)[due]
        before = filling.x[rows]
        at, position = due.nonzero(as_tuple=True)
        filling.x[rows[at], position] = filling.choose(rows, due, logits, sigma, fates)
        changed = (filling.x[rows] != before).any(-1)
        if diffusion.time_conditioning:
            changed[:] = True
        new = changed.nonzero()[:, 0]
    return filling.done()
