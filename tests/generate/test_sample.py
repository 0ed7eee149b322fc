"""Sampling in a world whose law is known, for records that depend on (seed, index) alone; and how
many steps a wanted loss of bits takes.
"""

import copy
import json
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from markov_world import (
    BASES,
    MASK,
    Chain,
    chain_law,
    codes,
    distance,
    draft,
    drawn,
    model,
    sequences,
    step_law,
    sticky,
)
from torch import Tensor, nn

from genodiff.alphabet import DNA
from genodiff.counter import Purpose, uniforms
from genodiff.diffusion.loss import count_terms, nelbo_discrete, nelbo_exact
from genodiff.diffusion.sampler import SAMPLERS
from genodiff.diffusion.schedule import schedule
from genodiff.errors import GenodiffError, UsageError
from genodiff.generate import filler as room
from genodiff.generate.estimate import bits_lost, choose_steps, find_curve
from genodiff.generate.infill import Template
from genodiff.generate.sample import Sampling, infill, measure_workload, plan_draft, sample

MASKED = [name for name, one in SAMPLERS.items() if "masked" in one.fits]


@pytest.mark.few(1)
@pytest.mark.parametrize("steps", [1, 2, 4])
def test_samples_follow_the_exact_law_of_the_ancestral_sampler(steps):
    chain = sticky(0.9)
    law = step_law(chain, np.full(4, MASK), steps)
    ids = drawn(sample(model(chain, 4), 8000, 4, seed=11, steps=steps, batch_size=4000))
    assert abs(distance(codes(ids), law)) < 4
    assert distance(codes(ids), chain_law(chain, 4)) > 10, "no law but its own"


@pytest.mark.slow
def test_one_base_at_a_time_follows_the_law_of_the_data():
    chain, how = sticky(0.7), {"sampler": "first-hitting", "batch_size": 4000}
    ids = drawn(sample(model(chain, 4), 8000, 4, seed=12, **how))
    assert abs(distance(codes(ids), chain_law(chain, 4))) < 4


@pytest.mark.few(1)
@pytest.mark.parametrize("text", ["NANN", "CNNG", "NNNT"])
@pytest.mark.parametrize("steps", [None, 2])
def test_a_template_is_filled_by_the_exact_conditional_law(text, steps):
    chain, start = sticky(0.7), draft(text)
    law = chain_law(chain, 4) if steps is None else step_law(chain, start, steps)
    law = np.where((sequences(4) == start)[:, start != MASK].all(1), law, 0)
    sampler = "first-hitting" if steps is None else "ancestral"
    how = Sampling(sampler=sampler, steps=steps, batch_size=4000)
    ids = drawn(infill(model(chain, 4), [start] * 6000, how=how, seed=13))
    assert abs(distance(codes(ids), law / law.sum())) < 4


@pytest.mark.few(2)
@pytest.mark.parametrize(("steps", "length"), [(16, 12), (64, 12), (5, 30), (1, 7)])
def test_the_mean_number_of_evaluations_is_that_of_the_linear_grid(steps, length):
    how = {"seed": 14, "steps": steps, "batch_size": 1000}
    nfe = np.array([s.nfe for s in sample(model(sticky(0.5), length), 3000, length, **how)])
    expected = steps * (1 - (1 - 1 / steps) ** length)
    assert nfe.max() <= min(steps, length)
    assert abs(nfe.mean() - expected) <= 4 * nfe.std() / np.sqrt(len(nfe)) + 1e-12


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["linear", "cosine", "one_minus_cosine"])
@pytest.mark.parametrize("sampler", MASKED)
def test_the_workload_foretells_what_sampling_takes(sampler, name):
    how = Sampling(sampler=sampler, steps=9, stride=5, batch_size=100)
    texts = ["N" * 30, "ACGT", "ANNNNG" + "A" * 20 + "NCNNCN"]
    world, calls = model(sticky(0.6), 12, name), []
    gaps = [Template("", "", t.encode()).gaps for t in texts]
    told = measure_workload(world, how, ((one, plan_draft(world, how, one)) for one in gaps))
    found = list(infill(world, [draft(t) for t in texts] * 100, how=how, tick=calls.append))
    assert (told.records, told.bases) == (3, 38)
    assert told.windows == (1 + 4) + (1 + 2)
    nfe = np.array([s.nfe for s in found]).reshape(100, 3).sum(1)
    assert sum(calls) == nfe.sum()
    assert abs(nfe.mean() - told.evaluations) <= 4 * nfe.std() / np.sqrt(len(nfe)) + 1e-9


