"""The exact likelihood of a sampler whose order looks only at what is visible (DUEL).

    log p(x) = sum over evaluations k of the sum over i in S_k of log p_i(x_i | visible before k)

S_k are the positions that the sampler reveals with its k-th evaluation, each drawn by itself given
what is visible. Where S_k is a function of what is visible (and of `u_order`, which is fixed), this
is the probability that the sampler draws x: over all x it sums to 1. It is that of these settings:
with more positions for each evaluation it is another law, and exact too.

The sampler itself is run. A `Steer` notes what its draw gives the true tokens, and puts them in the
place of what was drawn: so the law that is scored is the law that is drawn, to the line of code.

Source: Turok, De Sa and Kuleshov 2026, arXiv 2603.01367.
"""

from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from genodiff.diffusion.draw import Draw
from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.diffusion.sampler import Filling, Reveal, Sampler, SamplerOptions, Steer
from genodiff.errors import UsageError


class OrderLikelihood(NamedTuple):
    """-log p of each window under a sampler, and how it came about."""

    nats: Float[Tensor, "B L"]  # of each token when it was revealed; 0 where none was hidden
    step: Int[Tensor, "B L"]  # the evaluation of its row that revealed it, from 0; -1: none did
    nfe: Int[Tensor, " B"]

    @property
    def total(self) -> Float[Tensor, " B"]:
        """-log p of what was hidden of each window, given the rest."""
        return self.nats.sum(-1)


class _Truth(Steer):
    """Notes what a draw gives the true tokens, and puts them in its place."""

    def __init__(self, x0: Int[Tensor, "B L"], draw: Draw) -> None:
        self.x0, self.draw = x0, draw
        self.nats = torch.zeros(x0.shape, dtype=torch.float64, device=x0.device)
        self.sigma = torch.zeros_like(self.nats)
        self.step = torch.full_like(x0, -1)

    def tilt(self, filling: Filling, step: Reveal) -> None:
        """Move nothing: note the chance of the true token at each due position."""
        at, place = step.places
        here = step.rows[at], place
        self.nats[here] = _cost(filling.diffusion, step.due_logits, self.x0[here], self.draw)
        self.step[here] = filling.nfe[here[0]] - 1
        self.sigma[here] = step.sigma[at].double()

    def move(self, filling: Filling, step: Reveal) -> None:
        """Put the true tokens in the place of those that were drawn."""
        x = filling.x[step.rows]
        filling.x[step.rows] = torch.where(filling.is_masked(step.rows), x, self.x0[step.rows])


def _cost(
    diffusion: MaskedDiffusion, logits: Float[Tensor, "n V"], tokens: Int[Tensor, " n"], draw: Draw
) -> Float[Tensor, " n"]:
    """-log of each token's chance to be drawn; infinite where it is no target."""
    targets = torch.tensor(diffusion.targets, device=tokens.device, dtype=tokens.dtype)
    law = draw.log_law(diffusion.target_logits(logits))
    return -law.masked_fill(tokens[:, None] != targets, -torch.inf).amax(-1)


@torch.no_grad()
def order_likelihood(
    sampler: Sampler,
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    x0: Int[Tensor, "B L"],
    hidden: Bool[Tensor, "B L"],
    options: SamplerOptions,
    **settings: float,
) -> OrderLikelihood:
    """How likely the sampler is to draw the `hidden` tokens of x0, the others being given.

    `settings` are the sampler's own. `u_token` plays no part. Raises `UsageError` for a sampler
    whose law is no such product, and for options that draw tokens together or guide.
    """
    if sampler.order is None or not sampler.steers:
        what = "this sampler judges or remasks drawn tokens: it has no exact likelihood"
        raise UsageError(what, fix="use, for example, first-hitting, confidence or left-to-right")
    if options.joint is not None or options.steer is not None or options.causal:
        what = "an exact likelihood needs a masked network's own sampler"
        raise UsageError(what, fix="leave constraints and guidance out")
    truth = _Truth(x0, Draw(options.temperature, options.top_p))
    xt = diffusion.mask(x0, hidden)
    done = sampler.draw(diffusion, denoiser, xt, replace(options, steer=truth), **settings)
    return OrderLikelihood(truth.nats, truth.step, done.nfe)


class FixedOrder(NamedTuple):
    """When a sampler of a fixed order reveals each hidden token."""

    step: Int[Tensor, "B L"]  # the evaluation of its row, from 0; -1: the token is not hidden
    sigma: Float[Tensor, "B L"]  # what the denoiser is then told of the time

    @property
    def evaluations(self) -> Int[Tensor, " B"]:
        """How many each row takes."""
        return self.step.amax(-1) + 1 if self.step.numel() else self.step.sum(-1)


def find_fixed_order(
    sampler: Sampler,
    diffusion: MaskedDiffusion,
    x0: Int[Tensor, "B L"],
    hidden: Bool[Tensor, "B L"],
    options: SamplerOptions,
    **settings: float,
) -> FixedOrder:
    """When each of the `hidden` tokens is revealed; no network is asked.

    Raises `ValueError` for an order that reads one.
    """
    if sampler.order != "fixed":
        raise ValueError("this sampler's order reads the network")

    def know_nothing(xt: Int[Tensor, "B L"], sigma: Float[Tensor, " B"]) -> Float[Tensor, "B L V"]:
        return torch.zeros(*xt.shape, max(diffusion.targets) + 1, device=xt.device)

    truth = _Truth(x0, Draw(1.0, 1.0))
    xt = diffusion.mask(x0, hidden)
    sampler.draw(diffusion, know_nothing, xt, replace(options, steer=truth), **settings)
    return FixedOrder(truth.step, truth.sigma)


@torch.no_grad()
def score_steps(
    order: FixedOrder,
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    x0: Int[Tensor, "B L"],
    step: Int[Tensor, " B"],
    draw: Draw,
) -> Float[Tensor, "B L"]:
    """-log p of the tokens that one evaluation of each row reveals, 0 elsewhere.

    Of a fixed order evaluations need not be walked through: each is known from x0. Their sum over
    all steps is `order_likelihood`, and the mean over steps drawn uniformly, times how many there
    are, estimates it without bias.
    """
    due, xt = order.step == step[:, None], diffusion.mask(x0, order.step >= step[:, None])
    logits = denoiser(xt, order.sigma.masked_fill(~due, 0.0).amax(-1))
    nats = torch.zeros(x0.shape, dtype=torch.float64, device=x0.device)
    nats[due] = _cost(diffusion, logits[due], x0[due], draw)
    return nats


def index_order(rows: int, length: int) -> Float[Tensor, "B L"]:
    """`u_order` by which ties go to the leftmost position."""
    return ((torch.arange(length, dtype=torch.float64) + 0.5) / max(length, 1)).repeat(rows, 1)
