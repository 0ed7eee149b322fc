"""Samplers and guidances in a world of 4^8 sequences: what they draw follows the exact law."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from eight_letters import (
    DIFFUSION,
    EVERY,
    LENGTH,
    EightLetters,
    Mixed,
    all_masks,
    assert_follows,
    cut,
    draws,
    list_parts,
    move,
    number,
    of_sequences,
    start,
    sum_out,
)
from small_worlds import MASK, TARGETS
from torch import Tensor

from genodiff.diffusion.guided import GUIDANCES, Aim, Guided, GuidedChain
from genodiff.diffusion.in_order import count_groups
from genodiff.diffusion.sampler import SAMPLERS, SamplerOptions, one_per_mask, revealed_share
from genodiff.diffusion.samplers.remasking import plan_cap, plan_loop, plan_rescale
from genodiff.diffusion.schedule import Linear

WORLD = EightLetters(1)
PLAIN = WORLD.p.reshape(-1)
STEERED = [name for name, one in SAMPLERS.items() if one.steers]
REMASKING: dict[str, tuple[Any, dict[str, float]]] = {
    "remdm-cap": (plan_cap, {"eta": 0.4}),
    "remdm-rescale": (plan_rescale, {"eta": 0.8}),
    "remdm-loop": (plan_loop, {"eta": 0.5, "t_on": 0.8, "t_off": 0.2, "alpha_on": 0.6}),
}


def draw(name: str, n: int, steps: int = 4, seed: int = 0, **settings: float) -> Tensor:
    options = SamplerOptions(**draws(n, seed), steps=steps)
    run = SAMPLERS[name].draw
    return run(DIFFUSION, WORLD.denoiser, all_masks(n), options, **settings).x0


def walk(net: EightLetters, reveal: np.ndarray, remask: np.ndarray) -> np.ndarray:
    law = start()
    for a, b in zip(reveal.tolist(), remask.tolist(), strict=True):
        law = move(net, law, a, b)
    return of_sequences(law)


def reveal_by_steps(steps: int) -> np.ndarray:
    """The chance that a mask is revealed in each of the ancestral sampler's steps."""
    return 1 / np.arange(steps, 0, -1)


def differ(one: np.ndarray, other: np.ndarray) -> float:
    """Total variation."""
    return float(np.abs(one - other).sum() / 2)


def test_the_world_is_what_it_says():
    x = torch.tensor([[7, MASK, 9, 10, MASK, 7, 8, 9], [MASK] * 8])
    found = WORLD.denoiser(x, torch.zeros(2))[:, :, list(TARGETS)].softmax(-1)
    some = WORLD.p[0, :, 2, 3, :, 0, 1, 2]
    assert np.allclose(found[0, 1].numpy(), some.sum(1) / some.sum(), atol=1e-12)
    assert np.allclose(found[0, 4].numpy(), some.sum(0) / some.sum(), atol=1e-12)
    assert np.allclose(found[1, 3].numpy(), WORLD.p.sum((0, 1, 2, 4, 5, 6, 7)), atol=1e-12)
    assert np.allclose(WORLD.given(1, (0, 2))[1, :, 3, 0, 0, 0, 0, 0],
                       WORLD.p[1, :, 3].sum((1, 2, 3, 4, 5)) / WORLD.p[1, :, 3].sum())  # fmt: skip


