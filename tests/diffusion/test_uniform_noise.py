"""Uniform and mixed noise in enumerated worlds: bound, distribution, and the limit MDLM."""

import math

import numpy as np
import pytest
import torch
from enumerated import draws, everywhere
from noisy_worlds import (
    Network,
    chain_step,
    forward,
    leave_one_out,
    list_states,
    start_law,
    wrong,
)
from small_worlds import random_world
from torch import Tensor
from worlds import World, copy_task, markov_chain

from genodiff.diffusion.loss import continuous_time_loss
from genodiff.diffusion.masked import Clean, MaskedDiffusion
from genodiff.diffusion.mixed_noise import MixedNoise
from genodiff.diffusion.objectives.uniform import UniformNoise, find_costs, noise_cost
from genodiff.diffusion.schedule import SCHEDULES, Linear
from genodiff.errors import UsageError

WORLDS = [markov_chain(3), copy_task(2), random_world(2, 4, seed=1)]
NAMES = ["markov", "copy", "random"]
SHARES = [0.0, 0.3, 1.0]
each_world = pytest.mark.parametrize("world", WORLDS, ids=NAMES)
each_share = pytest.mark.parametrize("share", SHARES)


def nodes(n: int = 40) -> tuple[Tensor, Tensor]:
    """Times and weights of an integral over (0, 1), close together at both ends."""
    x, w = np.polynomial.legendre.leggauss(n)
    v, w = (x + 1) / 2, w / 2
    t, slope = v**3 * (10 - 15 * v + 6 * v**2), 30 * v**2 * (1 - v) ** 2
    return torch.from_numpy(t), torch.from_numpy(w * slope)


def integrate(world: World, share: float, network: Network) -> Tensor:
    """The bound of each sequence of the world: all states at all times, (N,)."""
    noise = MixedNoise(world.diffusion(time_conditioning=True), share)
    states, n = list_states(world), len(world.p)
    x, z = world.sequences.repeat_interleave(len(states), 0), states.repeat(n, 1)
    total = torch.zeros(n, dtype=torch.float64)
    one = torch.ones(len(x), dtype=torch.float64)
    for drawn, weight in zip(*nodes(), strict=True):  # over 1 - k: no bound depends on the times
        logits = network(states, noise.sigma(drawn * one[: len(states)])).repeat(n, 1, 1)
        chance = forward(world, x, z, share, 1 - float(drawn)).prod(-1)
        cost = noise_cost(noise, logits, x, z, everywhere(x), drawn * one, one).sum(-1)
        total += weight * torch.where(chance > 0, chance * cost, 0.0).view(n, -1).sum(-1)
    return total


@pytest.mark.few(5)
@each_world
@each_share
def test_of_the_perfect_network_it_is_the_entropy_and_of_a_wrong_one_above(world, share):
    perfect = float((world.p * integrate(world, share, leave_one_out(world, share))).sum())
    assert perfect == pytest.approx(world.entropy, abs=1e-7)
    assert float((world.p * integrate(world, share, wrong(world, share))).sum()) > perfect + 1e-2


@each_share
def test_a_network_that_knows_nothing_pays_ln_k_for_any_token_and_its_bound_does_not_scatter(share):
    """So what it pays for the same draws may be exchanged for its mean."""
    world = markov_chain(2)

    def nothing(z: Tensor, sigma: Tensor) -> Tensor:
        return torch.zeros(*z.shape, world.vocab_size)

    found = integrate(world, share, nothing)
    torch.testing.assert_close(found, torch.full_like(found, 2 * math.log(2)), rtol=0, atol=1e-7)
    x, g = world.sequences.repeat(50, 1), torch.Generator().manual_seed(0)
    given = draws(*(torch.rand(s, generator=g, dtype=torch.float64) for s in (x.shape, len(x))))
    of = UniformNoise(world.diffusion(), mask_share=share)
    bound = of.bound(nothing, Clean(x, everywhere(x)), given).ce.sum(-1)
    torch.testing.assert_close(bound, torch.full_like(bound, 2 * math.log(2)))
    network, clean = wrong(world, share, by=0.1), Clean(x, everywhere(x))
    drawn = find_costs(of.noise, network, clean, given.times("iid"), given.u_mask).sum(-1)
    sure = of.bound(network, clean, given).ce.sum(-1)
    assert float(sure.std()) < float(drawn.std())


