"""Classifier-free guidance by a network with classes, against enumeration."""

import pytest
import torch
from sampling import draws, masks
from small_worlds import States, assert_counts, random_world
from tiny_networks import network

from genodiff.diffusion.guided import GUIDANCES, Aim, Guided, GuidedChain
from genodiff.diffusion.sampler import SAMPLERS, SamplerOptions
from genodiff.runs.denoiser import ExactNetwork, make_denoiser

WORLD = random_world(3)
NET = network(n_classes=2, scale=3.0)
PAD = 4


def table(label: int) -> torch.Tensor:
    """The network's logits in all states, of a class or (-1) of none."""
    x = States(WORLD).all
    with torch.no_grad():
        return NET(x, labels=torch.full((len(x),), label)).double()


def run(strength: float, label: int, n: int) -> Guided:
    one, every = NET.of_class(label), NET
    options = SamplerOptions(**draws(n, 3), steps=2, refine=ExactNetwork(every, PAD))
    denoiser = make_denoiser(every, PAD)
    chain = GuidedChain(SAMPLERS["ancestral"].draw, WORLD.diffusion(), denoiser, options)
    aim = Aim(strength, None, make_denoiser(one, PAD), ExactNetwork(one, PAD))
    return GUIDANCES["cfg"].run(chain, masks(n, 3), aim)


@pytest.mark.parametrize(("strength", "label"), [(0.0, 0), (1.0, 0), (2.5, 1), (-0.7, 1)])
def test_samples_follow_the_mixture_of_the_class_and_of_all(strength, label):
    every, one = table(-1), table(label)
    assert (every - one).abs().max() > 0.5
    states = States(WORLD, every + strength * (one - every))
    law = states.start()
    for reveal in (0.5, 1.0):
        law = states.move(law, reveal)
    assert_counts(WORLD, run(strength, label, 3000).x0, states.of_sequences(law))
