"""The ancestral sampler in an order that is the same on both strands.

A position and its mirror image in the gap are revealed in the same step, so at every step the masks
of a sequence are those of its reverse complement. A network of both strands (Caduceus-PS) commutes
with the reverse complement. Then p(x) = p(rc x) for every single order, not only on average:

    p(x | order)  =  product over steps of x_theta(x_due | visible)  =  p(rc x | order)

The other samplers draw their order at random, or read it off the network, and have p(x) = p(rc x)
on average over it. The price is that two distant bases are drawn as if independent; more steps do
not remove it.

A gap's mirror runs through the middle between the first and the last mask of a window. What lies
opposite a base that is kept is revealed alone.
"""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.diffusion.sampler import Sampled, SamplerOptions, count_revealing_steps, sampler
from genodiff.diffusion.samplers.ancestral import ancestral


def count_pairs(n: int, share: Float[Tensor, " S"]) -> float:
    """The expected steps that reveal any pair, of n masks side by side."""
    return count_revealing_steps((n + 1) // 2, share)


@sampler(
    "strand-symmetric",
    fits=("masked", "score"),
    evaluations=count_pairs,
    steers=True,
    order="fixed",
)
def strand_symmetric(
    diffusion: MaskedDiffusion, denoiser: Denoiser, xt: Int[Tensor, "B L"], options: SamplerOptions
) -> Sampled:
    """A pair shares one uniform, the sum of both `u_order` modulo 1, and so its step."""
    u_order = share_order(xt == diffusion.mask_id, options.u_order)
    return ancestral(diffusion, denoiser, xt, replace(options, u_order=u_order))


def share_order(masked: Tensor, u: Float[Tensor, "B L"]) -> Float[Tensor, "B L"]:
    """`u` with u + mirrored u, modulo 1, in the gap of each row: uniform, the same for a pair.

    The middle is its own mirror image, and 2 u modulo 1 is uniform, too.
    """
    length = masked.shape[1]
    place = torch.arange(length, device=u.device).expand_as(masked)
    first = place.masked_fill(~masked, length).amin(-1, keepdim=True) if length else place
    last = place.masked_fill(~masked, -1).amax(-1, keepdim=True) if length else place
    mirror = (first + last - place).clamp(0, max(length - 1, 0))
    u = u.double()
    return torch.where(masked, (u + u.gather(1, mirror)) % 1.0, u)
