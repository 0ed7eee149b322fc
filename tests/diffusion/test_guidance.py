"""Guidance in enumerated worlds: distributions, unbiased Z, and strength 0."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from sampling import draws, masks
from small_worlds import MASK, States, assert_counts, count, random_world
from torch import Tensor
from worlds import World, independent

from genodiff.diffusion.guidance.conditional import mix_denoisers
from genodiff.diffusion.guidance.population import resample
from genodiff.diffusion.guided import GUIDANCES, Aim, Guided, GuidedChain
from genodiff.diffusion.sampler import SAMPLERS, SamplerOptions
from genodiff.errors import UsageError

BETA = 1.0
STEERED = [name for name, one in SAMPLERS.items() if one.steers]
WORLD = random_world(3, seed=7)
NET = States(WORLD)


class Table:
    """A reward with a value of its own for each sequence."""

    def __init__(self, world: World, seed: int = 0) -> None:
        g = torch.Generator().manual_seed(seed)
        self.r = torch.randn(len(world.p), generator=g, dtype=torch.float64)
        self.of = {tuple(x): r for x, r in zip(world.sequences.tolist(), self.r, strict=True)}
        self.asked = 0

    def __call__(self, record: int, x: Tensor) -> Tensor:
        self.asked += len(x)
        return torch.stack([self.of[tuple(one)] for one in x.tolist()])

    def gradient(self, record: int, x: Tensor) -> tuple[Tensor, Tensor]:
        return self(record, x), torch.zeros(*x.shape, 4, dtype=torch.float64)


class Linear:
    """A reward that is linear in the letters, with its slopes."""

    def __init__(self, length: int, seed: int = 0) -> None:
        g = torch.Generator().manual_seed(seed)
        self.slope = torch.randn(length, 4, generator=g, dtype=torch.float64)

    def __call__(self, record: int, x: Tensor) -> Tensor:
        return self.slope[torch.arange(x.shape[1]), x - 7].sum(-1)

    def gradient(self, record: int, x: Tensor) -> tuple[Tensor, Tensor]:
        return self(record, x), self.slope.expand(len(x), -1, -1)


class Never:
    """A reward and a network that nobody may ask."""

    def __call__(self, *given: Any) -> Any:
        raise AssertionError("asked")

    gradient = __call__


def guide(
    name: str,
    n: int,
    aim: Aim,
    sampler: str = "first-hitting",
    net: Callable[[Tensor, Tensor], Tensor] = NET.denoiser,
    steps: int = 4,
    xt: Tensor | None = None,
    seed: int = 0,
    **settings: float,
) -> Guided:
    options = SamplerOptions(**draws(n, 3, seed), steps=steps)
    chain = GuidedChain(SAMPLERS[sampler].draw, WORLD.diffusion(), net, options)
    start = masks(n, 3) if xt is None else xt
    numbers = {key: float(value) for key, value in settings.items()}
    return GUIDANCES[name].run(chain, start, aim, **numbers)


def tilted(p: Tensor, r: Tensor, beta: float = BETA) -> Tensor:
    law = p * (beta * r).exp()
    return law / law.sum()


def true_potential(reward: Table) -> Callable[[int, Tensor, Tensor], Tensor]:
    """log E[e^(beta r) | xt], by enumeration."""

    def potential(record: int, x: Tensor, drawn: Tensor) -> Tensor:
        agrees = ((x[:, None] == WORLD.sequences) | (x[:, None] == MASK)).all(-1)
        weight = agrees * WORLD.p
        return ((weight * (BETA * reward.r).exp()).sum(-1) / weight.sum(-1)).log()

    return potential


# exact guidance at sites


def test_samples_with_the_true_potential_follow_the_tilted_law():
    reward = Table(WORLD)
    aim = Aim(BETA, reward, potential=true_potential(reward))
    found = guide("exact", 800, aim)
    assert_counts(WORLD, found.x0, tilted(WORLD.p, reward.r))


@pytest.mark.slow
def test_completions_are_exact_where_positions_are_independent():
    """r is linear there, so e^(beta r) factorises and any completion gives the same tilt."""
    world, reward = independent(3, (0.1, 0.2, 0.3, 0.4)), Linear(3)
    options = SamplerOptions(**draws(600, 3), steps=2)
    chain = GuidedChain(SAMPLERS["ancestral"].draw, world.diffusion(), world.denoiser, options)
    law = tilted(world.p, reward(0, world.sequences))
    for name in ("exact", "first-order"):
        found = GUIDANCES[name].run(chain, masks(600, 3), Aim(BETA, reward), drawn=1.0)
        assert_counts(world, found.x0, law)


def test_first_order_is_exact_for_a_linear_reward():
    aim = Aim(BETA, Linear(3))
    one, other = (guide(name, 200, aim, drawn=3) for name in ("exact", "first-order"))
    assert torch.equal(one.x0, other.x0)
    assert (other.calls < one.calls).all()
    assert not torch.equal(one.x0, guide("exact", 200, Aim(0.0, Linear(3))).x0)


# SMC


@pytest.mark.few(1)
@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("sampler", "steps"), [("first-hitting", 1), ("ancestral", 2)])
def test_z_is_unbiased_within_three_standard_errors_over_200_runs(threshold, sampler, steps):
    reward = Table(WORLD)
    law = WORLD.p
    if sampler == "ancestral":
        states = NET.start()
        for reveal in (0.5, 1.0):
            states = NET.move(states, reveal)
        law = NET.of_sequences(states)
    z = (law * (BETA * reward.r).exp()).sum().item()
    found = guide("smc", 200, Aim(BETA, reward), sampler, steps=steps, particles=8, drawn=8,
                  threshold=threshold)  # fmt: skip
    estimates = found.log_z.exp()
    error = estimates.std().item() / math.sqrt(200)
    assert abs(estimates.mean().item() - z) < 3 * error
    assert error < 0.15 * z


@pytest.mark.slow
def test_the_law_of_smc_comes_to_the_tilted_one_as_particles_grow():
    reward, target = Table(WORLD), tilted(WORLD.p, Table(WORLD).r, 1.5)
    off = []
    for particles in (1, 3, 24):
        found = guide("smc", 400, Aim(1.5, reward), particles=particles, drawn=4)
        share = count(WORLD, found.x0) / 400
        off.append((share - target).abs().sum().item() / 2)
    assert off[0] > off[1] > off[2]
    assert_counts(WORLD, found.x0, target)


def test_resampling_copies_each_as_often_as_its_weight_says():
    weight = torch.tensor([0.1, 0.45, 0.0, 0.25, 0.2], dtype=torch.float64)
    grid = (torch.arange(2000, dtype=torch.float64) + 0.5) / 2000
    copies = torch.stack([torch.bincount(resample(weight, float(u)), minlength=5) for u in grid])
    assert torch.allclose(copies.double().mean(0), 5 * weight, atol=2e-3)
    assert (copies >= torch.floor(5 * weight)).all()
    assert (copies.sum(1) == 5).all()
    same = torch.full((6,), 1 / 6, dtype=torch.float64)
    assert torch.equal(resample(same, 0.3), torch.arange(6))


# CFG


def test_cfg_is_the_mixture_of_logits():
    other = States(WORLD, NET.table + torch.randn(NET.table.shape, generator=torch.manual_seed(1)))
    for strength in (0.0, 1.0, 2.5, -0.5):
        aim = Aim(strength, conditional=other.denoiser)
        found = guide("cfg", 1000, aim, "ancestral", steps=2)
        mixed = States(WORLD, NET.table + strength * (other.table - NET.table))
        law = mixed.start()
        for reveal in (0.5, 1.0):
            law = mixed.move(law, reveal)
        assert_counts(WORLD, found.x0, mixed.of_sequences(law))
    assert torch.equal(
        guide("cfg", 300, Aim(1.0, conditional=other.denoiser)).x0,
        guide("cfg", 300, Aim(0.0), net=other.denoiser).x0,
    )
    same = guide("cfg", 300, Aim(3.0, conditional=NET.denoiser))
    assert torch.equal(same.x0, guide("cfg", 300, Aim(0.0)).x0)
    x = masks(2, 3)
    sigma = torch.zeros(2)
    mixed_logits = mix_denoisers(NET.denoiser, other.denoiser, 0.0)(x, sigma)
    assert torch.equal(mixed_logits, NET.denoiser(x, sigma))


# baselines


def test_the_best_of_n_follows_its_law():
    reward, n = Table(WORLD), 4
    below = torch.stack([WORLD.p[reward.r < r].sum() for r in reward.r])
    law = (below + WORLD.p) ** n - below**n
    found = guide("best-of-n", 2000, Aim(1.0, reward), particles=n)
    assert_counts(WORLD, found.x0, law)
    worst = guide("best-of-n", 200, Aim(-1.0, reward), particles=n)
    assert reward(0, worst.x0).mean() < reward(0, found.x0[:200]).mean() - 1


def test_a_beam_finds_what_is_best_more_often_than_as_many_samples():
    reward = Linear(3)
    best = reward(0, WORLD.sequences).max()
    beam = guide("beam", 200, Aim(1.0, reward), particles=16, width=4)
    plain = guide("best-of-n", 200, Aim(1.0, reward), particles=16)
    hits = [(reward(0, one.x0) >= best - 1e-9).double().mean().item() for one in (beam, plain)]
    assert hits[0] > hits[1]


# what holds of each


def aim_of(name: str, strength: float) -> Aim:
    other = States(WORLD, NET.table.flip(-1))
    return Aim(strength, Linear(3), conditional=other.denoiser)


@pytest.mark.few(5)
@pytest.mark.parametrize("sampler", STEERED)
@pytest.mark.parametrize("name", list(GUIDANCES))
def test_strength_zero_is_the_sampler_bit_for_bit_and_asks_nothing(name, sampler):
    xt = masks(20, 3)
    xt[::3, 1] = 9
    found = guide(name, 20, Aim(0.0, Never(), Never()), sampler, xt=xt)
    options = SamplerOptions(**draws(20, 3), steps=4)
    plain = SAMPLERS[sampler].draw(WORLD.diffusion(), NET.denoiser, xt, options)
    assert torch.equal(found.x0, plain.x0)
    assert torch.equal(found.nfe, plain.nfe)
    assert (found.calls == 0).all()


@pytest.mark.few(4)
@pytest.mark.parametrize("sampler", STEERED)
@pytest.mark.parametrize("name", list(GUIDANCES))
def test_companions_change_nothing_what_is_given_stays_and_calls_are_bounded(name, sampler):
    xt = masks(6, 3)
    xt[1, 1], xt[2] = 9, 8
    together = guide(name, 6, aim_of(name, 1.5), sampler, xt=xt)
    assert (together.x0[xt != MASK] == xt[xt != MASK]).all()
    assert torch.isin(together.x0, torch.tensor(WORLD.targets)).all()
    one, u = GUIDANCES[name], draws(6, 3)
    for i in (0, 2, 5):
        options = SamplerOptions(**{k: v[i : i + 1] for k, v in u.items()}, steps=4)
        chain = GuidedChain(SAMPLERS[sampler].draw, WORLD.diffusion(), NET.denoiser, options)
        alone = one.run(chain, xt[i : i + 1], aim_of(name, 1.5))
        assert torch.equal(alone.x0[0], together.x0[i])
        assert (alone.nfe[0], alone.calls[0]) == (together.nfe[i], together.calls[i])
        masked = int((xt[i] == MASK).sum())
        reveals = 4 if SAMPLERS[sampler].remasks and masked else masked
        sites = masked * (4 if SAMPLERS[sampler].remasks else 1)
        assert alone.calls[0] <= one.calls(sites, reveals, 4)
    if one.needs != "conditional":
        assert (together.calls[xt.eq(MASK).any(-1)] > 0).all()


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("smc", {"particles": 0}),
        ("smc", {"particles": 2.5}),
        ("smc", {"threshold": 2}),
        ("smc", {"drawn": 0}),
        ("beam", {"particles": 10, "width": 4}),
        ("exact", {"drawn": 0}),
        ("first-order", {"drawn": -1}),
        ("best-of-n", {"particles": -1}),
    ],
)
def test_settings_that_mean_nothing_are_refused(name, wrong):
    with pytest.raises(UsageError):
        guide(name, 1, Aim(1.0, Linear(3)), **wrong)
