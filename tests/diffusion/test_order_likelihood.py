"""Exact likelihoods of samplers, against enumeration of all sequences."""

import math
from collections.abc import Callable

import pytest
import torch
from enumerated import all_orders
from sampling import draws, masks
from small_worlds import MASK, TARGETS, States, assert_counts, complement, random_world
from torch import Tensor
from worlds import World, markov_chain

from genodiff.diffusion.draw import Draw
from genodiff.diffusion.loss import check_apart, count_terms, nelbo_exact
from genodiff.diffusion.order_likelihood import (
    OrderLikelihood,
    find_fixed_order,
    index_order,
    order_likelihood,
    score_steps,
)
from genodiff.diffusion.sampler import SAMPLERS, Sampler, SamplerOptions
from genodiff.diffusion.samplers.path_planning import path_planning
from genodiff.errors import UsageError

WORLD = random_world(seed=3)
ORDERED = [name for name, one in SAMPLERS.items() if one.order is not None]
CASES = [
    ("ancestral", 3, {}), ("first-hitting", 9, {}), ("strand-symmetric", 2, {}),
    ("confidence", 4, {}), ("confidence", 2, {}), ("confidence", 2, {"order_temperature": 0.7}),
    ("entropy-bounded", 9, {"bound": 0.0}), ("entropy-bounded", 9, {"bound": 1.3}),
    ("left-to-right", 9, {}), ("left-to-right", 9, {"at_once": 3.0}),
    ("both-ends", 9, {}), ("both-ends", 9, {"at_once": 2.0}),
]  # fmt: skip
each_case = pytest.mark.parametrize(("name", "steps", "settings"), CASES)
Network = Callable[[Tensor, Tensor], Tensor]


def wrong(seed: int = 8, mirrored: bool = False) -> Network:
    """A network that is right about nothing, so that no two orders have one law."""
    g = torch.Generator().manual_seed(seed)
    table = torch.randn(5**WORLD.length, WORLD.length, 12, generator=g, dtype=torch.float64)
    states = States(WORLD, table)
    if mirrored:
        there = [states.number[tuple(x)] for x in complement(states.all).tolist()]
        other = table[there].flip(1)
        other[..., list(TARGETS)] = other[..., list(reversed(TARGETS))]
        states = States(WORLD, (table + other) / 2)
    return states.denoiser


def score(
    name: str | Sampler, network: Network, x0: Tensor, steps: int = 9, *,
    hidden: Tensor | None = None, u_order: Tensor | None = None, settings: dict | None = None,
    world: World = WORLD, **how: float,
) -> OrderLikelihood:  # fmt: skip
    u = index_order(*x0.shape) if u_order is None else u_order.expand(x0.shape)
    options = SamplerOptions(u, torch.zeros_like(u), steps, **how)  # type: ignore[arg-type]
    sampler = SAMPLERS[name] if isinstance(name, str) else name
    hidden = torch.ones_like(x0, dtype=torch.bool) if hidden is None else hidden
    return order_likelihood(
        sampler, world.diffusion(), network, x0, hidden, options, **(settings or {})
    )


def test_every_sampler_with_an_order_is_a_case():
    assert {name for name, *_ in CASES} == set(ORDERED)


@pytest.mark.few(6)
@each_case
@pytest.mark.parametrize("how", [{}, {"temperature": 0.6, "top_p": 0.8}, {"temperature": 0.0}])
@pytest.mark.parametrize("seed", [None, 1])
def test_over_all_sequences_it_sums_to_one(name, steps, settings, how, seed):
    u = None if seed is None else draws(1, 4, seed)["u_order"]
    found = score(name, wrong(), WORLD.sequences, steps, settings=settings, u_order=u, **how)
    assert (-found.total).exp().sum().item() == pytest.approx(1, abs=1e-12)
    assert torch.equal(found.step.amax(-1) + 1, found.nfe)


@pytest.mark.few(2)
@each_case
def test_samples_follow_the_law_that_is_scored(name, steps, settings):
    n, network, u = 8_000, wrong(), draws(1, 4, seed=5)["u_order"]
    law = (-score(name, network, WORLD.sequences, steps, settings=settings, u_order=u).total).exp()
    options = SamplerOptions(u.expand(n, 4), draws(n, 4, seed=6)["u_token"], steps)
    drawn = SAMPLERS[name].draw(WORLD.diffusion(), network, masks(n, 4), options, **settings)
    assert_counts(WORLD, drawn.x0, law)


@pytest.mark.parametrize(
    ("name", "settings"),
    [("first-hitting", {}), ("confidence", {}), ("entropy-bounded", {"bound": 0.0}),
     ("left-to-right", {}), ("both-ends", {})],
)  # fmt: skip
@pytest.mark.parametrize("world", [WORLD, markov_chain()], ids=["all", "chain"])
def test_a_perfect_network_one_base_at_a_time_has_the_law_of_the_data(name, settings, world):
    found = score(name, world.denoiser, world.sequences, 9, settings=settings, world=world)
    torch.testing.assert_close((-found.total).exp(), world.p)


