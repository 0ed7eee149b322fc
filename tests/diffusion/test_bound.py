"""The bound: exact in enumerated worlds, term by term; estimates; never below the entropy."""

import itertools
import math

import numpy as np
import pytest
import torch
from enumerated import FIVE, all_orders, chance_of, everything, world_terms
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import seeds
from torch import Tensor
from worlds import World, copy_task, independent, markov_chain

from genodiff.diffusion.loss import (
    continuous_time_loss,
    count_terms,
    decompose,
    discrete_time_loss,
    exact_count_loss,
    nelbo_discrete,
    nelbo_exact,
    prior_kl,
)
from genodiff.diffusion.masked import Clean
from genodiff.diffusion.schedule import (
    Cosine,
    Geometric,
    Linear,
    LogLinear,
    OneMinusCosine,
    Schedule,
    SigmaLinear,
)

F1 = markov_chain()
F1_NELBO = {  # T: linear, cosine, cosine squared, one minus cosine, 1 - t^2; six decimals
    1: (2.772589, 2.772589, 2.772589, 2.772589, 2.772589),
    2: (2.165054, 2.333271, 2.165054, 2.195539, 2.385751),
    4: (1.902865, 1.991424, 1.942816, 1.923496, 2.028800),
    10: (1.758858, 1.792832, 1.777870, 1.766945, 1.808022),
    100: (1.677243, 1.680487, 1.679106, 1.677994, 1.681937),
    1000: (1.669279, 1.669601, 1.669464, 1.669353, 1.669745),
}


def enumerated_nelbo(world: World, noise: Schedule, n_steps: int) -> float:
    """The T-step bound from its definition, without the package: every step, every sequence, every
    mask.
    """
    grid = torch.arange(n_steps + 1, dtype=torch.float64) / n_steps
    alpha = (1 - noise.masked(grid)).tolist()
    sequences, p = world.sequences.numpy(), world.p.numpy()
    total = 0.0
    for mask in itertools.product((False, True), repeat=world.length):
        hidden, k = np.array(mask), sum(mask)
        cost = 0.0
        for x, px in zip(sequences, p, strict=True):
            like = (sequences[:, ~hidden] == x[~hidden]).all(1)
            for position in np.flatnonzero(hidden):
                cost -= px * math.log(
                    p[like & (sequences[:, position] == x[position])].sum() / p[like].sum()
                )
        for i in range(1, n_steps + 1):
            chance = (1 - alpha[i]) ** k * alpha[i] ** (world.length - k)
            total += (alpha[i - 1] - alpha[i]) / (1 - alpha[i]) * chance * cost
    return total


# exact values


def test_the_curve_of_the_markov_chain_is_the_published_one_and_sums_to_its_entropy():
    terms = world_terms(F1)
    assert terms.tolist() == pytest.approx(
        [0, 0.25192772, 0.62208146, 1.23684142, 2.77258872], abs=5e-9
    )
    assert F1.entropy == pytest.approx(1.6683961007, abs=5e-11)
    per_step = -0.9 * math.log(0.9) - 0.1 * math.log(0.1)
    assert F1.entropy == pytest.approx(math.log(2) + 3 * per_step, abs=1e-12)
    assert nelbo_exact(terms).item() == pytest.approx(F1.entropy, abs=1e-12)


@pytest.mark.parametrize("n_steps", F1_NELBO)
def test_the_bound_of_t_steps_is_the_published_table_for_all_five_schedules(n_steps):
    terms = world_terms(F1)
    found = [nelbo_discrete(terms, noise, n_steps).item() for noise in FIVE]
    assert found == pytest.approx(F1_NELBO[n_steps], abs=5.1e-7)


@pytest.mark.few(6)
@pytest.mark.parametrize("noise", FIVE, ids=repr)
@pytest.mark.parametrize("n_steps", [1, 2, 10, 100])
@pytest.mark.parametrize(
    "world", [F1, copy_task(3, 3), independent(3, (0.1, 0.2, 0.7))], ids=["markov", "copy", "iid"]
)
def test_the_bound_of_t_steps_equals_enumeration_by_hand_to_1e_minus_8(world, noise, n_steps):
    by_hand, terms = enumerated_nelbo(world, noise, n_steps), world_terms(world)
    assert nelbo_discrete(terms, noise, n_steps).item() == pytest.approx(by_hand, abs=1e-8)
    assert nelbo_exact(terms).item() == pytest.approx(world.entropy, abs=1e-9)


