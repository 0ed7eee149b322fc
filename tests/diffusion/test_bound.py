"""The bound: exact in solvable worlds, unbiased in every estimate, never below the truth."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Windows, seeds, windows
from torch import Tensor
from worlds import World, copy_task, independent, markov_chain

from genodiff.diffusion.likelihood import count_terms, nelbo_discrete, nelbo_exact, rate_curve, window_nelbo
from genodiff.diffusion.loss import (
    LossTerms,
    continuous_time_loss,
    decompose,
    discrete_time_loss,
    exact_count_loss,
    prior_kl,
)
from genodiff.diffusion.masked import MaskedDiffusion, counts, times
from genodiff.diffusion.schedule import (
    Cosine,
    CosineSquared,
    Geometric,
    Linear,
    LogLinear,
    OneMinusCosine,
    Polynomial,
    Schedule,
    SigmaLinear,
)

F1, F2, F3 = markov_chain(), copy_task(), independent()
FIVE = [Linear(), Cosine(), CosineSquared(), OneMinusCosine(), Polynomial(power=2.0)]
F1_NELBO = {  # T: linear, cosine, cosine squared, one minus cosine, 1 - t^2; six decimals
    1: (2.772589, 2.772589, 2.772589, 2.772589, 2.772589),
    2: (2.165054, 2.333271, 2.165054, 2.195539, 2.385751),
    4: (1.902865, 1.991424, 1.942816, 1.923496, 2.028800),
    10: (1.758858, 1.792832, 1.777870, 1.766945, 1.808022),
    100: (1.677243, 1.680487, 1.679106, 1.677994, 1.681937),
    1000: (1.669279, 1.669601, 1.669464, 1.669353, 1.669745),
}


def world_terms(world: World, denoiser: Callable[..., Tensor] | None = None) -> Tensor:
    """C_0 .. C_L averaged over the world."""
    ok = torch.ones(world.length, dtype=torch.bool)
    return sum(p * count_terms(world.diffusion(), denoiser or world.denoiser, x, ok) for x, p in zip(world.sequences, world.p, strict=True))


def enumerated_nelbo(world: World, noise: Schedule, n_steps: int) -> float:
    """The T-step bound from its definition, without the package: every step, every sequence, every mask."""
    alpha = [1 - noise.masked(torch.tensor([i / n_steps], dtype=torch.float64)).item() for i in range(n_steps + 1)]
    sequences, p = world.sequences.numpy(), world.p.numpy()
    total = 0.0
    for mask in itertools.product((False, True), repeat=world.length):
        hidden, k = np.array(mask), sum(mask)
        cost = 0.0
        for x, px in zip(sequences, p, strict=True):
            like = (sequences[:, ~hidden] == x[~hidden]).all(1)
            for position in np.flatnonzero(hidden):
                cost -= px * math.log(p[like & (sequences[:, position] == x[position])].sum() / p[like].sum())
        for i in range(1, n_steps + 1):
            chance = (1 - alpha[i]) ** k * alpha[i] ** (world.length - k)
            total += (alpha[i - 1] - alpha[i]) / (1 - alpha[i]) * chance * cost
    return total


# exact values


def test_the_curve_of_the_markov_chain_is_the_published_one_and_sums_to_its_entropy() -> None:
    terms = world_terms(F1)
    assert terms.tolist() == pytest.approx([0, 0.25192772, 0.62208146, 1.23684142, 2.77258872], abs=5e-9)
    assert F1.entropy == pytest.approx(1.6683961007, abs=5e-11)
    per_step = -0.9 * math.log(0.9) - 0.1 * math.log(0.1)
    assert F1.entropy == pytest.approx(math.log(2) + 3 * per_step, abs=1e-12)
    assert nelbo_exact(terms).item() == pytest.approx(F1.entropy, abs=1e-12)


@pytest.mark.parametrize("n_steps", F1_NELBO)
def test_the_bound_of_t_steps_is_the_published_table_for_all_five_schedules(n_steps: int) -> None:
    terms = world_terms(F1)
    found = [nelbo_discrete(terms, noise, n_steps).item() for noise in FIVE]
    assert found == pytest.approx(F1_NELBO[n_steps], abs=5.1e-7)


@pytest.mark.parametrize("noise", FIVE, ids=repr)
@pytest.mark.parametrize("n_steps", [1, 2, 4, 10, 100])
def test_the_bound_of_t_steps_equals_enumeration_by_hand_to_1e_minus_8(noise: Schedule, n_steps: int) -> None:
    by_hand = enumerated_nelbo(F1, noise, n_steps)
    assert nelbo_discrete(world_terms(F1), noise, n_steps).item() == pytest.approx(by_hand, abs=1e-8)


@pytest.mark.parametrize(("length", "n_symbols"), [(2, 3), (4, 2), (3, 5)])
@pytest.mark.parametrize("n_steps", [1, 3, 50])
def test_the_copy_task_costs_its_closed_form(length: int, n_symbols: int, n_steps: int) -> None:
    world = copy_task(length, n_symbols)
    closed = length * math.log(n_symbols) / n_steps * sum((i / n_steps) ** (length - 1) for i in range(1, n_steps + 1))
    assert nelbo_discrete(world_terms(world), Linear(), n_steps).item() == pytest.approx(closed, abs=1e-9)
    assert nelbo_exact(world_terms(world)).item() == pytest.approx(math.log(n_symbols), abs=1e-9)


@pytest.mark.parametrize("noise", FIVE, ids=repr)
@pytest.mark.parametrize("n_steps", [1, 2, 17])
def test_independent_tokens_cost_their_entropy_whatever_the_schedule(noise: Schedule, n_steps: int) -> None:
    world = independent(3, (0.1, 0.2, 0.7))
    assert nelbo_discrete(world_terms(world), noise, n_steps).item() == pytest.approx(world.entropy, abs=1e-10)


def test_uniform_bases_cost_two_bits_each() -> None:
    assert nelbo_exact(world_terms(F3)).item() / F3.length / math.log(2) == pytest.approx(2, abs=1e-12)


@pytest.mark.parametrize("noise", FIVE, ids=repr)
def test_more_steps_never_cost_a_perfect_denoiser_more(noise: Schedule) -> None:
    terms = world_terms(F1)
    bounds = [nelbo_discrete(terms, noise, 2**i).item() for i in range(10)]
    assert all(a >= b for a, b in itertools.pairwise(bounds))
    assert bounds[-1] > nelbo_exact(terms).item()


def test_one_step_costs_the_total_correlation_more_than_the_entropy() -> None:
    excess = nelbo_discrete(world_terms(F1), Linear(), 1).item() - F1.entropy
    assert excess == pytest.approx(4 * math.log(2) - F1.entropy, abs=1e-12) == pytest.approx(1.104193, abs=5e-7)


@settings(max_examples=50)
@given(seeds, st.floats(0.1, 5))
def test_no_denoiser_falls_below_the_entropy(seed: int, size: float) -> None:
    """The strongest single check: a deflated bound would."""
    table = size * torch.randn(F1.vocab_size, 4, 4, F1.vocab_size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)

    def denoiser(xt: Tensor, sigma: Tensor) -> Tensor:
        return F1.denoiser(xt, sigma) + table[xt, torch.arange(4)].sum(1)

    terms = world_terms(F1, denoiser)
    assert nelbo_exact(terms).item() >= F1.entropy
    for n_steps in (1, 3):
        assert nelbo_discrete(terms, Cosine(), n_steps).item() >= F1.entropy


def test_the_bound_is_the_likelihood_one_token_at_a_time_averaged_over_all_orders() -> None:
    diffusion, x0 = F1.diffusion(), F1.sequences[5]

    def in_order(order: tuple[int, ...]) -> float:
        xt, nats = torch.full((1, 4), F1.mask_id), 0.0
        for position in order:
            logp = diffusion.log_x0(F1.denoiser(xt, xt[:, 0]) * 0.5, xt)
            nats -= logp[0, position, x0[position]].item()
            xt[0, position] = x0[position]
        return nats

    orders = [in_order(order) for order in itertools.permutations(range(4))]
    halved = count_terms(diffusion, lambda xt, s: F1.denoiser(xt, s) * 0.5, x0, torch.ones(4, dtype=torch.bool))
    assert nelbo_exact(halved).item() == pytest.approx(sum(orders) / 24, abs=1e-12)


def test_enumeration_refuses_what_it_cannot_finish() -> None:
    with pytest.raises(ValueError, match="too many"):
        count_terms(F1.diffusion(), F1.denoiser, torch.full((17,), 4), torch.ones(17, dtype=torch.bool))


# every estimate has the bound as its mean: exactly, by enumerating all its randomness


def all_orders(length: int) -> Tensor:
    return torch.tensor(list(itertools.permutations(range(length))), dtype=torch.float64) / length


def everything(world: World) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Every (sequence, mask) pair: x0, the mask, uniforms that draw it at any time inside (0, 1), and p(x0)."""
    masks = torch.tensor(list(itertools.product((False, True), repeat=world.length)))
    x0, masked = world.sequences.repeat_interleave(len(masks), 0), masks.repeat(len(world.sequences), 1)
    return x0, masked, torch.where(masked, 0.0, 1 - 2**-53).double(), world.p.repeat_interleave(len(masks))


