"""The training objective: unbiased estimates of the negative ELBO of MDLM, in nats.

    exact count        n/k  sum of CE
    k uniform on 1..n; exactly k of a window's n maskable positions are masked
    continuous time    w(t) sum of CE
    t uniform on (0, 1]; each position is masked with chance 1 - alpha(t)
    discrete time    T r(i) sum of CE     i uniform on 1..T; as before with t = i/T

    CE     -log x_theta(xt) of the clean token at a masked position
    w(t)   -alpha'(t) / (1 - alpha(t))
    r(i)   the chance that a position masked at i/T is visible at (i-1)/T; 1 for i = 1

The three have the same mean when T is large and alpha goes from 1 to 0. The exact count varies
least and has no end points to cut off: it is the likelihood of the denoiser used one token at a
time, averaged over all orders. Where alpha goes from 1 to 0 all are closed: every token is paid
for, none is shown for free. Of another schedule the last two lack constants, which have no
gradient; an objective's `bound` adds them. A window with nothing to mask contributes nothing.

Reduction: sums, and the count of all maskable tokens, visible ones included. Dividing one by the
other over any set of batches gives nats per token; the mean over masked tokens only (a common slip)
would be about twice too large.

Exact in small worlds, and as a curve over mask rates:

    C_k       cross-entropy summed over k masked positions of n, averaged over all sets of k
    NELBO     sum over k = 1..n of C_k / k; no schedule in it, nothing cut off
    NELBO_T   sum over i = 1..T of r(i) E[C_k], k ~ Binomial(n, 1 - alpha(i/T)); the bound of T
              sampling steps

C_k / k is what a masked token costs when k of n are masked: the denoiser's curve over mask rates,
whose mean over k is the bound per token.

All of this takes for granted that a denoiser gives one distribution a position (`check_apart`):

    sum over masked i of -log p_i(x_i | xt)

bounds -log p(x), or is it, where p_i is a function of xt alone. Where the positions' predictions
depend on one another (on tokens drawn within the network, say, or on a number that it shares among
them), each -log p_i is of another law than the next, the sum may fall below -log p(x), and training
on it can make it as small as one likes. That cannot be told from one answer; so it is asked again.

Source: the withdrawal of MDM-Prime, https://chen-hao-chao.github.io/dependency-breaks-validity
"""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from genodiff.diffusion.masked import LARGE, Clean, Denoiser, MaskedDiffusion, exact_count_mask
from genodiff.diffusion.schedule import Schedule
from genodiff.errors import UsageError


class LossTerms(NamedTuple):
    """Sums over a batch. Add up micro-batches first, then divide by a count of tokens."""

    nats: Float[Tensor, ""]  # weighted by the position weights: what is optimised
    nats_unweighted: Float[Tensor, ""]  # the bound itself, without gradient
    n_tokens: Int[Tensor, ""]  # maskable positions


