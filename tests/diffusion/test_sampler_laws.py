"""Samplers in enumerated worlds: the distribution of their samples."""

import itertools

import pytest
import torch
from enumerated import FIVE, as_ratios, read_one_way
from sampling import MASKED, draws, masks, run_sampler
from small_worlds import assert_counts
from torch import Tensor
from worlds import World, independent, markov_chain

from genodiff.diffusion.likelihood import count_terms, nelbo_discrete
from genodiff.diffusion.sampler import SAMPLERS
from genodiff.diffusion.samplers.ancestral import ancestral
from genodiff.diffusion.schedule import (
    Cosine,
    Linear,
    LogLinear,
    OneMinusCosine,
    Polynomial,
    Schedule,
)

F1 = markov_chain()


# T: total variation to the data, KL(data || sampler); ancestral, perfect denoiser, linear grid
STEP_LAW = {
    1: (0.604000, 1.104193),
    2: (0.344834, 0.288768),
    4: (0.180098, 0.085293),
    8: (0.091591, 0.024893),
    16: (0.046134, 0.006987),
    64: (0.011592, 0.000494),
    256: (0.002901, 0.000032),
}


def exact_law(world: World, noise: Schedule, steps: int, start: Tensor | None = None) -> Tensor:
    """The chance of each sequence of the world after `steps` reverse kernels, by enumerating all
    masked states.
    """
    diffusion = world.diffusion(noise)
    letters = sorted((*world.targets, world.mask_id))
    states = torch.tensor(list(itertools.product(letters, repeat=world.length)))
    logp = diffusion.log_x0(world.denoiser(states, states[:, 0]), states)
    begin = masks(1, world.length, world.mask_id)[0] if start is None else start
    p = (states == begin).all(-1).double()
    for j in range(steps):
        t, s = (torch.full((len(states),), 1 - i / steps, dtype=torch.float64) for i in (j, j + 1))
        kernel = diffusion.reverse(logp, states, t, s)  # (states, L, V)
        move = torch.ones(len(states), len(states), dtype=torch.float64)
        for position in range(world.length):
            move *= kernel[:, position, states[:, position]]
        p = p @ move
    where = [(states == x).all(-1).nonzero().item() for x in world.sequences]
    return p[where]


@pytest.mark.parametrize("steps", STEP_LAW)
def test_the_reverse_kernels_lead_to_the_published_law(steps):
    law = exact_law(F1, Linear(), steps)
    assert law.sum().item() == pytest.approx(1, abs=1e-12)
    variation = (law - F1.p).abs().sum().item() / 2
    divergence = (F1.p * (F1.p / law).log()).sum().item()
    assert (variation, divergence) == pytest.approx(STEP_LAW[steps], abs=5.1e-7)


@pytest.mark.few(3)
@pytest.mark.parametrize("noise", FIVE, ids=repr)
@pytest.mark.parametrize("steps", [1, 3, 10])
def test_sampling_error_is_at_most_what_the_bound_of_t_steps_exceeds_the_entropy_by(noise, steps):
    ok = torch.ones(4, dtype=torch.bool)
    terms = sum(
        p * count_terms(F1.diffusion(), F1.denoiser, x, ok)
        for x, p in zip(F1.sequences, F1.p, strict=True)
    )
    excess = nelbo_discrete(terms, noise, steps).item() - F1.entropy
    divergence = (F1.p * (F1.p / exact_law(F1, noise, steps)).log()).sum().item()
    assert divergence <= excess + 1e-12
    if steps == 1:
        assert divergence == pytest.approx(excess, abs=1e-12)


N = 20_000


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("noise", "steps"),
    [
        *((Linear(), steps) for steps in (1, 2, 4, 16)),
        (Cosine(), 3),
        (OneMinusCosine(), 4),
        (Polynomial(), 2),
        (LogLinear(0.1), 3),
    ],
    ids=repr,
)
def test_ancestral_samples_follow_the_exact_law_of_t_steps(noise, steps):
    done = run_sampler(
        ancestral, F1.diffusion(noise), F1.denoiser, masks(N, 4), **draws(N, 4), steps=steps
    )
    assert_counts(F1, done.x0, exact_law(F1, noise, steps))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "sampler",
    [one for one in SAMPLERS.values() if not one.judges_tokens and "uniform" not in one.fits],
)
@pytest.mark.parametrize("steps", [1, 3])
def test_independent_tokens_follow_their_law_whatever_the_steps(sampler, steps):
    world = independent(3, (0.1, 0.2, 0.7))
    net = world.denoiser if "masked" in sampler.fits else as_ratios(world, world.denoiser)
    found = run_sampler(sampler, world.diffusion(), net, masks(N, 3), **draws(N, 3), steps=steps)
    assert_counts(world, found.x0, world.p)


def test_a_one_way_network_draws_the_data():
    sampler, net = SAMPLERS["left-to-right"], read_one_way(F1)
    found = run_sampler(sampler, F1.diffusion(), net, masks(N, 4), **draws(N, 4), causal=True)
    assert_counts(F1, found.x0, F1.p)
    assert (found.nfe == 4).all()


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "name", [name for name, one in SAMPLERS.items() if one in MASKED and not one.judges_tokens]
)
def test_a_template_is_filled_from_the_exact_conditional_law(name):
    template = torch.tensor([3, 2, 3, 4])
    x0 = run_sampler(
        SAMPLERS[name], F1.diffusion(), F1.denoiser, template.expand(N, 4), **draws(N, 4), steps=64
    ).x0
    law = torch.where((F1.sequences[:, 1] == 2) & (F1.sequences[:, 3] == 4), F1.p, 0)
    if name == "ancestral":
        law = exact_law(F1, Linear(), 64, template)
    assert_counts(F1, x0, law)