def chance_of(masked: Tensor, share: float) -> Tensor:
    k = masked.sum(-1).double()
    return share**k * (1 - share) ** (masked.shape[1] - k)


def test_exact_count_averages_to_the_bound() -> None:
    mean = 0.0
    for k in range(1, 5):
        x0, u = F1.sequences.repeat_interleave(24, 0), all_orders(4).repeat(16, 1)
        weight = (F1.p.repeat_interleave(24) / 24)[:, None].expand(-1, 4)
        ok = torch.ones_like(x0, dtype=torch.bool)
        count = torch.full((len(x0),), k)
        mean += exact_count_loss(F1.diffusion(), F1.denoiser, x0, ok, weight, count, u).nats.item() / 4
    assert mean == pytest.approx(F1.entropy, abs=1e-12)


@pytest.mark.parametrize("noise", FIVE, ids=repr)
def test_continuous_time_integrates_to_the_bound(noise: Schedule) -> None:
    x0, masked, u, p = everything(F1)
    ok, mean = torch.ones_like(masked), 0.0
    nodes, weights = np.polynomial.legendre.leggauss(24)
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        t = torch.full((len(x0),), node, dtype=torch.float64)
        chance = (p * chance_of(masked, noise.masked(t)[0].item()))[:, None].expand(-1, 4)
        mean += weight * continuous_time_loss(F1.diffusion(noise), F1.denoiser, x0, ok, chance, t, u).nats.item()
    assert mean == pytest.approx(F1.entropy, abs=1e-9)


