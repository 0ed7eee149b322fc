"""Entropy-bounded unmasking against its enumerated distribution and its bound."""

import itertools
import math

import pytest
from sampling import draws, masks, watch
from small_worlds import MASK, States, assert_counts, divergence, random_world
from torch import Tensor
from worlds import copy_task

from genodiff.diffusion.sampler import Sampled, SamplerOptions
from genodiff.diffusion.samplers.entropy_bounded import entropy_bounded


def run(world, n: int, bound: float) -> Sampled:  # type: ignore[no-untyped-def]
    options = SamplerOptions(**draws(n, world.length))
    xt = masks(n, world.length, world.mask_id)
    net = States(world).denoiser if world.mask_id == MASK else world.denoiser
    return entropy_bounded(world.diffusion(), net, xt, options, bound=bound)


def choose(p: Tensor, masked: list[int], bound: float) -> list[int]:
    """The positions of one evaluation, by the definition: the longest list that fits."""
    entropy = {i: -(p[i] * p[i].clamp(min=1e-300).log()).sum().item() for i in masked}
    ranked = sorted(masked, key=entropy.__getitem__)
    for m in range(len(ranked), 0, -1):
        some = [entropy[i] for i in ranked[:m]]
        if sum(some) - max(some) <= bound + 1e-9:
            return ranked[:m]
    raise AssertionError


def exact_law(states: States, bound: float) -> tuple[Tensor, float, float]:
    """The law of the samples, mean evaluations, and mean evaluations with several positions."""
    law, columns = states.start(), list(states.world.targets)
    evaluations = several = 0.0
    while (open_mass := law * (states.all == MASK).any(-1)).sum() > 0:
        law = law - open_mass
        for i in open_mass.nonzero()[:, 0].tolist():
            x, mass = states.all[i].tolist(), open_mass[i].item()
            due = choose(states.p[i], [j for j, v in enumerate(x) if v == MASK], bound)
            evaluations += mass
            several += mass * (len(due) > 1)
            nexts = [(list(x), mass)]
            for j in due:
                chances = states.p[i, j].tolist()
                nexts = [
                    ([*y[:j], v, *y[j + 1 :]], w * c)
                    for y, w in nexts
                    for v, c in zip(columns, chances, strict=True)
                ]
            for y, w in nexts:
                law[states.number[tuple(y)]] += w
    return states.of_sequences(law), evaluations, several


@pytest.mark.parametrize("bound", [0.0, 0.4, 1.3, 3.0, math.inf])
def test_samples_follow_the_exact_law_and_its_evaluations(bound):
    world, n = random_world(seed=3, letters=3, spread=1.5), 10_000
    law, evaluations, _ = exact_law(States(world), bound)
    found = run(world, n, bound)
    assert_counts(world, found.x0, law)
    spread = found.nfe.double().std().item() / math.sqrt(n)
    assert abs(found.nfe.double().mean().item() - evaluations) < 4 * spread + 1e-9


@pytest.mark.parametrize("bound", [0.0, 0.4, 1.3, 3.0])
def test_the_divergence_is_at_most_the_bound_for_each_evaluation_of_several(bound):
    for seed in range(2):
        world = random_world(seed=seed, letters=3, spread=1.5)
        law, evaluations, several = exact_law(States(world), bound)
        # The means are over samples; over data they are those of the same chain, told the data.
        worst = bound * (world.length - 1)
        assert divergence(world.p, law) <= min(bound * evaluations, worst) + 1e-12
        assert bound > 0 or several == 0  # one position at a time has the law of the data


def test_positions_without_entropy_come_along_for_free():
    found = run(copy_task(4, 3), 200, 0.0)
    assert (found.nfe == 2).all()  # one to choose the symbol, one for its three copies
    assert (found.x0 == found.x0[:, :1]).all()


def test_equal_entropies_go_by_the_uniform():
    u, (seen, flat) = draws(1, 6), watch(lambda x, sigma: (x != 3)[0])
    entropy_bounded(random_world().diffusion(), flat, masks(1, 6), SamplerOptions(**u), bound=0.0)
    order = [int((b.int() - a.int()).argmax()) for a, b in itertools.pairwise(seen)]
    assert order == u["u_order"][0].argsort()[:-1].tolist()
