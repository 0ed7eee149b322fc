"""Properties of every backbone in each of its forms: padding, sizes, states, recomputation."""

from itertools import combinations
from typing import Any

import pytest
import torch
from tiny_networks import (
    CADUCEUS_FORMS,
    DIMAMBA_FORMS,
    DIMAMBA_VOCABULARY,
    DIT_FORMS,
    DIT_VOCABULARY,
    bases,
    dimamba,
    dit,
    network,
)
from torch import Tensor

from genodiff.backbones.backbone import PRESETS, Backbone, dropout_keys
from genodiff.backbones.caduceus import CaduceusSettings
from genodiff.backbones.dimamba import DiMambaSettings
from genodiff.backbones.dit import DiTSettings
from genodiff.errors import UsageError

FORMS: list[tuple[str, dict[str, Any]]] = [
    *(("caduceus", form) for form in CADUCEUS_FORMS),
    *(("dimamba", form) for form in DIMAMBA_FORMS),
    *(("dit", form) for form in DIT_FORMS),
]
SIZES = {"caduceus": 16, "dimamba": DIMAMBA_VOCABULARY, "dit": DIT_VOCABULARY}
each_form = pytest.mark.parametrize(("kind", "form"), FORMS, ids=str)


def build(kind: str, form: dict[str, Any]) -> Backbone:
    return {"caduceus": network, "dimamba": dimamba, "dit": dit}[kind](**form).double()


def draw(kind: str, batch: int, length: int) -> Tensor:
    return bases(batch, length) % SIZES[kind]


@pytest.mark.few(11)
@each_form
def test_padding_and_company_change_nothing(kind, form):
    model, lengths, length = build(kind, form), torch.tensor([7, 9, 1]), 9
    x, sigma = draw(kind, 3, length), torch.tensor([0.3, 2.0, 1.0]).double()
    inside = torch.arange(length) < lengths[:, None]
    with torch.no_grad():
        together = [model(x, sigma, lengths), *model.hidden_states(x, sigma, lengths)]
        rubbish = model(torch.where(inside, x, 8), sigma, lengths)
        for row, n in enumerate(lengths.tolist()):
            own = x[row : row + 1, :n], sigma[row : row + 1]
            alone = [model(*own), *model.hidden_states(*own)]
            for one, other in zip(together, alone, strict=True):
                torch.testing.assert_close(one[row, :n], other[0], rtol=0, atol=1e-10)
            torch.testing.assert_close(rubbish[row, :n], alone[0][0], rtol=0, atol=1e-10)


@each_form
def test_sizes_rows_and_hidden_states_agree_with_the_whole(kind, form):
    model, x = build(kind, form), draw(kind, 2, 7)
    rows = torch.rand(2, 7, generator=torch.Generator().manual_seed(1)) < 0.4
    with torch.no_grad():
        whole, states, features = model(x), model.hidden_states(x), model.features(x)
        torch.testing.assert_close(model(x, rows=rows), whole[rows], rtol=0, atol=1e-12)
        assert model(x, rows=torch.zeros_like(rows)).shape == (0, whole.shape[-1])
        if kind != "caduceus":
            torch.testing.assert_close(model.logits(features), whole, rtol=0, atol=1e-12)
    assert len(states) == model.settings.n_layer + 1
    assert torch.equal(states[-1], features)
    assert features.shape[-1] == model.d_out
    assert sum(p.numel() for p in model.parameters()) == model.settings.n_parameters(SIZES[kind])


@pytest.mark.parametrize(("kind", "form"), [("dimamba", {}), *(("dit", f) for f in DIT_FORMS)])
def test_recomputing_blocks_and_dropping_the_same_elements_changes_no_gradient(kind, form):
    x, found = draw(kind, 2, 5), []
    for checkpointing in (False, True):
        model = build(kind, form | {"dropout": 0.3, "checkpointing": checkpointing}).train()
        model.dropout_keys = dropout_keys(5, torch.tensor([3, 4]))
        model(x).square().mean().backward()
        found.append([p.grad for p in model.parameters() if p.grad is not None])
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("kind", "form"),
    [*(("dimamba", {"conditioning": c}) for c in ("adaln", "add", "concat")), ("dit", {})],
)
def test_sigma_matters_where_it_is_asked_for_and_only_there(kind, form):
    x, sigma = draw(kind, 2, 6), torch.tensor([0.5, 2.0]).double()
    told, deaf = (build(kind, form | {"time_conditioning": t}) for t in (True, False))
    with torch.no_grad():
        assert not torch.allclose(told(x, sigma), told(x))
        assert torch.equal(deaf(x, sigma), deaf(x))
        assert kind != "dit" or torch.equal(told(x), told(x, 0 * sigma))


