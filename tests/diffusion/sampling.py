"""Helpers for tests of samplers: uniforms, masks, denoisers of whole sequences."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.sampler import SAMPLERS, Sampled, Sampler, SamplerOptions
from genodiff.diffusion.schedule import Linear
from genodiff.laws.diffusion import make_denoiser

# Every sampler that users reach; MASKED are those that fill the gaps of a masked network.
each_sampler = pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=list(SAMPLERS))
MASKED = [one for one in SAMPLERS.values() if "masked" in one.fits]
DNA = MaskedDiffusion(Linear(), mask_id=3, targets=(7, 8, 9, 10))


def draws(n: int, length: int, seed: int = 0) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(seed)
    return {
        name: torch.rand(n, length, generator=g, dtype=torch.float64)
        for name in ("u_order", "u_token")
    }


def run_sampler(
    sampler: Sampler | Callable[..., Sampled],
    diffusion: MaskedDiffusion,
    denoiser: Callable[..., Tensor],
    xt: Tensor,
    **options: object,
) -> Sampled:
    """`sampler` with these `SamplerOptions`."""
    draw = sampler.draw if isinstance(sampler, Sampler) else sampler
    return draw(diffusion, denoiser, xt, SamplerOptions(**options))  # type: ignore[arg-type]


def masks(n: int, length: int, mask_id: int = 3) -> Tensor:
    return torch.full((n, length), mask_id)


def watch(
    look: Callable[[Tensor, Tensor], Any] = lambda xt, sigma: (xt != 3).sum().item(),
) -> tuple[list[Any], Callable[[Tensor, Tensor], Tensor]]:
    """What is seen of each evaluation, at first the number of visible tokens, and the network that
    looks and predicts nothing.
    """
    seen: list[Any] = []

    def denoiser(xt: Tensor, sigma: Tensor) -> Tensor:
        seen.append(look(xt, sigma))
        return torch.zeros(*xt.shape, 12)

    return seen, denoiser


def mixing(length: int, size: float = 1.5) -> Callable[[Tensor, Tensor], Tensor]:
    """A denoiser that looks at the whole sequence, at each position differently."""
    return make_denoiser(False, length, size)


def mixing_for(
    sampler: Sampler, length: int, size: float = 1.5
) -> Callable[[Tensor, Tensor], Tensor]:
    """`mixing`, or for samplers of causal networks one that looks at what stands before."""
    return make_denoiser("causal" in sampler.fits, length, size)