@pytest.mark.parametrize("noise", [Linear(), OneMinusCosine(), Geometric()], ids=repr)
@pytest.mark.parametrize("n_steps", [1, 2, 5])
def test_discrete_time_averages_to_the_bound_of_t_steps(noise: Schedule, n_steps: int) -> None:
    x0, masked, u, p = everything(F1)
    ok, mean = torch.ones_like(masked), 0.0
    for i in range(1, n_steps + 1):
        t = torch.full((len(x0),), (i - 0.5) / n_steps, dtype=torch.float64)
        chance = p * chance_of(masked, noise.masked(torch.full_like(t[:1], i / n_steps)).item())
        weight = (chance / n_steps)[:, None].expand(-1, 4)
        mean += discrete_time_loss(F1.diffusion(noise), F1.denoiser, x0, ok, weight, t, u, n_steps).nats.item()
    assert mean == pytest.approx(nelbo_discrete(world_terms(F1), noise, n_steps).item(), abs=1e-9)


@pytest.mark.parametrize("method", ["iid", "stratified", "systematic"])
@pytest.mark.parametrize("estimate", ["exact count", "continuous", "discrete"])
def test_estimates_with_drawn_times_average_to_the_bound_within_four_sigma(method: str, estimate: str) -> None:
    """Batches of 8 with each way of drawing times; the slots stay with the same windows throughout."""
    g = torch.Generator().manual_seed(11)
    batch, repeats = 8, 600
    diffusion, slot = F1.diffusion(), torch.arange(batch)
    ok = torch.ones(batch, 4, dtype=torch.bool)
    x0 = F1.sequences[[0, 0, 1, 3, 5, 15, 15, 8]]
    terms = torch.stack([count_terms(diffusion, F1.denoiser, x, ok[0]) for x in x0]).mean(0)
    n_steps = 3
    expected = nelbo_discrete(terms, Linear(), n_steps) if estimate == "discrete" else nelbo_exact(terms)
    found = []
    for _ in range(repeats):
        own = torch.rand(batch, generator=g, dtype=torch.float64)
        t = times(method, own, torch.rand(1, generator=g).item(), slot, batch)
        u = torch.rand(batch, 4, generator=g, dtype=torch.float64)
        if estimate == "exact count":
            loss = exact_count_loss(diffusion, F1.denoiser, x0, ok, None, counts(t, ok.sum(-1)), u)
        elif estimate == "continuous":
            loss = continuous_time_loss(diffusion, F1.denoiser, x0, ok, None, t, u)
        else:
            loss = discrete_time_loss(diffusion, F1.denoiser, x0, ok, None, t, u, n_steps)
        found.append(loss.nats.item() / batch)
    assert abs(np.mean(found) - expected.item()) < 4 * np.std(found) / math.sqrt(repeats)


