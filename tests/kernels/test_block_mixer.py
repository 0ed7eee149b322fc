"""The mixer over two streams of blocks in C, against its definition by parts in float64."""

import pytest
import torch
from scans import draw, needs_library
from torch import Tensor

from genodiff.backbones.backbone import InitialValues
from genodiff.backbones.kinds.caduceus import CaduceusSettings
from genodiff.backbones.mamba import Mamba
from genodiff.kernels.blocks import BLOCK_MIXER, mix_blocks
from genodiff.kernels.mixer import join, separate

pytestmark = needs_library

# length, size, d_model, d_state, d_conv; chunks of the scan have 64 steps, its vectors 16 lanes
SHAPES = [(1, 1, 8, 4, 4), (40, 1, 24, 16, 4), (40, 2, 9, 5, 4), (45, 3, 24, 16, 3),
          (96, 16, 24, 16, 4), (96, 32, 8, 3, 1), (132, 33, 24, 9, 4), (200, 100, 40, 16, 4),
          (130, 130, 24, 8, 2)]  # fmt: skip


def problem(
    length: int, size: int, d_model: int, d_state: int, d_conv: int, batch: int
) -> tuple[Mamba, Tensor]:
    """A mixer, and rows of two streams."""
    settings = CaduceusSettings(
        kind="caduceus", n_layer=1, d_model=d_model, d_state=d_state, d_conv=d_conv, proj_bias=True
    )
    mixer = Mamba(d_model, settings, InitialValues(length))
    with torch.no_grad():  # decays from nearly 1 to underflow
        mixer.ahead.A_log += draw(*mixer.ahead.A_log.shape, seed=2) * 3
    return mixer, draw(batch, 2 * length, d_model).float()


def gradients(
    mixer: Mamba, h: Tensor, size: int, mask: Tensor | None, provider: str
) -> dict[str, Tensor]:
    """The output, and the gradients of the input and of all weights."""
    h = h.clone().requires_grad_()
    weights = [direction.weights() for direction in (mixer.ahead, mixer.back)]
    into, onto = mixer.in_proj, mixer.out_proj
    arguments = (h, into.weight, into.bias, onto.weight, weights, size, mask)
    mixer.zero_grad()
    if provider == "native":
        assert runs_in_c(arguments)
    out = mix_blocks(*arguments)
    out = out if mask is None else out * mask  # what is said of padding is not read
    (out * draw(*out.shape[1:], seed=1).to(out.dtype)).sum().backward()
    assert h.grad is not None
    found = {"out": out.detach(), "h": h.grad}
    return found | {name: p.grad for name, p in mixer.named_parameters() if p.grad is not None}


def runs_in_c(arguments: tuple) -> bool:
    h, in_weight, in_bias, out_weight, *_ = arguments
    chosen = BLOCK_MIXER.choose(
        h, in_weight, in_bias, out_weight, None, (False, True), [in_weight], False, 1
    )
    return chosen.provider == "native"


@pytest.mark.few(5)
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(("length", "size", "d_model", "d_state", "d_conv"), SHAPES)
@pytest.mark.parametrize("batch", [1, 9])
def test_the_output_and_all_gradients_are_those_of_the_definition(
    length, size, d_model, d_state, d_conv, batch, padded
):
    mixer, h = problem(length, size, d_model, d_state, d_conv, batch)
    mask = None
    if padded:
        ends = torch.arange(batch)[:, None] * 7 % length + 1
        inside = torch.arange(length) < ends
        mask = join(inside, inside, size)[..., None].float()
    found = gradients(mixer, h, size, mask, "native")
    wide = None if mask is None else mask.double()
    wanted = gradients(mixer.double(), h.double(), size, wide, "torch")
    assert found.keys() == wanted.keys()
    assert len(found) > 10
    for name, of in wanted.items():
        scale = max(float(of.abs().max()), 1e-3)
        torch.testing.assert_close(
            found[name].double() / scale, of / scale, rtol=0, atol=3e-5, msg=f"{name} differs"
        )


@pytest.mark.few(1)
@pytest.mark.parametrize("size", [1, 4, 100])
def test_the_bits_do_not_depend_on_threads_or_on_the_batch(size, threads):
    mixer = Mamba(24, CaduceusSettings(kind="caduceus", d_model=24, n_layer=1), InitialValues(0))
    h, found = draw(3, 400, 24).float(), []
    for n in threads:
        torch.set_num_threads(n)
        found.append(gradients(mixer, h, size, None, "native"))
    one, *others = found
    assert all(torch.equal(one[name], other[name]) for other in others for name in one)
    alone = gradients(mixer, h[:1], size, None, "native")
    assert torch.equal(alone["out"], one["out"][:1])
    assert torch.equal(alone["h"], one["h"][:1])


@pytest.mark.parametrize(("length", "size"), [(1, 1), (6, 1), (6, 2), (6, 6)])
def test_streams_that_were_joined_come_apart_again(length, size):
    noised, clean = draw(2, length, 3), draw(2, length, 3, seed=1)
    both = join(noised, clean, size)
    assert torch.equal(both[:, :size], noised[:, :size])
    assert torch.equal(both[:, size : 2 * size], clean[:, :size])
    for wanted, found in zip((noised, clean), separate(both, size), strict=True):
        assert torch.equal(wanted, found)