# By the definition


def by_definition(choose: Callable[[Tensor, list[int]], list[int]], x: Tensor) -> float:
    """-log p(x) of an order, one sequence at a time: `choose` (law (L, K), masked) -> positions."""
    state, nats = torch.full_like(x, MASK), 0.0
    while left := (state == MASK).nonzero()[:, 0].tolist():
        law = wrong()(state[None], state[:1])[0, :, list(TARGETS)].softmax(-1)
        due = choose(law, left)
        nats -= sum(law[i, TARGETS.index(int(x[i]))].log().item() for i in due)
        state[due] = x[due]
    return nats


def take_likeliest(law: Tensor, left: list[int], n: int) -> list[int]:
    return sorted(left, key=lambda i: (-law[i].max().item(), i))[:n]


def take_certain(law: Tensor, left: list[int]) -> list[int]:
    entropy = {i: -(law[i] * law[i].log()).sum().item() for i in left}
    ranked = sorted(left, key=lambda i: (entropy[i], i))
    fits = [m for m in range(1, len(left) + 1) if sum(map(entropy.get, ranked[: m - 1])) <= 1.3]
    return ranked[: max(fits)]


@pytest.mark.parametrize(
    ("name", "steps", "settings", "choose"),
    [
        ("left-to-right", 9, {}, lambda law, left: left[:1]),
        ("left-to-right", 9, {"at_once": 3.0}, lambda law, left: left[:3]),
        ("both-ends", 9, {}, lambda law, left: [left[0] if len(left) % 2 == 0 else left[-1]]),
        ("both-ends", 9, {"at_once": 2.0}, lambda law, left: [left[0], left[-1]]),
        ("confidence", 4, {}, lambda law, left: take_likeliest(law, left, 1)),
        ("confidence", 2, {}, lambda law, left: take_likeliest(law, left, 2)),
        ("entropy-bounded", 9, {"bound": 1.3}, take_certain),
    ],
)
def test_it_is_the_sum_over_evaluations(name, steps, settings, choose):
    some = WORLD.sequences[::17]
    found = score(name, wrong(), some, steps, settings=settings).total
    assert found.tolist() == pytest.approx([by_definition(choose, x) for x in some], abs=1e-9)


@pytest.mark.parametrize("name", ORDERED)
def test_what_is_given_is_not_paid_for(name):
    hidden = torch.tensor([[True, False, True, True]]).expand(256, 4)
    given = WORLD.sequences[:, 1] == 8
    found = score(name, wrong(), WORLD.sequences, hidden=hidden)
    assert (found.nats[:, 1] == 0).all()
    assert (found.step[:, 1] == -1).all()
    assert (-found.total[given]).exp().sum().item() == pytest.approx(1, abs=1e-12)


# Orders look only at what is visible


def peeks(sampler: Sampler, network: Network, settings: dict, steps: int = 9) -> bool:
    """Whether an order looks at tokens to come, or at the uniforms that draw them."""
    for x0 in WORLD.sequences[::29]:
        step = score(sampler, network, x0[None], steps, settings=settings).step
        for k in range(int(step.max()) + 1):
            same = (WORLD.sequences == x0) | (step >= k)  # those that agree before evaluation k
            others = score(
                sampler, network, WORLD.sequences[same.all(-1)], steps, settings=settings
            )
            if not torch.equal(others.step.clamp(max=k + 1), step.clamp(max=k + 1).expand_as(
                others.step)):  # fmt: skip
                return True
        for u in (0.0, 0.6):
            uniforms = torch.full((1, 4), u, dtype=torch.float64)
            options = SamplerOptions(index_order(1, 4), uniforms, steps)
            hidden = torch.ones(1, 4, dtype=torch.bool)
            found = order_likelihood(
                sampler, WORLD.diffusion(), network, x0[None], hidden, options, **settings
            )
            if not torch.equal(found.step, step):
                return True
    return False


@pytest.mark.few(2)
@each_case
def test_no_order_peeks(name, steps, settings):
    assert not peeks(SAMPLERS[name], wrong(), settings, steps)


def test_a_sampler_that_judges_or_takes_back_tokens_is_refused():
    for name in ("p2", "remdm-cap", "analytic"):
        with pytest.raises(UsageError, match="it has no exact likelihood"):
            score(name, wrong(), WORLD.sequences[:1])
    assert SAMPLERS["p2"].draw is path_planning


def test_drawing_together_and_guidance_are_refused():
    u = index_order(1, 4)
    options = SamplerOptions(u, u, joint=lambda *_: (torch.zeros(0, dtype=torch.int64), False))
    given = WORLD.diffusion(), wrong(), WORLD.sequences[:1], torch.ones(1, 4, dtype=torch.bool)
    for bad in (options, SamplerOptions(u, u, causal=True)):
        with pytest.raises(UsageError, match="leave constraints and guidance out"):
            order_likelihood(SAMPLERS["confidence"], *given, bad)


