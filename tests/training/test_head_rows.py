"""The head on the masked rows alone gives the loss and the gradients of the head on all rows, for
every objective that can.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from genodiff.backbones.backbone import PRESETS, Backbone
from genodiff.backbones.dimamba import DiMambaSettings
from genodiff.backbones.dit import DiTSettings
from genodiff.data.loader import Batch
from genodiff.diffusion import loss
from genodiff.diffusion.masked import Clean, MaskedDiffusion, counts
from genodiff.diffusion.objective import Draws, objective
from genodiff.diffusion.schedule import Linear
from genodiff.runs.denoiser import make_inputs

V = 11
DIFFUSION = MaskedDiffusion(Linear(), V - 1, tuple(range(1, V - 1)))
NETWORKS: dict[str, Callable[[], Backbone]] = {
    "dit": lambda: DiTSettings(d_model=8, n_layer=1, n_head=2, d_cond=4).build(V),
    "dimamba": lambda: DiMambaSettings(d_model=8, n_layer=1, d_cond=4).build(V),
    "caduceus": lambda: (
        PRESETS["caduceus-ph-tiny"].model_copy(update={"d_model": 8, "n_layer": 1}).build(V, None)
    ),
}


def found(model: nn.Module, name: str, options: dict[str, Any]) -> tuple[Tensor, list[Tensor]]:
    generator = torch.Generator().manual_seed(1)
    x0 = torch.randint(1, V - 1, (3, 9), generator=generator)
    maskable = torch.rand(3, 9, generator=generator) < 0.8
    u_mask = torch.rand(3, 9, generator=generator).double()
    u_time = torch.rand(3, generator=generator).double()
    draws = Draws(u_mask, u_time, 0.3, torch.arange(3), 3)
    clean = Clean(x0, maskable, lengths=torch.tensor([9, 7, 8]))
    nats = objective(name, DIFFUSION, **options).loss(model, clean, draws).nats
    grads = torch.autograd.grad(nats, list(model.parameters()), allow_unused=True)
    return nats.detach(), list(grads)  # type: ignore[arg-type]


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize(
    ("name", "options"),
    [("mdlm", {}), ("mdlm", {"exact_count": False}), ("sedd", {}), ("mlm", {"mask_rate": 0.5})],
)
def test_the_head_on_masked_rows_alone_is_the_same_objective(network, name, options, monkeypatch):
    model = NETWORKS[network]().double()
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            draw = torch.Generator().manual_seed(i)
            p.add_(0.3 * torch.randn(p.shape, generator=draw, dtype=torch.float64))
    shown: list[tuple[int, ...]] = []
    model.register_forward_hook(lambda m, args, logits: shown.append(tuple(logits.shape)))
    whole, gradients = found(model, name, options)
    monkeypatch.setattr(loss, "LARGE", 2)
    part, same = found(model, name, options)
    assert len(shown[0]) == 3
    assert len(shown[1]) == 2
    assert shown[1][0] < 27
    torch.testing.assert_close(part, whole, rtol=1e-12, atol=0)
    for a, b in zip(gradients, same, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


def test_documents_that_do_not_see_one_another_leave_the_head_on_masked_rows_alone(monkeypatch):
    generator, n = torch.Generator().manual_seed(1), torch.arange(3)
    model = NETWORKS["dit"]()
    x0 = torch.randint(1, V - 1, (3, 9), generator=generator)
    everywhere = torch.ones_like(x0, dtype=torch.bool)
    u_mask = torch.rand(3, 9, generator=generator).double()
    batch = Batch(
        x0, everywhere, ~everywhere, torch.full((3,), 9), u_mask, u_mask[:, 0], 0.3, n, 3, n,
        segments=(torch.arange(9) >= 4).long().expand(3, 9),
    )  # fmt: skip
    shown: list[tuple[int, ...]] = []
    model.register_forward_hook(lambda m, args, logits: shown.append(tuple(logits.shape)))
    monkeypatch.setattr(loss, "LARGE", 2)
    inputs = make_inputs(batch, model, "cpu")
    objective("mdlm", DIFFUSION).loss(*inputs)
    counted = counts(inputs.draws.times("systematic"), inputs.clean.n)
    assert shown == [(int(counted.sum()), V)]
