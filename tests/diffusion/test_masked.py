"""The masking process: corruption, SUBS, the reverse kernel, exact counts and times."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import DNA
from strategies import seeds, windows

from genodiff.diffusion.masked import (
    LARGEST_SIGMA,
    MaskedDiffusion,
    counts,
    exact_count_mask,
    times,
)
from genodiff.diffusion.schedule import SCHEDULES, Geometric, Linear, schedule
from genodiff.errors import UsageError

EACH_SCHEDULE = [schedule(name) for name in SCHEDULES]


def t_of(value: float, batch: int = 1) -> torch.Tensor:
    return torch.full((batch,), value, dtype=torch.float64)


# corruption


@pytest.mark.few(4)
@pytest.mark.parametrize("noise", EACH_SCHEDULE, ids=repr)
@pytest.mark.parametrize("t", [0.05, 0.5, 0.9])
def test_the_masked_share_is_one_minus_alpha_within_four_sigma(noise, t):
    n = 100_000
    x0 = torch.full((1, n), 7)
    u = torch.rand(1, n, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    xt = MaskedDiffusion(noise, 3, (7,)).corrupt(x0, t_of(t), u, torch.ones(1, n, dtype=torch.bool))
    p = 1 - noise.alpha(t_of(t)).item()
    assert abs((xt == 3).sum().item() - n * p) < 4 * math.sqrt(n * p * (1 - p)) + 1e-9


@given(windows(), st.floats(0, 1))
def test_corruption_changes_maskable_positions_only_and_only_to_masks(case, t):
    diffusion, x0, maskable = case.diffusion, case.x0, case.maskable
    before = x0.clone()
    xt = diffusion.corrupt(x0, t_of(t, len(x0)), case.uniforms(*x0.shape), maskable)
    changed = xt != x0
    assert not (changed & ~maskable).any()
    assert (xt[changed] == diffusion.mask_id).all()
    assert torch.equal(x0, before)


# SUBS


@settings(max_examples=80)
@given(
    windows(),
    st.sampled_from([torch.float64, torch.float32, torch.float16, torch.bfloat16]),
    st.sampled_from([1e-3, 1.0, 100.0, 1e4]),
    st.floats(0, 1),
)
def test_every_row_is_a_distribution_over_the_targets_or_the_visible_token_itself(
    case, dtype, size, t
):
    diffusion, x0, maskable, logits = case.diffusion, case.x0, case.maskable, case.logits
    logits = (logits.clamp(-3, 3) / 3 * size).to(dtype)
    xt = diffusion.corrupt(x0, t_of(t, len(x0)), case.uniforms(*x0.shape), maskable)
    given_logits, given_xt = logits.clone(), xt.clone()
    logp = diffusion.log_x0(logits, xt)
    p, masked = logp.exp(), xt == diffusion.mask_id
    assert torch.equal(logits, given_logits)
    assert torch.equal(xt, given_xt)
    assert logp.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert not logp.isnan().any()
    torch.testing.assert_close(p.sum(-1), torch.ones_like(p[..., 0]), rtol=0, atol=1e-5)
    allowed = torch.zeros(logits.shape[-1], dtype=torch.bool).index_fill(
        0, torch.tensor(diffusion.targets), True
    )
    assert (p[masked][:, ~allowed] == 0).all()
    assert torch.isfinite(logp[masked][:, allowed]).all()
    one_hot = torch.nn.functional.one_hot(xt, logits.shape[-1]).to(p.dtype)
    assert torch.equal(p[~masked], one_hot[~masked])


def test_the_mask_may_lie_outside_the_logits():
    outside = MaskedDiffusion(Linear(), mask_id=4, targets=(0, 1, 2, 3))
    logp = outside.log_x0(torch.zeros(1, 2, 4), torch.tensor([[4, 2]]))
    assert logp[0].exp().tolist() == [[0.25] * 4, [0, 0, 1, 0]]
    given = torch.zeros(1, 2, 4), torch.tensor([[1, 2]]), torch.tensor([[True, False]])
    assert outside.nll(*given).tolist() == [[pytest.approx(math.log(4)), 0.0]]


@given(windows(), st.floats(0, 1))
def test_the_nll_is_minus_log_x0_of_the_clean_token_and_free_where_visible(case, t):
    diffusion, x0, maskable, logits = case.diffusion, case.x0, case.maskable, case.logits
    masked = diffusion.draw_mask(t_of(t, len(x0)), case.uniforms(*x0.shape), maskable)
    logp = diffusion.log_x0(logits, diffusion.mask(x0, masked))
    gathered = -logp.gather(-1, x0[..., None])[..., 0]
    torch.testing.assert_close(diffusion.nll(logits, x0, masked), gathered, rtol=1e-12, atol=1e-12)
    assert (diffusion.nll(logits, x0, masked)[~masked] == 0).all()


def test_masking_what_can_never_be_predicted_costs_infinity_not_a_wrong_number():
    x0, masked = torch.tensor([[11, 15, 4, 8, 15]]), torch.tensor([[True] * 4 + [False]])
    nll = DNA.nll(torch.zeros(1, 5, 16), x0, masked)
    assert nll[0].tolist() == [math.inf, math.inf, math.inf, pytest.approx(math.log(4)), 0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_gradients_are_finite_and_reach_the_targets_of_masked_positions_only(dtype):
    logits = (1e4 * torch.linspace(-1, 1, 2 * 5 * 12).reshape(2, 5, 12)).to(dtype).requires_grad_()
    x0 = torch.tensor([[7, 8, 9, 10, 11], [10, 9, 8, 7, 4]])
    masked = torch.tensor([[True, False, True, True, False], [False, True, True, False, False]])
    for loss in (
        DNA.nll(logits, x0, masked).sum(),
        -DNA.log_x0(logits, DNA.mask(x0, masked)).gather(-1, x0[..., None]).sum(),
    ):
        (grad,) = torch.autograd.grad(loss, logits)
        assert torch.isfinite(grad).all()
        assert (grad[~masked] == 0).all()
        assert (grad[..., :7] == 0).all()
        assert (grad[..., 11:] == 0).all()
        assert (grad[masked][:, 7:11].abs().sum(-1) > 0).any()


def test_the_gradient_is_probability_minus_truth():
    logits = torch.randn(
        1, 6, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    ).requires_grad_()
    x0, masked = torch.tensor([[7, 8, 9, 10, 7, 8]]), torch.tensor([[True] * 5 + [False]])
    (grad,) = torch.autograd.grad(DNA.nll(logits, x0, masked).sum(), logits)
    p = torch.zeros(1, 6, 12, dtype=torch.float64)
    p[..., 7:11] = logits.detach()[..., 7:11].softmax(-1)
    torch.testing.assert_close(grad, (p - torch.nn.functional.one_hot(x0, 12)) * masked[..., None])


@pytest.mark.parametrize("targets", [(7, 8, 9, 10), (9, 7)])
def test_a_process_first_used_in_inference_mode_can_still_train(targets):
    x0, masked = torch.tensor([[7, 9]]), torch.tensor([[True, True]])
    for loss in (
        lambda diffusion, logits: diffusion.log_x0(logits, torch.full_like(x0, 3))[..., 9].sum(),
        lambda diffusion, logits: diffusion.nll(logits, x0, masked).sum(),
    ):
        diffusion = MaskedDiffusion(Linear(), 3, targets)
        with torch.inference_mode():
            loss(diffusion, torch.zeros(1, 2, 12))
        logits = torch.zeros(1, 2, 12, requires_grad=True)
        loss(diffusion, logits).backward()
        assert logits.grad is not None
        assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("targets", [(), (7, 7), (7, 3)])
def test_targets_that_make_no_sense_are_refused(targets):
    with pytest.raises(UsageError, match="targets"):
        MaskedDiffusion(Linear(), 3, targets)


# the reverse kernel


@given(windows(), st.floats(0.01, 1), st.floats(0, 0.99))
def test_the_reverse_kernel_is_a_distribution_that_never_touches_what_is_visible(case, t, share):
    diffusion, x0, maskable, logits = case.diffusion, case.x0, case.maskable, case.logits
    at = t_of(t, len(x0))
    xt = diffusion.corrupt(x0, at, case.uniforms(*x0.shape), maskable)
    logp = diffusion.log_x0(logits, xt)
    before = logp.clone()
    p = diffusion.reverse(logp, xt, at, share * at)
    assert torch.equal(logp, before)
    torch.testing.assert_close(p.sum(-1), torch.ones_like(p[..., 0]), rtol=0, atol=1e-12)
    assert (p >= 0).all()
    masked = xt == diffusion.mask_id
    keep = diffusion.schedule.masked(share * at) / diffusion.schedule.masked(at)
    hidden = p[..., diffusion.mask_id][masked]
    torch.testing.assert_close(hidden, keep[:, None].expand_as(xt)[masked], rtol=0, atol=1e-12)
    assert (p.gather(-1, xt[..., None])[..., 0][~masked] == 1).all()


@pytest.mark.parametrize("noise", EACH_SCHEDULE, ids=repr)
def test_two_reverse_steps_compose_to_one(noise):
    diffusion = MaskedDiffusion(noise, 3, (7, 8, 9, 10))
    logits = torch.randn(1, 1, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(1))

    def kernel(t: float, s: float) -> torch.Tensor:
        """Rows: p(xs | xt = id) for every id, the denoiser saying the same whatever it sees."""
        xt = torch.arange(12)[:, None]
        logp = diffusion.log_x0(logits.expand(12, 1, 12), xt)
        return diffusion.reverse(logp, xt, t_of(t, 12), t_of(s, 12))[:, 0]

    for t, s, r in [(1.0, 0.6, 0.2), (0.9, 0.5, 0.4), (0.3, 0.2, 0.1)]:
        torch.testing.assert_close(kernel(t, s) @ kernel(s, r), kernel(t, r), rtol=0, atol=1e-12)


# what the denoiser is told of the time


def test_with_time_conditioning_it_sees_sigma_and_never_infinity():
    for noise, last in ((Linear(), LARGEST_SIGMA), (Geometric(1e-3, 1.0), 1.0)):
        told = MaskedDiffusion(noise, 3, (7,), time_conditioning=True).sigma(t_of(1.0))
        assert told.item() == pytest.approx(last)
    told = MaskedDiffusion(Linear(), 3, (7,), time_conditioning=True).sigma(t_of(0.5))
    assert told.item() == pytest.approx(math.log(2))


# exact counts


@given(windows(), st.integers(0, 14), st.booleans())
def test_exactly_k_maskable_positions_with_the_smallest_uniforms_are_masked(case, k, equal):
    maskable, u = case.maskable, case.uniforms(*case.x0.shape) * (not equal)
    masked = exact_count_mask(maskable, torch.full((len(maskable),), k), u)
    assert torch.equal(masked.sum(-1), maskable.sum(-1).clamp(max=k))
    assert not (masked & ~maskable).any()
    largest_masked = u.masked_fill(~masked, -1).amax(-1)
    smallest_spared = u.masked_fill(masked | ~maskable, 2).amin(-1)
    assert (largest_masked <= smallest_spared).all()


def test_every_set_of_k_is_equally_likely():
    """All orders of four uniforms, each once: each of the six pairs is masked by four of the 24."""
    u = torch.tensor(list(itertools.permutations((0.1, 0.3, 0.5, 0.7))))
    masked = exact_count_mask(torch.ones(24, 4, dtype=torch.bool), torch.full((24,), 2), u)
    _, how_often = masked.int().unique(dim=0, return_counts=True)
    assert how_often.tolist() == [4] * 6


# times


@given(st.sampled_from(["iid", "stratified", "systematic"]), st.integers(1, 9), seeds)
def test_times_lie_above_zero_and_up_to_one(method, n_slots, seed):
    g = torch.Generator().manual_seed(seed)
    slot = torch.arange(n_slots)
    for u_own in (
        torch.rand(n_slots, generator=g, dtype=torch.float64),
        torch.zeros(n_slots, dtype=torch.float64),
    ):
        for u_shared in (torch.rand(1, generator=g).item(), 0.0, 1 - 2**-53):
            t = times(method, u_own, u_shared, slot, n_slots)
            assert ((t > 0) & (t <= 1)).all()


@given(st.sampled_from(["stratified", "systematic"]), st.integers(1, 40), seeds)
def test_every_stratum_of_the_turned_circle_holds_one_time(method, n_slots, seed):
    g = torch.Generator().manual_seed(seed)
    u_own = torch.rand(n_slots, generator=g, dtype=torch.float64)
    shared = torch.rand(1, generator=g).item()
    t = times(method, u_own, shared, torch.randperm(n_slots, generator=g), n_slots)
    turned = (t - shared) % 1
    if method == "systematic":
        gaps = t.sort().values.diff()
        torch.testing.assert_close(gaps, torch.full_like(gaps, 1 / n_slots), rtol=0, atol=1e-12)
    else:
        stratum = torch.floor(turned * n_slots).long().clamp(max=n_slots - 1)
        assert stratum.unique().numel() == n_slots


@pytest.mark.parametrize("method", ["iid", "stratified", "systematic"])
def test_each_sample_is_uniform_by_itself_whatever_its_slot(method):
    """A slot tied to one part of [0, 1] would bias every window's own estimate."""
    g = torch.Generator().manual_seed(5)
    shared = torch.rand(4000, generator=g, dtype=torch.float64)
    own = torch.rand(4000, 8, generator=g, dtype=torch.float64)
    t = torch.stack(
        [times(method, own[i], shared[i].item(), torch.arange(8), 8) for i in range(4000)]
    )
    deciles = torch.stack([(t <= d / 10).double().mean(0) for d in range(1, 10)])
    expected = torch.arange(1, 10)[:, None] / 10
    assert ((deciles - expected).abs() < 4 * torch.sqrt(expected * (1 - expected) / 4000)).all()


