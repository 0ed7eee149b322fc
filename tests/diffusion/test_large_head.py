"""A network with a large vocabulary computes its head at masked positions only, with the same loss and gradients."""

import pytest
import torch
from torch import Tensor

from genodiff.backbones.dit import DiTSettings
from genodiff.diffusion.loss import exact_count_loss
from genodiff.diffusion.masked import LARGE, MaskedDiffusion
from genodiff.diffusion.samplers import SAMPLERS
from genodiff.diffusion.schedule import Linear

SHAPE = DiTSettings(d_model=16, n_layer=1, n_head=2, adaln=False)


@pytest.mark.parametrize("padded", [False, True])
def test_the_loss_and_its_gradients_are_those_of_the_whole_head(padded: bool) -> None:
    network = SHAPE.build(LARGE + 1).double()
    with torch.no_grad():
        network.head.normal_(std=0.3, generator=torch.Generator().manual_seed(0))  # type: ignore[union-attr]
    diffusion = MaskedDiffusion(Linear(), LARGE, tuple(range(LARGE)))
    generator = torch.Generator().manual_seed(1)
    x0 = torch.randint(0, LARGE, (3, 7), generator=generator)
    lengths = torch.tensor([7, 4, 6]) if padded else None
    maskable = torch.ones(3, 7, dtype=torch.bool) if lengths is None else torch.arange(7) < lengths[:, None]
    k, u = torch.tensor([3, 1, 0]), torch.rand(3, 7, generator=generator, dtype=torch.float64)
    sizes: list[torch.Size] = []
    network.register_forward_hook(lambda module, given, logits: sizes.append(logits.shape))

    def whole(xt: Tensor, sigma: Tensor, lengths: Tensor | None = None) -> Tensor:
        return network(xt, sigma, lengths)  # type: ignore[no-any-return]

    found = []
    for denoiser in (network, whole):
        loss = exact_count_loss(diffusion, denoiser, x0, maskable, None, k, u, lengths)
        found.append((loss.nats, torch.autograd.grad(loss.nats, list(network.parameters()))))
    torch.testing.assert_close(found[0][0], found[1][0])
    for few, all_ in zip(found[0][1], found[1][1], strict=True):
        torch.testing.assert_close(few, all_, rtol=1e-7, atol=1e-9)
    assert sizes == [torch.Size([5, LARGE + 1]), torch.Size([3, 7, LARGE + 1])]


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_sampler_gets_the_same_tokens_from_the_rows_it_reveals(name: str) -> None:
    network = SHAPE.build(LARGE + 1).double()
    with torch.no_grad():
        network.head.normal_(std=1.0, generator=torch.Generator().manual_seed(0))  # type: ignore[union-attr]
    diffusion = MaskedDiffusion(Linear(), LARGE, tuple(range(LARGE)))
    xt = torch.full((3, 6), LARGE)
    xt[1, 2:] = 5
    u = torch.rand(2, 3, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)

    def whole(x: Tensor, sigma: Tensor) -> Tensor:
        return network(x, sigma)  # type: ignore[no-any-return]

    found = [SAMPLERS[name](diffusion, denoiser, xt, u_order=u[0], u_token=u[1], steps=4) for denoiser in (network, whole)]
    assert torch.equal(found[0].x0, found[1].x0)
    assert torch.equal(found[0].nfe, found[1].nfe)
