"""Every objective in worlds with a known entropy: its value is that of its equation."""

import itertools
import math
from dataclasses import replace
from functools import partial

import pytest
import torch
from enumerated import (
    NEVER,
    WORLDS,
    Network,
    as_ratios,
    draws,
    everywhere,
    exact_bound,
    mean_over_masks,
    read_one_way,
    with_mask,
)
from sampling import DNA
from torch import Tensor
from worlds import World, markov_chain

from genodiff.diffusion.loss import count_terms, nelbo_discrete, nelbo_exact
from genodiff.diffusion.masked import Clean, MaskedDiffusion, bell
from genodiff.diffusion.objective import OBJECTIVES, Objective, objective
from genodiff.diffusion.objectives.ar import Ar, shifted
from genodiff.diffusion.objectives.d3pm import D3pm
from genodiff.diffusion.objectives.mdlm import Mdlm, log1mexp
from genodiff.diffusion.objectives.mlm import Mlm
from genodiff.diffusion.objectives.sedd import Sedd
from genodiff.diffusion.schedule import Cosine, Linear, LogLinear
from genodiff.errors import UsageError

# MDLM and D3PM


@pytest.mark.few(4)
@pytest.mark.parametrize("world", WORLDS, ids=["markov", "copy", "iid"])
@pytest.mark.parametrize("schedule", [Linear(), Cosine(), LogLinear()])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_the_loss_of_t_steps_has_the_mean_of_the_chain_with_and_without_rao_blackwellisation(
    world, schedule, steps
):
    denoiser, x0 = with_mask(world, 0.0, 0.5), world.sequences[1]
    diffusion = world.diffusion(schedule)
    drawn = mean_over_masks(Mdlm(diffusion, time_steps=steps), denoiser, x0, steps, schedule)
    single = mean_over_masks(
        Mdlm(diffusion, time_steps=steps, rao_blackwell=False), denoiser, x0, steps, schedule
    )
    assert single == pytest.approx(drawn, rel=1e-9)
    if not isinstance(schedule, LogLinear):
        terms = count_terms(diffusion, denoiser, x0, everywhere(x0))
        assert drawn == pytest.approx(float(nelbo_discrete(terms, schedule, steps)), rel=1e-9)


@pytest.mark.few(4)
@pytest.mark.parametrize("world", WORLDS, ids=["markov", "copy", "iid"])
@pytest.mark.parametrize("schedule", [Cosine(), LogLinear()])
@pytest.mark.parametrize(
    "of", [Mdlm, partial(Mdlm, carry_over=False), D3pm], ids=["mdlm", "no carry-over", "d3pm"]
)
@pytest.mark.parametrize("steps", [1, 6])
def test_the_bound_of_t_steps_has_the_mean_of_their_loss_whichever_step_drew_a_mask(
    world, schedule, of, steps
):
    denoiser, x0 = with_mask(world, 0.3, 0.5), world.sequences[1]
    made = of(world.diffusion(schedule), time_steps=steps)
    masks = torch.tensor(list(itertools.product([False, True], repeat=len(x0))))
    rows, by_step = x0.expand(len(masks), -1), []
    total = 0.0
    for i in range(1, steps + 1):
        share = schedule.masked(torch.tensor(i / steps, dtype=torch.float64))
        u = torch.where(masks, share / 2, (1 + share) / 2)
        t = torch.full((len(masks),), (i - 0.5) / steps, dtype=torch.float64)
        found = made.bound(denoiser, Clean(rows, everywhere(rows)), draws(u, t))
        by_step.append((found.scale[:, None] * found.ce).sum(-1))
        total += float((torch.where(masks, share, 1 - share).prod(-1) * by_step[-1]).sum()) / steps
    visible = float(schedule.alpha(torch.ones(1, dtype=torch.float64)))
    prior = len(x0) * visible * math.log(len(world.targets))
    wanted = mean_over_masks(made, denoiser, x0, steps, schedule) + prior
    assert total == pytest.approx(wanted, rel=1e-9)
    for found in by_step[:-1]:  # in the last step of a closed schedule all is masked
        torch.testing.assert_close(found, by_step[0])