def test_a_part_of_a_global_batch_gets_its_part_of_the_strata():
    g = torch.Generator().manual_seed(2)
    own = torch.rand(8, generator=g, dtype=torch.float64)
    whole = times("stratified", own, 0.3, torch.arange(8), 8)
    ranks = [times("stratified", own[r::2], 0.3, torch.arange(8)[r::2], 8) for r in range(2)]
    assert torch.equal(torch.stack(ranks, 1).flatten(), whole)


def test_an_unknown_time_sampling_is_refused():
    with pytest.raises(Exception, match="sobol"):
        times("sobol", torch.zeros(1), 0.0, torch.zeros(1, dtype=torch.int64), 1)


@given(st.integers(1, 300), st.integers(1, 7))
def test_a_uniform_time_gives_a_uniform_count(n, repeats):
    """Midpoints of n * repeats equal cells: each count from 1 to n exactly `repeats` times."""
    t = (torch.arange(n * repeats, dtype=torch.float64) + 0.5) / (n * repeats)
    k = counts(t, torch.full((n * repeats,), n))
    assert torch.equal(k.bincount(minlength=n + 1), torch.tensor([0] + [repeats] * n))


def test_counts_stay_in_range_at_the_ends_and_without_anything_to_mask():
    t = torch.tensor([1e-300, 1.0, 0.5, 1.0], dtype=torch.float64)
    assert counts(t, torch.tensor([9, 9, 0, 1])).tolist() == [1, 9, 0, 1]
