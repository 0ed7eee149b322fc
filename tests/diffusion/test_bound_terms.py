"""The bound term by term."""

import math

import numpy as np
import pytest
import torch
from enumerated import FIVE, chance_of, everything
from torch import Tensor
from worlds import World, independent, markov_chain

from genodiff.diffusion.loss import decompose, prior_kl
from genodiff.diffusion.masked import Clean
from genodiff.diffusion.schedule import (
    Cosine,
    Geometric,
    LogLinear,
    SigmaLinear,
)

F1 = markov_chain()


# the three terms


def test_a_closed_schedule_has_neither_a_reconstruction_nor_a_prior_term():
    ok, x0 = torch.ones(1, 4, dtype=torch.bool), F1.sequences[:1]
    for noise in FIVE:
        terms = decompose(
            F1.diffusion(noise), F1.denoiser, Clean(x0, ok), torch.tensor([0.5]), torch.rand(1, 4)
        )
        assert terms.reconstruction.item() == 0
        assert terms.prior.item() == 0
        assert terms.total.item() == terms.diffusion.item()


@pytest.mark.parametrize(
    "noise", [LogLinear(), Cosine(eps=0.01), Geometric(), SigmaLinear(0.0, 10.0)], ids=repr
)
def test_the_prior_term_is_infinite_when_something_stays_visible_at_time_one(noise):
    maskable = torch.tensor([[True, True, False, False], [False] * 4])
    found = prior_kl(F1.diffusion(noise), Clean(F1.sequences[:2], maskable))
    assert found.tolist() == [math.inf, 0]


def test_a_factorised_prior_pays_for_the_visible_tokens():
    unigram = torch.tensor([0, 0, 0.25, 0, 0.75, 0])
    x0, maskable = torch.tensor([[4, 4, 2, 5]]), torch.tensor([[True, True, True, False]])
    paid = prior_kl(F1.diffusion(LogLinear(eps=0.1)), Clean(x0, maskable), unigram).item()
    assert paid == pytest.approx(-0.1 * (2 * math.log(0.75) + math.log(0.25)), abs=1e-12)


@pytest.mark.parametrize(
    "noise", [Geometric(0.3, 2.0), LogLinear(0.2), SigmaLinear(0.5, 3.0)], ids=repr
)
def test_the_three_terms_bound_the_entropy_of_an_open_schedule_and_meet_it_for_independent_tokens(
    noise,
):
    """Enumerated exactly: the mean over masks at t = 0, the integral over t, and the factorised
    prior.
    """
    nodes, weights = np.polynomial.legendre.leggauss(40)

    def mean_total(world: World, unigram: Tensor) -> float:
        x0, masked, u, p = everything(world)
        ok, total = torch.ones_like(masked), 0.0
        for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
            t = torch.full((len(x0),), node, dtype=torch.float64)
            terms = decompose(world.diffusion(noise), world.denoiser, Clean(x0, ok), t, u, unigram)
            chance = p * chance_of(masked, noise.masked(t)[0].item())
            total += weight * (chance * terms.diffusion).sum().item()
        at_start = chance_of(masked, noise.masked(torch.zeros(1, dtype=torch.float64)).item())
        return (
            total
            + (p * (at_start * terms.reconstruction)).sum().item()
            + (world.p * terms.prior[:: 2**world.length]).sum().item()
        )

    tokens = independent(2, (0.1, 0.2, 0.7))
    unigram = torch.zeros(16, dtype=torch.float64)
    unigram[7:10] = torch.tensor([0.1, 0.2, 0.7], dtype=torch.float64)
    assert mean_total(tokens, unigram) == pytest.approx(tokens.entropy, abs=1e-8)
    chain = markov_chain(3)
    assert mean_total(chain, torch.tensor([0, 0, 0.5, 0, 0.5, 0])) > chain.entropy
