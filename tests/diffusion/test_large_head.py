"""A sampler asks a network with a large vocabulary for the rows that it reveals, and gets the same
tokens.
"""

import torch
from sampling import each_sampler, run_sampler
from torch import Tensor

from genodiff.backbones.dit import DiTSettings
from genodiff.diffusion.masked import LARGE, MaskedDiffusion
from genodiff.diffusion.schedule import Linear

SHAPE = DiTSettings(d_model=16, n_layer=1, n_head=2, adaln=False)


@each_sampler
def test_a_sampler_gets_the_same_tokens_from_the_rows_it_reveals(sampler):
    network = SHAPE.build(LARGE + 1).double()
    with torch.no_grad():
        network.head.normal_(std=1.0, generator=torch.Generator().manual_seed(0))  # type: ignore[union-attr]
    diffusion = MaskedDiffusion(Linear(), LARGE, tuple(range(LARGE)))
    xt = torch.full((3, 6), LARGE)
    xt[1, 2:] = 5
    u = torch.rand(2, 3, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)

    def whole(x: Tensor, sigma: Tensor) -> Tensor:
        return network(x, sigma)  # type: ignore[no-any-return]

    found = [
        run_sampler(sampler, diffusion, denoiser, xt, u_order=u[0], u_token=u[1], steps=4)
        for denoiser in (network, whole)
    ]
    assert torch.equal(found[0].x0, found[1].x0)
    assert torch.equal(found[0].nfe, found[1].nfe)
