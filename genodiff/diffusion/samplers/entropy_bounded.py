"""Entropy-bounded unmasking: each evaluation reveals as many positions as are nearly certain.

Positions are sorted by the entropy of their distribution. The longest beginning of that list is
revealed at once whose entropies, without the largest, sum to at most `bound`:

    H(1) + ... + H(m) - H(m)  <=  bound

That sum is at least the total correlation of these positions, so with a perfect denoiser each
evaluation adds at most `bound` nats to KL(data || samples), and one that reveals a single position
adds nothing. A bound of 0 reveals one position at a time, with those of no entropy; infinity
reveals all at once. How many evaluations a sequence takes depends on the sequence.

Source: Ben-Hamu et al. 2025, arXiv 2505.24857 (EB-Sampler), with the entropy as its error proxy.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from genodiff.diffusion.draw import TIE
from genodiff.diffusion.in_order import find_time
from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.diffusion.sampler import Filling, Sampled, SamplerOptions, rank, sampler
from genodiff.errors import UsageError


def count_at_most(n: int, share: Float[Tensor, " S"], bound: float = 0.1) -> float:
    """One evaluation for each of n masks: as many as a sequence takes where nothing is certain."""
    _check_bound(bound)
    return float(n)


@sampler(
    "entropy-bounded",
    fits=("masked", "score"),
    evaluations=count_at_most,
    uses_steps=False,
    steers=True,
    order="read",
)
def entropy_bounded(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    xt: Int[Tensor, "B L"],
    options: SamplerOptions,
    bound: float = 0.1,
) -> Sampled:
    """At most one evaluation per mask; `bound` is in nats. Equal entropies go by `u_order`.

    The entropy is that of the denoiser's own law, whatever the temperature.
    """
    _check_bound(bound)
    filling, u_order = Filling(diffusion, denoiser, xt, options), options.u_order

    # An entropy of K tokens has a slope of at most the spread of -log p, in any direction of the
    # logits' errors; its square is at most 1 + ln(K - 1)^2 / 4.
    slope = math.sqrt(1 + math.log(max(len(diffusion.targets) - 1, 1)) ** 2 / 4)

    def choose(rows: Tensor, logits: Tensor, error: float) -> tuple[Tensor, Tensor]:
        """The positions to reveal."""
        error *= slope
        logp = diffusion.target_logits(logits).double().log_softmax(-1)
        entropy = -(logp.exp() * logp.clamp(min=-1e300)).sum(-1)
        # Whole multiples of TIE: exact ties stay ties whatever rounding did to them.
        level = torch.round(entropy / TIE).nan_to_num(0.0)  # a fault, which the draw reports
        level = torch.where(filling.is_masked(rows), level, torch.inf)
        order = rank(-level, u_order[rows])
        ranked = level.gather(1, order)
        total = ranked.cumsum(-1)
        place = torch.arange(1, level.shape[1] + 1).to(total)
        # The next position may come along while the sum of those before it is within the bound.
        fits = torch.roll(total, 1, dims=1) <= bound / TIE
        fits[:, 0] = True
        first = fits & ranked.isfinite()
        due = torch.zeros_like(first).scatter(1, order, first)
        last = first.sum(-1, keepdim=True) - 1
        following = ranked.gather(1, (last + 1).clamp(max=level.shape[1] - 1))
        following = torch.where(last + 1 < level.shape[1], following, torch.inf)
        lead = (following - ranked.gather(1, last))[:, 0] * TIE
        # Whole ties are as they are in any arithmetic; what rounding may split is too near.
        near = ((total * TIE - bound).abs() <= place * error) & ranked.isfinite()
        return due, (lead <= 2 * error) | near.any(-1)

    while (left := filling.x == diffusion.mask_id).any():
        rows = left.any(-1).nonzero()[:, 0]
        logits, sigma = filling.evaluate(rows, find_time(filling, rows))
        filling.reveal(rows, filling.decide(rows, logits, sigma, choose), logits, sigma)
    return filling.done()


def _check_bound(bound: float) -> None:
    if not bound >= 0:
        fix = "use 0 (one base at a time) or more"
        raise UsageError(f"an entropy bound of {bound:g} nats", fix=fix)
