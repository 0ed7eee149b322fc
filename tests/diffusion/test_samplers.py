"""Samplers: the distribution of their samples, their evaluations, invariances of their result."""

import itertools
import math
from collections.abc import Callable

import pytest
import torch
from enumerated import FIVE, as_ratios, read_one_way, world_terms
from sampling import DNA, MASKED, draws, masks, mixing, run_sampler, watch
from small_worlds import assert_counts
from torch import Tensor
from worlds import World, independent, markov_chain

from genodiff.diffusion.loss import nelbo_discrete
from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.sampler import SAMPLERS, SamplerOptions, revealed_share
from genodiff.diffusion.samplers.ancestral import ancestral
from genodiff.diffusion.samplers.confidence import confidence
from genodiff.diffusion.samplers.first_hitting import first_hitting
from genodiff.diffusion.schedule import (
    Cosine,
    Geometric,
    Linear,
    LogLinear,
    OneMinusCosine,
    Polynomial,
    Schedule,
)
from genodiff.errors import UsageError

# evaluations


def test_the_share_revealed_ends_at_one_and_starts_from_the_prior():
    for noise in (Linear(), LogLinear(0.3), Geometric(0.5, 3.0)):
        share = revealed_share(noise, 7)
        assert share[-1] == 1
        assert (share.diff() > 0).all()
        assert (share > 0).all()
    assert revealed_share(Linear(), 4).tolist() == pytest.approx([0.25, 0.5, 0.75, 1.0])


def test_confidence_reveals_the_schedules_share_rounded_at_each_step():
    revealed, watching = watch()
    done = run_sampler(confidence, DNA, watching, masks(1, 10), **draws(1, 10), steps=4)
    assert revealed == [0, 2, 5, 8]
    assert done.nfe.tolist() == [4]
    assert run_sampler(
        confidence, DNA, watching, masks(1, 3), **draws(1, 3), steps=50
    ).nfe.tolist() == [3]


def test_a_uniform_on_the_edge_between_two_steps_belongs_to_the_later_one():
    visible, watching = watch()
    u_order = torch.tensor([[0.5, 0.0, 0.75, 0.25]], dtype=torch.float64)
    run_sampler(ancestral, DNA, watching, masks(1, 4), u_order=u_order, u_token=u_order, steps=4)
    assert visible == [0, 1, 2, 3]


def test_equal_confidence_goes_by_the_smaller_uniform():
    seen, watching = watch(lambda xt, sigma: (xt != 3)[0])
    u = draws(1, 8)
    run_sampler(confidence, DNA, watching, masks(1, 8), **u, steps=4)
    assert set(seen[1].nonzero()[:, 0].tolist()) == set(u["u_order"][0].argsort()[:2].tolist())


def every_step_evaluated(
    diffusion: MaskedDiffusion,
    denoiser: Callable[..., Tensor],
    xt: Tensor,
    u_order: Tensor,
    u_token: Tensor,
    steps: int,
) -> Tensor:
    """The ancestral chain the slow way: the whole batch at every step, nothing skipped, Bernoulli
    then categorical.
    """
    x = xt.clone()
    for j in range(steps):
        t = torch.full((len(x),), 1 - j / steps, dtype=torch.float64)
        logp = diffusion.log_x0(denoiser(x, diffusion.sigma(t)), x)
        p = logp[..., list(diffusion.targets)].double().exp()
        hidden = diffusion.schedule.masked(
            torch.tensor([1.0, 1 - (j + 1) / steps], dtype=torch.float64)
        )
        now = (x == diffusion.mask_id) & (u_order < 1 - hidden[1] / hidden[0])
        token = (p.cumsum(-1)[..., :-1] <= u_token[..., None]).sum(-1)
        x = torch.where(now, torch.tensor(diffusion.targets)[token], x)
    return x


@pytest.mark.parametrize("time_conditioning", [False, True])
@pytest.mark.parametrize("noise", [Linear(), OneMinusCosine(), LogLinear(0.1)], ids=repr)
def test_skipping_idle_steps_changes_no_sample_with_or_without_time_conditioning(
    noise, time_conditioning
):
    diffusion = MaskedDiffusion(noise, 3, (7, 8, 9, 10), time_conditioning)
    base = mixing(9)

    def denoiser(xt: Tensor, sigma: Tensor) -> Tensor:
        return base(xt, sigma) * (1 + sigma[:, None, None])

    u, xt = draws(64, 9), masks(64, 9)
    xt[::3, 4] = 8
    slow = every_step_evaluated(diffusion, denoiser, xt, **u, steps=12)
    assert torch.equal(run_sampler(ancestral, diffusion, denoiser, xt, **u, steps=12).x0, slow)


