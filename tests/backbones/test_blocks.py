"""Block diffusion networks: all at once and cached states equal one pass per block."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_networks import bases, network
from torch import Tensor

from genodiff.backbones.blocks import BlockPast, read_by_pass, read_streams
from genodiff.backbones.caduceus import Caduceus
from genodiff.errors import UsageError
from genodiff.kernels.blocks import recur, recur_naively

MASK = 3
VARIANTS: list[dict[str, object]] = [
    {},
    {"tie_directions": False, "bidirectional_strategy": "ew_multiply", "proj_bias": True},
    {"tie_head": False, "conv_bias": False, "d_conv": 2, "norm": "layer"},
    {"d_conv": 1, "n_classes": 2},
    {"checkpointing": True},
]
SIZES = [(1, 1), (1, 4), (7, 1), (7, 2), (12, 4), (13, 5), (13, 13), (13, 40)]


def single(seed: int = 0, **variant: object) -> Caduceus:
    return network(seed, strands="single", **variant)


def with_masks(x: Tensor, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.where(torch.rand(x.shape, generator=generator) < 0.5, MASK, x)


def read_cached(
    model: Caduceus, clean: Tensor, xt: Tensor, size: int, lengths: Tensor | None = None
) -> Tensor:
    past, logits = BlockPast(model, len(xt)), []
    for start in range(0, xt.shape[1], size):
        logits.append(past.read(xt[:, start : start + size]))
        past.add(clean[:, start : start + size])
    assert past.length == xt.shape[1]
    return torch.cat(logits, 1)


@pytest.mark.few(4)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("length", "size"), SIZES)
def test_all_at_once_and_with_kept_states_are_a_pass_for_each_block(variant, length, size):
    model = single(**variant).double()
    clean = bases(3, length, 1)
    xt = with_masks(clean)
    labels = torch.tensor([0, -1, 1]) if "n_classes" in variant else None
    wanted = read_by_pass(model, clean, xt, size, labels)
    found = read_streams(model, clean, xt, size, None, labels)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
    if labels is None:
        with torch.no_grad():
            cached = read_cached(model, clean, xt, size)
        torch.testing.assert_close(cached, wanted, rtol=0, atol=1e-12)


@pytest.mark.few(2)
@pytest.mark.parametrize("variant", VARIANTS[:3])
@pytest.mark.parametrize(("length", "size"), SIZES)
def test_their_gradients_are_equal(variant, length, size):
    gradients = []
    clean = bases(2, length, 3)
    xt = with_masks(clean)
    weights = torch.randn(2, length, 16, generator=torch.Generator().manual_seed(1)).double()
    for read in (read_by_pass, read_streams):
        model = single(**variant).double()
        (read(model, clean, xt, size) * weights).sum().backward()
        gradients.append({name: p.grad for name, p in model.named_parameters()})
    for name, wanted in gradients[0].items():
        found = gradients[1][name]
        assert (wanted is None) == (found is None), name
        if wanted is not None and found is not None:
            assert wanted.abs().max() > 0 or size == 1 or length == 1, name
            torch.testing.assert_close(found, wanted, rtol=0, atol=1e-10, msg=name)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("length", [1, 2, 13])
def test_one_block_is_the_network_itself(length, dtype):
    model, clean = single().to(dtype), bases(2, length, 4)
    xt = with_masks(clean)
    with torch.no_grad():
        wanted, found = model(xt), model(xt, clean=clean, block=length)
    atol = 1e-12 if dtype == torch.float64 else 1e-6 * float(wanted.abs().max())
    torch.testing.assert_close(found, wanted, rtol=0, atol=atol)


@given(st.integers(1, 12), st.integers(1, 13), st.integers(0, 12), st.integers(0, 9))
@settings(max_examples=5, deadline=None)
def test_a_block_knows_its_past_and_its_visible_tokens_alone(length, size, at, seed):
    at = min(at, length - 1)
    model, clean = single(seed).double(), bases(1, length, seed)
    xt = with_masks(clean, seed)
    other, noised = clean.clone(), xt.clone()
    other[0, at] = 6 + (clean[0, at] - 6 + 1) % 4
    noised[0, at] = MASK if xt[0, at] != MASK else 8
    with torch.no_grad():
        wanted = read_streams(model, clean, xt, size)[0]
        past = (read_streams(model, other, xt, size)[0] - wanted).abs().amax(-1) > 1e-9
        own = (read_streams(model, clean, noised, size)[0] - wanted).abs().amax(-1) > 1e-9
    block = torch.arange(length) // size
    assert past.tolist() == (block > at // size).tolist()
    assert own.tolist() == (block == at // size).tolist()


def test_padding_on_the_right_changes_nothing():
    model, clean = single().double(), bases(3, 11, 5)
    xt, lengths = with_masks(clean), torch.tensor([11, 4, 6])
    with torch.no_grad():
        found = read_streams(model, clean, xt, 4, lengths)
        for row, length in enumerate(lengths.tolist()):
            own = slice(row, row + 1), slice(0, length)
            alone = read_by_pass(model, clean[own], xt[own], 4)
            torch.testing.assert_close(found[own], alone, rtol=0, atol=1e-12)
        past = BlockPast(model, 3)
        past.add(clean[:, :4])
        rows, some = torch.tensor([2, 0]), torch.tensor([2, 4])
        some_rows = past.read(xt[rows, 4:8], rows, some)
        torch.testing.assert_close(some_rows[0, :2], found[2, 4:6], rtol=0, atol=1e-12)
        torch.testing.assert_close(some_rows[1], found[0, 4:8], rtol=0, atol=1e-12)


def test_without_clean_tokens_those_that_are_read_stand_for_them():
    model, clean = single(), bases(2, 9, 6)
    xt = clean.clone()
    xt[:, 4:] = MASK  # on its way: the block that is drawn, and what follows it
    with torch.no_grad():
        found, wanted = model(xt, block=4), read_by_pass(model, clean, xt, 4)
    torch.testing.assert_close(found[:, :8], wanted[:, :8], rtol=0, atol=1e-5)


@pytest.mark.parametrize("n", [1, 2, 9])
def test_the_recurrence_is_its_definition(n):
    generator = torch.Generator().manual_seed(n)
    kept = torch.rand(2, n, 3, 4, generator=generator, dtype=torch.float64).requires_grad_()
    last = torch.randn(2, n, 3, 4, generator=generator, dtype=torch.float64).requires_grad_()
    torch.testing.assert_close(recur(kept, last), recur_naively(kept, last), rtol=0, atol=1e-12)
    assert torch.autograd.gradcheck(recur, (kept, last))


@pytest.mark.parametrize(
    ("variant", "said"),
    [
        ({"strands": "paired"}, "both strands at once"),
        ({"strands": "single", "bidirectional": False}, "one way already"),
        ({"strands": "single", "recalls": True}, "reads no memory"),
    ],
)
def test_networks_that_cannot_are_refused(variant, said):
    model, x = network(**variant), bases(1, 5, 0)
    with pytest.raises(UsageError, match=said):
        model(x, block=2)
    with pytest.raises(UsageError, match=said):
        BlockPast(model, 1)
