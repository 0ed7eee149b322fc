"""With an equivariant network, samplers treat both strands alike: p(x) = p(rc x)."""

import itertools

import pytest
import torch
from sampling import MASKED, draws, masks, run_sampler
from scipy.stats import chisquare
from small_worlds import States, assert_counts, complement, count, symmetric_world
from torch import Tensor

from genodiff.diffusion.sampler import SAMPLERS, SamplerOptions
from genodiff.diffusion.samplers.strand_symmetric import share_order, strand_symmetric

NAMES = [name for name, one in SAMPLERS.items() if one in MASKED]


def law_of_order(states: States, steps: list[list[int]]) -> Tensor:
    """The law given which positions each step reveals."""
    law = states.start()
    for due in steps:
        moved = law
        # Positions of a step do not see one another: one kernel, as a product.
        kernel = torch.zeros(len(states.all), len(states.all), dtype=torch.float64)
        for i, x in enumerate(states.all.tolist()):
            if law[i] == 0:
                continue
            for values in itertools.product(range(len(states.world.targets)), repeat=len(due)):
                y, p = list(x), 1.0
                for j, v in zip(due, values, strict=True):
                    y[j], p = states.world.targets[v], p * states.p[i, j, v].item()
                kernel[i, states.number[tuple(y)]] += p
        law = moved @ kernel
    return states.of_sequences(law)


@pytest.mark.parametrize("steps", [1, 2, 64])
def test_samples_follow_the_law_of_pairs(steps):
    world, n = symmetric_world(seed=2), 10_000
    states = States(world)
    together = law_of_order(states, [[0, 1, 2, 3]])
    apart = [law_of_order(states, [[0, 3], [1, 2]]), law_of_order(states, [[1, 2], [0, 3]])]
    exact = together / steps + (1 - 1 / steps) * (apart[0] + apart[1]) / 2
    options = SamplerOptions(**draws(n, 4), steps=steps)
    found = strand_symmetric(world.diffusion(), states.denoiser, masks(n, 4), options)
    assert_counts(world, found.x0, exact)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", NAMES)
def test_each_sampler_of_masks_treats_both_strands_alike_on_average(name):
    world, n = symmetric_world(seed=1), 10_000
    net = States(world).denoiser
    found = run_sampler(SAMPLERS[name], world.diffusion(), net, masks(n, 4), **draws(n, 4), steps=3)
    counts = count(world, found.x0)
    partner = world.index(complement(world.sequences))
    once = partner > torch.arange(256)
    pair = torch.stack([counts[once], counts[partner[once]]])
    enough = pair.sum(0) >= 10
    pair = torch.cat([pair[:, enough], pair[:, ~enough].sum(1, keepdim=True)], 1)
    expected = (pair.sum(0) / 2).expand(2, -1)
    some = expected[0] > 0
    off = ((pair - expected) ** 2 / expected)[:, some].sum().item()
    # As many degrees of freedom as pairs.
    n_pairs = int(some.sum())
    assert off < n_pairs + 4 * (2 * n_pairs) ** 0.5


@pytest.mark.parametrize(
    "name", ["ancestral", "first-hitting", "confidence", "entropy-bounded", "strand-symmetric"]
)
def test_uniforms_of_the_other_strand_give_the_reverse_complement(name):
    world, u = symmetric_world(seed=4), draws(300, 4)
    other = {"u_order": u["u_order"].flip(-1), "u_token": 1 - 2**-53 - u["u_token"].flip(-1)}
    here, there = (
        run_sampler(
            SAMPLERS[name], world.diffusion(), world.denoiser, masks(300, 4), **given, steps=3
        )
        for given in (u, other)
    )
    assert torch.equal(complement(there.x0), here.x0)
    assert torch.equal(there.nfe, here.nfe)


def test_pairs_share_a_uniform_that_is_uniform_and_others_keep_theirs():
    u = draws(5000, 7)["u_order"]
    masked = torch.ones(5000, 7, dtype=torch.bool)
    masked[:, 0], masked[:, 3] = False, False
    shared = share_order(masked, u)
    assert torch.equal(shared[:, [1, 2]], shared[:, [6, 5]])
    assert torch.equal(shared[:, [0, 3]], u[:, [0, 3]])
    assert torch.equal(shared[:, 4], (u[:, 4] + u[:, 3]) % 1)  # opposite a base that is kept
    for column in (1, 2, 4):
        counts = torch.histc(shared[:, column], 10, 0, 1)
        assert chisquare(counts.numpy()).pvalue > 1e-3