def find_copying_cost(world: World, net: Network, x0: Tensor) -> float:
    """What a network pays for the tokens that it sees."""
    rows = x0[None]
    return float(world.diffusion().nll(net(rows, torch.zeros(1)), rows, everywhere(rows)).sum())


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_d3pm_of_a_network_that_never_says_mask_and_copies_what_it_sees_is_mdlm_in_steps(steps):
    world = markov_chain(3)
    for noise in (0.0, 0.5):
        denoiser, x0 = with_mask(world, NEVER, noise), world.sequences[2]
        terms = count_terms(world.diffusion(), denoiser, x0, everywhere(x0))
        copying = find_copying_cost(world, denoiser, x0)
        of = D3pm(world.diffusion(), time_steps=steps)
        found = mean_over_masks(of, denoiser, x0, steps, Linear())
        wanted = float(nelbo_discrete(terms, Linear(), steps)) + copying
        assert found == pytest.approx(wanted, rel=1e-9)
        if noise == 0:
            assert copying == pytest.approx(0, abs=1e-9)


# AR


@pytest.mark.parametrize("world", WORLDS, ids=["markov", "copy", "iid"])
def test_next_token_is_the_exact_likelihood_of_every_sequence(world):
    x0 = world.sequences
    given = draws(torch.zeros_like(x0).double(), torch.ones(len(x0)))
    found = Ar(world.diffusion()).bound(read_one_way(world), Clean(x0, everywhere(x0)), given)
    torch.testing.assert_close((found.scale * found.ce.sum(-1)), -world.p.log())
    assert Ar.figure == "exact"


def test_the_next_token_follows_from_those_before_it_and_what_does_not_count_is_free():
    x0 = torch.tensor([[7, 8, 11, 9]])
    assert shifted(x0, 3).tolist() == [[3, 7, 8, 11]]
    ok = torch.tensor([[True, True, False, True]])
    weight = torch.tensor([[1.0, 0.5, 1.0, 0.0]])
    given = Clean(x0, ok, weight), draws(torch.zeros(1, 4).double(), torch.ones(1))
    terms = Ar(DNA).loss(lambda xt, s: torch.zeros(1, 4, 16), *given)
    assert float(terms.nats) == pytest.approx(1.5 * math.log(4))
    assert float(terms.nats_unweighted) == pytest.approx(3 * math.log(4))
    assert int(terms.n_tokens) == 3


# MLM


