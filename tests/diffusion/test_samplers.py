"""Samplers: their laws in solvable worlds, their evaluations, and what must never change their result."""

import itertools
import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from strategies import Windows, windows
from torch import Tensor
from worlds import World, copy_task, markov_chain

from genodiff.diffusion.likelihood import count_terms, nelbo_discrete
from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.samplers import SAMPLERS, Sampled, ancestral, confidence, first_hitting, revealed_share
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
each_sampler = pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS.keys())
DNA = MaskedDiffusion(Linear(), mask_id=3, targets=(7, 8, 9, 10))


def draws(n: int, length: int, seed: int = 0) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(seed)
    return {name: torch.rand(n, length, generator=g, dtype=torch.float64) for name in ("u_order", "u_token")}


def masks(n: int, length: int, mask_id: int = 3) -> Tensor:
    return torch.full((n, length), mask_id)


def mixing(length: int, size: float = 1.5, vocab_size: int = 12) -> Callable[[Tensor, Tensor], Tensor]:
    """A denoiser that looks at the whole sequence, each position differently; rows do not influence one another."""
    g = torch.Generator().manual_seed(42)
    own, other = size * torch.randn(2, length, vocab_size, vocab_size, generator=g, dtype=torch.float64)

    def denoiser(xt: Tensor, sigma: Tensor) -> Tensor:
        seen = torch.nn.functional.one_hot(xt, vocab_size).double()
        place = torch.arange(length, dtype=torch.float64)
        near = torch.exp(-(place[:, None] - place).abs())
        return torch.einsum("blv,lvw->blw", seen, own) + torch.einsum("bmv,lm,mvw->blw", seen, near, other) + sigma[:, None, None]

    return denoiser


# laws in the solvable world

STEP_LAW = {  # T: total variation to the data, KL(data || sampler); ancestral, perfect denoiser, linear grid
    1: (0.604000, 1.104193),
    2: (0.344834, 0.288768),
    4: (0.180098, 0.085293),
    8: (0.091591, 0.024893),
    16: (0.046134, 0.006987),
    64: (0.011592, 0.000494),
    256: (0.002901, 0.000032),
}


def exact_law(world: World, noise: Schedule, steps: int, start: Tensor | None = None) -> Tensor:
    """The chance of each sequence of the world after `steps` reverse kernels, by enumerating all masked states."""
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


@pytest.mark.parametrize("noise", [Linear(), Cosine(), CosineSquared(), OneMinusCosine(), Polynomial()], ids=repr)
@pytest.mark.parametrize("steps", [1, 3, 10])
def test_sampling_error_is_at_most_what_the_bound_of_t_steps_exceeds_the_entropy_by(noise: Schedule, steps: int) -> None:
    ok = torch.ones(4, dtype=torch.bool)
    terms = sum(p * count_terms(F1.diffusion(), F1.denoiser, x, ok) for x, p in zip(F1.sequences, F1.p, strict=True))
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
    assert chisquare(observed.numpy(), expected.numpy()).pvalue > 1e-3, f"{observed.tolist()} != {expected.tolist()}"


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
def test_a_hundred_thousand_ancestral_samples_follow_the_exact_law_of_t_steps(noise: Schedule, steps: int) -> None:
    done = ancestral(F1.diffusion(noise), F1.denoiser, masks(100_000, 4), **draws(100_000, 4), steps=steps)
    assert_law(F1, done.x0, exact_law(F1, noise, steps))


@pytest.mark.parametrize("order_temperature", [0.0, 0.5])
def test_one_position_per_evaluation_follows_the_data_in_every_order(order_temperature: float) -> None:
    n = 100_000
    assert_law(F1, first_hitting(F1.diffusion(), F1.denoiser, masks(n, 4), **draws(n, 4)).x0, F1.p)
    ordered = confidence(F1.diffusion(), F1.denoiser, masks(n, 4), **draws(n, 4), steps=4, order_temperature=order_temperature)
    assert_law(F1, ordered.x0, F1.p)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_two_copies_disagree_as_often_as_both_are_revealed_at_once(steps: int) -> None:
    world, n = copy_task(2, 3), 40_000
    x0 = ancestral(world.diffusion(), world.denoiser, masks(n, 2, 1), **draws(n, 2), steps=steps).x0
    wrong, p = (x0[:, 0] != x0[:, 1]).double().mean().item(), (1 - 1 / 3) / steps
    assert abs(wrong - p) < 4 * math.sqrt(p * (1 - p) / n)


