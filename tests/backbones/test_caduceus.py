"""Caduceus: reverse-complement equivariance, gradients, and both published code paths."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_networks import CADUCEUS_FORMS, COMPLEMENT, bases, network, reverse_complement
from torch import Tensor

from genodiff.backbones import caduceus
from genodiff.backbones.backbone import PRESETS, Norm
from genodiff.backbones.caduceus import Caduceus, CaduceusSettings
from genodiff.errors import UsageError
from genodiff.kernels import dispatch

MAP = torch.tensor(COMPLEMENT)


@settings(max_examples=8)
@given(
    st.sampled_from([v for v in CADUCEUS_FORMS if v["strands"] == "paired"]),
    st.integers(1, 40),
    st.integers(0, 99),
)
def test_the_other_strand_gives_the_complement_of_the_reversed_logits(variant, length, seed):
    model, x = network(seed, **variant), bases(2, length, seed)
    with torch.no_grad():
        logits, other = model(x), model(reverse_complement(x))
        features, features_other = model.features(x), model.features(reverse_complement(x))
    torch.testing.assert_close(other, logits.flip(1)[..., MAP], rtol=0, atol=1e-5)
    torch.testing.assert_close(features_other, features.flip(1, 2), rtol=0, atol=1e-5)


def test_the_five_lines_of_the_docstring_are_the_network():
    for length in (1, 2, 33):
        model, x = network(3, strands="paired"), bases(1, length, 3)
        with torch.no_grad():
            s = model.embedding[torch.stack([x[0], MAP[x[0]].flip(0)])]
            for block in model.blocks:
                s = s + block.mixer(block.norm(s))
            logits = model.final_norm(s) @ model.embedding.T
            plain = logits[0] + logits[1].flip(0)[:, MAP]
            torch.testing.assert_close(model(x)[0], plain, rtol=0, atol=1e-5)


def test_the_470k_preset_is_equivariant_near_its_training_length():
    model, x = PRESETS["caduceus-ps-470k"].build(16, COMPLEMENT, seed=5), bases(1, 1023)
    with torch.no_grad():
        torch.testing.assert_close(
            model(reverse_complement(x)), model(x).flip(1)[..., MAP], rtol=0, atol=1e-5
        )


def test_a_single_strand_is_not_equivariant():
    model, x = network(strands="single"), bases(1, 20)
    with torch.no_grad():
        assert float((model(reverse_complement(x)) - model(x).flip(1)[..., MAP]).abs().max()) > 0.1


@pytest.mark.few(3)
@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("variant", CADUCEUS_FORMS, ids=str)
def test_gradients_reach_every_weight_and_checkpointing_does_not_change_them(
    variant, long, monkeypatch
):
    if long:
        monkeypatch.setattr(caduceus, "_LONG", 1)
        monkeypatch.setattr(caduceus, "_AT_A_TIME", 20)
    x, lengths = bases(3, 20), torch.tensor([20, 11, 16])
    grads = []
    for checkpointing in (False, True):
        model = network(**variant, checkpointing=checkpointing)
        loss = model(x, lengths=lengths)[:, :11].logsumexp(-1).square().sum()
        loss.backward()
        grads.append({name: p.grad for name, p in model.named_parameters()})
    for name, grad in grads[0].items():
        assert grad.abs().max() > 0, name
        torch.testing.assert_close(grad, grads[1][name], rtol=1e-4, atol=1e-5)


def test_checkpointing_saves_less():
    def saved(checkpointing: bool) -> int:
        seen: dict[int, int] = {}

        def pack(x: Tensor) -> Tensor:
            seen[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
            return x

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            network(checkpointing=checkpointing, n_layer=3)(bases(2, 200))
        return sum(seen.values())

    assert saved(True) < saved(False) / 3


def test_a_checkpointed_network_gives_all_its_hidden_states_however_long_the_rows(monkeypatch):
    monkeypatch.setattr(caduceus, "_LONG", 1)
    kept, recomputed = (
        network(checkpointing=c, n_layer=3).hidden_states(bases(2, 20)) for c in (False, True)
    )
    assert len(recomputed) == len(kept) == 4
    for a, b in zip(kept, recomputed, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("inside", [False, True])
def test_the_first_scan_of_a_process_may_be_inside_a_checkpointed_block(inside):
    dispatch._find_fault.cache_clear()
    if not inside:
        dispatch.select_provider()
    network(checkpointing=True)(bases(1, 9)).sum().backward()


def halves(model: Caduceus, x: Tensor) -> list[Tensor]:
    """The published fused network word for word: two halves of channels that change places in every
    block.
    """

    def flip(h: Tensor) -> Tensor:
        return h.flip(1, 2)

    first, second = model.embedding[x], flip(model.embedding[reverse_complement(x)])
    residual_first, residual_second = torch.zeros_like(first), torch.zeros_like(second)
    states = []
    for block in model.blocks:
        states.append(torch.cat([first, second], -1))
        # The forward stream is fed the second half, the reverse-complement stream the first.
        residual_first, residual_second = residual_second + second, residual_first + first
        first = block.mixer(block.norm(residual_first))
        second = flip(block.mixer(block.norm(flip(residual_second))))
    first, second = residual_first + first, residual_second + second
    states.append(torch.cat([model.final_norm(first), flip(model.final_norm(flip(second)))], -1))
    return states


@pytest.mark.few(2)
@pytest.mark.parametrize("n_layer", [1, 2, 3, 4])
@pytest.mark.parametrize("norm", ["rms", "layer"])
def test_alternating_strands_is_the_published_exchange_of_halves(n_layer, norm):
    model = network(
        strands="paired", alternate_strands=True, n_layer=n_layer, norm=norm, proj_bias=True
    ).double()
    x = bases(2, 13)
    with torch.no_grad():
        wanted = halves(model, x)
        for got, right in zip(model.hidden_states(x), wanted, strict=True):
            torch.testing.assert_close(got, right, rtol=1e-10, atol=1e-10)
        first, second = wanted[-1].chunk(2, -1)
        logits = first @ model.embedding.t() + second.flip(2) @ model.embedding[MAP].t()
        torch.testing.assert_close(model(x), logits, rtol=1e-10, atol=1e-10)
        plain = network(strands="paired", n_layer=n_layer, norm=norm, proj_bias=True).double()
        assert float((plain(x) - model(x)).abs().max()) > 0.01, (
            "fused and unfused are different functions"
        )


def test_features_are_what_the_head_reads_and_the_last_hidden_state():
    for strands in ("paired", "single"):
        model, x = network(strands=strands), bases(2, 15)
        with torch.no_grad():
            features, hidden = model.features(x), model.hidden_states(x)
            assert torch.equal(model(x, torch.tensor([0.1, 3.0])), model(x))  # time is no input
            torch.testing.assert_close(hidden[0][..., :12], model.embedding[x])
            logits = features[..., :12] @ model.embedding.t()
            if strands == "paired":
                logits = logits + (features[..., 12:].flip(2) @ model.embedding.t())[..., MAP]
            torch.testing.assert_close(model(x), logits, rtol=1e-5, atol=1e-5)


def test_under_autocast_the_residual_stream_stays_float32(monkeypatch):
    model, x = network(d_model=32, n_layer=3), bases(2, 64)
    kinds: list[torch.dtype] = []
    add = Norm.add

    def note(norm: Norm, *given: Any) -> tuple[torch.Tensor, torch.Tensor]:
        found = add(norm, *given)
        kinds.append(found[0].dtype)
        return found

    with torch.no_grad():
        exact = model(x)
        monkeypatch.setattr(Norm, "add", note)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            low = model(x)
    assert kinds == [torch.float32] * 3
    assert float((low.float() - exact).abs().max()) < 0.1 * float(exact.abs().max())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(x).float().logsumexp(-1).mean()
    loss.backward()
    assert all(
        p.grad is not None and p.grad.dtype == torch.float32 and torch.isfinite(p.grad).all()
        for p in model.parameters()
    )


@pytest.mark.parametrize(
    "complement", [None, COMPLEMENT[:-1], (0, 1, 2, 3, 4, 5, 6, 10, 9, 8, 7, 11, 12, 13, 14, 14)]
)
def test_paired_strands_need_a_complement_for_every_token(complement):
    with pytest.raises(UsageError, match="paired strands need a complement"):
        CaduceusSettings(d_model=8, n_layer=1).build(16, complement)
    CaduceusSettings(d_model=8, n_layer=1, strands="single").build(16, complement)
