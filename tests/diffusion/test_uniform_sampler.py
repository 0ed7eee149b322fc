"""Ancestral sampling under uniform noise against Bayes' rule."""

import pytest
import torch
from noisy_worlds import Network, chain_law, forward, list_states, wrong
from sampling import draws, masks
from small_worlds import assert_counts, number_rows, random_world
from torch import Tensor
from worlds import World

from genodiff.diffusion.mixed_noise import MixedNoise, Noising
from genodiff.diffusion.sampler import SamplerOptions
from genodiff.diffusion.samplers.uniform_ancestral import uniform_ancestral
from genodiff.errors import UsageError

WORLD = random_world(2, 4, seed=5)
N = 10_000


def looked_up(world: World, network: Network, share: float, ends: list[float]) -> Network:
    """The network as a table of states and times: many samples are quick."""
    states, process = list_states(world), MixedNoise(world.diffusion(time_conditioning=True), share)
    row = number_rows(states)
    told = process.sigma(torch.tensor(ends[:-1], dtype=torch.float64))
    tables = {round(float(sigma), 6): network(states, sigma.expand(len(states))) for sigma in told}

    def lookup(z: Tensor, sigma: Tensor) -> Tensor:
        return tables[round(float(sigma[0]), 6)][row(z)]

    return lookup


def find_ends(world: World, share: float, steps: int, start: float = 1.0) -> list[float]:
    process = MixedNoise(world.diffusion(), share)
    grid = torch.arange(steps, -1, -1, dtype=torch.float64) / steps
    return process.share(start * grid)[0].tolist()


def of_sequences(world: World, law: Tensor) -> Tensor:
    return law[number_rows(list_states(world))(world.sequences)]


@pytest.mark.few(2)
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("correct", [0.0, 0.5])
@pytest.mark.parametrize("steps", [1, 4])
def test_samples_have_the_law_of_the_chain(share, correct, steps):
    ends = find_ends(WORLD, share, steps)
    network = looked_up(WORLD, wrong(WORLD, share), share, ends)
    options = SamplerOptions(**draws(N, 2), steps=steps, noising=Noising(share))
    diffusion = WORLD.diffusion(time_conditioning=True)
    found = uniform_ancestral(diffusion, network, masks(N, 2), options, correct=correct)
    law = chain_law(share, wrong(WORLD, share), WORLD, ends, correct)
    assert float(law.sum()) == pytest.approx(1, abs=1e-9)
    assert_counts(WORLD, found.x0, of_sequences(WORLD, law))
    assert int(found.nfe.max()) == steps


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_from_a_noised_sequence_it_has_the_law_of_the_chain_from_there(share):
    """And the shorter the way, the nearer to what stood there."""
    x, kept = WORLD.sequences[6], []
    for start in (0.2, 0.7):
        ends = find_ends(WORLD, share, 3, start)
        network = looked_up(WORLD, wrong(WORLD, share), share, ends)
        real = x.expand(N, -1)
        noising = Noising(share, start, real)
        options = SamplerOptions(**draws(N, 2, seed=1), steps=3, noising=noising)
        diffusion = WORLD.diffusion(time_conditioning=True)
        found = uniform_ancestral(diffusion, network, masks(N, 2), options).x0
        states = list_states(WORLD)
        begin = forward(WORLD, x[None], states, share, 1 - ends[0]).prod(-1)
        law = chain_law(share, wrong(WORLD, share), WORLD, ends, begin=begin)
        assert_counts(WORLD, found, of_sequences(WORLD, law))
        kept.append(float((found == x).double().mean()))
    assert kept[0] > kept[1] + 0.1


def test_a_sequence_that_no_step_changed_is_not_looked_at_again():
    calls = []

    def sure(z: Tensor, sigma: Tensor) -> Tensor:
        calls.append(len(z))
        logits = torch.zeros(*z.shape, 12, dtype=torch.float64)
        logits[..., 8] = 30.0
        return logits

    options = SamplerOptions(**draws(5, 3), steps=200)
    found = uniform_ancestral(WORLD.diffusion(), sure, masks(5, 3), options)
    assert found.nfe.sum() == sum(calls)
    assert int(found.nfe.max()) < 20  # at most nine changes and a look
    assert (found.x0 == 8).all()


@pytest.mark.parametrize(
    ("noising", "settings", "said"),
    [
        (Noising(0.0, 0.0), {}, "noise at time 0"),
        (Noising(0.0, 1.2), {}, "noise at time 1.2"),
        (Noising(), {"correct": 1.5}, "correct = 1.5 is not between 0 and 1"),
    ],
)
def test_what_cannot_be_meant_is_one_clear_line(noising, settings, said):
    options = SamplerOptions(**draws(1, 2), steps=2, noising=noising)
    with pytest.raises(UsageError, match=said):
        uniform_ancestral(WORLD.diffusion(), wrong(WORLD, 0.0), masks(1, 2), options, **settings)
