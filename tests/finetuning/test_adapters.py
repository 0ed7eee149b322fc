"""Adapters: every kernel reads them, they alone are trained, and what is kept is merged."""

import pytest
import torch
from test_fit import NETWORK
from torch import Tensor, nn

from genodiff.errors import GenodiffError
from genodiff.finetuning.adapters import adapted_weights, find_weights, parse_adapter
from genodiff.finetuning.protocol import FitSettings
from genodiff.kernels.dispatch import prefer_provider
from tests.tiny_networks import network

PLACES = ("in_proj", "x_proj", "dt_proj", "out_proj", "conv", "embedding")
SHAPES = {
    "paired": {"strands": "paired"},
    "single": {"strands": "single"},
    "untied": {"strands": "single", "tie_directions": False},
}
IDS = torch.tensor([[7, 8, 9, 10, 7, 7, 9], [10, 9, 8, 7, 8, 10, 10]])


@pytest.fixture(autouse=True)
def any_kernel():
    yield
    prefer_provider(None)


def build(shape: str, **more: int) -> nn.Module:
    return network(3, **{**NETWORK, **SHAPES[shape], **more})


def features(backbone: nn.Module) -> Tensor:
    found: Tensor = backbone.features(IDS, torch.zeros(len(IDS)))  # type: ignore[operator]
    return found


def disturb(backbone: nn.Module) -> None:
    """Move what is trained away from where it changes nothing."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in backbone.parameters():
            if parameter.requires_grad:
                parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))


@pytest.mark.few(12)
@pytest.mark.parametrize("shape", list(SHAPES))
@pytest.mark.parametrize("name", ["lora", "dora"])
@pytest.mark.parametrize("place", PLACES)
def test_each_place_changes_outputs_and_gradients_of_every_kernel_alike(place, name, shape):
    backbone = build(shape)
    plain = features(backbone).detach()
    found: dict[str, tuple[Tensor, dict[str, Tensor]]] = {}
    with adapted_weights(backbone, f"{name}:r=3,on={place}", seed=5):
        torch.testing.assert_close(features(backbone), plain, atol=1e-6, rtol=1e-5)
        disturb(backbone)
        for provider in ("native", "torch"):
            prefer_provider(provider)
            backbone.zero_grad()
            out = features(backbone)
            out.square().mean().backward()
            trained = {n: p for n, p in backbone.named_parameters() if p.requires_grad}
            assert all("parametrizations" in n for n in trained)
            found[provider] = out.detach(), {n: p.grad for n, p in trained.items()}  # type: ignore[misc]
    (fused, gradients), (by_parts, others) = found.values()
    assert (by_parts - plain).abs().max() > 1e-4
    torch.testing.assert_close(fused, by_parts, atol=1e-5, rtol=1e-4)
    for key, gradient in others.items():
        assert gradient.abs().max() > 0, key
        torch.testing.assert_close(gradients[key], gradient, atol=1e-6, rtol=1e-3)
    # Afterwards the weights are plain ones, and the function is the same.
    assert not any("parametrizations" in name for name, _ in backbone.named_parameters())
    assert all(p.requires_grad for p in backbone.parameters())
    torch.testing.assert_close(features(backbone), by_parts, atol=1e-6, rtol=1e-5)


def test_without_names_every_projection_of_the_blocks_is_meant():
    names = {"in_proj", "out_proj", "x_proj", "dt_proj"}
    backbone = build("untied", n_layer=2)
    usual, named = find_weights(backbone, ()), find_weights(backbone, sorted(names))
    assert usual == named
    # Two layers; in and out of each direction, and two directions with x and dt.
    assert len(usual) == 2 * (2 * 2 + 2 * 2)


def test_a_change_has_the_rank_that_was_asked_for_and_nothing_else_changes():
    backbone = build("paired")
    before = {name: p.detach().clone() for name, p in backbone.named_parameters()}
    with adapted_weights(backbone, "lora:r=2,on=in_proj", seed=5):
        disturb(backbone)
    for name, parameter in backbone.named_parameters():
        change = (parameter - before[name]).detach()
        if "in_proj" in name:
            assert torch.linalg.matrix_rank(change, rtol=1e-4) == 2
        else:
            assert not change.any()


def test_a_word_that_is_none_is_answered_with_one_line():
    for word, part in (
        ("lor", "did you mean 'lora'"), ("lora:r=0", "at least 1"), ("lora:r", "KEY=VALUE"),
        ("lora:r=2,r=3", "KEY=VALUE"), ("lora:rank=2", "its options are"),
        ("lora:r=many", "integer"),
    ):  # fmt: skip
        with pytest.raises(GenodiffError, match=part) as fault:
            parse_adapter(word)
        assert "\n" not in str(fault.value)


def test_what_no_network_can_have_is_refused():
    with (
        pytest.raises(GenodiffError, match="'in_proj'"),
        adapted_weights(build("paired"), "lora:on=inproj", 1),
    ):
        pass
    with pytest.raises(GenodiffError, match="frozen"):
        FitSettings.parse({"adapter": "lora", "method": "frozen"})
    assert "adapter" not in FitSettings().model_dump(mode="json")  # older units keep their key
