"""Block diffusion: masked diffusion in blocks of a sequence, each after the clean ones before it.

    x = x¹ … x^B, blocks of L' positions, the last one maybe shorter; n_b of a block are maskable

    −log p(x) ≤ Σ_b E_k (n_b / k) Σ over masked i in b of −log p_i(x_i | x¹ … x^(b−1), z^b)

k is uniform on 1 .. n_b, and z^b is x^b with exactly k masks. With L' = 1 a block is one mask, and
the sum is −log p(x) itself: the one-way model. With one block it is MDLM's bound. Between the two,
the sum is the average over orders within each block, and the blocks come from left to right.

The network is told the clean sequence, too, and reads both (`backbones/blocks.py`). The counts of a
window's blocks are spread evenly, from the one time that the window has: each by itself is uniform,
and a sum of means needs no more.

Source: Arriola et al. 2025, arXiv 2503.09573, equation 8, with counts in the place of its times.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from genodiff.diffusion.loss import LossTerms, as_loss
from genodiff.diffusion.masked import Clean, Denoiser, counts, exact_count_mask
from genodiff.diffusion.objective import OBJECTIVES, Draws, Objective, WindowBound, as_bound
from genodiff.diffusion.sampler import Kind, Sampler, list_samplers
from genodiff.errors import UsageError

_GOLDEN = 0.6180339887498949


@OBJECTIVES.register("block")
@dataclass(frozen=True)
class BlockDiffusion(Objective):
    """Masked diffusion in blocks of `block` positions."""

    block: int = 64

    kind: ClassVar[Kind] = "block"
    evaluations: ClassVar[int] = 2  # a clean stream, and a noised one

    def __post_init__(self) -> None:
        if self.block < 1:
            raise UsageError(f"blocks of {self.block} positions", fix="give --block 1 or more")

    @property
    def figure(self) -> Literal["exact", "bound"]:  # type: ignore[override]
        """In blocks of one position the bound is the likelihood itself, whatever is drawn."""
        return "exact" if self.block == 1 else "bound"

    @property
    def samplers(self) -> dict[str, Sampler]:
        """Those of a masked network, which fill a block at a time."""
        return list_samplers("masked", self.first_samplers)

    def loss(self, denoiser: Denoiser, clean: Clean, draws: Draws) -> LossTerms:
        return as_loss(self._costs(denoiser, clean, draws.times(self.time_sampling), draws), clean)

    @torch.no_grad()
    def bound(self, denoiser: Denoiser, clean: Clean, draws: Draws) -> WindowBound:
        t = draws.times("systematic").to(clean.x0.device)
        return as_bound(self._costs(denoiser, clean, t, draws))

    def _costs(
        self, denoiser: Denoiser, clean: Clean, t: Float[Tensor, " B"], draws: Draws
    ) -> Float[Tensor, "B L"]:
        """Nats of each position: its mean over t and the mask is its share of the bound."""
        masked, scale = mask_blocks(clean.maskable, t, draws.u_mask, self.block)
        xt = self.diffusion.mask(clean.x0, masked)
        sigma = torch.zeros_like(t)
        logits = clean.logits(denoiser, xt, sigma, clean=clean.x0, block=self.block)
        nll = self.diffusion.nll(logits, clean.x0, masked)
        return torch.where(masked, scale.to(nll.dtype) * nll, 0.0)


def mask_blocks(
    maskable: Bool[Tensor, "B L"], t: Float[Tensor, " B"], u: Float[Tensor, "B L"], size: int
) -> tuple[Bool[Tensor, "B L"], Float[Tensor, "B L"]]:
    """Exactly k of each block's n maskable positions, and n / k at each position of the block.

    Block b takes its k from the time t + b φ, beyond 1 from 0 on, φ being the golden section.
    """
    (rows, length), size = maskable.shape, min(size, maskable.shape[1])
    more = -length % size
    blocks = F.pad(maskable, (0, more)).reshape(-1, size)
    n = (length + more) // size
    at = (t.double()[:, None] + _GOLDEN * torch.arange(n, device=t.device)) % 1
    own: Int[Tensor, " R"] = blocks.sum(-1)
    k = counts(torch.where(at == 0, 1.0, at).flatten(), own)
    masked = exact_count_mask(blocks, k, F.pad(u, (0, more)).reshape(-1, size))
    scale = (own.double() / k.clamp(min=1))[:, None].expand(-1, size)
    return masked.reshape(rows, -1)[:, :length], scale.reshape(rows, -1)[:, :length]