Cost = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(logits, x0, masked) -> nats of each position; where it is not given, `MaskedDiffusion.nll`."""


def exact_count_loss(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    clean: Clean,
    k: Int[Tensor, " B"],
    u_mask: Float[Tensor, "B L"],
    weight: Float[Tensor, " B"] | float = 1.0,
    cost: Cost | None = None,
) -> LossTerms:
    """The bound from k masked positions per window, k from `counts`; see the module.

    A time-conditioned denoiser is told the time at which k of n positions are masked on average.
    Each window's terms are multiplied by `weight`.
    """
    drawn = draw_count_mask(diffusion, clean, k, u_mask)
    sigma = diffusion.sigma(drawn.t)
    ce = cross_entropy(diffusion, denoiser, clean, drawn.masked, sigma, cost)
    return _scaled(drawn.scale * weight, ce, clean)


class WindowBound(NamedTuple):
    """Estimates for each window, in nats and double precision.

    `scale` times the sum of `ce` over part of a window is that part's contribution. `rate` is the
    masked share k / n where scale * ce.sum() / n is a point of the curve C_k / k, otherwise 0.
    """

    ce: Float[Tensor, "B L"]
    scale: Float[Tensor, " B"]
    rate: Float[Tensor, " B"]


@torch.no_grad()
def exact_count_bound(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    clean: Clean,
    k: Int[Tensor, " B"],
    u_mask: Float[Tensor, "B L"],
    cost: Cost | None = None,
) -> WindowBound:
    """`exact_count_loss` of each window by itself."""
    masked, k, scale, t = draw_count_mask(diffusion, clean, k, u_mask)
    ce = cross_entropy(diffusion, denoiser, clean, masked, diffusion.sigma(t), cost)
    return WindowBound(ce.double(), scale, k.double() / clean.n.clamp(min=1))


def continuous_time_loss(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    clean: Clean,
    t: Float[Tensor, " B"],
    u_mask: Float[Tensor, "B L"],
    weight: Float[Tensor, " B"] | float = 1.0,
    cost: Cost | None = None,
) -> LossTerms:
    """The bound's integral, from times t in (0, 1].

    It is the whole bound if alpha goes from 1 to 0, else see `decompose`.
    """
    masked = diffusion.draw_mask(t, u_mask, clean.maskable)
    ce = cross_entropy(diffusion, denoiser, clean, masked, diffusion.sigma(t), cost)
    return _scaled(diffusion.schedule.weight(t) * weight, ce, clean)


def discrete_time_loss(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    clean: Clean,
    t: Float[Tensor, " B"],
    u_mask: Float[Tensor, "B L"],
    n_steps: int,
) -> LossTerms:
    """The bound of a chain of `n_steps` steps, without the prior's cost; finite for every t.

    t in (0, 1] chooses the step i = ceil(t n_steps). Step 1 reveals whatever is left, so it is the
    reconstruction term too, also where alpha(0) < 1. The prior's cost is a constant, and 0 where
    alpha(1) = 0; see `objectives.mdlm.prior_cost`.
    """
    i = torch.ceil(t * n_steps).clamp(1, n_steps)
    t_i = i / n_steps
    masked = diffusion.draw_mask(t_i, u_mask, clean.maskable)
    ce = cross_entropy(diffusion, denoiser, clean, masked, diffusion.sigma(t_i))
    reveal = torch.where(i == 1, 1.0, diffusion.reveal(t_i, (i - 1) / n_steps))
    return _scaled(n_steps * reveal, ce, clean)


class Decomposition(NamedTuple):
    """The bound's three terms per window, in nats: two estimates, and the prior's, exact."""

    reconstruction: Float[Tensor, " B"]  # tokens masked at t = 0 already; 0 when alpha(0) = 1
    diffusion: Float[Tensor, " B"]  # the integral over (0, 1]
    prior: Float[Tensor, " B"]  # KL(q(x1 | x0) || prior); 0 when alpha(1) = 0

    @property
    def total(self) -> Float[Tensor, " B"]:
        return self.reconstruction + self.diffusion + self.prior


def decompose(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    clean: Clean,
    t: Float[Tensor, " B"],
    u_mask: Float[Tensor, "B L"],
    prior: Float[Tensor, " V"] | None = None,
) -> Decomposition:
    """The continuous-time bound of each window, term by term; `prior` as in `prior_kl`."""

    def masked_nats(time: Tensor) -> Tensor:
        masked = diffusion.draw_mask(time, u_mask, clean.maskable)
        return cross_entropy(diffusion, denoiser, clean, masked, diffusion.sigma(time)).sum(-1)

    start = torch.zeros_like(t)
    closed = diffusion.schedule.masked(start[:1]).item() == 0
    return Decomposition(
        reconstruction=torch.zeros_like(t) if closed else masked_nats(start),
        diffusion=diffusion.schedule.weight(t) * masked_nats(t),
        prior=prior_kl(diffusion, clean, prior),
    )


def prior_kl(
    diffusion: MaskedDiffusion, clean: Clean, prior: Float[Tensor, " V"] | None = None
) -> Float[Tensor, " B"]:
    """KL(q(x1 | x0) || p(x1)) of each window in nats.

    Without `prior`, p(x1) is "all masked": the cost is 0 when alpha(1) = 0 and infinite otherwise,
    because a token that is still visible cannot come out of it. With `prior` (a chance for each
    id), every position of x1 is the mask with chance 1 - alpha(1) and else a token from `prior`,
    which costs -alpha(1) ln prior(x0).
    """
    x0, n = clean.x0, clean.n
    visible = diffusion.schedule.alpha(torch.ones(1, dtype=torch.float64, device=x0.device))
    if visible.item() == 0:
        return torch.zeros_like(n, dtype=torch.float64)
    if prior is None:
        return torch.where(n > 0, torch.inf, 0.0).double()
    cost = -visible * torch.log(prior.double())[x0.masked_fill(~clean.maskable, 0).long()]
    return torch.where(clean.maskable, cost, 0.0).sum(-1)


class CountMask(NamedTuple):
    """Masks of exactly k of each window's n maskable positions; no mask where n is 0."""

    masked: Bool[Tensor, "B L"]
    k: Int[Tensor, " B"]  # within 1 .. n, or 0
    scale: Float[Tensor, " B"]  # n / k, or 0
    t: Float[Tensor, " B"]


def draw_count_mask(
    diffusion: MaskedDiffusion, clean: Clean, k: Int[Tensor, " B"], u: Float[Tensor, "B L"]
) -> CountMask:
    """Mask k positions of each window, those of the smallest u."""
    n = clean.n
    k = torch.minimum(k.clamp(min=1).long(), n)
    masked, scale = exact_count_mask(clean.maskable, k, u), n.double() / k.clamp(min=1)
    return CountMask(masked, k, scale, find_count_time(diffusion, k, n))


def find_count_time(
    diffusion: MaskedDiffusion, k: Int[Tensor, " B"], n: Int[Tensor, " B"]
) -> Float[Tensor, " B"]:
    """The time at which k of the window's n positions are masked on average."""
    return diffusion.schedule.inverse(1 - k.double() / n.clamp(min=1))