def test_a_time_conditioned_denoiser_is_told_the_time_of_each_step():
    told, watching = watch(lambda xt, sigma: sigma.item())
    u = draws(1, 40)
    diffusion = MaskedDiffusion(LogLinear(0.01), 3, (7, 8), time_conditioning=True)
    for sampler in (ancestral, confidence):
        told.clear()
        run_sampler(sampler, diffusion, watching, masks(1, 40), **u, steps=4)
        assert told == pytest.approx(
            diffusion.sigma(torch.tensor([1.0, 0.75, 0.5, 0.25], dtype=torch.float64)).tolist()
        )
    told.clear()
    run_sampler(first_hitting, diffusion, watching, masks(1, 40), **u)
    alpha = torch.exp(-torch.tensor(told, dtype=torch.float64))
    torch.testing.assert_close(
        alpha, 0.01 + 0.99 * u["u_order"][0].sort().values, rtol=0, atol=1e-9
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


@pytest.mark.few(3)
@pytest.mark.parametrize("noise", FIVE, ids=repr)
@pytest.mark.parametrize("steps", [1, 3, 10])
def test_sampling_error_is_at_most_what_the_bound_of_t_steps_exceeds_the_entropy_by(noise, steps):
    excess = nelbo_discrete(world_terms(F1), noise, steps).item() - F1.entropy
    divergence = (F1.p * (F1.p / exact_law(F1, noise, steps)).log()).sum().item()
    assert divergence <= excess + 1e-12
    if steps == 1:
        assert divergence == pytest.approx(excess, abs=1e-12)


N = 20_000


@pytest.mark.few(2)
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
def test_ancestral_samples_follow_the_exact_law_of_t_steps(noise, steps):
    done = run_sampler(
        ancestral, F1.diffusion(noise), F1.denoiser, masks(N, 4), **draws(N, 4), steps=steps
    )
    assert_counts(F1, done.x0, exact_law(F1, noise, steps))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "sampler",
    [one for one in SAMPLERS.values() if not one.judges_tokens and "uniform" not in one.fits],
)
@pytest.mark.parametrize("steps", [1, 3])
def test_independent_tokens_follow_their_law_whatever_the_steps(sampler, steps):
    world = independent(3, (0.1, 0.2, 0.7))
    net = world.denoiser if "masked" in sampler.fits else as_ratios(world, world.denoiser)
    found = run_sampler(sampler, world.diffusion(), net, masks(N, 3), **draws(N, 3), steps=steps)
    assert_counts(world, found.x0, world.p)


def test_a_one_way_network_draws_the_data():
    sampler, net = SAMPLERS["left-to-right"], read_one_way(F1)
    found = run_sampler(sampler, F1.diffusion(), net, masks(N, 4), **draws(N, 4), causal=True)
    assert_counts(F1, found.x0, F1.p)
    assert (found.nfe == 4).all()


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "name", [name for name, one in SAMPLERS.items() if one in MASKED and not one.judges_tokens]
)
def test_a_template_is_filled_from_the_exact_conditional_law(name):
    template = torch.tensor([3, 2, 3, 4])
    x0 = run_sampler(
        SAMPLERS[name], F1.diffusion(), F1.denoiser, template.expand(N, 4), **draws(N, 4), steps=64
    ).x0
    law = torch.where((F1.sequences[:, 1] == 2) & (F1.sequences[:, 3] == 4), F1.p, 0)
    if name == "ancestral":
        law = exact_law(F1, Linear(), 64, template)
    assert_counts(F1, x0, law)


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("remdm-cap", {"eta": 1.5}, "eta = 1.5"),
        ("remdm-rescale", {"eta": -0.1}, "eta = -0.1"),
        ("remdm-loop", {"t_on": 0.1, "t_off": 0.2}, "t_on"),
        ("remdm-loop", {"alpha_on": 1.0}, "alpha_on = 1"),
        ("p2", {"eta": -1.0}, "eta = -1"),
        ("p2", {"noise": -1.0}, "noise = -1"),
        ("entropy-bounded", {"bound": -0.1}, "entropy bound of -0.1"),
        ("entropy-bounded", {"bound": math.nan}, "entropy bound of nan"),
        ("both-ends", {"at_once": 0.0}, "at_once"),
        ("left-to-right", {"at_once": 0.0}, "at_once"),
    ],
)
def test_settings_that_mean_nothing_are_refused(name, settings, said):
    options = SamplerOptions(**draws(1, 4), steps=3)
    with pytest.raises(UsageError, match=said):
        SAMPLERS[name].draw(DNA, mixing(4), masks(1, 4), options, **settings)