@pytest.mark.few(2)
@each_share
def test_it_is_the_limit_of_the_bounds_of_chains_and_bounds_what_they_draw(share):
    """Bounds of T steps, written out from Bayes' rule, and -log p of the chain itself."""
    world = markov_chain(2, stay=0.8)
    network = wrong(world, share)
    states, found = list_states(world), []
    for steps in (16, 32, 64):
        bounds, law, laws = [], start_law(world, states, share), {}
        for i in range(steps, 0, -1):
            t, s = i / steps, (i - 1) / steps
            laws[i] = chain_step(share, network, world, states, (t, s))
            law = law @ laws[i]
        for x in world.sequences:
            total = 0.0
            for i in range(1, steps + 1):
                t, s = i / steps, (i - 1) / steps
                at_t = forward(world, x[None], states, share, 1 - t).prod(-1)
                at_s = forward(world, x[None], states, share, 1 - s).prod(-1)
                jump = torch.ones(len(states), len(states), dtype=torch.float64)  # [s, t]
                for at in range(world.length):
                    jump *= forward(
                        world, states[:, at][:, None], states[:, at][None], share, (1 - t) / (1 - s)
                    )
                joint = at_s[:, None] * jump  # q(z_s, z_t | x)
                posterior = joint / at_t.clamp(min=1e-300)
                model = laws[i].T  # [s, t]
                some = joint > 0
                ratio = posterior[some] / model[some]
                total += float((joint[some] * ratio.log()).sum())
            bounds.append(total)
            index = int((states == x).all(-1).nonzero())
            assert total > -math.log(float(law[index]))  # it bounds what the chain draws
        found.append(torch.tensor(bounds, dtype=torch.float64))
    limit = integrate(world, share, network)
    errors = [float((one - limit).abs().max()) for one in found]
    assert errors[0] > errors[1] > errors[2]
    extrapolated = found[2] + (found[2] - found[1])  # the error goes with 1 / T, nearly
    torch.testing.assert_close(extrapolated, limit, rtol=0, atol=0.1 * errors[2])


@each_share
def test_the_noise_has_its_law_and_loss_and_bound_have_their_mean(share):
    """Uniforms on a grid: every token at a place has its chance, and the loss its expectation."""
    world, t = random_world(1, 4, seed=2), 0.6
    n = 1200  # a multiple of what cuts (0, 1) here
    x = world.sequences[1].expand(n, -1)
    u = ((torch.arange(n, dtype=torch.float64) + 0.5) / n)[:, None]
    times = torch.full((n,), t, dtype=torch.float64)
    of = UniformNoise(world.diffusion(), mask_share=share)
    drawn, speed = of.noise.share(times)
    z = of.noise.corrupt(x, drawn, u, everywhere(x))
    kept = 1 - float(drawn[0])
    for token in (*world.targets, world.mask_id):
        chance = float(forward(world, x[:1], torch.tensor([[token]]), share, kept))
        assert float((z == token).double().mean()) == pytest.approx(chance, abs=1.01 / n)
    network, clean = wrong(world, share), Clean(x, everywhere(x))
    states = list_states(world)
    rows = x[: len(states)]
    chance = forward(world, rows, states, share, kept)[:, 0]
    logits = network(states, torch.zeros(len(states), dtype=torch.float64))
    given = (drawn[: len(states)], speed[: len(states)])
    each = noise_cost(of.noise, logits, rows, states, everywhere(rows), *given)
    wanted = float((chance * torch.where(chance > 0, each[:, 0], 0.0)).sum())
    most = float(each[chance > 0].abs().max()) * 6 / n
    assert float(of.loss(network, clean, draws(u, times)).nats) / n == pytest.approx(
        wanted, abs=most
    )
    none = noise_cost(of.noise, 0 * logits, rows, states, everywhere(rows), *given)[:, 0]
    wanted += math.log(4) - float((chance * torch.where(chance > 0, none, 0.0)).sum())
    assert float(of.bound(network, clean, draws(u, times)).ce.mean()) == pytest.approx(
        wanted, abs=2 * most
    )


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=list(SCHEDULES))
def test_masks_alone_are_mdlm(schedule):
    world = random_world(4, 4, seed=3)
    diffusion = world.diffusion(schedule())
    g = torch.Generator().manual_seed(0)
    x0 = world.sequences
    clean = Clean(x0, everywhere(x0))
    u, t = (torch.rand(shape, generator=g, dtype=torch.float64) for shape in (x0.shape, len(x0)))
    table = torch.randn(12, 12, generator=g, dtype=torch.float64, requires_grad=True)

    def network(z: Tensor, sigma: Tensor) -> Tensor:
        return table[z] + table[z].mean(1, keepdim=True)

    mine = UniformNoise(diffusion, mask_share=1.0).loss(network, clean, draws(u, t)).nats
    theirs = continuous_time_loss(diffusion, network, clean, t, u).nats
    assert mine.item() == pytest.approx(theirs.item(), rel=1e-12)
    (one,), (other,) = (torch.autograd.grad(loss, table) for loss in (mine, theirs))
    torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-11 * float(other.abs().max()))


