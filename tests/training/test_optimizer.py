"""The learning rate, the groups of weight decay, the average of the weights (law 20)."""

import json
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_training import tiny

from genodiff.alphabet import DNA
from genodiff.runs.model import build_backbone, collect_tensors, fill_module
from genodiff.runs.sections import OptimSettings
from genodiff.training.optimizer import (
    WeightAverage,
    adamw,
    ema_decay,
    has_weight_decay,
    learning_rate,
    read_moments,
    set_moments,
)


def test_the_constant_schedule_is_that_of_the_reference(shared):
    case = json.loads((shared / "conformance/cases/lr_constant_warmup.json").read_text())
    settings = OptimSettings(lr=3e-4, lr_schedule="constant", warmup_steps=2500)
    for step, expected in case["values"]:
        assert learning_rate(step, settings, 1_000_000) == pytest.approx(expected, rel=1e-12)


def test_the_cosine_rises_to_lr_and_ends_at_its_floor():
    settings = OptimSettings(lr=1e-3, lr_min_ratio=0.1, warmup_steps=10)
    rates = [learning_rate(step, settings, 200) for step in range(201)]
    assert rates[0] == 0
    assert rates[5] == pytest.approx(5e-4)
    assert max(rates) == rates[10] == 1e-3
    assert rates[105] == pytest.approx(1e-3 * (0.1 + 0.9 / 2))
    assert rates[200] == pytest.approx(1e-4)
    assert all(a >= b for a, b in pairwise(rates[10:]))


def test_a_short_run_is_not_spent_on_warming_up():
    settings = OptimSettings(lr=1e-3, warmup_steps=100)
    assert learning_rate(2, settings, 20) == 1e-3
    assert learning_rate(2, settings, None) == pytest.approx(2e-5)


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.integers(0, 1000), st.floats(0, 1))
def test_the_rate_is_never_negative_nor_above_lr(step, horizon, warmup, ratio):
    settings = OptimSettings(lr=0.5, warmup_steps=warmup, lr_min_ratio=ratio)
    assert 0 <= learning_rate(step, settings, horizon) <= 0.5


def test_norms_biases_embeddings_and_what_the_reference_exempts_do_not_decay():
    backbone = build_backbone(tiny(norm="layer", strands="single", tie_head=False), DNA)
    exempt = {name for name, p in backbone.named_parameters() if not has_weight_decay(name, p)}
    for name, parameter in backbone.named_parameters():
        last = name.split(".")[-1]
        marked = hasattr(parameter, "_no_weight_decay")
        special = parameter.ndim < 2 or last in ("embedding", "head") or marked
        assert (name in exempt) == special
    assert {"embedding", "head"} < exempt
    assert any("A_log" in name for name in exempt)
    groups = adamw(backbone, OptimSettings(weight_decay=0.3)).param_groups
    assert [g["weight_decay"] for g in groups] == [0.3, 0.0]
    assert sum(len(g["params"]) for g in groups) == len(list(backbone.parameters()))


def test_the_average_follows_its_closed_form_for_constant_updates():
    module = torch.nn.Linear(3, 2)
    start = module.weight.detach().clone()
    average = WeightAverage(module, 0.9)
    with torch.no_grad():
        module.weight.add_(1.0)
    left = 1.0
    for update in range(1, 200):
        average.update(module)
        left *= min(0.9, (1 + update) / (10 + update))
        torch.testing.assert_close(average.module.weight, start + (1 - left), rtol=1e-5, atol=1e-5)
    assert torch.equal(module.weight, start + 1)


def test_the_decay_warms_up_as_mdlm_has_it():
    assert ema_decay(1, 0.9999) == 2 / 11
    assert ema_decay(90, 0.9999) == 91 / 100
    assert ema_decay(10**6, 0.9999) == 0.9999


def test_average_and_moments_survive_a_round_trip():
    def step(
        backbone: torch.nn.Module, optimizer: torch.optim.Optimizer, average: WeightAverage
    ) -> None:
        optimizer.zero_grad()
        sum((p * p.detach().cos()).sum() for p in backbone.parameters()).backward()
        optimizer.step()
        average.update(backbone)

    settings = OptimSettings(lr=0.01, weight_decay=0.1)
    backbone = build_backbone(tiny(), DNA)
    optimizer, average = adamw(backbone, settings), WeightAverage(backbone, 0.99)
    step(backbone, optimizer, average)
    step(backbone, optimizer, average)
    modules = (collect_tensors(backbone), collect_tensors(average.module))
    every = (*modules, read_moments(optimizer, backbone))
    saved = [{n: t.clone() for n, t in tensors.items()} for tensors in every]
    step(backbone, optimizer, average)
    other = build_backbone(tiny(seed=5), DNA)
    other_optimizer, other_average = adamw(other, settings), WeightAverage(other, 0.99)
    fill_module(other, saved[0])
    fill_module(other_average.module, saved[1])
    other_average.updates = 2
    set_moments(other_optimizer, other, saved[2])
    step(other, other_optimizer, other_average)
    for mine, theirs in ((backbone, other), (average.module, other_average.module)):
        for (name, a), b in zip(mine.named_parameters(), theirs.parameters(), strict=True):
            assert torch.equal(a, b), name