@pytest.mark.parametrize("steps", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_ancestral_samples_follow_the_law_of_their_steps(steps):
    law = walk(WORLD, reveal_by_steps(steps), np.zeros(steps))
    assert differ(law, PLAIN) > 0.05
    assert_follows(draw("ancestral", 40_000, steps), law)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow)
        for name, one in SAMPLERS.items()
        if (one.evaluations in (one_per_mask, count_groups) or name == "confidence")
        and "masked" in one.fits
    ],
)
def test_one_position_at_a_time_is_the_law_of_the_data(name):
    assert_follows(draw(name, 60_000, LENGTH), PLAIN)


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", REMASKING)
def test_remasking_samples_follow_the_chain_over_all_states(name):
    make, settings = REMASKING[name]
    steps = 5 if name == "remdm-loop" else 4  # the fewest in which each takes tokens back
    made = make(revealed_share(Linear(), steps).numpy(), **settings)
    assert (made.remask > 0).any()
    law = walk(WORLD, made.reveal, made.remask)
    assert differ(law, walk(WORLD, reveal_by_steps(steps), np.zeros(steps))) > 0.01
    assert_follows(draw(name, 100_000, steps, **settings), law)


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("steps", [2, 5])
def test_strand_symmetric_samples_follow_the_law_of_pairs(steps):
    """Four pairs of positions, each revealed in a step of its own choice."""
    law = start()
    for reveal in reveal_by_steps(steps):
        after = np.zeros_like(law)
        for pairs in list_parts((0, 1, 2, 3)):
            visible = tuple(i for k in pairs for i in (k, 7 - k))
            hidden = tuple(k for k in range(4) if k not in pairs)
            here = law[cut(visible)]
            if not here.any():
                continue
            for new in list_parts(hidden):
                mass = here * reveal ** len(new) * (1 - reveal) ** (len(hidden) - len(new))
                shown = tuple(i for k in new for i in (k, 7 - k))
                for i in shown:
                    mass = mass * WORLD.given(i, visible)
                after[cut((*visible, *shown))] += mass
        law = after
    assert_follows(draw("strand-symmetric", 100_000, steps), of_sequences(law))


def law_of_bound(bound: float) -> np.ndarray:
    """Entropy-bounded unmasking: in every state the longest list of positions that fits."""
    law = start()
    for visible in list_parts(EVERY)[:-1]:
        here = law[cut(visible)]
        hidden = [i for i in EVERY if i not in visible]
        chances = {i: WORLD.given(i, visible) for i in hidden}
        entropy = np.stack(
            [-(p * np.log(p)).sum(i, keepdims=True) for i, p in chances.items()], -1
        )  # (*state, hidden)
        rank = entropy.argsort(-1)
        before = np.take_along_axis(entropy, rank, -1).cumsum(-1)
        several = 1 + (before[..., :-1] <= bound).sum(-1)  # those before the last one fit
        place = rank.argsort(-1)
        for new in list_parts(tuple(hidden))[1:]:
            chosen = np.array([i in new for i in hidden])
            due = ((place < several[..., None]) == chosen).all(-1)
            if due.any():
                mass = here * due
                for i in new:
                    mass = mass * chances[i]
                law[cut((*visible, *new))] += mass
    return of_sequences(law)


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("bound", [1.2, 2.5])
def test_entropy_bounded_samples_follow_the_walk_over_all_states(bound):
    law = law_of_bound(bound)
    assert differ(law, PLAIN) > 0.01
    assert_follows(draw("entropy-bounded", 100_000, bound=bound), law)


def law_of_planning(kept: list[int], eta: float) -> np.ndarray:
    """P2: every token that may be drawn in every state; the best scores stay."""
    law = start()
    for n in kept:
        after = np.zeros_like(law)
        for visible in list_parts(EVERY):
            here = law[cut(visible)]
            if not here.any():
                continue
            hidden = tuple(i for i in EVERY if i not in visible)
            mass, score = here, []
            for i in EVERY:
                others = tuple(j for j in visible if j != i)
                p = np.broadcast_to(WORLD.given(i, others), (4,) * LENGTH)
                score.append((eta if i in visible else 1.0) * np.log(p))
                if i in hidden:
                    mass = mass * WORLD.given(i, visible)
            best = np.stack(score, -1).argsort(-1)[..., ::-1].argsort(-1) < n
            for stay in combinations(EVERY, n):
                chosen = (best == np.array([i in stay for i in EVERY])).all(-1)
                gone = tuple(i for i in EVERY if i not in stay)
                after[cut(stay)] += (mass * chosen).sum(gone, keepdims=True)
        law = after
    return of_sequences(law)


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("eta", [0.5, 2.0])
def test_planned_samples_follow_the_walk_over_all_draws(eta):
    kept = [3, 5, 8]  # of 8 in three steps
    assert_follows(draw("p2", 100_000, 3, eta=eta, noise=0.0), law_of_planning(kept, eta))


# guidance