# the three terms


def test_a_closed_schedule_has_neither_a_reconstruction_nor_a_prior_term() -> None:
    ok, x0 = torch.ones(1, 4, dtype=torch.bool), F1.sequences[:1]
    for noise in FIVE:
        terms = decompose(F1.diffusion(noise), F1.denoiser, x0, ok, torch.tensor([0.5]), torch.rand(1, 4))
        assert terms.reconstruction.item() == 0
        assert terms.prior.item() == 0
        assert terms.total.item() == terms.diffusion.item()


@pytest.mark.parametrize("noise", [LogLinear(), Cosine(eps=0.01), Geometric(), SigmaLinear(0.0, 10.0)], ids=repr)
def test_the_prior_term_is_infinite_when_something_stays_visible_at_time_one(noise: Schedule) -> None:
    maskable = torch.tensor([[True, True, False, False], [False] * 4])
    assert prior_kl(F1.diffusion(noise), F1.sequences[:2], maskable).tolist() == [math.inf, 0]


def test_a_factorised_prior_pays_for_the_visible_tokens() -> None:
    unigram = torch.tensor([0, 0, 0.25, 0, 0.75, 0])
    x0, maskable = torch.tensor([[4, 4, 2, 5]]), torch.tensor([[True, True, True, False]])
    paid = prior_kl(F1.diffusion(LogLinear(eps=0.1)), x0, maskable, unigram).item()
    assert paid == pytest.approx(-0.1 * (2 * math.log(0.75) + math.log(0.25)), abs=1e-12)


@pytest.mark.parametrize("noise", [Geometric(0.3, 2.0), LogLinear(0.2), SigmaLinear(0.5, 3.0)], ids=repr)
def test_the_three_terms_bound_the_entropy_of_an_open_schedule_and_meet_it_for_independent_tokens(
    noise: Schedule,
) -> None:
    """Enumerated exactly: the mean over masks at t = 0, the integral over t, and the factorised prior."""
    nodes, weights = np.polynomial.legendre.leggauss(40)

    def mean_total(world: World, unigram: Tensor) -> float:
        x0, masked, u, p = everything(world)
        ok, total = torch.ones_like(masked), 0.0
        for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
            t = torch.full((len(x0),), node, dtype=torch.float64)
            terms = decompose(world.diffusion(noise), world.denoiser, x0, ok, t, u, unigram)
            total += weight * (p * chance_of(masked, noise.masked(t)[0].item()) * terms.diffusion).sum().item()
        at_start = chance_of(masked, noise.masked(torch.zeros(1, dtype=torch.float64)).item())
        return total + (p * (at_start * terms.reconstruction)).sum().item() + (world.p * terms.prior[:: 2**world.length]).sum().item()

    tokens = independent(2, (0.1, 0.2, 0.7))
    unigram = torch.zeros(16, dtype=torch.float64)
    unigram[7:10] = torch.tensor([0.1, 0.2, 0.7], dtype=torch.float64)
    assert mean_total(tokens, unigram) == pytest.approx(tokens.entropy, abs=1e-8)
    chain = markov_chain(3)
    assert mean_total(chain, torch.tensor([0, 0, 0.5, 0, 0.5, 0])) > chain.entropy


# reduction


