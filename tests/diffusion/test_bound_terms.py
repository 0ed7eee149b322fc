"""The bound term by term, and its curve over mask rates."""

import math

import numpy as np
import pytest
import torch
from enumerated import all_orders, chance_of, everything
from torch import Tensor
from worlds import World, independent, markov_chain

from genodiff.diffusion.likelihood import count_terms, nelbo_exact, rate_curve, window_nelbo
from genodiff.diffusion.loss import decompose, prior_kl
from genodiff.diffusion.masked import Clean
from genodiff.diffusion.schedule import (
    Cosine,
    CosineSquared,
    Geometric,
    Linear,
    LogLinear,
    OneMinusCosine,
    Polynomial,
    SigmaLinear,
)

F1 = markov_chain()
FIVE = [Linear(), Cosine(), CosineSquared(), OneMinusCosine(), Polynomial(power=2.0)]


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
    assert prior_kl(F1.diffusion(noise), Clean(F1.sequences[:2], maskable)).tolist() == [
        math.inf,
        0,
    ]


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
            total += (
                weight
                * (p * chance_of(masked, noise.masked(t)[0].item()) * terms.diffusion).sum().item()
            )
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


# the curve over mask rates


def test_the_curve_over_mask_rates_is_c_k_over_k_and_its_mean_is_the_bound():
    ok = torch.ones(24, 4, dtype=torch.bool)
    x0 = F1.sequences[3]
    parts = [
        window_nelbo(F1.diffusion(), F1.denoiser, Clean(x0.expand(24, 4), ok), torch.full((24,), k),
                     all_orders(4))
        for k in range(1, 5)
    ]  # fmt: skip
    masked_nats, k, n = (
        torch.cat([getattr(part, name) for part in parts]) for name in ("masked_nats", "k", "n")
    )
    curve = rate_curve(masked_nats, k, n, n_bins=4)
    terms = count_terms(F1.diffusion(), F1.denoiser, x0, ok[0])
    torch.testing.assert_close(curve.nats, terms[1:] / torch.arange(1, 5), rtol=0, atol=1e-12)
    assert curve.n_windows.tolist() == [24] * 4
    assert curve.nats.mean().item() * 4 == pytest.approx(nelbo_exact(terms).item(), abs=1e-12)


def test_the_curve_weights_windows_by_their_tokens_and_leaves_empty_ones_out():
    masked_nats = torch.tensor([1.0, 6.0, 0.0])
    k, n = torch.tensor([1, 3, 0]), torch.tensor([2, 6, 0])
    curve = rate_curve(masked_nats, k, n, n_bins=2)
    assert curve.nats[0].item() == pytest.approx((2 * 1 + 6 * 2) / 8)
    assert curve.nats[1].isnan()
    assert curve.n_windows.tolist() == [2, 0]