@settings(max_examples=10)
@given(seeds, st.floats(0.1, 5))
def test_no_denoiser_falls_below_the_entropy(seed, size):
    """The strongest single check: a deflated bound would."""
    table = size * torch.randn(F1.vocab_size, 4, 4, F1.vocab_size,
                               generator=torch.Generator().manual_seed(seed),
                               dtype=torch.float64)  # fmt: skip

    def denoiser(xt: Tensor, sigma: Tensor) -> Tensor:
        return F1.denoiser(xt, sigma) + table[xt, torch.arange(4)].sum(1)

    terms = world_terms(F1, denoiser)
    assert nelbo_exact(terms).item() >= F1.entropy
    for n_steps in (1, 3):
        assert nelbo_discrete(terms, Cosine(), n_steps).item() >= F1.entropy


def test_the_bound_is_the_likelihood_one_token_at_a_time_averaged_over_all_orders():
    diffusion, x0 = F1.diffusion(), F1.sequences[5]

    def in_order(order: tuple[int, ...]) -> float:
        xt, nats = torch.full((1, 4), F1.mask_id), 0.0
        for position in order:
            logp = diffusion.log_x0(F1.denoiser(xt, xt[:, 0]) * 0.5, xt)
            nats -= logp[0, position, x0[position]].item()
            xt[0, position] = x0[position]
        return nats

    orders = [in_order(order) for order in itertools.permutations(range(4))]
    halved = count_terms(
        diffusion, lambda xt, s: F1.denoiser(xt, s) * 0.5, x0, torch.ones(4, dtype=torch.bool)
    )
    assert nelbo_exact(halved).item() == pytest.approx(sum(orders) / 24, abs=1e-12)


def test_enumeration_refuses_what_it_cannot_finish():
    with pytest.raises(ValueError, match="too many"):
        count_terms(
            F1.diffusion(), F1.denoiser, torch.full((17,), 4), torch.ones(17, dtype=torch.bool)
        )


# every estimate has the bound as its mean: exactly, by enumerating all its randomness


def test_exact_count_averages_to_the_bound():
    mean = 0.0
    for k in range(1, 5):
        x0, u = F1.sequences.repeat_interleave(24, 0), all_orders(4).repeat(16, 1)
        weight = (F1.p.repeat_interleave(24) / 24)[:, None].expand(-1, 4)
        ok = torch.ones_like(x0, dtype=torch.bool)
        count = torch.full((len(x0),), k)
        given = F1.diffusion(), F1.denoiser, Clean(x0, ok, weight)
        mean += exact_count_loss(*given, count, u).nats.item() / 4
    assert mean == pytest.approx(F1.entropy, abs=1e-12)


@pytest.mark.parametrize("noise", FIVE, ids=repr)
def test_continuous_time_integrates_to_the_bound(noise):
    x0, masked, u, p = everything(F1)
    ok, mean = torch.ones_like(masked), 0.0
    nodes, weights = np.polynomial.legendre.leggauss(24)
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        t = torch.full((len(x0),), node, dtype=torch.float64)
        chance = (p * chance_of(masked, noise.masked(t)[0].item()))[:, None].expand(-1, 4)
        given = F1.diffusion(noise), F1.denoiser, Clean(x0, ok, chance)
        mean += weight * continuous_time_loss(*given, t, u).nats.item()
    assert mean == pytest.approx(F1.entropy, abs=1e-9)


@pytest.mark.parametrize("noise", [Linear(), OneMinusCosine(), Geometric()], ids=repr)
@pytest.mark.parametrize("n_steps", [1, 2, 5])
def test_discrete_time_averages_to_the_bound_of_t_steps(noise, n_steps):
    x0, masked, u, p = everything(F1)
    ok, mean = torch.ones_like(masked), 0.0
    for i in range(1, n_steps + 1):
        t = torch.full((len(x0),), (i - 0.5) / n_steps, dtype=torch.float64)
        chance = p * chance_of(masked, noise.masked(torch.full_like(t[:1], i / n_steps)).item())
        weight = (chance / n_steps)[:, None].expand(-1, 4)
        mean += discrete_time_loss(
            F1.diffusion(noise), F1.denoiser, Clean(x0, ok, weight), t, u, n_steps
        ).nats.item()
    assert mean == pytest.approx(nelbo_discrete(world_terms(F1), noise, n_steps).item(), abs=1e-9)


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