@given(windows(), st.integers(1, 5))
def test_padding_on_the_right_changes_nothing(case: Windows, pad: int) -> None:
    diffusion, x0, maskable, logits = case.diffusion, case.x0, case.maskable, case.logits
    u, k = case.uniforms(*x0.shape), counts(case.uniforms(len(x0), stream=1), maskable.sum(-1))

    def denoiser(xt: Tensor, sigma: Tensor) -> Tensor:
        return torch.nn.functional.pad(logits, (0, 0, 0, xt.shape[1] - logits.shape[1]), value=7.0)

    padded = [torch.nn.functional.pad(a, (0, pad), value=v) for a, v in ((x0, diffusion.targets[0]), (maskable, False))]
    longer = exact_count_loss(diffusion, denoiser, *padded, None, k, torch.nn.functional.pad(u, (0, pad)))
    plain = exact_count_loss(diffusion, denoiser, x0, maskable, None, k, u)
    assert longer.nats.item() == pytest.approx(plain.nats.item(), abs=1e-10)
    assert longer.n_tokens == plain.n_tokens == maskable.sum()


@given(windows(max_batch=6), st.integers(0, 6))
def test_a_batch_may_be_split_anywhere(case: Windows, at: int) -> None:
    diffusion, logits = case.diffusion, case.logits
    u, t = case.uniforms(*case.x0.shape), 1 - case.uniforms(len(case.x0), stream=1)
    k, weight = counts(t, case.maskable.sum(-1)), case.uniforms(*case.x0.shape, stream=2)

    def terms(rows: slice, which: str) -> LossTerms:
        def denoiser(xt: Tensor, sigma: Tensor) -> Tensor:
            return logits[rows]

        batch = case.x0[rows], case.maskable[rows], weight[rows]
        if which == "exact count":
            return exact_count_loss(diffusion, denoiser, *batch, k[rows], u[rows])
        if which == "continuous":
            return continuous_time_loss(diffusion, denoiser, *batch, t[rows], u[rows])
        return discrete_time_loss(diffusion, denoiser, *batch, t[rows], u[rows], 7)

    for which in ("exact count", "continuous", "discrete"):
        whole = terms(slice(None), which)
        parts = [terms(slice(0, at), which), terms(slice(at, None), which)]
        for i in range(3):
            assert whole[i].item() == pytest.approx(sum(part[i].item() for part in parts), rel=1e-9, abs=1e-9)


def test_a_constant_cost_per_token_is_reported_as_that_cost_not_as_twice_it() -> None:
    """A mean over masked tokens only would be right here; a mean over all tokens without n/k would be half."""
    diffusion = MaskedDiffusion(Linear(), 3, (7, 8, 9, 10))
    x0, ok = torch.full((64, 32), 9), torch.ones(64, 32, dtype=torch.bool)
    t = times("systematic", torch.rand(64, dtype=torch.float64), 0.1, torch.arange(64), 64)
    loss = exact_count_loss(diffusion, uniform, x0, ok, None, counts(t, ok.sum(-1)), torch.rand(64, 32))
    assert (loss.nats / loss.n_tokens).item() == pytest.approx(math.log(4), rel=1e-6)


def uniform(xt: Tensor, sigma: Tensor) -> Tensor:
    return torch.zeros(*xt.shape, 16, dtype=torch.float64, requires_grad=True)


def test_windows_with_nothing_to_mask_contribute_nothing_and_no_nan() -> None:
    diffusion = MaskedDiffusion(Linear(), 3, (7, 8, 9, 10))
    x0 = torch.tensor([[7, 8, 9], [11, 11, 11]])
    maskable = torch.tensor([[True, True, True], [False] * 3])
    t, u = torch.tensor([0.5, 1.0], dtype=torch.float64), torch.rand(2, 3, dtype=torch.float64)
    for rows in (slice(0, 2), slice(1, 2)):
        batch = x0[rows], maskable[rows]
        for loss in (
            exact_count_loss(diffusion, uniform, *batch, None, counts(t[rows], maskable[rows].sum(-1)), u[rows]),
            continuous_time_loss(diffusion, uniform, *batch, None, t[rows], u[rows]),
            discrete_time_loss(diffusion, uniform, *batch, None, t[rows], u[rows], 2),
        ):
            assert torch.isfinite(loss.nats)
            assert loss.n_tokens == maskable[rows].sum()
            loss.nats.backward()
    window = window_nelbo(diffusion, uniform, x0, maskable, torch.tensor([2, 0]), u)
    assert window.nats_per_token[1] == window.masked_nats[1] == window.scale[1] == 0
    assert torch.isfinite(window.nats_per_token).all()