def test_one_token_per_step_never_breaks_the_copy() -> None:
    world = copy_task(4, 3)
    for sampler in (first_hitting, confidence):
        x0 = sampler(world.diffusion(), world.denoiser, masks(500, 4, 1), **draws(500, 4), steps=4).x0
        assert (world.index(x0) >= 0).all()


@each_sampler
def test_a_template_is_filled_from_the_exact_conditional_law(sampler: Callable[..., Sampled]) -> None:
    n = 40_000
    template = torch.tensor([[3, 2, 3, 4]]).expand(n, 4)
    x0 = sampler(F1.diffusion(), F1.denoiser, template, **draws(n, 4), steps=64).x0
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
    st.sampled_from(sorted(SAMPLERS)),
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

    done = SAMPLERS[name](
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
    limit = n_masked if name == "first-hitting" else n_masked.clamp(max=steps)
    assert (done.nfe <= limit).all()


@each_sampler
def test_nothing_masked_means_no_evaluation_at_all(sampler: Callable[..., Sampled]) -> None:
    def never(xt: Tensor, sigma: Tensor) -> Tensor:
        raise AssertionError("evaluated")

    for xt in (torch.full((3, 5), 8), torch.zeros(0, 5, dtype=torch.int64), torch.zeros(2, 0, dtype=torch.int64)):
        done = sampler(DNA, never, xt, **draws(*xt.shape), steps=4)
        assert torch.equal(done.x0, xt)
        assert (done.nfe == 0).all()


@each_sampler
def test_a_denoiser_that_has_diverged_stops_the_sampler(sampler: Callable[..., Sampled]) -> None:
    def broken(xt: Tensor, sigma: Tensor) -> Tensor:
        return torch.full((*xt.shape, 12), math.nan)

    with pytest.raises(GenodiffError, match="finite"):
        sampler(DNA, broken, masks(1, 3), **draws(1, 3), steps=2)


@each_sampler
@pytest.mark.parametrize("bad", [{"steps": 0}, {"temperature": -1.0}, {"temperature": math.inf}, {"top_p": 0.0}, {"top_p": 1.5}])
def test_settings_that_cannot_be_are_refused(sampler: Callable[..., Sampled], bad: dict[str, float]) -> None:
    if sampler is first_hitting and "steps" in bad:
        return  # it takes no steps
    with pytest.raises(UsageError):
        sampler(DNA, mixing(3), masks(1, 3), **draws(1, 3), **{"steps": 2, **bad})


# evaluations


@pytest.mark.parametrize(("steps", "length"), [(8, 16), (64, 24), (1000, 10)])
def test_the_mean_number_of_evaluations_is_the_closed_form(steps: int, length: int) -> None:
    n = 4000
    done = ancestral(DNA, lambda x, s: torch.zeros(*x.shape, 12), masks(n, length), **draws(n, length), steps=steps)
    expected = steps * (1 - (1 - 1 / steps) ** length)
    spread = done.nfe.double().std().item() / math.sqrt(n)
    assert abs(done.nfe.double().mean().item() - expected) < 4 * spread + 1e-9
    assert done.nfe.max() <= min(steps, length)


@pytest.mark.parametrize("noise", [Linear(), Cosine(), LogLinear(0.2), Geometric(0.5, 3.0)], ids=repr)
def test_as_much_is_revealed_at_each_step_as_the_schedule_says(noise: Schedule) -> None:
    steps, n = 6, 60_000
    left: list[float] = []

    def watching(xt: Tensor, sigma: Tensor) -> Tensor:
        left.append((xt == 3).double().mean().item())
        return torch.zeros(*xt.shape, 12)

    ancestral(MaskedDiffusion(noise, 3, (7, 8)), watching, masks(1, n), **draws(1, n), steps=steps)
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

    done = confidence(DNA, watching, masks(1, 10), **draws(1, 10), steps=4)
    assert revealed == [0, 2, 5, 8]
    assert done.nfe.tolist() == [4]
    assert confidence(DNA, watching, masks(1, 3), **draws(1, 3), steps=50).nfe.tolist() == [3]


def test_a_uniform_on_the_edge_between_two_steps_belongs_to_the_later_one() -> None:
    visible: list[int] = []

    def watching(xt: Tensor, sigma: Tensor) -> Tensor:
        visible.append((xt != 3).sum().item())
        return torch.zeros(*xt.shape, 12)

    u_order = torch.tensor([[0.5, 0.0, 0.75, 0.25]], dtype=torch.float64)
    ancestral(DNA, watching, masks(1, 4), u_order=u_order, u_token=u_order, steps=4)
    assert visible == [0, 1, 2, 3]


def test_equal_confidence_goes_by_the_smaller_uniform() -> None:
    seen: list[Tensor] = []

    def watching(xt: Tensor, sigma: Tensor) -> Tensor:
        seen.append((xt != 3)[0])
        return torch.zeros(*xt.shape, 12)

    u = draws(1, 8)
    confidence(DNA, watching, masks(1, 8), **u, steps=4)
    assert set(seen[1].nonzero()[:, 0].tolist()) == set(u["u_order"][0].argsort()[:2].tolist())


def every_step_evaluated(
    diffusion: MaskedDiffusion,
    denoiser: Callable[..., Tensor],
    xt: Tensor,
    u_order: Tensor,
    u_token: Tensor,
    steps: int,
) -> Tensor:
    """The ancestral chain the slow way: the whole batch at every step, nothing skipped, Bernoulli then categorical."""
    x = xt.clone()
    for j in range(steps):
        t = torch.full((len(x),), 1 - j / steps, dtype=torch.float64)
        p = diffusion.log_x0(denoiser(x, diffusion.sigma(t)), x)[..., list(diffusion.targets)].double().exp()
        hidden = diffusion.schedule.masked(torch.tensor([1.0, 1 - (j + 1) / steps], dtype=torch.float64))
        now = (x == diffusion.mask_id) & (u_order < 1 - hidden[1] / hidden[0])
        token = (p.cumsum(-1)[..., :-1] <= u_token[..., None]).sum(-1)
        x = torch.where(now, torch.tensor(diffusion.targets)[token], x)
    return x


@pytest.mark.parametrize("time_conditioning", [False, True])
@pytest.mark.parametrize("noise", [Linear(), OneMinusCosine(), LogLinear(0.1)], ids=repr)
def test_skipping_idle_steps_changes_no_sample_with_or_without_time_conditioning(noise: Schedule, time_conditioning: bool) -> None:
    diffusion = MaskedDiffusion(noise, 3, (7, 8, 9, 10), time_conditioning)
    base = mixing(9)

    def denoiser(xt: Tensor, sigma: Tensor) -> Tensor:
        return base(xt, sigma) * (1 + sigma[:, None, None])

    u, xt = draws(64, 9), masks(64, 9)
    xt[::3, 4] = 8
    slow = every_step_evaluated(diffusion, denoiser, xt, **u, steps=12)
    assert torch.equal(ancestral(diffusion, denoiser, xt, **u, steps=12).x0, slow)


def test_a_time_conditioned_denoiser_is_told_the_time_of_each_step() -> None:
    told: list[float] = []

    def watching(xt: Tensor, sigma: Tensor) -> Tensor:
        told.extend(sigma.tolist())
        return torch.zeros(*xt.shape, 12)

    u = draws(1, 40)
    diffusion = MaskedDiffusion(LogLinear(0.01), 3, (7, 8), time_conditioning=True)
    for sampler in (ancestral, confidence):
        told.clear()
        sampler(diffusion, watching, masks(1, 40), **u, steps=4)
        assert told == pytest.approx(diffusion.sigma(torch.tensor([1.0, 0.75, 0.5, 0.25], dtype=torch.float64)).tolist())
    told.clear()
    first_hitting(diffusion, watching, masks(1, 40), **u)
    alpha = torch.exp(-torch.tensor(told, dtype=torch.float64))
    torch.testing.assert_close(alpha, 0.01 + 0.99 * u["u_order"][0].sort().values, rtol=0, atol=1e-9)


# nobody else's business


def in_parts(sampler: Callable[..., Sampled], parts: list[list[int]], xt: Tensor, u: dict[str, Tensor], **rest: object) -> Sampled:
    x0, nfe = torch.zeros_like(xt), torch.zeros(len(xt), dtype=torch.int64)
    for rows in parts:
        done = sampler(xt=xt[rows], u_order=u["u_order"][rows], u_token=u["u_token"][rows], **rest)
        x0[rows], nfe[rows] = done.x0, done.nfe
    return Sampled(x0, nfe)


PARTS = [[[5, 0, 3], [1, 2, 4, 7, 6]], [[i] for i in range(8)]]


@each_sampler
@pytest.mark.parametrize("parts", PARTS, ids=["shuffled", "alone"])
def test_companions_change_neither_tokens_nor_evaluations(sampler: Callable[..., Sampled], parts: list[list[int]]) -> None:
    u, xt = draws(8, 12), masks(8, 12)
    xt[3, :6], xt[5] = 9, 8
    rest = {"diffusion": DNA, "denoiser": mixing(12), "steps": 7}
    together, apart = sampler(xt=xt, **u, **rest), in_parts(sampler, parts, xt, u, **rest)
    assert torch.equal(together.x0, apart.x0)
    assert torch.equal(together.nfe, apart.nfe)


def noisy(exact: Callable[[Tensor, Tensor], Tensor], size: float) -> Callable[[Tensor, Tensor], Tensor]:
    """The same denoiser with errors of up to `size` that depend on the whole batch, as single precision has them."""

    def denoiser(xt: Tensor, sigma: Tensor) -> Tensor:
        g = torch.Generator().manual_seed(len(xt) * 1000 + xt.sum().item())
        logits = exact(xt, sigma)
        return logits + size * (2 * torch.rand(logits.shape, generator=g, dtype=torch.float64) - 1)

    return denoiser


LAWS = [(1.0, 1.0), (0.7, 1.0), (0.05, 1.0), (0.0, 1.0), (1.0, 0.8), (1.3, 0.5)]


@each_sampler
@pytest.mark.parametrize(("temperature", "top_p"), LAWS)
def test_with_refinement_rounding_errors_change_no_token(sampler: Callable[..., Sampled], temperature: float, top_p: float) -> None:
    u, xt, exact, size = draws(8, 24), masks(8, 24), mixing(24, 0.6), 0.05
    rest = {"diffusion": DNA, "steps": 12, "temperature": temperature, "top_p": top_p}
    truth = sampler(xt=xt, **u, **rest, denoiser=exact)
    for parts in ([list(range(8))], *PARTS):
        refined = in_parts(sampler, parts, xt, u, **rest, denoiser=noisy(exact, size), refine=exact, tolerance=size)
        assert torch.equal(refined.x0, truth.x0)
        assert torch.equal(refined.nfe, truth.nfe)


@each_sampler
def test_without_refinement_the_same_errors_do_change_tokens(sampler: Callable[..., Sampled]) -> None:
    """Else the test above would show nothing."""
    u, xt, exact = draws(8, 24), masks(8, 24), mixing(24, 0.6)
    rest = {"diffusion": DNA, "steps": 12}
    assert not torch.equal(sampler(xt=xt, **u, **rest, denoiser=noisy(exact, 0.05)).x0, sampler(xt=xt, **u, **rest, denoiser=exact).x0)


def test_refinement_is_rare_and_sees_one_sequence_alone() -> None:
    calls: list[int] = []
    exact = mixing(64)

    def watched(xt: Tensor, sigma: Tensor) -> Tensor:
        calls.append(len(xt))
        return exact(xt, sigma)

    ancestral(DNA, exact, masks(32, 64), **draws(32, 64), steps=32, refine=watched, tolerance=1e-4)
    assert set(calls) <= {1}
    assert len(calls) < 10  # of 2,048 draws


def test_exact_symmetry_is_broken_by_the_uniforms_and_not_by_rounding() -> None:
    """Equal logits with errors of the last digit: the tie is the same tie."""

    def almost_equal(seed: int) -> Callable[[Tensor, Tensor], Tensor]:
        g = torch.Generator().manual_seed(seed)
        return lambda x, s: 1e-13 * torch.randn(*x.shape, 12, generator=g, dtype=torch.float64)

    def ever_more_a(seed: int) -> Callable[[Tensor, Tensor], Tensor]:
        """The same at every position, but different at every step: the order shows in the tokens."""
        rounding = almost_equal(seed)
        tilt = torch.nn.functional.one_hot(torch.tensor(7), 12)
        return lambda x, s: rounding(x, s) + tilt * (x != 3).sum(-1)[:, None, None]

    orders = [confidence(DNA, ever_more_a(seed), masks(4, 16), **draws(4, 16), steps=8).x0 for seed in range(3)]
    assert torch.equal(orders[0], orders[1])
    assert torch.equal(orders[0], orders[2])

    for sampler, rest in itertools.product(SAMPLERS.values(), ({"temperature": 0.0}, {"top_p": 0.5}, {"top_p": 0.6})):
        results = [sampler(DNA, almost_equal(seed), masks(4, 16), **draws(4, 16), steps=8, **rest).x0 for seed in range(3)]
        assert torch.equal(results[0], results[1])
        assert torch.equal(results[0], results[2])


# temperature and nucleus


def one_position(logits: list[float], n: int = 20_000, **rest: float) -> Tensor:
    """How often each target is drawn from these logits of its own."""
    full = torch.full((12,), 40.0, dtype=torch.float64)
    full[7:11] = torch.tensor(logits)
    done = ancestral(DNA, lambda x, s: full.expand(*x.shape, 12), masks(n, 1), **draws(n, 1), steps=1, **rest)
    return torch.bincount(done.x0[:, 0] - 7, minlength=4) / n


def test_temperature_zero_and_almost_zero_take_the_best_token() -> None:
    for temperature in (0.0, 1e-12, 1e-3):
        assert one_position([1.0, 1.1, 0.9, 1.05], temperature=temperature).tolist() == [0, 1, 0, 0]


def test_temperature_scales_the_logits() -> None:
    logits = torch.tensor([0.0, 1.0, 2.0, 3.0])
    for temperature in (0.5, 1.0, 2.0):
        found = one_position(logits.tolist(), temperature=temperature)
        assert ((found - (logits / temperature).softmax(-1)).abs() < 0.015).all()


@pytest.mark.parametrize(
    ("top_p", "kept"),
    [(1e-12, 1), (0.05, 1), (0.4, 1), (0.4001, 2), (0.7, 2), (0.7001, 3), (0.9, 3), (0.95, 4), (1.0, 4)],
)
def test_the_nucleus_is_the_smallest_set_that_reaches_top_p_crossing_token_included(top_p: float, kept: int) -> None:
    p = torch.tensor([0.2, 0.4, 0.1, 0.3])
    found = one_position(p.log().tolist(), top_p=top_p)
    inside = p.argsort(descending=True)[:kept]
    assert set(found.nonzero()[:, 0].tolist()) == set(inside.tolist())
    assert ((found[inside] - p[inside] / p[inside].sum()).abs() < 0.02).all()


@each_sampler
def test_top_p_one_and_temperature_one_change_nothing(sampler: Callable[..., Sampled]) -> None:
    arguments = DNA, mixing(10), masks(16, 10)
    plain = sampler(*arguments, **draws(16, 10), steps=5)
    same = sampler(*arguments, **draws(16, 10), steps=5, temperature=1.0, top_p=1.0)
    nearly = sampler(*arguments, **draws(16, 10), steps=5, top_p=1 - 1e-12)
    assert torch.equal(plain.x0, same.x0)
    assert torch.equal(plain.x0, nearly.x0)


def test_a_forbidden_token_is_never_drawn_not_even_by_the_extreme_uniforms() -> None:
    logits = torch.full((12,), 0.0, dtype=torch.float64)
    logits[[7, 10]] = -math.inf
    for u in (0.0, 1 - 2**-53):
        u_token = torch.full((1, 1), u, dtype=torch.float64)
        done = ancestral(DNA, lambda x, s: logits.expand(*x.shape, 12), masks(1, 1), u_order=u_token, u_token=u_token, steps=3)
        assert done.x0.item() == (8 if u == 0 else 9)


def zipf(n: int) -> Tensor:
    return -torch.arange(1, n + 1, dtype=torch.float64).log()


def mean_surprise(n_tokens: int, length: int) -> tuple[float, float]:
    """Mean of -log p of sampled tokens from Zipf(1) over 50,257 symbols at 1,024 steps, and its standard error."""
    vocab_size = 50_257
    logits = torch.cat([zipf(vocab_size), torch.tensor([9.0])])
    diffusion = MaskedDiffusion(Linear(), vocab_size, tuple(range(vocab_size)))
    logp = zipf(vocab_size).log_softmax(-1)
    n = n_tokens // length
    x0 = ancestral(
        diffusion,
        lambda x, s: logits.float().expand(*x.shape, vocab_size + 1),
        masks(n, length, vocab_size),
        **draws(n, length, seed=3),
        steps=1024,
    ).x0
    surprise = -logp[x0]
    return surprise.mean().item(), surprise.std().item() / math.sqrt(n_tokens)


def test_a_large_vocabulary_is_sampled_at_its_own_temperature() -> None:
    """Single-precision Gumbel noise gives 5.63 nats at 1,024 steps; the truth is 7.566."""
    mean, error = mean_surprise(2048, 1024)
    assert (zipf(50_257).softmax(-1) * -zipf(50_257).log_softmax(-1)).sum().item() == pytest.approx(7.566, abs=1e-3)
    assert abs(mean - 7.566) < 4 * error
    assert error < 0.1


@pytest.mark.slow
def test_a_hundred_thousand_tokens_of_a_large_vocabulary_have_its_entropy() -> None:
    mean, _ = mean_surprise(100 * 1024, 1024)
    assert abs(mean - 7.566) < 0.03
