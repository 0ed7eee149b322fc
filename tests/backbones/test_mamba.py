"""The Mamba mixer: shared projections, mirroring as R M R, and masked padding."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from genodiff.backbones.backbone import InitialValues, Norm
from genodiff.backbones.kinds.caduceus import CaduceusSettings
from genodiff.backbones.mamba import Direction, Mamba
from genodiff.kernels.naive import naive_scan

OPTIONS = [
    {},
    {"bidirectional_strategy": "ew_multiply"},
    {"tie_directions": False},
    {"tie_directions": False, "bidirectional_strategy": "ew_multiply", "proj_bias": True},
    {"proj_bias": True},
    {"bidirectional": False, "proj_bias": True},
    {"conv_bias": False, "d_conv": 3, "expand": 1, "dt_rank": 5, "d_state": 3},
]


def mixer(**options: object) -> Mamba:
    shape = CaduceusSettings.parse({"d_model": 6, "n_layer": 1, "d_state": 4} | options)
    built = Mamba(6, shape, InitialValues(3)).double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    return built


def one_way(m: Mamba, d: Direction, h: Tensor, back: bool) -> Tensor:
    """One direction as a Mamba of its own, time flipped before and after, by the textbook."""
    suffix = "_back" if back and not m.tied else ""
    w_in, w_out = getattr(m, f"in_proj{suffix}"), getattr(m, f"out_proj{suffix}")
    x, z = w_in(h.flip(1) if back else h).chunk(2, -1)
    width = d.conv_weight.shape[1]
    c = F.conv1d(
        x.transpose(1, 2), d.conv_weight[:, None], d.conv_bias, padding=width - 1, groups=x.shape[2]
    )[..., : x.shape[1]]
    c = F.silu(c).transpose(1, 2)
    rank, states = d.dt_weight.shape[1], d.A_log.shape[1]
    r, B, C = d.x_proj(c).split([rank, states, states], -1)
    y, _ = naive_scan(c, r @ d.dt_weight.t(), -torch.exp(d.A_log), B, C, d.D, z, d.dt_bias, True)
    y = w_out(y)
    return y.flip(1) if back else y


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_mixer_is_two_mambas_of_which_one_reads_backwards(options):
    m, h = mixer(**options), torch.randn(2, 9, 6, dtype=torch.float64)
    wanted = one_way(m, m.ahead, h, back=False)
    if m.bidirectional:
        other = one_way(m, m.back, h, back=True)
        wanted = wanted * other if m.strategy == "ew_multiply" else wanted + other
    torch.testing.assert_close(m(h), wanted, rtol=1e-12, atol=1e-12)
    grads = [torch.autograd.grad(y.square().sum(), list(m.parameters())) for y in (m(h), wanted)]
    for got, right in zip(*grads, strict=True):
        torch.testing.assert_close(got, right, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_mirrored_mixer_is_the_flip_of_the_mixer_of_the_flip(options):
    m, h = mixer(**options), torch.randn(2, 9, 6, dtype=torch.float64)
    torch.testing.assert_close(m(h, None, True), m(h.flip(1, 2)).flip(1, 2), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["rms", "layer"])
def test_a_norm_is_the_formula_and_mirrored_is_the_flip_of_the_norm_of_the_flip(kind):
    norm = Norm(kind, 7, 1e-3).double()
    with torch.no_grad():
        for parameter in norm.parameters():
            parameter.copy_(torch.randn(7))
    x = torch.randn(2, 3, 7, dtype=torch.float64)
    if kind == "rms":
        wanted = x / torch.sqrt(x.square().mean(-1, keepdim=True) + 1e-3) * norm.weight
    else:
        wanted = F.layer_norm(x, (7,), norm.weight, norm.bias, 1e-3)
    torch.testing.assert_close(norm(x), wanted, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(norm(x, True), norm(x.flip(-1)).flip(-1), rtol=1e-12, atol=1e-12)


@pytest.mark.few(3)
@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_what_stands_on_padding_has_no_influence(options, mirrored):
    m, h = mixer(**options), torch.randn(2, 12, 6, dtype=torch.float64)
    mask = (torch.arange(12) < 9).double()[None, :, None].expand(2, 12, 1)
    alone = m(h[:, :9], None, mirrored)
    for rubbish in (0.0, 1e3):
        padded = torch.where(mask.bool(), h, rubbish)
        torch.testing.assert_close(m(padded, mask, mirrored)[:, :9], alone, rtol=1e-12, atol=1e-12)


def test_step_sizes_decays_and_skips_are_marked_as_not_to_be_decayed():
    marked = {
        name for name, p in mixer().named_parameters() if getattr(p, "_no_weight_decay", False)
    }
    assert marked == {
        f"{way}.{name}" for way in ("ahead", "back") for name in ("A_log", "D", "dt_bias")
    }
