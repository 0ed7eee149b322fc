"""The likelihood bound, exact in small worlds, and as a curve over mask rates.

    C_k       cross-entropy summed over k masked positions of n, averaged over all sets of k
    NELBO     sum over k = 1..n of C_k / k; no schedule in it, nothing cut off
    NELBO_T   sum over i = 1..T of r(i) E[C_k], k ~ Binomial(n, 1 - alpha(i/T)); the bound of T
              sampling steps

C_k / k is what a masked token costs when k of n are masked: the denoiser's curve over mask rates,
whose mean over k is the bound per token. NELBO is also the negative log-likelihood of the denoiser
used one token at a time, averaged over all orders; r(i) is as in `loss`.
"""

import itertools

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from genodiff.diffusion.loss import cross_entropy, find_count_time
from genodiff.diffusion.masked import Clean, Denoiser, MaskedDiffusion
from genodiff.diffusion.schedule import Schedule

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
    chosen = torch.tensor(
        list(itertools.product((False, True), repeat=n)), device=x0.device
    ).reshape(2**n, n)
    masked = torch.zeros(2**n, len(x0), dtype=torch.bool, device=x0.device)
    masked[:, where] = chosen
    k = chosen.sum(-1)
    clean = Clean(x0.expand(2**n, -1), maskable.expand(2**n, -1))
    sigma = diffusion.sigma(find_count_time(diffusion, k, clean.n))
    nats = cross_entropy(diffusion, denoiser, clean, masked, sigma).double().sum(-1)
    return (
        torch.zeros(n + 1, dtype=torch.float64, device=x0.device).index_add(0, k, nats)
        / k.bincount()
    )


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
