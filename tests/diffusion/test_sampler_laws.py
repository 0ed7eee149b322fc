"""Samplers in solvable worlds: the law of what they draw."""

import itertools
import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from sampling import MASKED, draws, masks, run_sampler
from scipy.stats import chisquare
from torch import Tensor
from worlds import World, copy_task, independent, markov_chain

from genodiff.diffusion.in_order import count_groups
from genodiff.diffusion.likelihood import count_terms, nelbo_discrete
from genodiff.diffusion.sampler import SAMPLERS, Sampler, one_per_mask
from genodiff.diffusion.samplers.ancestral import ancestral
from genodiff.diffusion.samplers.confidence import confidence
from genodiff.diffusion.samplers.first_hitting import first_hitting
from genodiff.diffusion.schedule import (
    Cosine,
    CosineSquared,
    Linear,
    LogLinear,
    OneMinusCosine,
    Polynomial,
    Schedule,
)

F1 = markov_chain()


# T: total variation to the data, KL(data || sampler); ancestral, perfect denoiser, linear grid
STEP_LAW = {
    1: (0.604000, 1.104193),
    2: (0.344834, 0.288768),
    4: (0.180098, 0.085293),
    8: (0.091591, 0.024893),
    16: (0.046134, 0.006987),
    64: (0.011592, 0.000494),
    256: (0.002901, 0.000032),
}


def exact_law(world: World, noise: Schedule, steps: int, start: Tensor | None = None) -> Tensor:
    """The chance of each sequence of the world after `steps` reverse kernels, by enumerating all
    masked states.
    """
    diffusion = world.diffusion(noise)
    letters = sorted((*world.targets, world.mask_id))
    states = torch.tensor(list(itertools.product(letters, repeat=world.length)))
    logp = diffusion.log_x0(world.denoiser(states, states[:, 0]), states)
    begin = masks(1, world.length, world.mask_id)[0] if start is None else start
    p = (states == begin).all(-1).double()
    for j in range(steps):
        t, s = (torch.full((len(states),), 1 - i / steps, dtype=torch.float64) for i in (j, j + 1))
        kernel = diffusion.reverse(logp, states, t, s)  # (states, L, V)
        move = torch.ones(len(states), len(states), dtype=torch.float64)
        for position in range(world.length):
            move *= kernel[:, position, states[:, position]]
        p = p @ move
    where = [(states == x).all(-1).nonzero().item() for x in world.sequences]
    return p[where]


@pytest.mark.parametrize("steps", STEP_LAW)
def test_the_reverse_kernels_lead_to_the_published_law(steps):
    law = exact_law(F1, Linear(), steps)
    assert law.sum().item() == pytest.approx(1, abs=1e-12)
    variation = (law - F1.p).abs().sum().item() / 2
    divergence = (F1.p * (F1.p / law).log()).sum().item()
    assert (variation, divergence) == pytest.approx(STEP_LAW[steps], abs=5.1e-7)


@pytest.mark.few(5)
@pytest.mark.parametrize(
    "noise", [Linear(), Cosine(), CosineSquared(), OneMinusCosine(), Polynomial()], ids=repr
)
@pytest.mark.parametrize("steps", [1, 3, 10])
def test_sampling_error_is_at_most_what_the_bound_of_t_steps_exceeds_the_entropy_by(noise, steps):
    ok = torch.ones(4, dtype=torch.bool)
    terms = sum(
        p * count_terms(F1.diffusion(), F1.denoiser, x, ok)
        for x, p in zip(F1.sequences, F1.p, strict=True)
    )
    excess = nelbo_discrete(terms, noise, steps).item() - F1.entropy
    divergence = (F1.p * (F1.p / exact_law(F1, noise, steps)).log()).sum().item()
    assert divergence <= excess + 1e-12
    if steps == 1:
        assert divergence == pytest.approx(excess, abs=1e-12)


def assert_law(world: World, samples: Tensor, law: Tensor) -> None:
    found = world.index(samples)
    assert (found >= 0).all()
    observed = torch.bincount(found, minlength=len(law)).double()
    expected = law * len(samples)
    assert chisquare(observed.numpy(), expected.numpy()).pvalue > 1e-3, (
        f"{observed.tolist()} != {expected.tolist()}"
    )


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("noise", "steps"),
    [
        *((Linear(), steps) for steps in (1, 2, 4, 16)),
        (Cosine(), 3),
        (OneMinusCosine(), 4),
        (Polynomial(), 2),
        (LogLinear(0.1), 3),
    ],
    ids=repr,
)
def test_a_hundred_thousand_ancestral_samples_follow_the_exact_law_of_t_steps(noise, steps):
    done = run_sampler(ancestral, F1.diffusion(noise), F1.denoiser, masks(100_000, 4),
                       **draws(100_000, 4), steps=steps)  # fmt: skip
    assert_law(F1, done.x0, exact_law(F1, noise, steps))