@pytest.mark.parametrize("kind", ["dimamba", "dit"])
def test_no_class_has_a_vector_as_each_class_has(kind):
    model, x = build(kind, {"n_classes": 3}), draw(kind, 2, 6)
    with torch.no_grad():
        found = [model(x, labels=torch.full((2,), label)) for label in (0, 1, 3)]
    assert not any(torch.allclose(one, other) for one, other in combinations(found, 2))


PUBLISHED: dict[str, list[tuple[int, int]]] = {
    "caduceus-ps-470k": [(16, 470_702)],
    "caduceus-ph-470k": [(16, 470_702)],
    "caduceus-ps-1.9m": [(16, 1_934_592)],
    "caduceus-ph-1.9m": [(16, 1_934_592)],
    "caduceus-ps-7.7m": [(16, 7_725_312)],
    "caduceus-ph-7.7m": [(16, 7_725_312)],
    "dimamba-tiny": [(12, 28_407_552), (50258, 79_859_456), (30522, 59_649_792), (28, 28_423_936)],
    "dimamba-4.8m": [(12, 4_774_912)],
    "dimamba-470k": [(16, 471_432)],
    "dit-tiny": [(12, 28_559_116), (50258, 80_061_266), (30522, 59_831_866), (28, 28_575_516)],
    "dit-small": [(12, 92_399_116), (50258, 169_627_218), (30522, 139_292_986), (28, 92_423_708)],
    "dit-medium": [
        (12, 321_522_956),
        (50258, 424_477_010),
        (30522, 384_037_946),
        (28, 321_555_740),
    ],
    "dit-470k": [(16, 471_520)],
    "dit-causal-470k": [(16, 471_520)],
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_presets_have_the_published_sizes(name):
    for vocabulary, size in PUBLISHED[name]:
        assert PRESETS[name].n_parameters(vocabulary) == size
    strands = {"ps": "paired", "ph": "single"}.get(name.split("-")[1])
    assert strands in (None, getattr(PRESETS[name], "strands", None))


@pytest.mark.parametrize(
    ("settings", "given", "said"),
    [
        (CaduceusSettings, {"d_model": 0}, "d_model"),
        (CaduceusSettings, {"dt_rank": 0}, "dt_rank"),
        (CaduceusSettings, {"dt_rank": "many"}, "dt_rank"),
        (CaduceusSettings, {"strands": "both"}, "strands"),
        (CaduceusSettings, {"depth": 3}, "depth"),
        (CaduceusSettings, {"norm_eps": 0}, "norm_eps"),
        (CaduceusSettings, {"strands": "single", "alternate_strands": True}, "strands"),
        (DiMambaSettings, {"residual": False}, "residual cannot be false"),
        (DiMambaSettings, {"conditioning": "add", "dropout": 0.1}, "dropout needs"),
        (DiMambaSettings, {"conditioning": "none"}, "need a conditioning"),
        (DiTSettings, {"n_head": 3}, "multiple of n_head"),
        (DiTSettings, {"d_model": 15, "n_head": 5}, "odd width"),
        (DiTSettings, {"n_head": 2, "adaln": False, "n_classes": 2}, "need adaln"),
        (DiTSettings, {"n_head": 2, "qk_bias": True, "rotary": False}, "qk_bias needs rotary"),
    ],
)
def test_settings_that_cannot_be_built_are_refused(settings, given, said):
    with pytest.raises(UsageError, match=said):
        settings.parse({"d_model": 16, "n_layer": 1} | given)
