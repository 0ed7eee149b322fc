"""Samplers: their laws in solvable worlds, their evaluations, and what must never change their
result.
"""

import itertools
import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import DNA, MASKED, draws, each_sampler, masks, mixing, run_sampler
from scipy.stats import chisquare
from strategies import Windows, windows
from torch import Tensor
from worlds import World, copy_task, markov_chain

from genodiff.diffusion.likelihood import count_terms, nelbo_discrete
from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.sampler import SAMPLERS, Sampled, revealed_share
from genodiff.diffusion.samplers.ancestral import ancestral
from genodiff.diffusion.samplers.confidence import confidence
from genodiff.diffusion.samplers.first_hitting import first_hitting
from genodiff.diffusion.schedule import (
    Cosine,
    CosineSquared,
    Geometric,
    Linear,
    LogLinear,
    OneMinusCosine,
    Polynomial,
    Schedule,
)
from genodiff.errors import GenodiffError, UsageError

F1 = markov_chain()


# laws in the solvable world

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
def test_the_reverse_kernels_lead_to_the_published_law(steps: int) -> None:
    law = exact_law(F1, Linear(), steps)
    assert law.sum().item() == pytest.approx(1, abs=1e-12)
    variation = (law - F1.p).abs().sum().item() / 2
    divergence = (F1.p * (F1.p / law).log()).sum().item()
    assert (variation, divergence) == pytest.approx(STEP_LAW[steps], abs=5.1e-7)


@pytest.mark.parametrize(
    "noise", [Linear(), Cosine(), CosineSquared(), OneMinusCosine(), Polynomial()], ids=repr
)
@pytest.mark.parametrize("steps", [1, 3, 10])
def test_sampling_error_is_at_most_what_the_bound_of_t_steps_exceeds_the_entropy_by(
    noise: Schedule, steps: int
) -> None:
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
def test_a_hundred_thousand_ancestral_samples_follow_the_exact_law_of_t_steps(
    noise: Schedule, steps: int
) -> None:
    done = run_sampler(
        ancestral,
        F1.diffusion(noise),
        F1.denoiser,
        masks(100_000, 4),
        **draws(100_000, 4),
        steps=steps,
    )
    assert_law(F1, done.x0, exact_law(F1, noise, steps))


@pytest.mark.parametrize("order_temperature", [0.0, 0.5])
def test_one_position_per_evaluation_follows_the_data_in_every_order(
    order_temperature: float,
) -> None:
    n = 100_000
    assert_law(
        F1,
        run_sampler(first_hitting, F1.diffusion(), F1.denoiser, masks(n, 4), **draws(n, 4)).x0,
        F1.p,
    )
    by_confidence = partial(confidence, order_temperature=order_temperature)
    ordered = run_sampler(
        by_confidence, F1.diffusion(), F1.denoiser, masks(n, 4), **draws(n, 4), steps=4
    )
    assert_law(F1, ordered.x0, F1.p)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_two_copies_disagree_as_often_as_both_are_revealed_at_once(steps: int) -> None:
    world, n = copy_task(2, 3), 40_000
    x0 = run_sampler(
        ancestral, world.diffusion(), world.denoiser, masks(n, 2, 1), **draws(n, 2), steps=steps
    ).x0
    wrong, p = (x0[:, 0] != x0[:, 1]).double().mean().item(), (1 - 1 / 3) / steps
    assert abs(wrong - p) < 4 * math.sqrt(p * (1 - p) / n)


def test_one_token_per_step_never_breaks_the_copy() -> None:
    world = copy_task(4, 3)
    for sampler in (first_hitting, confidence):
        x0 = run_sampler(
            sampler, world.diffusion(), world.denoiser, masks(500, 4, 1), **draws(500, 4), steps=4
        ).x0
        assert (world.index(x0) >= 0).all()


