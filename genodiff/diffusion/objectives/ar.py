"""AR: the next token from all before it. Its figure is the likelihood itself, not a bound.

    -log p(x0) = sum over positions of -log p(x_l | x_1 .. x_(l-1))

The network must be causal. It reads [begin, x_1, ..., x_(L-1)] and its logits at position l are
about x_l; `begin` is the mask's id, which stands for "nothing known" and which every network has. A
token that is not maskable (an N) is read and not paid for: the figure is then that of the others
given it.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from genodiff.diffusion.loss import LossTerms, as_loss
from genodiff.diffusion.masked import Clean, Denoiser
from genodiff.diffusion.objective import OBJECTIVES, Draws, Objective, WindowBound, as_bound
from genodiff.diffusion.sampler import Kind


def shifted(x0: Int[Tensor, "B L"], begin: int) -> Int[Tensor, "B L"]:
    """What the network reads to predict x0: `begin`, then x0 without its last token."""
    return torch.cat([torch.full_like(x0[:, :1], begin), x0[:, :-1]], 1)


@OBJECTIVES.register("ar")
@dataclass(frozen=True)
class Ar(Objective):
    """Next-token prediction with a causal network; no time and no mask is drawn."""

    kind: ClassVar[Kind] = "causal"
    figure: ClassVar[Literal["exact", "bound"]] = "exact"
    first_samplers: ClassVar[tuple[str, ...]] = ("left-to-right",)

    def loss(self, denoiser: Denoiser, clean: Clean, draws: Draws) -> LossTerms:
        return as_loss(self._nll(denoiser, clean), clean)

    @torch.no_grad()
    def bound(self, denoiser: Denoiser, clean: Clean, draws: Draws) -> WindowBound:
        return as_bound(self._nll(denoiser, clean))

    def _nll(self, denoiser: Denoiser, clean: Clean) -> Float[Tensor, "B L"]:
        xt = shifted(clean.x0, self.diffusion.mask_id)
        sigma = torch.zeros(len(xt), dtype=torch.float64, device=xt.device)
        return self.diffusion.nll(clean.logits(denoiser, xt, sigma), clean.x0, clean.maskable)
