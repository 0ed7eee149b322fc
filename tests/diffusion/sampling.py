"""What tests of samplers share: uniforms, masks, a denoiser that looks at the whole sequence."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.sampler import SAMPLERS, Sampled, SamplerOptions
from genodiff.diffusion.schedule import Linear

MASKED = {name: one.draw for name, one in SAMPLERS.items() if "masked" in one.fits}
each_sampler = pytest.mark.parametrize("sampler", MASKED.values(), ids=MASKED.keys())
DNA = MaskedDiffusion(Linear(), mask_id=3, targets=(7, 8, 9, 10))


def draws(n: int, length: int, seed: int = 0) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(seed)
    return {
        name: torch.rand(n, length, generator=g, dtype=torch.float64)
        for name in ("u_order", "u_token")
    }


def run_sampler(
    sampler: Callable[..., Sampled],
    diffusion: MaskedDiffusion,
    denoiser: Callable[..., Tensor],
    xt: Tensor,
    **options: object,
) -> Sampled:
    """`sampler` with these `SamplerOptions`."""
    return sampler(diffusion, denoiser, xt, SamplerOptions(**options))  # type: ignore[arg-type]


def masks(n: int, length: int, mask_id: int = 3) -> Tensor:
    return torch.full((n, length), mask_id)


def mixing(
    length: int, size: float = 1.5, vocab_size: int = 12
) -> Callable[[Tensor, Tensor], Tensor]:
    """A denoiser that looks at the whole sequence, each position differently; rows do not influence
    one another.
    """
    g = torch.Generator().manual_seed(42)
    own, other = size * torch.randn(
        2, length, vocab_size, vocab_size, generator=g, dtype=torch.float64
    )

    def denoiser(xt: Tensor, sigma: Tensor) -> Tensor:
        seen = torch.nn.functional.one_hot(xt, vocab_size).double()
        place = torch.arange(length, dtype=torch.float64)
        near = torch.exp(-(place[:, None] - place).abs())
        return (
            torch.einsum("blv,lvw->blw", seen, own)
            + torch.einsum("bmv,lm,mvw->blw", seen, near, other)
            + sigma[:, None, None]
        )

    return denoiser