@each_sampler
def test_a_template_is_filled_from_the_exact_conditional_law(
    sampler: Callable[..., Sampled],
) -> None:
    n = 40_000
    template = torch.tensor([[3, 2, 3, 4]]).expand(n, 4)
    x0 = run_sampler(sampler, F1.diffusion(), F1.denoiser, template, **draws(n, 4), steps=64).x0
    compatible = (F1.sequences[:, 1] == 2) & (F1.sequences[:, 3] == 4)
    law = torch.where(compatible, F1.p, 0)
    if sampler is ancestral:
        law = exact_law(F1, Linear(), 64, torch.tensor([3, 2, 3, 4]))
    found = torch.bincount(F1.index(x0), minlength=16)
    assert (found[~compatible] == 0).all()
    expected = (law / law.sum() * n)[compatible]
    assert chisquare(found[compatible].numpy(), expected.numpy()).pvalue > 1e-3


# what is kept and what comes out


@settings(max_examples=60)
@given(
    windows(),
    st.sampled_from(sorted(MASKED)),
    st.integers(1, 20),
    st.sampled_from([0.0, 0.3, 1.0, 2.0]),
    st.sampled_from([0.2, 0.9, 1.0]),
    st.booleans(),
)
def test_what_is_visible_stays_no_mask_is_left_and_only_targets_come_out(
    case: Windows, name: str, steps: int, temperature: float, top_p: float, refined: bool
) -> None:
    diffusion, x0 = case.diffusion, case.x0
    xt = diffusion.mask(x0, case.maskable)
    given_xt = xt.clone()

    def denoiser(x: Tensor, sigma: Tensor) -> Tensor:
        return case.logits[: len(x)]

    done = run_sampler(
        MASKED[name],
        diffusion,
        denoiser,
        xt,
        u_order=case.uniforms(*x0.shape),
        u_token=case.uniforms(*x0.shape, stream=1),
        steps=steps,
        temperature=temperature,
        top_p=top_p,
        refine=denoiser if refined else None,
    )
    assert torch.equal(xt, given_xt)
    assert torch.equal(done.x0[~case.maskable], x0[~case.maskable])
    assert torch.isin(done.x0[case.maskable], torch.tensor(diffusion.targets)).all()
    n_masked = case.maskable.sum(-1)
    assert ((done.nfe > 0) == (n_masked > 0)).all()
    limit = n_masked.clamp(max=steps) if SAMPLERS[name].uses_steps else n_masked
    assert (done.nfe <= limit).all()


@each_sampler
def test_nothing_masked_means_no_evaluation_at_all(sampler: Callable[..., Sampled]) -> None:
    def never(xt: Tensor, sigma: Tensor) -> Tensor:
        raise AssertionError("evaluated")

    for xt in (
        torch.full((3, 5), 8),
        torch.zeros(0, 5, dtype=torch.int64),
        torch.zeros(2, 0, dtype=torch.int64),
    ):
        done = run_sampler(sampler, DNA, never, xt, **draws(*xt.shape), steps=4)
        assert torch.equal(done.x0, xt)
        assert (done.nfe == 0).all()


@each_sampler
def test_a_denoiser_that_has_diverged_stops_the_sampler(sampler: Callable[..., Sampled]) -> None:
    def broken(xt: Tensor, sigma: Tensor) -> Tensor:
        return torch.full((*xt.shape, 12), math.nan)

    with pytest.raises(GenodiffError, match="finite"):
        run_sampler(sampler, DNA, broken, masks(1, 3), **draws(1, 3), steps=2)


@each_sampler
@pytest.mark.parametrize(
    "bad",
    [
        {"steps": 0},
        {"temperature": -1.0},
        {"temperature": math.inf},
        {"top_p": 0.0},
        {"top_p": 1.5},
    ],
)
def test_settings_that_cannot_be_are_refused(
    sampler: Callable[..., Sampled], bad: dict[str, float]
) -> None:
    if sampler is first_hitting and "steps" in bad:
        return  # it takes no steps
    with pytest.raises(UsageError):
        run_sampler(sampler, DNA, mixing(3), masks(1, 3), **draws(1, 3), **{"steps": 2, **bad})


# evaluations


@pytest.mark.parametrize(("steps", "length"), [(8, 16), (64, 24), (1000, 10)])
def test_the_mean_number_of_evaluations_is_the_closed_form(steps: int, length: int) -> None:
    n = 4000
    done = run_sampler(
        ancestral,
        DNA,
        lambda x, s: torch.zeros(*x.shape, 12),
        masks(n, length),
        **draws(n, length),
        steps=steps,
    )
    expected = steps * (1 - (1 - 1 / steps) ** length)
    spread = done.nfe.double().std().item() / math.sqrt(n)
    assert abs(done.nfe.double().mean().item() - expected) < 4 * spread + 1e-9
    assert done.nfe.max() <= min(steps, length)