# Ties, strands


@pytest.mark.parametrize("name", ["confidence", "entropy-bounded"])
def test_ties_go_to_the_leftmost(name):
    settings = {"bound": 0.0} if name == "entropy-bounded" else {}
    found = score(name, lambda x, s: torch.zeros(*x.shape, 12), WORLD.sequences[:2], 4,
                  settings=settings)  # fmt: skip
    assert found.step.tolist() == [[0, 1, 2, 3]] * 2
    assert found.total.tolist() == pytest.approx([4 * math.log(4)] * 2)


@pytest.mark.parametrize(
    ("name", "settings"), [("strand-symmetric", {}), ("both-ends", {"at_once": 2.0})]
)
def test_a_symmetric_order_gives_both_strands_one_likelihood(name, settings):
    network, u = wrong(mirrored=True), draws(1, 4, seed=2)["u_order"]
    here = score(name, network, WORLD.sequences, 3, settings=settings, u_order=u)
    there = score(name, network, complement(WORLD.sequences), 3, settings=settings, u_order=u)
    torch.testing.assert_close(here.total, there.total)
    lopsided = score("left-to-right", network, WORLD.sequences).total
    other = score("left-to-right", network, complement(WORLD.sequences)).total
    assert (lopsided - other).abs().max() > 0.1


def test_the_mean_over_random_orders_is_the_bound():
    orders = all_orders(4)
    x0, network = WORLD.sequences[37].expand(len(orders), 4), wrong()
    found = score("first-hitting", network, x0, u_order=orders)
    terms = count_terms(WORLD.diffusion(), network, x0[0], torch.ones(4, dtype=torch.bool))
    assert found.total.mean().item() == pytest.approx(nelbo_exact(terms).item())


# Steps of a fixed order


@pytest.mark.parametrize(
    ("name", "steps", "settings"), [one for one in CASES if SAMPLERS[one[0]].order == "fixed"]
)
def test_the_steps_of_a_fixed_order_are_known_without_walking(name, steps, settings):
    x0, network = WORLD.sequences[::5], wrong()
    diffusion = WORLD.diffusion(time_conditioning=True)
    hidden = (x0 != 8) | (torch.arange(4) == 1)
    u = draws(len(x0), 4, seed=7)["u_order"]
    options = SamplerOptions(u, u, steps, temperature=0.8)
    sampler = SAMPLERS[name]

    def told(x: Tensor, sigma: Tensor) -> Tensor:
        return network(x, sigma) * (1 + sigma.clamp(max=5))[:, None, None]

    whole = order_likelihood(sampler, diffusion, told, x0, hidden, options, **settings)
    order = find_fixed_order(sampler, diffusion, x0, hidden, options, **settings)
    assert torch.equal(order.step, whole.step)
    assert torch.equal(order.evaluations, whole.nfe)
    total = torch.zeros_like(whole.nats)
    for k in range(int(whole.nfe.max())):
        step = torch.full((len(x0),), k)
        total += score_steps(order, diffusion, told, x0, step, Draw(0.8, 1.0))
    torch.testing.assert_close(total, whole.nats)


def test_an_order_that_reads_the_network_is_walked():
    u, x0 = index_order(1, 4), WORLD.sequences[:1]
    given = WORLD.diffusion(), x0, torch.ones_like(x0, dtype=torch.bool), SamplerOptions(u, u)
    with pytest.raises(ValueError, match="reads the network"):
        find_fixed_order(SAMPLERS["confidence"], *given)


# Predictions that depend on one another


def coupled(x: Tensor, sigma: Tensor) -> Tensor:
    """MDM-Prime's kind: a letter is drawn within the network, and all positions are told of it."""
    letter = torch.randint(0, 4, (len(x),))
    logits = torch.zeros(*x.shape, 12, dtype=torch.float64)
    logits[torch.arange(len(x)), :, torch.tensor(TARGETS)[letter]] = 3.0
    return logits


def test_a_denoiser_whose_positions_depend_on_one_another_is_refused():
    torch.manual_seed(0)
    xt, sigma, diffusion = masks(8, 4), torch.zeros(8), WORLD.diffusion()
    check_apart(diffusion, wrong(), xt, sigma)
    check_apart(diffusion, coupled, WORLD.sequences, sigma[:1].expand(256))  # nothing is predicted
    with pytest.raises(UsageError, match="asked twice about the same bases"):
        check_apart(diffusion, coupled, xt, sigma)
    with pytest.raises(UsageError, match="the shape"):
        check_apart(diffusion, lambda x, s: torch.zeros(*x.shape, 4, 12), xt, sigma)
    # What is not finite is the bound's to refuse.
    check_apart(diffusion, lambda x, s: wrong()(x, s) * math.nan, xt, sigma)
