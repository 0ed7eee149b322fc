"""Both ends first: the outermost mask of the left, then that of the right, and so inwards.

With `at_once=2` a base and its mirror image are drawn together. A network of both strands then has
p(x) = p(rc x), as under `strand_symmetric`.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from genodiff.diffusion.in_order import count_groups, fill_in_order, read_at_once
from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.diffusion.sampler import Filling, Sampled, SamplerOptions, sampler


@sampler(
    "both-ends",
    fits=("masked", "score"),
    evaluations=count_groups,
    uses_steps=False,
    steers=True,
    order="fixed",
)
def both_ends(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    xt: Int[Tensor, "B L"],
    options: SamplerOptions,
    at_once: float = 1.0,
) -> Sampled:
    """`at_once` positions per evaluation; `u_order` and `steps` play no part."""
    filling = Filling(diffusion, denoiser, xt, options)
    masked = filling.masked
    rank = masked.cumsum(-1) - 1
    from_right = masked.sum(-1, keepdim=True) - 1 - rank
    inwards = torch.where(rank <= from_right, 2 * rank, 2 * from_right + 1)
    order = inwards.masked_fill(~masked, 2 * xt.shape[1]).argsort(dim=-1, stable=True)
    return fill_in_order(filling, order, at_once=read_at_once(at_once))