@pytest.mark.parametrize("steps", [1, 4, 64])
def test_what_steps_cost_follows_from_the_curve_over_mask_rates(steps):
    rates = np.linspace(0, 1, 41)
    linear, cosine = schedule("linear"), schedule("cosine")
    assert bits_lost([(r, 1.3) for r in rates], cosine, steps) == pytest.approx(0, abs=1e-9)
    rising = [(r, 0.8 * r * np.log(2)) for r in rates]
    assert bits_lost(rising, linear, steps) == pytest.approx(0.8 / (2 * steps), abs=1e-6)
    masked = 1 - np.cos(np.pi / 2 * np.arange(steps, -1, -1) / steps)
    expected = 0.8 * ((-np.diff(masked) * masked[:-1]).sum() - 0.5)
    assert bits_lost(rising, cosine, steps) == pytest.approx(expected, abs=1e-6)


def test_what_steps_cost_is_the_gap_between_the_bounds_of_a_long_chain():
    chain, n = sticky(0.7), 16
    world = model(chain, n)
    x0 = torch.tensor(drawn(sample(world, 1, n, sampler="first-hitting", seed=4))[0]).long()
    exact, everywhere = copy.deepcopy(chain).double(), torch.ones(n, dtype=torch.bool)
    terms = count_terms(world.diffusion, exact, x0, everywhere)
    curve = [(k / n, float(terms[k]) / k) for k in range(1, n + 1)]
    gap = float(nelbo_discrete(terms, schedule("linear"), 8) - nelbo_exact(terms)) / n / np.log(2)
    assert bits_lost(curve, schedule("linear"), 8) == pytest.approx(gap, rel=0.25)


def test_evaluations_are_counted_where_made_and_only_active_sequences_are_evaluated():
    chain = sticky(0.5)
    found = list(sample(model(chain, 8), 50, 20, seed=15, steps=10, stride=3, batch_size=20))
    assert sum(s.nfe for s in found) == chain.rows


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("sampler", "length"), [*((name, 24) for name in MASKED), ("ancestral", 61)]
)
def test_the_bytes_do_not_depend_on_batch_size_or_on_float_noise(sampler, length):
    how = {"sampler": sampler, "steps": 12, "seed": 16}
    n = 12 if sampler == "confidence" else 66
    runs = [
        drawn(sample(model(sticky(0.6, 9e-5), 24), n, length, batch_size=b, **how))
        for b in (1, 3, 64)
    ]
    calm = drawn(sample(model(sticky(0.6), 24), n, length, batch_size=64, **how))
    assert all(np.array_equal(run, calm) for run in runs)


@pytest.mark.parametrize("sampler", ["ancestral", "confidence"])
def test_without_the_exact_network_float_noise_would_change_bytes(sampler, monkeypatch):
    monkeypatch.setattr(room, "ExactNetwork", lambda *_: None)
    how = {"sampler": sampler, "steps": 12, "seed": 16}
    runs = [
        drawn(sample(model(sticky(0.6, 1e-3), 24), 200, 61, batch_size=b, **how))
        for b in (100, 200)
    ]
    assert not np.array_equal(*runs)


def test_the_exact_network_is_a_float64_copy_that_is_built_once_and_only_when_asked_for():
    asked: list[tuple[torch.dtype, int]] = []

    class Watched(Chain):
        def forward(
            self, xt: Tensor, sigma: Tensor | None = None, lengths: Tensor | None = None
        ) -> Tensor:
            asked.append((self.left.dtype, len(xt)))
            return super().forward(xt, sigma, lengths)

    fair = Watched(np.full((4, 4), 0.25), np.full(4, 0.25))
    list(sample(model(fair, 8), 2, 8, seed=1))
    assert {dtype for dtype, _ in asked} == {torch.float32}
    list(sample(model(fair, 8), 1000, 8, seed=1, batch_size=500))
    exact = [rows for dtype, rows in asked if dtype == torch.float64]
    assert 0 < len(exact) < 100
    assert set(exact) == {1}
    assert fair.left.dtype == torch.float32


def test_record_i_is_a_function_of_seed_and_i():
    chain = sticky(0.6)
    five = drawn(sample(model(chain, 16), 5, 16, seed=3, steps=8))
    three = drawn(sample(model(chain, 16), 3, 16, seed=3, steps=8))
    other = drawn(sample(model(chain, 16), 5, 16, seed=4, steps=8))
    assert np.array_equal(five[:3], three)
    assert (five != other).mean() > 0.4
    assert len({row.tobytes() for row in five}) == 5


def test_position_j_draws_the_jth_uniform_of_its_record_whatever_the_length():
    independent = Chain(np.full((4, 4), 0.25), np.full(4, 0.25))
    long = drawn(sample(model(independent, 8), 4, 30, seed=5, stride=3))
    short = drawn(sample(model(independent, 8), 4, 11, seed=5))
    assert np.array_equal(long[:, :11], short)
    u = np.stack([uniforms(5, Purpose.SAMPLE_TOKEN, i, 30) for i in range(4)])
    assert np.array_equal(long, BASES[(u * 4).astype(int)])