class Pairwise:
    """A reward with a value of its own for each pair of letters."""

    def __init__(self, seed: int = 5) -> None:
        draws = np.random.default_rng(seed)
        self.r = np.zeros((4,) * LENGTH)
        for i, j in combinations(EVERY, 2):
            shape = [4 if k in (i, j) else 1 for k in EVERY]
            self.r = self.r + draws.normal(0, 0.25, (4, 4)).reshape(shape)
        self.flat = torch.from_numpy(self.r.reshape(-1))

    def __call__(self, record: int, x: Tensor) -> Tensor:
        return self.flat[torch.from_numpy(number(x))]

    def gradient(self, record: int, x: Tensor) -> tuple[Tensor, Tensor]:
        raise AssertionError("no slopes are asked for")


REWARD = Pairwise()
TILTED = WORLD.p * np.exp(REWARD.r)


def guide(
    name: str, n: int, aim: Aim, sampler: str = "first-hitting", seed: int = 0, **settings: float
) -> Guided:
    options = SamplerOptions(**draws(n, seed), steps=2)
    chain = GuidedChain(SAMPLERS[sampler].draw, DIFFUSION, WORLD.denoiser, options)
    numbers = {key: float(value) for key, value in settings.items()}
    return GUIDANCES[name].run(chain, all_masks(n), aim, **numbers)


@pytest.mark.slow
def test_exact_guidance_with_the_true_potential_follows_the_tilted_law():
    table = torch.from_numpy(np.log(sum_out(TILTED) / WORLD.mass).reshape(-1))
    place = 5 ** torch.arange(LENGTH - 1, -1, -1)

    def potential(record: int, x: Tensor, drawn: Tensor) -> Tensor:
        return table[(torch.where(x == MASK, 4, x - TARGETS[0]) * place).sum(-1)]

    aim = Aim(1.0, REWARD, potential=potential)
    assert_follows(guide("exact", 6000, aim, drawn=1).x0, TILTED)


@pytest.mark.parametrize(
    ("sampler", "threshold"),
    [("ancestral", 0.5), pytest.param("first-hitting", 0.9, marks=pytest.mark.slow)],
)
def test_z_is_unbiased_within_three_standard_errors_over_200_runs(sampler, threshold):
    law = PLAIN
    if sampler == "ancestral":
        law = walk(WORLD, reveal_by_steps(2), np.zeros(2))
    z = float((law * np.exp(REWARD.flat.numpy())).sum())
    found = guide(
        "smc", 200, Aim(1.0, REWARD), sampler, particles=8, drawn=4, threshold=threshold
    ).log_z.exp()
    error = found.std().item() / math.sqrt(200)
    assert abs(found.mean().item() - z) < 3 * error
    assert error < 0.15 * z


@pytest.mark.slow
def test_the_law_of_smc_comes_to_the_tilted_one_as_particles_grow():
    wanted, off = TILTED.reshape(-1) / TILTED.sum(), []
    best = np.argsort(REWARD.r.reshape(-1))
    share = np.empty_like(wanted)
    share[best] = wanted[best].cumsum()
    bins = np.minimum((share * 8).astype(int), 7)  # equally likely, of growing reward
    for particles in (1, 8, 64):
        found = guide("smc", 1500, Aim(1.0, REWARD), seed=2, particles=particles, drawn=2).x0
        seen = np.bincount(bins[number(found)], minlength=8) / 1500
        off.append(differ(seen, np.bincount(bins, wanted, 8)))
    assert off[0] > 2 * off[1] > 4 * off[2]
    assert_follows(found, TILTED)


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("strength", [1.0, 2.5, -0.5])
def test_cfg_follows_the_law_of_the_mixed_network(strength):
    other = EightLetters(2)
    found = guide("cfg", 100_000, Aim(strength, conditional=other.denoiser), "ancestral")
    law = walk(Mixed(WORLD, other, strength), reveal_by_steps(2), np.zeros(2))
    assert differ(law, walk(WORLD, reveal_by_steps(2), np.zeros(2))) > 0.1
    assert_follows(found.x0, law)


@pytest.mark.few(8)
@pytest.mark.parametrize("sampler", STEERED)
@pytest.mark.parametrize("name", list(GUIDANCES))
def test_strength_zero_is_the_sampler_bit_for_bit(name, sampler):
    found = guide(name, 6, Aim(0.0, REWARD, conditional=EightLetters(2).denoiser), sampler)
    plain = draw(sampler, 6, 2)
    assert torch.equal(found.x0, plain)
    assert (found.calls == 0).all()
