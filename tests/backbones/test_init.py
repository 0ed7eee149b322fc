"""Initial weights have the reference's distributions and its marks for the optimizer."""

import json
import math

import pytest
import torch
from tiny_networks import COMPLEMENT

from genodiff.backbones.backbone import PRESETS, InitialValues
from genodiff.hub.caduceus import map_names
from genodiff.hub.tensor_names import reshape_as_published


@pytest.fixture
def stats(shared):
    path = shared / "conformance" / "cases" / "init_stats_caduceus_467k.json"
    return json.loads(path.read_text())["stats"]


def test_every_tensor_is_distributed_as_the_references(stats):
    settings = PRESETS["caduceus-ps-470k"]
    model, names = settings.build(16, COMPLEMENT, seed=1), map_names(settings)
    ours = {
        names[here]: reshape_as_published(names[here], p) for here, p in model.named_parameters()
    }
    assert set(ours) == {
        name for name in stats if "complement_map" not in name and "lm_head" not in name
    }
    for name, p in ours.items():
        wanted, x = stats[name], p.detach().double()
        assert list(x.shape) == wanted["shape"], name
        n, spread = x.numel(), wanted["max"] - wanted["min"]
        if wanted["std"] == 0 or name.endswith("A_log"):
            for statistic in ("mean", "std", "min", "max"):
                assert float(getattr(x, statistic)()) == pytest.approx(
                    wanted[statistic], abs=1e-6
                ), name
            continue
        # Both are samples of n: their means differ by sqrt(2/n) deviations, their deviations by
        # less than sqrt(2/n) of themselves.
        assert abs(float(x.mean()) - wanted["mean"]) < 5 * wanted["std"] * math.sqrt(2 / n), name
        assert float(x.std()) == pytest.approx(wanted["std"], rel=5 / math.sqrt(n)), name
        edge = spread * (
            0.25 if "embedding" in name else 20 / n
        )  # a normal has no edge; a uniform's extremes come within 1/n of it
        assert abs(float(x.min()) - wanted["min"]) < edge, name
        assert abs(float(x.max()) - wanted["max"]) < edge, name


def test_the_marks_against_weight_decay_are_the_references_and_those_of_step_sizes(stats):
    settings = PRESETS["caduceus-ps-470k"]
    names = map_names(settings)
    for here, p in settings.build(16, COMPLEMENT).named_parameters():
        marked = getattr(p, "_no_weight_decay", False)
        assert marked == (stats[names[here]]["no_weight_decay"] or here.endswith("dt_bias")), here


def test_the_projections_out_shrink_with_depth_and_biases_of_projections_start_at_zero():
    for n_layer in (1, 9):
        settings = PRESETS["caduceus-ph-470k"].model_copy(
            update={"n_layer": n_layer, "proj_bias": True}
        )
        mixer = settings.build(16, None).blocks[0].mixer
        bound = 1 / math.sqrt(236 * n_layer)
        assert 0.99 * bound < float(mixer.out_proj.weight.detach().abs().max()) <= bound  # type: ignore[union-attr, operator]
        assert not mixer.out_proj.bias.any()  # type: ignore[union-attr, operator]


def test_the_initial_steps_lie_between_a_thousandth_and_a_tenth():
    network = PRESETS["caduceus-ps-1.9m"].build(16, COMPLEMENT)
    bias = network.blocks[0].mixer.ahead.dt_bias.detach()  # type: ignore[union-attr, operator]
    steps = torch.nn.functional.softplus(bias.double())
    assert float(steps.min()) == pytest.approx(1e-3, rel=0.05)
    assert float(steps.max()) == pytest.approx(0.1, rel=0.05)
    assert float(steps.log().mean()) == pytest.approx(math.log(1e-2), abs=0.3)


def test_draws_depend_on_seed_and_number_alone():
    state = torch.get_rng_state()
    a, b = InitialValues(3), InitialValues(3)
    first, second = a.uniform(4), a.normal(5, std=2.0)
    assert torch.equal(b.uniform(4), first)
    assert torch.equal(b.normal(5, std=2.0), second)
    assert not torch.equal(InitialValues(4).uniform(4), first)
    assert torch.equal(torch.get_rng_state(), state)
    many = InitialValues(0).normal(100_000, std=0.02)
    assert float(many.mean()) == pytest.approx(0, abs=3e-4)
    assert float(many.std()) == pytest.approx(0.02, rel=0.02)
    assert float((many / 0.02).pow(4).mean()) == pytest.approx(3, rel=0.05)