def test_only_bases_come_out_unless_n_is_allowed():
    untrained = nn.Module()
    untrained.forward = lambda xt, sigma=None, lengths=None: torch.zeros(*xt.shape, DNA.padded_size)  # type: ignore[method-assign]
    plain = drawn(sample(model(untrained, 50), 40, 50, seed=1))
    assert set(np.unique(plain)) == set(DNA.targets)
    allowed = drawn(sample(model(untrained, 50), 40, 50, seed=1, allow_n=True))
    assert set(np.unique(allowed)) == {*DNA.targets, int(DNA.encode("N")[0])}


def test_temperature_0_takes_the_likeliest_base_and_top_p_drops_the_unlikely_ones():
    chain = Chain(np.tile([0.1, 0.2, 0.6, 0.1], (4, 1)), np.array([0.1, 0.2, 0.6, 0.1]))
    assert set(np.unique(drawn(sample(model(chain, 9), 20, 9, temperature=0)))) == {9}
    assert set(np.unique(drawn(sample(model(chain, 9), 60, 9, top_p=0.7)))) == {8, 9}
    cold = drawn(sample(model(chain, 20), 300, 20, temperature=0.5, batch_size=300))
    p = np.array([0.1, 0.2, 0.6, 0.1]) ** 2
    assert abs(distance(cold.ravel() - BASES[0], p / p.sum())) < 4


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"steps": 0}, "steps 0"),
        ({"steps": 10**12}, "steps 1,000,000,000,000"),
        ({"batch_size": 0}, "batch-size 0"),
        ({"stride": 0}, "stride 0"),
        ({"stride": 9}, "stride 9"),
        ({"temperature": float("nan")}, "temperature nan"),
        ({"temperature": -1.0}, "temperature -1"),
        ({"temperature": float("inf")}, "temperature inf"),
        ({"top_p": 0.0}, "top-p 0"),
        ({"top_p": 1.5}, "top-p 1.5"),
        ({"top_p": float("nan")}, "top-p nan"),
        ({"sampler": "ancestrol"}, "did you mean 'ancestral'"),
        ({"seed": -1}, "seed -1"),
        ({"seed": 1 << 64}, "seed 18446744073709551616"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_any_work(arguments, named):
    chain = sticky(0.6)
    with pytest.raises(UsageError, match=named):
        sample(model(chain, 8), **{"n": 2, "length": 8, **arguments})
    assert chain.calls == 0


RATES = [(i + 0.5) / 200 for i in range(200)]
SLOPE = 0.8 * math.log(2)


def rising() -> list[tuple[float, float]]:
    """C_k / k = 0.8 bits x masked share: T linear steps lose 0.8 / (2 T) bits a base."""
    return [(0.0, 0.0), *((r, SLOPE * r) for r in RATES), (1.0, SLOPE)]


@pytest.mark.parametrize(
    ("wanted", "steps"), [(0.41, 1), (0.05, 8), (0.4 / 37.5, 38), (4e-4, 1000)]
)
def test_the_fewest_steps_of_a_known_curve(wanted, steps):
    found = choose_steps(rising(), schedule("linear"), wanted * (1 + 1e-4))
    assert found == steps
    assert bits_lost(rising(), schedule("linear"), found) <= wanted * (1 + 1e-4)
    if found > 1:
        assert bits_lost(rising(), schedule("linear"), found - 1) > wanted


def test_a_flat_curve_needs_one_step_and_too_small_a_loss_is_refused():
    assert choose_steps([(r, 1.3) for r in RATES], schedule("cosine"), 1e-6) == 1
    with pytest.raises(UsageError, match="loses so little"):
        choose_steps(rising(), schedule("linear"), 1e-6)


def evaluation(nats: float = 1.0) -> dict[str, Any]:
    return {"split": "valid", "curve": [{"rate_lo": 0.0, "rate_hi": 1.0, "nats": nats}]}


def test_the_curve_is_measured_once_and_kept_with_the_hash_of_the_weights(tmp_path):
    calls = []

    def measure() -> dict[str, Any]:
        calls.append(1)
        return evaluation(len(calls))

    model: Any = SimpleNamespace(run=tmp_path, digest="aaa")
    assert find_curve(model, measure) == find_curve(model, measure) == [(0.5, 1.0)]
    assert len(calls) == 1
    other: Any = SimpleNamespace(run=tmp_path, digest="bbb")
    assert find_curve(other, measure) == [(0.5, 2.0)]
    assert len(calls) == 2


def test_an_evaluation_of_the_same_weights_is_read_first(tmp_path):
    kept = {"valid": evaluation(1.5) | {"checkpoint": "aaa"}}
    (tmp_path / "eval.json").write_text(json.dumps(kept))
    model: Any = SimpleNamespace(run=tmp_path, digest="aaa")
    assert find_curve(model, dict) == [(0.5, 1.5)]
    changed: Any = SimpleNamespace(run=tmp_path, digest="bbb")
    with pytest.raises(GenodiffError, match="no curve"):
        find_curve(changed, dict)
