"""ReMDM against its enumerated distribution, and its limit, the ancestral sampler."""

import numpy as np
import pytest
import torch
from sampling import draws, masks, run_sampler
from small_worlds import States, assert_counts, random_world

from genodiff.diffusion.draw import draw_again
from genodiff.diffusion.sampler import SAMPLERS, SamplerOptions, revealed_share
from genodiff.diffusion.samplers.ancestral import ancestral
from genodiff.diffusion.samplers.remasking import RemaskPlan, plan_cap, plan_loop, plan_rescale
from genodiff.diffusion.schedule import Cosine, Linear, Schedule

SETTINGS = {
    "remdm-cap": {"eta": 0.3},
    "remdm-rescale": {"eta": 0.7},
    "remdm-loop": {"eta": 0.4, "t_on": 0.6, "t_off": 0.2, "alpha_on": 0.6},
}
PLANS = {"remdm-cap": plan_cap, "remdm-rescale": plan_rescale, "remdm-loop": plan_loop}


def plan(name: str, noise: Schedule, steps: int) -> RemaskPlan:
    return PLANS[name](revealed_share(noise, steps).numpy(), **SETTINGS[name])


@pytest.mark.few(4)
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("noise", [Linear(), Cosine()], ids=repr)
@pytest.mark.parametrize("steps", [1, 2, 5, 40])
def test_chances_are_chances_and_the_share_revealed_is_met(name, noise, steps):
    made = plan(name, noise, steps)
    before = np.concatenate([[0.0], made.share[:-1]])
    for chance in (made.reveal, made.remask):
        assert ((chance >= 0) & (chance <= 1)).all()
    after = before * (1 - made.remask) + (1 - before) * made.reveal
    assert after == pytest.approx(made.share, abs=1e-12)
    assert made.share[-1] == 1
    largest = np.minimum(1, (1 - made.share) / np.maximum(before, 1e-300))
    assert (made.remask <= largest + 1e-12).all()
    if name != "remdm-loop":
        assert made.share == pytest.approx(revealed_share(noise, steps).numpy())


def test_the_loop_stays_at_its_share_and_takes_back_there_alone():
    made = plan_loop(revealed_share(Linear(), 20).numpy(), 0.4, 0.6, 0.2, 0.75)
    assert made.share[7:16] == pytest.approx([0.75] * 9)
    assert (made.remask[:8] == 0).all()
    assert made.remask[8:16] == pytest.approx([1 / 3] * 8)  # the largest at 0.75
    assert (made.remask[16:] == 0).all()
    assert made.share[:8] == pytest.approx(0.75 * np.arange(1, 9) / 8)
    assert made.share[15:] == pytest.approx(0.75 + 0.25 * np.arange(5) / 4)
    assert made.time == pytest.approx(1 - np.concatenate([[0.0], made.share[:-1]]))


@pytest.mark.parametrize(("name", "steps"), list(zip(SETTINGS, (3, 5, 6), strict=True)))
def test_samples_follow_the_chain_over_all_states(name, steps):
    world, n = random_world(3, seed=steps), 10_000
    states = States(world)
    made = plan(name, Linear(), steps)
    law = states.start()
    for reveal, remask in zip(made.reveal, made.remask, strict=True):
        law = states.move(law, float(reveal), float(remask))
    options = SamplerOptions(**draws(n, 3), steps=steps)
    run = SAMPLERS[name].draw
    found = run(world.diffusion(), states.denoiser, masks(n, 3), options, **SETTINGS[name])
    exact = states.of_sequences(law)
    assert exact.sum().item() == pytest.approx(1, abs=1e-9)
    assert_counts(world, found.x0, exact)
    plain = states.start()
    for reveal in plan_cap(revealed_share(Linear(), steps).numpy(), 0.0).reveal:
        plain = states.move(plain, float(reveal))
    if (made.remask > 0).any():  # else the test could not tell it from the ancestral sampler
        assert (states.of_sequences(plain) - exact).abs().sum() > 0.01


@pytest.mark.parametrize("name", ["remdm-cap", "remdm-rescale"])
def test_without_remasking_it_is_the_ancestral_sampler_bit_for_bit(name):
    world, u, xt = random_world(), draws(200, 4), masks(200, 4)
    xt[::3, 1] = 8
    options = SamplerOptions(**u, steps=5)
    found = SAMPLERS[name].draw(world.diffusion(), world.denoiser, xt, options, eta=0.0)
    plain = run_sampler(ancestral, world.diffusion(), world.denoiser, xt, **u, steps=5)
    assert torch.equal(found.x0, plain.x0)
    assert torch.equal(found.nfe, plain.nfe)


def test_further_uniforms_are_uniform_and_independent():
    u = torch.rand(40_000, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    rows = torch.stack([u, *(draw_again(u, i) for i in range(4))])
    assert ((rows >= 0) & (rows < 1)).all()
    correlation = torch.corrcoef(rows) - torch.eye(5)
    assert correlation.abs().max() < 4 / 200
    counts = torch.stack([torch.histc(row, 16, 0, 1) for row in rows])
    assert ((counts - 2500).abs() < 5 * 50).all()
    # Keys that differ in their last digit alone, as neighbours on a grid do.
    near = draw_again(torch.arange(40_000, dtype=torch.float64) * 2.0**-53, 0)
    assert abs(near.mean().item() - 0.5) < 4 / (12 * 40_000) ** 0.5
    assert abs(torch.corrcoef(torch.stack([near[1:], near[:-1]]))[0, 1].item()) < 4 / 200