@pytest.mark.parametrize(
    "noise", [Linear(), Cosine(), LogLinear(0.2), Geometric(0.5, 3.0)], ids=repr
)
def test_as_much_is_revealed_at_each_step_as_the_schedule_says(noise: Schedule) -> None:
    steps, n = 6, 60_000
    left: list[float] = []

    def watching(xt: Tensor, sigma: Tensor) -> Tensor:
        left.append((xt == 3).double().mean().item())
        return torch.zeros(*xt.shape, 12)

    run_sampler(
        ancestral,
        MaskedDiffusion(noise, 3, (7, 8)),
        watching,
        masks(1, n),
        **draws(1, n),
        steps=steps,
    )
    times = 1 - torch.arange(steps, dtype=torch.float64) / steps
    expected = noise.masked(times) / noise.masked(times[:1])
    assert left == pytest.approx(expected.tolist(), abs=4 * 0.5 / math.sqrt(n))


def test_the_share_revealed_ends_at_one_and_starts_from_the_prior() -> None:
    for noise in (Linear(), LogLinear(0.3), Geometric(0.5, 3.0)):
        share = revealed_share(noise, 7)
        assert share[-1] == 1
        assert (share.diff() > 0).all()
        assert (share > 0).all()
    assert revealed_share(Linear(), 4).tolist() == pytest.approx([0.25, 0.5, 0.75, 1.0])


def test_confidence_reveals_the_schedules_share_rounded_at_each_step() -> None:
    revealed: list[int] = []

    def watching(xt: Tensor, sigma: Tensor) -> Tensor:
        revealed.append((xt != 3).sum().item())
        return torch.zeros(*xt.shape, 12)

    done = run_sampler(confidence, DNA, watching, masks(1, 10), **draws(1, 10), steps=4)
    assert revealed == [0, 2, 5, 8]
    assert done.nfe.tolist() == [4]
    assert run_sampler(
        confidence, DNA, watching, masks(1, 3), **draws(1, 3), steps=50
    ).nfe.tolist() == [3]


def test_a_uniform_on_the_edge_between_two_steps_belongs_to_the_later_one() -> None:
    visible: list[int] = []

    def watching(xt: Tensor, sigma: Tensor) -> Tensor:
        visible.append((xt != 3).sum().item())
        return torch.zeros(*xt.shape, 12)

    u_order = torch.tensor([[0.5, 0.0, 0.75, 0.25]], dtype=torch.float64)
    run_sampler(ancestral, DNA, watching, masks(1, 4), u_order=u_order, u_token=u_order, steps=4)
    assert visible == [0, 1, 2, 3]


def test_equal_confidence_goes_by_the_smaller_uniform() -> None:
    seen: list[Tensor] = []

    def watching(xt: Tensor, sigma: Tensor) -> Tensor:
        seen.append((xt != 3)[0])
        return torch.zeros(*xt.shape, 12)

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
        p = (
            diffusion.log_x0(denoiser(x, diffusion.sigma(t)), x)[..., list(diffusion.targets)]
            .double()
            .exp()
        )
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
    noise: Schedule, time_conditioning: bool
) -> None:
    diffusion = MaskedDiffusion(noise, 3, (7, 8, 9, 10), time_conditioning)
    base = mixing(9)

    def denoiser(xt: Tensor, sigma: Tensor) -> Tensor:
        return base(xt, sigma) * (1 + sigma[:, None, None])

    u, xt = draws(64, 9), masks(64, 9)
    xt[::3, 4] = 8
    slow = every_step_evaluated(diffusion, denoiser, xt, **u, steps=12)
    assert torch.equal(run_sampler(ancestral, diffusion, denoiser, xt, **u, steps=12).x0, slow)


def test_a_time_conditioned_denoiser_is_told_the_time_of_each_step() -> None:
    told: list[float] = []

    def watching(xt: Tensor, sigma: Tensor) -> Tensor:
        told.extend(sigma.tolist())
        return torch.zeros(*xt.shape, 12)

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
