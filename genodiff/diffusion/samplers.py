"""Samplers: from masks to tokens, each a function of a denoiser and two uniforms per position.

    sampler(diffusion, denoiser, xt, *, u_order, u_token, steps, ...) -> Sampled(x0, nfe)

    u_order         when a position is revealed
    u_token         which token it then takes
    ancestral       MDLM's reverse chain on a grid of `steps` equal steps in time
    first_hitting   the same chain in continuous time: one position per evaluation, in a uniformly
                    random order
    confidence      the most predictable positions first, as many per step as the schedule reveals

Count first: the step at which a position is revealed depends on nothing but its uniform, so it is
drawn before the denoiser runs. A (sequence, step) pair that reveals nothing costs no evaluation, so
there is nothing to cache, and a sequence needs at most min(steps, masks) evaluations. Only rows
about to be revealed are turned into probabilities, in double precision and a token is drawn (see
`draw`): single-precision Gumbel noise would lower the temperature of a large vocabulary (Zheng et
al. 2024, arXiv 2409.02908).

A sequence's result depends on its own masks and uniforms, never on its companions. In single
precision a denoiser's logits differ in the last digits with batch size and thread count, and a draw
close to a boundary could flip. Where `refine`, the same denoiser in double precision, is given,
every draw that an error of `tolerance` in any logit could change is decided by it, on that sequence
alone.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from genodiff.diffusion.draw import TIE, Draw
from genodiff.diffusion.masked import LARGE, Denoiser, MaskedDiffusion
from genodiff.diffusion.schedule import Schedule
from genodiff.errors import UsageError


class Sampled(NamedTuple):
    x0: Int[Tensor, "B L"]  # no masks left; what was visible is unchanged
    nfe: Int[
        Tensor, "B"
    ]  # evaluations of the denoiser for each sequence; those of `refine` are not counted


@torch.no_grad()
def ancestral(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    xt: Int[Tensor, "B L"],
    *,
    u_order: Float[Tensor, "B L"],
    u_token: Float[Tensor, "B L"],
    steps: int,
    temperature: float = 1.0,
    top_p: float = 1.0,
    refine: Denoiser | None = None,
    tolerance: float = 1e-4,
) -> Sampled:
    """The reverse chain of `steps` equal steps in time, exactly: every position takes its step from
    `u_order`.

    On the linear schedule a sequence of L masks takes steps (1 - (1 - 1/steps)^L) evaluations on
    average.
    """
    filling = Filling(diffusion, denoiser, xt, u_token, Draw(temperature, top_p), refine, tolerance)
    share = revealed_share(diffusion.schedule, steps).to(xt.device)
    step = torch.searchsorted(share, u_order.double().contiguous(), right=True).clamp(max=steps - 1)
    for j in step[filling.masked].unique().tolist():
        due = filling.masked & (step == j)
        rows = due.any(-1).nonzero()[:, 0]
        t = torch.full_like(u_order[rows, 0], 1 - j / steps)
        filling.reveal(rows, due[rows], *filling.evaluate(rows, t, due[rows]))
    return filling.done()


@torch.no_grad()
def first_hitting(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    xt: Int[Tensor, "B L"],
    *,
    u_order: Float[Tensor, "B L"],
    u_token: Float[Tensor, "B L"],
    steps: int = 0,
    temperature: float = 1.0,
    top_p: float = 1.0,
    refine: Denoiser | None = None,
    tolerance: float = 1e-4,
) -> Sampled:
    """One position per evaluation, the smallest `u_order` first: a chain of infinitely many steps
    (Zheng et al. 2024).

    With a perfect denoiser its law is the data's. There are as many evaluations as masks; `steps`
    plays no part.
    """
    filling = Filling(diffusion, denoiser, xt, u_token, Draw(temperature, top_p), refine, tolerance)
    order = u_order.masked_fill(~filling.masked, torch.inf).argsort(dim=-1, stable=True)
    end = diffusion.schedule.alpha(torch.ones_like(u_order))
    when = diffusion.schedule.inverse(end + (1 - end) * u_order)
    n_masked = filling.masked.sum(-1)
    for j in range(max(n_masked.tolist(), default=0)):
        rows = (n_masked > j).nonzero()[:, 0]
        first = order[rows, j]
        due = torch.zeros_like(filling.masked[rows]).scatter(1, first[:, None], True)
        filling.reveal(rows, due, *filling.evaluate(rows, when[rows, first], due))
    return filling.done()


@torch.no_grad()
def confidence(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    xt: Int[Tensor, "B L"],
    *,
    u_order: Float[Tensor, "B L"],
    u_token: Float[Tensor, "B L"],
    steps: int,
    temperature: float = 1.0,
    top_p: float = 1.0,
    refine: Denoiser | None = None,
    tolerance: float = 1e-4,
    order_temperature: float = 0.0,
) -> Sampled:
    """The positions whose best token is most probable come first; ties are settled by the smaller
    `u_order`.

    Each step reveals the schedule's share of the masks, rounded. The order looks at a position's
    distribution and never at the token drawn from it, so one position per step still follows the
    denoiser's law. `order_temperature` adds that much Gumbel noise, from `u_order`, to the
    log-probabilities that are compared: infinity would be a random order.
    """
    filling = Filling(diffusion, denoiser, xt, u_token, Draw(temperature, top_p), refine, tolerance)
    share = revealed_share(diffusion.schedule, steps).to(xt.device)
    revealed = torch.round(filling.masked.sum(-1)[:, None] * share).long()
    n_due = revealed.diff(dim=1, prepend=torch.zeros_like(revealed[:, :1]))
    noise = -order_temperature * torch.log(-torch.log(u_order.double().clamp(min=1e-300)))

    def choose(rows: Tensor, logits: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
        """The n best masked positions of each row, and the gap in score to the best one left out."""
        best = diffusion.target_logits(logits).double().log_softmax(-1).amax(-1) + noise[rows]
        score = torch.where(filling.is_masked(rows), torch.round(best / TIE), -torch.inf)
        by_u = u_order[rows].argsort(dim=-1, stable=True)
        order = by_u.gather(1, score.gather(1, by_u).argsort(dim=-1, stable=True, descending=True))
        due = torch.zeros_like(score, dtype=torch.bool).scatter(
            1, order, torch.arange(score.shape[1]).to(n) < n[:, None]
        )
        gap = score.masked_fill(~due, torch.inf).amin(-1) - score.masked_fill(due, -torch.inf).amax(
            -1
        )
        return due, gap * TIE

    for j in n_due.any(0).nonzero()[:, 0].tolist():
        rows = n_due[:, j].nonzero()[:, 0]
        logits, sigma = filling.evaluate(rows, torch.full_like(u_order[rows, 0], 1 - j / steps))
        due, gap = choose(rows, logits, n_due[rows, j])
        close = (
            (gap <= 4 * tolerance).nonzero()[:, 0]
            if refine is not None
            else gap.new_zeros(0).long()
        )
        for i in close.tolist():
            row = rows[i : i + 1]
            due[i], _ = choose(row, filling.refined(row, sigma[i : i + 1]), n_due[row, j])
        filling.reveal(rows, due, logits, sigma)
    return filling.done()


SAMPLERS: dict[str, Callable[..., Sampled]] = {
    "ancestral": ancestral,
    "first-hitting": first_hitting,
    "confidence": confidence,
}


def revealed_share(schedule: Schedule, steps: int) -> Float[Tensor, "S"]:
    """(alpha(1 - j/S) - alpha(1)) / (1 - alpha(1)) for j = 1 .. S: the share of masks that are
    revealed after j steps.

    The last is 1: the last step reveals whatever is left, also where alpha(0) < 1.
    """
    if steps < 1:
        raise UsageError(f"{steps} sampling steps", fix="use 1 or more")
    grid = torch.arange(steps, -1, -1, dtype=torch.float64) / steps
    masked = schedule.masked(grid)
    share = 1 - masked[1:] / masked[0]
    share[-1] = 1.0
    return share


class Filling:
    """Sequences on their way from masks to tokens, with each one's count of evaluations."""

    def __init__(
        self,
        diffusion: MaskedDiffusion,
        denoiser: Denoiser,
        xt: Int[Tensor, "B L"],
        u_token: Float[Tensor, "B L"],
        draw: Draw,
        refine: Denoiser | None,
        tolerance: float,
    ) -> None:
        self.diffusion, self.denoiser, self.refine = diffusion, denoiser, refine
        self.x, self.u_token, self.draw = xt.clone(), u_token, draw
        self.tolerance = 0.0 if refine is None else tolerance
        self.targets = torch.tensor(diffusion.targets, device=xt.device, dtype=xt.dtype)
        self.masked = xt == diffusion.mask_id
        self.nfe = torch.zeros(len(xt), dtype=torch.int64, device=xt.device)
        self.exact: dict[int, Tensor] = {}

    def is_masked(self, rows: Int[Tensor, "A"]) -> Bool[Tensor, "A L"]:
        return self.x[rows] == self.diffusion.mask_id

    def evaluate(
        self, rows: Int[Tensor, "A"], t: Float[Tensor, "A"], due: Bool[Tensor, "A L"] | None = None
    ) -> tuple[Float[Tensor, "*positions V"], Float[Tensor, "A"]]:
        """The logits of these sequences at their times, and the sigma that the denoiser saw.

        Where it is known which positions are `due`, a denoiser with a large vocabulary gives theirs
        alone, (n, V).
        """
        self.nfe[rows] += 1
        self.exact.clear()
        sigma = self.diffusion.sigma(t)
        if (
            due is not None
            and len(self.diffusion.targets) >= LARGE
            and getattr(self.denoiser, "selects_rows", False)
        ):
            return self.denoiser(self.x[rows], sigma, rows=due), sigma
        return self.denoiser(self.x[rows], sigma), sigma

    def refined(self, row: Int[Tensor, "1"], sigma: Float[Tensor, "1"]) -> Float[Tensor, "1 L V"]:
        """The double-precision logits of one sequence alone, computed at most once between two
        reveals.
        """
        assert self.refine is not None
        if row.item() not in self.exact:
            self.exact[int(row)] = self.refine(self.x[row], sigma)
        return self.exact[int(row)]

    def reveal(
        self,
        rows: Int[Tensor, "A"],
        due: Bool[Tensor, "A L"],
        logits: Float[Tensor, "*positions V"],
        sigma: Float[Tensor, "A"],
    ) -> None:
        """Draw a token at the `due` positions, from logits of all positions or of these."""
        at, position = due.nonzero(as_tuple=True)
        logits = logits if logits.ndim == 2 else logits[at, position]
        u = self.u_token[rows[at], position]
        column, close = self.draw(self.diffusion.target_logits(logits), u, self.tolerance)
        if self.refine is not None:
            for i in at[close].unique().tolist():
                mine = close & (at == i)
                exact = self.refined(rows[i : i + 1], sigma[i : i + 1])[0, position[mine]]
                column[mine], _ = self.draw(self.diffusion.target_logits(exact), u[mine], 0.0)
        self.x[rows[at], position] = self.targets[column]

    def done(self) -> Sampled:
        return Sampled(self.x, self.nfe)