@given(windows(), st.integers(-3, 20))
def test_a_count_out_of_range_is_held_in_range_and_never_deflates_the_bound(case: Windows, k: int) -> None:
    rows = torch.full((len(case.x0),), k)
    n = case.maskable.sum(-1)
    held = torch.minimum(rows.clamp(min=1), n)
    u = case.uniforms(*case.x0.shape)
    losses = [exact_count_loss(case.diffusion, lambda xt, s: case.logits, case.x0, case.maskable, None, which, u) for which in (rows, held)]
    assert torch.equal(losses[0].nats, losses[1].nats)


@settings(max_examples=30)
@given(st.sampled_from([1, 2, 10, 50]), st.sampled_from([*FIVE, LogLinear(), Geometric()]), seeds)
def test_discrete_time_is_finite_in_ten_thousand_draws(n_steps: int, noise: Schedule, seed: int) -> None:
    g = torch.Generator().manual_seed(seed)
    batch = 10_000
    x0, ok = torch.full((batch, 2), 8), torch.ones(batch, 2, dtype=torch.bool)
    t = 1 - torch.rand(batch, generator=g, dtype=torch.float64)
    t[:3] = torch.tensor([1e-300, 1 / n_steps, 1.0])
    u = torch.rand(batch, 2, generator=g, dtype=torch.float64)
    diffusion = MaskedDiffusion(noise, 3, (7, 8, 9, 10))
    loss = discrete_time_loss(diffusion, uniform, x0, ok, None, t, u, n_steps)
    assert torch.isfinite(loss.nats)
    (grad,) = torch.autograd.grad(loss.nats, loss.nats)
    assert torch.isfinite(grad)


def test_position_weights_scale_what_is_optimised_and_not_what_is_reported() -> None:
    diffusion = MaskedDiffusion(Linear(), 3, (7, 8, 9, 10))
    x0, ok = torch.full((1, 4), 7), torch.ones(1, 4, dtype=torch.bool)
    weight = torch.tensor([[1.0, 0.1, 0.1, 0.0]])
    loss = exact_count_loss(diffusion, uniform, x0, ok, weight, torch.tensor([4]), torch.rand(1, 4))
    assert loss.nats.item() == pytest.approx(1.2 * math.log(4))
    assert loss.nats_unweighted.item() == pytest.approx(4 * math.log(4))
    assert loss.nats.requires_grad
    assert not loss.nats_unweighted.requires_grad


# what the denoiser is called with


def test_lengths_reach_a_denoiser_that_takes_them() -> None:
    seen: list[tuple[Tensor, ...]] = []

    def denoiser(*arguments: Tensor) -> Tensor:
        seen.append(arguments)
        return torch.zeros(*arguments[0].shape, 16)

    diffusion = MaskedDiffusion(Linear(), 3, (7, 8, 9, 10))
    x0, ok, k, u = torch.full((1, 4), 7), torch.ones(1, 4, dtype=torch.bool), torch.tensor([2]), torch.rand(1, 4)
    lengths = torch.tensor([4])
    exact_count_loss(diffusion, denoiser, x0, ok, None, k, u, lengths)
    window_nelbo(diffusion, denoiser, x0, ok, k, u, lengths)
    exact_count_loss(diffusion, denoiser, x0, ok, None, k, u)
    assert [len(arguments) for arguments in seen] == [3, 3, 2]
    assert seen[0][2] is lengths
    assert [(arguments[0] == 3).sum().item() for arguments in seen] == [2, 2, 2]


@pytest.mark.parametrize("time_conditioning", [False, True])
def test_sigma_reaches_the_denoiser_only_with_time_conditioning(time_conditioning: bool) -> None:
    seen: list[float] = []

    def denoiser(xt: Tensor, sigma: Tensor) -> Tensor:
        seen.extend(sigma.tolist())
        return torch.zeros(*xt.shape, 16)

    diffusion = MaskedDiffusion(Linear(), 3, (7, 8), time_conditioning)
    x0, ok, u = torch.full((1, 4), 7), torch.ones(1, 4, dtype=torch.bool), torch.rand(1, 4)
    t = torch.tensor([0.75], dtype=torch.float64)
    continuous_time_loss(diffusion, denoiser, x0, ok, None, t, u)
    exact_count_loss(diffusion, denoiser, x0, ok, None, torch.tensor([3]), u)
    discrete_time_loss(diffusion, denoiser, x0, ok, None, torch.tensor([0.7]), u, 4)
    assert seen == pytest.approx([math.log(4)] * 3 if time_conditioning else [0, 0, 0])


# the estimate window by window