def test_bert_selects_fifteen_per_cent_and_shows_the_mask_a_random_token_or_the_truth():
    n = 200_000
    x0, seen = torch.full((1, n), 8), []

    def denoiser(xt: Tensor, sigma: Tensor) -> Tensor:
        seen.append(xt)
        return torch.zeros(*xt.shape, 16)

    u = torch.rand(1, n, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    terms = Mlm(DNA).loss(denoiser, Clean(x0, everywhere(x0)), draws(u, torch.ones(1)))
    share = {i: float((seen[0] == i).double().mean()) for i in (3, 7, 8, 9, 10)}
    assert share[3] == pytest.approx(0.12, abs=0.003)
    for i in (7, 9, 10):
        assert share[i] == pytest.approx(0.015 / 4, abs=0.0006)
    assert float(terms.nats) / n == pytest.approx(math.log(4), rel=0.02)
    assert bool((seen[0] == x0)[u >= 0.15].all())


# all of them


CURVES = [name for name in OBJECTIVES if objective(name, DNA).curve]


@pytest.mark.parametrize("name", CURVES)
def test_the_figure_of_a_perfect_network_is_the_worlds_entropy_and_of_a_wrong_one_it_is_above(name):
    for world in WORLDS:
        of = objective(name, world.diffusion())
        perfect, wrong = with_mask(world, 0.0), with_mask(world, 0.0, 1.0)
        if of.kind == "score":
            perfect, wrong = (as_ratios(world, net) for net in (perfect, wrong))
        found = [
            sum(
                float(p) * exact_bound(of, net, x)
                for x, p in zip(world.sequences, world.p, strict=True)
            )
            for net in (perfect, wrong)
        ]
        assert found[0] == pytest.approx(world.entropy, abs=1e-6)
        assert found[1] > world.entropy


@pytest.mark.parametrize("name", OBJECTIVES)
def test_padding_and_batch_mates_change_nothing(name):
    of = objective(name, DNA)
    generator = torch.Generator().manual_seed(3)
    table = torch.randn(16, 16, generator=generator, dtype=torch.float64)
    u = torch.rand(4, 6, generator=generator, dtype=torch.float64)
    x0 = torch.randint(7, 11, (4, 6), generator=generator)
    t = torch.rand(4, generator=generator, dtype=torch.float64)

    def net(
        xt: Tensor, sigma: Tensor, lengths: Tensor | None = None, **of_blocks: object
    ) -> Tensor:
        return table[xt]

    def sums(rows: slice, width: int, pad: int) -> tuple[float, float]:
        rest = torch.full((x0[rows].shape[0], pad), 4)
        x = torch.cat([x0[rows, :width], rest], 1)
        more = torch.cat([u[rows, :width], torch.zeros(len(rest), pad, dtype=torch.float64)], 1)
        lengths = torch.full((len(x),), width) if pad else None
        given = Clean(x, x != 4, lengths=lengths), draws(more, t[rows])
        found = of.bound(net, *given)
        bound = float((found.scale * found.ce.sum(-1)).sum())
        return float(of.loss(net, *given).nats), bound

    whole = sums(slice(0, 4), 6, 0)
    padded = sums(slice(0, 4), 6, 3)
    parts = [sums(slice(i, i + 1), 6, i) for i in range(4)]
    assert padded == pytest.approx(whole, rel=1e-9)
    assert tuple(map(sum, zip(*parts, strict=True))) == pytest.approx(whole, rel=1e-9)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_window_with_nothing_to_predict_costs_nothing(name):
    of = objective(name, MaskedDiffusion(Linear(), 3, (7, 8)))
    x0 = torch.full((1, 4), 11)
    t, u = torch.tensor([0.5], dtype=torch.float64), torch.rand(1, 4, dtype=torch.float64)
    given = Clean(x0, torch.zeros(1, 4, dtype=torch.bool)), draws(u, t)

    def net(xt: Tensor, sigma: Tensor, **of_blocks: object) -> Tensor:
        return torch.zeros(1, 4, 16)

    terms = of.loss(net, *given)
    assert (float(terms.nats), int(terms.n_tokens)) == (0.0, 0)
    assert float(of.bound(net, *given).ce.sum()) == 0


def test_the_chance_of_not_saying_mask_is_accurate_at_both_ends():
    p = torch.tensor([1e-300, 1e-9, 0.3, 0.5, 0.9, 1 - 1e-12], dtype=torch.float64)
    torch.testing.assert_close(log1mexp(p.log()), torch.log1p(-p), rtol=1e-4, atol=0)


def test_mdlm_without_carry_over_pays_for_copying_too():
    world = markov_chain(3)
    net, x0 = with_mask(world, 0.0, 0.7), world.sequences[3]
    copying = find_copying_cost(world, net, x0)
    whole, bare = (
        exact_bound(Mdlm(world.diffusion(), carry_over=c), net, x0) for c in (True, False)
    )
    assert bare == pytest.approx(whole + copying, rel=1e-9)
    terms = count_terms(world.diffusion(), net, x0, everywhere(x0))
    assert whole == pytest.approx(float(nelbo_exact(terms)), rel=1e-9)


def test_counts_of_a_bell_come_from_its_rates_in_order():
    t = (torch.arange(999, dtype=torch.float64) + 0.5) / 999
    rate, inverse = bell(t, 0.3, 0.5)
    assert (rate.diff() > 0).all()
    assert float(rate[499]) == pytest.approx(0.3, abs=1e-9)
    # 1 / density is the quantile function's slope.
    slope = rate.diff() * 999
    middle = slice(50, -50)
    wanted = (inverse[1:] + inverse[:-1]) / 2
    torch.testing.assert_close(slope[middle], wanted[middle], rtol=0.01, atol=0)


GRID = (torch.arange(4000, dtype=torch.float64) + 0.5) / 4000


def mean_over_times(of: Objective, net, x0: Tensor, rate: Tensor = GRID) -> float:  # type: ignore[no-untyped-def]
    """The mean loss: every mask at every time of a fine grid, weighed by its probability there."""
    total, (n, length) = 0.0, (len(GRID), len(x0))
    for fate in itertools.product((0.0, 1.0), repeat=length):
        visible = torch.tensor(fate) == 1
        p = torch.where(visible, 1 - rate[:, None], rate[:, None]).prod(-1)
        u = torch.where(visible, 1 - 1e-9, 0.0).double().expand(n, length)
        rows = x0.expand(n, -1)
        clean = Clean(rows, everywhere(rows), p[:, None].expand(n, length))
        total += float(of.loss(net, clean, draws(u, GRID)).nats) / n
    return total


def test_sedd_by_times_has_the_mean_of_sedd_by_counts():
    world = markov_chain(2)
    net, x0 = with_mask(world, 0.0, 0.7), world.sequences[1]
    of = Sedd(world.diffusion(), exact_count=False)
    wanted = exact_bound(replace(of, exact_count=True), net, x0)
    assert mean_over_times(of, net, x0) == pytest.approx(wanted, rel=1e-3)


@pytest.mark.parametrize("world", WORLDS, ids=["markov", "copy", "iid"])
def test_a_weighted_bell_has_the_mean_of_uniform_rates_and_a_plain_one_has_another(world):
    net, x0 = with_mask(world, 0.0, 0.7), world.sequences[1]

    def mean(width: float, *, weighted: bool) -> float:
        of = Mdlm(world.diffusion(), exact_count=False, bell=width, bell_center=0.4,
                  bell_weighted=weighted)  # fmt: skip
        return mean_over_times(of, net, x0, bell(GRID, 0.4, width)[0])

    wanted = exact_bound(Mdlm(world.diffusion()), net, x0)
    # Wide, so that its tails are on the grid.
    assert mean(2.0, weighted=True) == pytest.approx(wanted, rel=5e-3)
    differs = abs(mean(0.3, weighted=False) / wanted - 1) > 0.02
    assert differs == (world is not WORLDS[2])  # without context every rate costs the same


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("mdml", {}, "did you mean 'mdlm'"),
        ("d3pm", {"carry_ower": True}, r"no setting 'carry_ower'.*did you mean 'carry_over'"),
        ("mdlm", {"rao_blackwell": False}, "needs steps"),
        ("d3pm", {"time_steps": 0}, "0 time steps"),
        ("mlm", {"mask_rate": 0.0}, "mask rate"),
        ("mdlm", {"bell": 0.0}, "a bell of width 0"),
        ("mdlm", {"bell": 0.3, "bell_center": 1.0}, "around 1"),
        ("mdlm", {"bell_weighted": True}, "and no bell"),
        ("mdlm", {"bell": 0.3, "time_steps": 10}, "continuous time"),
        ("mdlm", {"bell": 0.3, "zero_masking": False}, "continuous time"),
    ],
)
def test_settings_that_make_no_sense_are_refused(name, settings, says):
    with pytest.raises(UsageError, match=says):
        objective(name, DNA, **settings)