def network(world: World, sampler: Sampler) -> Callable[[Tensor, Tensor], Tensor]:
    """The perfect network of the kind that the sampler fits."""

    def causal(xt: Tensor, sigma: Tensor) -> Tensor:
        """Position i knows the tokens of which `shifted` shows it the last at i."""
        hidden = torch.full((len(xt), world.length), world.mask_id)
        rows = []
        for i in range(xt.shape[1]):
            known = torch.cat([xt[:, 1 : i + 1], hidden[:, i:]], 1)
            rows.append(world.denoiser(known, sigma)[:, i])
        return torch.stack(rows, 1)

    def ratios(xt: Tensor, sigma: Tensor) -> Tensor:
        """Normalised: they sum to one."""
        logits, targets = world.denoiser(xt, sigma), list(world.targets)
        logits[..., targets] = logits[..., targets].log_softmax(-1) + math.log(len(targets))
        return logits

    kinds = {"masked": world.denoiser, "score": ratios, "causal": causal}
    return kinds[sampler.fits[0]]


FROM_MASKS = [
    one for one in SAMPLERS.values() if not one.judges_tokens and "uniform" not in one.fits
]
"""Samplers that begin with masks; those of letters as noise: `test_uniform_sampler.py`."""


@pytest.mark.few(3)
@pytest.mark.parametrize("sampler", FROM_MASKS)
@pytest.mark.parametrize("steps", [1, 3])
def test_independent_tokens_follow_their_law_whatever_the_steps(sampler, steps):
    world, n = independent(3, (0.1, 0.2, 0.7)), 30_000
    net = network(world, sampler)
    found = run_sampler(sampler, world.diffusion(), net, masks(n, 3), **draws(n, 3), steps=steps)
    assert_law(world, found.x0, world.p)


@pytest.mark.parametrize(
    "name",
    [name for name, one in SAMPLERS.items() if one.evaluations in (one_per_mask, count_groups)],
)
def test_one_token_per_evaluation_follows_the_data(name):
    n, net = 100_000, network(F1, SAMPLERS[name])
    found = run_sampler(SAMPLERS[name], F1.diffusion(), net, masks(n, 4), **draws(n, 4))
    assert_law(F1, found.x0, F1.p)


@pytest.mark.parametrize("order_temperature", [0.0, 0.5])
def test_one_position_per_evaluation_follows_the_data_in_every_order(order_temperature):
    n = 100_000
    by_confidence = partial(confidence, order_temperature=order_temperature)
    ordered = run_sampler(
        by_confidence, F1.diffusion(), F1.denoiser, masks(n, 4), **draws(n, 4), steps=4
    )
    assert_law(F1, ordered.x0, F1.p)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_two_copies_disagree_as_often_as_both_are_revealed_at_once(steps):
    world, n = copy_task(2, 3), 40_000
    x0 = run_sampler(
        ancestral, world.diffusion(), world.denoiser, masks(n, 2, 1), **draws(n, 2), steps=steps
    ).x0
    wrong, p = (x0[:, 0] != x0[:, 1]).double().mean().item(), (1 - 1 / 3) / steps
    assert abs(wrong - p) < 4 * math.sqrt(p * (1 - p) / n)


def test_one_token_per_step_never_breaks_the_copy():
    world = copy_task(4, 3)
    for sampler in (first_hitting, confidence):
        x0 = run_sampler(
            sampler, world.diffusion(), world.denoiser, masks(500, 4, 1), **draws(500, 4), steps=4
        ).x0
        assert (world.index(x0) >= 0).all()


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "name", [name for name, one in SAMPLERS.items() if one in MASKED and not one.judges_tokens]
)
def test_a_template_is_filled_from_the_exact_conditional_law(name):
    n = 40_000
    template = torch.tensor([[3, 2, 3, 4]]).expand(n, 4)
    x0 = run_sampler(
        SAMPLERS[name], F1.diffusion(), F1.denoiser, template, **draws(n, 4), steps=64
    ).x0
    compatible = (F1.sequences[:, 1] == 2) & (F1.sequences[:, 3] == 4)
    law = torch.where(compatible, F1.p, 0)
    if name == "ancestral":
        law = exact_law(F1, Linear(), 64, torch.tensor([3, 2, 3, 4]))
    found = torch.bincount(F1.index(x0), minlength=16)
    assert (found[~compatible] == 0).all()
    expected = (law / law.sum() * n)[compatible]
    assert chisquare(found[compatible].numpy(), expected.numpy()).pvalue > 1e-3