def cross_entropy(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    clean: Clean,
    masked: Bool[Tensor, "B L"],
    sigma: Float[Tensor, " B"],
    cost: Cost | None = None,
    xt: Int[Tensor, "B L"] | None = None,
) -> Float[Tensor, "B L"]:
    """-log x_theta of the clean token where `masked`, or `cost`; 0 elsewhere; nats.

    `xt` is what the network reads, in place of masks. Where the vocabulary is large and the network
    can do it (`selects_rows`), its head runs on the masked positions alone: logits, their
    log-softmax and its gradient are most of the memory of a text model, and half of them are of no
    use.
    """
    x0, cost = clean.x0, cost or diffusion.nll
    xt = diffusion.mask(x0, masked) if xt is None else xt
    if len(diffusion.targets) < LARGE or not getattr(denoiser, "selects_rows", False):
        return cost(clean.logits(denoiser, xt, sigma), x0, masked)
    logits = clean.logits(denoiser, xt, sigma, rows=masked)
    found = cost(logits[None], x0[masked][None], masked[masked][None])[0]
    nothing = torch.zeros(masked.shape, dtype=found.dtype, device=found.device)
    return nothing.masked_scatter(masked, found)


def as_loss(nats: Float[Tensor, "B L"], clean: Clean) -> LossTerms:
    """The sums over a batch of nats that stand at their positions."""
    weighted = nats if clean.weight is None else nats * clean.weight
    return LossTerms(weighted.sum(), nats.detach().sum(), clean.maskable.sum())


def _scaled(scale: Float[Tensor, " B"], ce: Float[Tensor, "B L"], clean: Clean) -> LossTerms:
    return as_loss(scale.to(ce.dtype)[:, None] * ce, clean)


_MOST_ENUMERATED = 16  # positions: 65,536 masks


@torch.no_grad()
def count_terms(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    x0: Int[Tensor, " L"],
    maskable: Bool[Tensor, " L"],
) -> Float[Tensor, " K"]:
    """C_0 .. C_n of one window of n <= 16 maskable positions, from all its 2^n masks; K = n + 1."""
    where = maskable.nonzero()[:, 0]
    n = len(where)
    if n > _MOST_ENUMERATED:
        raise ValueError(f"{n} maskable positions make 2^{n} masks: too many to enumerate")
    every = list(itertools.product((False, True), repeat=n))
    chosen = torch.tensor(every, device=x0.device).reshape(2**n, n)
    masked = torch.zeros(2**n, len(x0), dtype=torch.bool, device=x0.device)
    masked[:, where] = chosen
    k = chosen.sum(-1)
    clean = Clean(x0.expand(2**n, -1), maskable.expand(2**n, -1))
    sigma = diffusion.sigma(find_count_time(diffusion, k, clean.n))
    nats = cross_entropy(diffusion, denoiser, clean, masked, sigma).double().sum(-1)
    total = torch.zeros(n + 1, dtype=torch.float64, device=x0.device).index_add(0, k, nats)
    return total / k.bincount()


def nelbo_exact(terms: Float[Tensor, " K"]) -> Float[Tensor, ""]:
    """The bound in nats from C_0 .. C_n: sum of C_k / k."""
    return (terms[1:] / torch.arange(1, len(terms), device=terms.device)).sum()


def nelbo_discrete(
    terms: Float[Tensor, " K"], schedule: Schedule, n_steps: int
) -> Float[Tensor, ""]:
    """The bound in nats of a chain of `n_steps` steps, from C_0 .. C_n; it needs alpha(1) = 0."""
    n = len(terms) - 1
    k = torch.arange(n + 1, dtype=torch.float64, device=terms.device)
    grid = torch.arange(n_steps + 1, dtype=torch.float64, device=terms.device) / n_steps
    masked = schedule.masked(grid).clamp(max=1)
    reveal = 1 - masked[:-1] / masked[1:]
    reveal[0] = 1.0
    p = torch.distributions.Binomial(n, masked[1:, None]).log_prob(k).exp()
    return (reveal * (p @ terms.double())).sum()


_SLACK = 0.05
"""Nats by which answers may differ: rounding in half precision is within it."""


@torch.no_grad()
def check_apart(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    xt: Int[Tensor, "B L"],
    sigma: Float[Tensor, " B"],
    *told: Tensor,
) -> None:
    """Raises `UsageError` for a denoiser whose positions' predictions are no function of xt alone.

    `told` are its further arguments, such as lengths. It is asked twice.
    """
    both = [denoiser(xt, sigma, *told) for _ in range(2)]
    if both[0].ndim != 3 or both[0].shape[:2] != xt.shape:
        _refuse(f"its answer has the shape {tuple(both[0].shape)}")
    masked = xt == diffusion.mask_id
    laws = [diffusion.target_logits(one)[masked].double().log_softmax(-1) for one in both]
    # What is not finite is the bound's to refuse.
    if masked.any() and (laws[0].exp() * (laws[0] - laws[1]).abs()).amax() > _SLACK:
        _refuse("asked twice about the same bases, it gives two answers")


def _refuse(why: str) -> None:
    what = "a network whose positions' predictions depend on one another has no bound of this kind"
    fix = "let it give one distribution a position, and draw nothing within the network"
    raise UsageError(f"{what}: {why}", fix=fix)
