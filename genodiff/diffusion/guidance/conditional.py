"""CFG: the difference of two networks, one of the wanted class and one of everything.

    logits  =  logits_u + gamma (logits_c - logits_u)

gamma = 0 is the unconditional network, bit for bit; 1 is the conditional one; more goes beyond it.
The mixture is of x_theta, position by position, and normalised over the targets. When a position is
revealed does not change. (Mixing the whole posterior, mask included, would reveal guided tokens
earlier than the schedule says.)

Source: Ho and Salimans 2022, arXiv 2207.12598; Schiff et al. 2024, arXiv 2412.10193 (D-CFG).
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from genodiff.diffusion.guided import Aim, Guided, GuidedChain, guidance, no_estimate
from genodiff.diffusion.masked import Denoiser


def mix_denoisers(unconditional: Denoiser, conditional: Denoiser, strength: float) -> Denoiser:
    """logits_u + strength (logits_c - logits_u), in double precision."""

    def denoiser(x: Int[Tensor, "B L"], sigma: Float[Tensor, " B"]) -> Float[Tensor, "B L V"]:
        base = unconditional(x, sigma).double()
        return base + strength * (conditional(x, sigma).double() - base)

    return denoiser


@guidance("cfg", needs="conditional", calls=lambda masks, reveals, targets: 0)
def cfg(chain: GuidedChain, xt: Int[Tensor, "B L"], aim: Aim) -> Guided:
    """Two evaluations of a network in place of each one."""
    assert aim.conditional is not None
    refine = None
    if chain.options.refine is not None and aim.conditional_refine is not None:
        refine = mix_denoisers(chain.options.refine, aim.conditional_refine, aim.strength)
    mixed = mix_denoisers(chain.denoiser, aim.conditional, aim.strength)
    # An error of d in the logits of both networks is at most (|1 - gamma| + |gamma|) d.
    grown = chain.options.tolerance * (abs(1 - aim.strength) + abs(aim.strength))
    guided = GuidedChain(chain.draw, chain.diffusion, mixed, chain.options)
    done = guided.run(xt, refine=refine, tolerance=grown)
    none = torch.zeros(len(xt), dtype=torch.int64)
    return Guided(done.x0, 2 * done.nfe, none, no_estimate(len(xt)))
