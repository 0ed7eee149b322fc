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
from genodiff.diffusion.sampler import Filling, Sampler, SamplerOptions
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


class _Truth:
    """Notes what a draw gives the true tokens, and puts them in its place."""

    tilts = False

    def __init__(self, diffusion: MaskedDiffusion, x0: Int[Tensor, "B L"], draw: Draw) -> None:
        self.x0, self.draw = x0, draw
        self.targets = torch.tensor(diffusion.targets, device=x0.device, dtype=x0.dtype)
        self.nats = torch.zeros(x0.shape, dtype=torch.float64, device=x0.device)
        self.step = torch.full_like(x0, -1)

    def tilt(
        self,
        filling: Filling,
        rows: Int[Tensor, " A"],
        due: Bool[Tensor, "A L"],
        logits: Float[Tensor, "*positions V"],
        sigma: Float[Tensor, " A"],
    ) -> None:
        """Move nothing: note the chance of the true token at each due position."""
        at, place = due.nonzero(as_tuple=True)
        some = logits if logits.ndim == 2 else logits[at, place]
        law = self.draw.log_law(filling.diffusion.target_logits(some))
        is_true = self.x0[rows[at], place][:, None] == self.targets
        self.nats[rows[at], place] = -torch.where(is_true, law, -torch.inf).amax(-1)
        self.step[rows[at], place] = filling.nfe[rows[at]] - 1

    def move(
        self,
        filling: Filling,
        rows: Int[Tensor, " A"],
        logits: Float[Tensor, "*positions V"],
        sigma: Float[Tensor, " A"],
    ) -> None:
        """Put the true tokens in the place of those that were drawn."""
        filling.x[rows] = torch.where(filling.is_masked(rows), filling.x[rows], self.x0[rows])


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
        raise UsageError(
            "this sampler looks at drawn tokens or takes them back: no likelihood of it is exact",
            fix="use first-hitting, confidence or left-to-right, say",
        )
    if options.joint is not None or options.steer is not None or options.causal:
        raise UsageError(
            "an exact likelihood is that of a masked network's own sampler",
            fix="leave constraints and guidance out",
        )
    truth = _Truth(diffusion, x0, Draw(options.temperature, options.top_p))
    xt = diffusion.mask(x0, hidden)
    done = sampler.draw(diffusion, denoiser, xt, replace(options, steer=truth), **settings)
    return OrderLikelihood(truth.nats, truth.step, done.nfe)


def index_order(rows: int, length: int) -> Float[Tensor, "B L"]:
    """`u_order` by which ties go to the leftmost position."""
    return ((torch.arange(length, dtype=torch.float64) + 0.5) / max(length, 1)).repeat(rows, 1)
