"""DiMamba: padding, conditions, the clean form beside Caduceus, the published one without skips,
sizes.
"""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_networks import DIMAMBA_VOCABULARY as V
from tiny_networks import bases, dimamba, network
from torch import Tensor

from genodiff.backbones.backbone import PRESETS, dropout_keys
from genodiff.backbones.dimamba import DiMambaSettings
from genodiff.errors import UsageError

FORMS: list[dict[str, Any]] = [
    {}, {"n_classes": 3, "tie_head": True}, {"conditioning": "add", "residual": False},
    {"conditioning": "concat"},
    {"conditioning": "concat", "tie_head": True, "spare_rows": 6, "residual": False},
    {"conditioning": "none", "time_conditioning": False}, {"norm": "layer", "proj_bias": True,
    "tie_directions": False},
]  # fmt: skip
MODELS = {str(form): dimamba(**form) for form in FORMS}


@pytest.mark.parametrize("form", MODELS)
@settings(max_examples=4)
@given(lengths=st.lists(st.integers(1, 9), min_size=2, max_size=2))
def test_padding_on_the_right_changes_nothing(form, lengths):
    model, x, sigma = MODELS[form], bases(2, 9), torch.tensor([0.3, 2.0]).double()
    with torch.no_grad():
        together = model(x, sigma, torch.tensor(lengths))
        for row, n in enumerate(lengths):
            alone = model(x[row : row + 1, :n], sigma[row : row + 1])[0]
            torch.testing.assert_close(together[row, :n], alone, rtol=0, atol=1e-10)


@pytest.mark.parametrize("form", MODELS)
def test_rows_hidden_states_and_sizes_agree_with_the_whole(form):
    model, x = MODELS[form], bases(2, 7)
    rows = x == 3
    with torch.no_grad():
        whole, states = model(x), model.hidden_states(x)
        torch.testing.assert_close(model(x, rows=rows), whole[rows], rtol=0, atol=1e-12)
        assert len(states) == 3
        torch.testing.assert_close(model.logits(states[-1]), whole, rtol=0, atol=1e-12)
    assert whole.shape[-1] == model.n_logits
    assert sum(p.numel() for p in model.parameters()) == model.settings.n_parameters(V)


@pytest.mark.parametrize("form", MODELS)
def test_one_hot_ids_are_ids_and_carry_a_gradient(form):
    model, x = MODELS[form], bases(2, 5)
    soft = torch.nn.functional.one_hot(x, V).double().requires_grad_()
    logits = model(soft)
    torch.testing.assert_close(logits, model(x), rtol=0, atol=1e-10)
    assert torch.autograd.grad(logits.sum(), soft)[0].abs().sum() > 0


def test_sigma_and_label_matter_where_they_are_asked_for_and_only_there():
    x, sigma = bases(2, 6), torch.tensor([0.5, 2.0]).double()
    with torch.no_grad():
        for conditioning in ("adaln", "add", "concat"):
            told, deaf = (
                dimamba(conditioning=conditioning, time_conditioning=t) for t in (True, False)
            )
            assert not torch.allclose(told(x, sigma), told(x))
            assert torch.equal(deaf(x, sigma), deaf(x))
        known = dimamba(n_classes=3)
        found = [known(x, sigma, labels=torch.full((2,), label)) for label in (0, 1, 3)] + [
            known(x, sigma)
        ]
        assert all(not torch.allclose(a, b) for i, a in enumerate(found) for b in found[:i])
    with pytest.raises(UsageError, match="without classes"):
        dimamba()(x, sigma, labels=torch.tensor([0, 1]))


def test_without_a_condition_the_clean_form_is_caduceus_on_one_strand():
    caduceus = network(strands="single", tie_head=False).double()
    clean = DiMambaSettings.parse(
        {
            "d_model": 12,
            "n_layer": 2,
            "d_state": 4,
            "conditioning": "none",
            "time_conditioning": False,
        }
    )
    model = clean.build(16, None).double()
    model.load_state_dict(caduceus.state_dict())
    x = bases(2, 9)
    with torch.no_grad():
        torch.testing.assert_close(model(x), caduceus(x), rtol=0, atol=1e-12)
        published = (
            DiMambaSettings.parse(clean.model_dump() | {"residual": False}).build(16, None).double()
        )
        published.load_state_dict(caduceus.state_dict())
        assert not torch.allclose(published(x), caduceus(x))


def test_a_fresh_adaln_block_is_the_identity():
    model = DiMambaSettings(d_model=12, n_layer=3, d_cond=6).build(V)
    x = bases(2, 6)
    with torch.no_grad():
        states = model.hidden_states(x, torch.tensor([0.1, 3.0]))
    assert all(torch.equal(states[0], state) for state in states[1:3])


def test_recomputing_blocks_and_dropping_the_same_elements_changes_no_gradient():
    x, found = bases(2, 5), []
    for checkpointing in (False, True):
        model = dimamba(dropout=0.3, checkpointing=checkpointing).train()
        model.dropout_keys = dropout_keys(5, torch.tensor([3, 4]))
        model(x).square().mean().backward()
        found.append([p.grad for p in model.parameters()])
    for a, b in zip(*found, strict=True):
        assert isinstance(a, Tensor)
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("shape", "vocab_size", "n"),
    [
        (PRESETS["dimamba-tiny"], 12, 28_407_552), (PRESETS["dimamba-tiny"], 50258, 79_859_456),
        (PRESETS["dimamba-tiny"], 30522, 59_649_792), (PRESETS["dimamba-tiny"], 28, 28_423_936),
        (PRESETS["dimamba-4.8m"], 12, 4_774_912), (PRESETS["dimamba-470k"], 16, 471_432),
        (DiMambaSettings(d_model=118, n_layer=4), 12, 734_162), (DiMambaSettings(d_model=256,
        n_layer=4), 12, 2_448_384),
        (DiMambaSettings(d_model=256, n_layer=16), 12, 9_427_968),
    ],
    ids=str,
)  # fmt: skip
def test_shapes_have_the_published_sizes(shape, vocab_size, n):
    assert shape.n_parameters(vocab_size) == n


@pytest.mark.parametrize(
    ("form", "named"),
    [
        ({"residual": False}, "residual cannot be false"),
        ({"conditioning": "add", "dropout": 0.1}, "dropout needs"),
        ({"conditioning": "none"}, "need a conditioning"),
    ],
)
def test_shapes_that_cannot_be_are_refused(form, named):
    with pytest.raises(UsageError, match=named):
        DiMambaSettings.parse({"d_model": 12, "n_layer": 1} | form)