@given(windows())
def test_window_estimates_add_up_to_the_loss(case: Windows) -> None:
    u, k = case.uniforms(*case.x0.shape), counts(1 - case.uniforms(len(case.x0), stream=1), case.maskable.sum(-1))
    arguments = case.diffusion, lambda xt, s: case.logits, case.x0, case.maskable
    window, loss = window_nelbo(*arguments, k, u), exact_count_loss(*arguments, None, k, u)
    assert (window.nats_per_token * window.n).sum().item() == pytest.approx(loss.nats.item(), rel=1e-9, abs=1e-9)
    assert (window.scale[:, None] * window.ce).sum().item() == pytest.approx(loss.nats.item(), rel=1e-9, abs=1e-9)
    assert torch.equal(window.masked.sum(-1), window.k)
    assert torch.equal(window.n, case.maskable.sum(-1))
    assert window.nats_per_token.dtype == torch.float64


def test_the_curve_over_mask_rates_is_c_k_over_k_and_its_mean_is_the_bound() -> None:
    ok = torch.ones(24, 4, dtype=torch.bool)
    x0 = F1.sequences[3]
    parts = [window_nelbo(F1.diffusion(), F1.denoiser, x0.expand(24, 4), ok, torch.full((24,), k), all_orders(4)) for k in range(1, 5)]
    masked_nats, k, n = (torch.cat([getattr(part, name) for part in parts]) for name in ("masked_nats", "k", "n"))
    curve = rate_curve(masked_nats, k, n, n_bins=4)
    terms = count_terms(F1.diffusion(), F1.denoiser, x0, ok[0])
    torch.testing.assert_close(curve.nats, terms[1:] / torch.arange(1, 5), rtol=0, atol=1e-12)
    assert curve.n_windows.tolist() == [24] * 4
    assert curve.nats.mean().item() * 4 == pytest.approx(nelbo_exact(terms).item(), abs=1e-12)


def test_the_curve_weights_windows_by_their_tokens_and_leaves_empty_ones_out() -> None:
    masked_nats = torch.tensor([1.0, 6.0, 0.0])
    k, n = torch.tensor([1, 3, 0]), torch.tensor([2, 6, 0])
    curve = rate_curve(masked_nats, k, n, n_bins=2)
    assert curve.nats[0].item() == pytest.approx((2 * 1 + 6 * 2) / 8)
    assert curve.nats[1].isnan()
    assert curve.n_windows.tolist() == [2, 0]


# both strands


@settings(max_examples=40)
@given(seeds, st.integers(1, 9))
def test_a_strand_symmetric_denoiser_gives_a_window_and_its_reverse_complement_the_same_loss(seed: int, length: int) -> None:
    complement = torch.tensor([0, 1, 2, 3, 4, 5, 6, 10, 9, 8, 7, 11, 12, 13, 14, 15])
    g = torch.Generator().manual_seed(seed)
    near, far = torch.randn(2, 16, 16, generator=g, dtype=torch.float64)

    def one_strand(xt: Tensor) -> Tensor:
        """Looks left and right differently, so symmetry is not built in."""
        return near[xt].roll(1, 1) + far[xt].cumsum(1) / 3

    def denoiser(xt: Tensor, sigma: Tensor) -> Tensor:
        return one_strand(xt) + one_strand(complement[xt].flip(1)).flip(1)[..., complement]

    diffusion = MaskedDiffusion(Linear(), 3, (7, 8, 9, 10))
    x0 = torch.randint(7, 12, (2, length), generator=g)
    maskable, u = x0 != 11, torch.rand(2, length, generator=g, dtype=torch.float64)
    weight, t = torch.rand(2, length, generator=g, dtype=torch.float64), 1 - torch.rand(2, generator=g)
    k = counts(t.double(), maskable.sum(-1))
    here = x0, maskable, weight
    there = complement[x0].flip(1), maskable.flip(1), weight.flip(1)
    for loss, when in ((exact_count_loss, k), (continuous_time_loss, t)):
        ours = loss(diffusion, denoiser, *here, when, u)
        theirs = loss(diffusion, denoiser, *there, when, u.flip(1))
        assert ours.nats.item() == pytest.approx(theirs.nats.item(), rel=1e-10, abs=1e-10)
        assert ours.nats_unweighted.item() == pytest.approx(theirs.nats_unweighted.item(), rel=1e-10, abs=1e-10)
