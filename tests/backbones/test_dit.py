"""DiT: attention masks, rotary positions, the cache, dropout, initial attention."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_networks import DIT_FORMS, dit
from tiny_networks import DIT_VOCABULARY as V
from torch import Tensor

from genodiff.backbones.attention import make_rotation, near, rotate
from genodiff.backbones.backbone import drop, dropout_keys
from genodiff.backbones.dit import DiTSettings
from genodiff.errors import UsageError
from genodiff.training.optimizer import has_weight_decay


def ids(batch: int, length: int, seed: int = 0) -> Tensor:
    return torch.randint(0, V, (batch, length), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("form", DIT_FORMS, ids=str)
def test_documents_packed_into_a_row_are_as_if_alone(form):
    model = dit(**form)
    parts = [ids(1, n, n) for n in (5, 1, 7)]
    segments = torch.tensor([[0] * 5 + [1] + [2] * 7])
    with torch.no_grad():
        packed = model(torch.cat(parts, 1), segments=segments)
        alone = torch.cat([model(part) for part in parts], 1)
        assert not torch.allclose(model(torch.cat(parts, 1)), alone)
        longer = torch.cat([segments, segments[:, -3:]], 1)
        with_padding = model(
            torch.cat([*parts, ids(1, 3)], 1), lengths=torch.tensor([13]), segments=longer
        )
    torch.testing.assert_close(packed, alone, rtol=0, atol=1e-12)
    torch.testing.assert_close(with_padding[:, :13], alone, rtol=0, atol=1e-12)


@settings(max_examples=20)
@given(shift=st.integers(0, 500), i=st.integers(0, 30), j=st.integers(0, 30))
def test_what_two_positions_say_depends_on_their_distance_alone(shift, i, j):
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(1, 1, 1, 8, generator=generator, dtype=torch.float64) for _ in range(2))

    def product(i: int, j: int) -> Tensor:
        return (rotate(q, make_rotation(i, 1, 8, q)) * rotate(k, make_rotation(j, 1, 8, k))).sum()

    torch.testing.assert_close(product(i, j), product(i + shift, j + shift), rtol=0, atol=1e-12)


def test_order_matters_with_rotary_positions_and_not_without():
    x = ids(1, 8)
    turned = x.flip(1)
    with torch.no_grad():
        flat, rotary = dit(rotary=False), dit()
        torch.testing.assert_close(flat(turned).flip(1), flat(x), rtol=0, atol=1e-12)
        assert not torch.allclose(rotary(turned).flip(1), rotary(x))


def test_a_causal_network_does_not_see_what_comes():
    model, x = dit(causal=True), ids(2, 10)
    changed = torch.cat([x[:, :6], (x[:, 6:] + 1) % V], 1)
    with torch.no_grad():
        assert torch.equal(model(x)[:, :6], model(changed)[:, :6])
        assert not torch.allclose(model(x)[:, 6:], model(changed)[:, 6:])
        assert not torch.allclose(dit()(x)[:, :6], dit()(changed)[:, :6])


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "form",
    [{}, {"adaln": False, "tie_head": True}, {"time_conditioning": True, "n_classes": 3}],
    ids=str,
)
@pytest.mark.parametrize("chunks", [[1] * 9, [4, 1, 4], [9], [1, 8]], ids=str)
def test_the_cache_gives_what_the_whole_sequence_gives(form, chunks):
    model, x = dit(causal=True, **form), ids(3, 9)
    told: dict[str, Any] = (
        {"sigma": torch.tensor([0.1, 1.0, 3.0]).double()} if form.get("time_conditioning") else {}
    )
    told |= {"labels": torch.tensor([0, 3, 1])} if form.get("n_classes") else {}
    cache = model.cache(9)
    with torch.no_grad():
        parts = [model.decode(part, cache, **told) for part in x.split(chunks, 1)]
        torch.testing.assert_close(torch.cat(parts, 1), model(x, **told), rtol=0, atol=1e-12)


def test_a_cache_says_when_it_is_full():
    model, x = dit(causal=True), ids(2, 6)
    cache = model.cache(6)
    with torch.no_grad():
        model.decode(x, cache)
        with pytest.raises(UsageError, match="holds 6 positions"):
            model.decode(x[:, :1], cache)
    with pytest.raises(UsageError, match="causal"):
        dit().cache(4)


def test_a_fresh_published_network_gives_every_token_the_same_chance_and_learns_at_once():
    model = DiTSettings.parse({"d_model": 16, "n_layer": 1, "n_head": 2}).build(V, None)
    logits = model(ids(2, 5))
    assert not logits.any()
    logits.log_softmax(-1)[..., 0].sum().backward()
    assert model.head_bias.grad.abs().sum() > 0


def test_without_adaln_the_first_gradient_reaches_every_weight():
    model = DiTSettings.parse(
        {"d_model": 64, "n_layer": 2, "n_head": 4, "adaln": False, "qk_bias": True}
    ).build(V, None)
    x = ids(4, 12)
    logp = model(x).log_softmax(-1)
    assert float((logp.detach() + np.log(V)).abs().max()) < 2.5
    torch.nn.functional.nll_loss(logp.flatten(0, 1), x.flatten()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("causal", [False, True])
def test_heads_look_at_their_neighbours_first_whatever_is_there(causal):
    width, length = 32, 40
    q, k = near(4, width, causal)
    turn = make_rotation(0, length, width, q)
    logits = (
        rotate(q.expand(4, length, width)[None], turn)[0]
        @ rotate(k.expand(4, length, width)[None], turn)[0].mT
        / width**0.5
    )
    for head, distance in enumerate([1, 2, 3, 4] if causal else [1, -1, 2, -2]):
        middle = logits[head, 20]
        assert int(middle.argmax()) == 20 - distance
        assert float(middle.max()) == pytest.approx(7.0, abs=1e-3)
        assert float(middle.softmax(-1)[19 - distance : 22 - distance].sum()) > 0.75


def test_biases_of_queries_and_keys_take_no_decay():
    assert not any(
        has_weight_decay(n, p)
        for n, p in dit(qk_bias=True).named_parameters()
        if n.endswith("qk_bias")
    )


def test_what_is_dropped_is_a_function_of_seed_sample_layer_and_place():
    x = torch.ones(4, 50, 40)
    keys = dropout_keys(7, torch.tensor([10, 11, 12, 13]))
    dropped = drop(x, 0.25, keys, 3)
    assert torch.equal(dropped[2:], drop(x[2:], 0.25, dropout_keys(7, torch.tensor([12, 13])), 3))
    assert not torch.equal(dropped[0], dropped[1])
    assert not torch.equal(dropped, drop(x, 0.25, keys, 4))
    assert not torch.equal(
        dropped, drop(x, 0.25, dropout_keys(8, torch.tensor([10, 11, 12, 13])), 3)
    )
    assert set(dropped.unique().tolist()) == {0.0, float(torch.tensor(1.0) / 0.75)}
    for axis in (0, 1, 2):
        share = (dropped == 0).double().mean([a for a in range(3) if a != axis])
        assert float((share - 0.25).abs().max()) < 5 * (0.25 * 0.75 / (8000 / x.shape[axis])) ** 0.5
    neighbours = ((dropped[:, :, 1:] == 0) & (dropped[:, :, :-1] == 0)).double().mean()
    assert float(neighbours) == pytest.approx(0.0625, abs=0.01)


def test_nothing_is_dropped_without_keys_and_in_evaluation():
    x, model = ids(2, 5), dit(dropout=0.5)
    with torch.no_grad():
        whole = model(x)
        assert torch.equal(model.train()(x), whole)
        model.dropout_keys = dropout_keys(0, torch.tensor([0, 1]))
        assert not torch.allclose(model(x), whole)
        assert torch.equal(model.eval()(x), whole)