@pytest.mark.few(3)
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("time", [1e-9, 1e-3, 0.5, 1 - 1e-9, 1.0])
def test_cost_and_gradient_are_finite_at_both_ends_and_never_negative(share, time):
    diffusion = MaskedDiffusion(Linear(), 3, (7, 8, 9, 10))
    g = torch.Generator().manual_seed(1)
    logits = (9 * torch.randn(200, 7, 16, generator=g)).requires_grad_()
    x0 = torch.randint(7, 11, (200, 7), generator=g)
    noise, t = MixedNoise(diffusion, share), torch.full((200,), time, dtype=torch.float64)
    u = torch.rand(200, 7, generator=g, dtype=torch.float64)
    z = noise.corrupt(x0, noise.share(t)[0], u, everywhere(x0))
    costs = noise_cost(noise, logits, x0, z, everywhere(x0), *noise.share(t))
    assert torch.isfinite(costs).all()
    assert float(costs.detach().min()) > -1e-6
    (grad,) = torch.autograd.grad(costs.sum(), logits)
    assert torch.isfinite(grad).all()


@pytest.mark.few(4)
@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=list(SCHEDULES))
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99, 1.0])
def test_time_is_what_is_known_of_a_token(schedule, share):
    """KL(q to its mean) is alpha(t) ln K at the knots; masks have k = alpha."""
    noise = MixedNoise(MaskedDiffusion(schedule(), 3, (7, 8, 9, 10)), share)
    hidden = torch.arange(1024, dtype=torch.float64)[::37] / 1024
    t = noise.diffusion.schedule.inverse(1 - hidden)
    some = (noise.diffusion.schedule.masked(t) - hidden).abs() < 1e-12
    kept = 1 - noise.share(t)[0][some]
    x = torch.eye(4, dtype=torch.float64).log()[0].expand(len(kept), 4)
    a = noise.log_q(x, 1 - kept)
    b = noise.log_q(torch.full_like(x, -math.log(4)), 1 - kept)
    kl = torch.where(a.isneginf(), 0.0, a.exp() * (a - b.nan_to_num())).nan_to_num().sum(-1)
    torch.testing.assert_close(kl, (1 - hidden[some]) * math.log(4), rtol=0, atol=1e-9)
    if share == 1:
        torch.testing.assert_close(kept, 1 - hidden[some], rtol=0, atol=1e-14)
    t, step = torch.tensor([0.2001, 0.5003, 0.9002], dtype=torch.float64), 1e-7
    slope = (noise.share(t + step)[0] - noise.share(t - step)[0]) / (2 * step)
    torch.testing.assert_close(noise.share(t)[1], slope, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("share", [-0.1, 1.5, math.nan])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(UsageError, match=r"a mask share of .*--mask-share"):
        UniformNoise(markov_chain(2).diffusion(), mask_share=share)
