"""Losses: sums, denominators, weights and spread, and the arguments of the denoiser."""

import math
from collections import defaultdict

import pytest
import torch
from enumerated import FIVE
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import DNA
from strategies import seeds, windows
from torch import Tensor
from worlds import dna_like

from genodiff.diffusion.loss import (
    LossTerms,
    continuous_time_loss,
    discrete_time_loss,
    exact_count_bound,
    exact_count_loss,
)
from genodiff.diffusion.masked import Clean, MaskedDiffusion, counts, times
from genodiff.diffusion.schedule import (
    Geometric,
    Linear,
    LogLinear,
)

# reduction


@given(windows(max_batch=6), st.integers(0, 6))
def test_a_batch_may_be_split_anywhere(case, at):
    diffusion, logits = case.diffusion, case.logits
    u, t = case.uniforms(*case.x0.shape), 1 - case.uniforms(len(case.x0), stream=1)
    k, weight = counts(t, case.maskable.sum(-1)), case.uniforms(*case.x0.shape, stream=2)

    def terms(rows: slice, which: str) -> LossTerms:
        def denoiser(xt: Tensor, sigma: Tensor) -> Tensor:
            return logits[rows]

        batch = Clean(case.x0[rows], case.maskable[rows], weight[rows])
        if which == "exact count":
            return exact_count_loss(diffusion, denoiser, batch, k[rows], u[rows])
        if which == "continuous":
            return continuous_time_loss(diffusion, denoiser, batch, t[rows], u[rows])
        return discrete_time_loss(diffusion, denoiser, batch, t[rows], u[rows], 7)

    for which in ("exact count", "continuous", "discrete"):
        whole = terms(slice(None), which)
        parts = [terms(slice(0, at), which), terms(slice(at, None), which)]
        for i in range(3):
            assert whole[i].item() == pytest.approx(
                sum(part[i].item() for part in parts), rel=1e-9, abs=1e-9
            )


def uniform(xt: Tensor, sigma: Tensor) -> Tensor:
    return torch.zeros(*xt.shape, 16, dtype=torch.float64, requires_grad=True)


def test_windows_with_nothing_to_mask_contribute_nothing_and_no_nan():
    x0 = torch.tensor([[7, 8, 9], [11, 11, 11]])
    maskable = torch.tensor([[True, True, True], [False] * 3])
    t, u = torch.tensor([0.5, 1.0], dtype=torch.float64), torch.rand(2, 3, dtype=torch.float64)
    for rows in (slice(0, 2), slice(1, 2)):
        batch = Clean(x0[rows], maskable[rows])
        for loss in (
            exact_count_loss(DNA, uniform, batch, counts(t[rows], maskable[rows].sum(-1)), u[rows]),
            continuous_time_loss(DNA, uniform, batch, t[rows], u[rows]),
            discrete_time_loss(DNA, uniform, batch, t[rows], u[rows], 2),
        ):
            assert torch.isfinite(loss.nats)
            assert loss.n_tokens == maskable[rows].sum()
            loss.nats.backward()
    window = exact_count_bound(DNA, uniform, Clean(x0, maskable), torch.tensor([2, 0]), u)
    assert window.ce[1].sum() == window.scale[1] == window.rate[1] == 0
    assert torch.isfinite(window.ce).all()


@given(windows(), st.integers(-3, 20))
def test_a_count_out_of_range_is_held_in_range_and_never_deflates_the_bound(case, k):
    rows = torch.full((len(case.x0),), k)
    n = case.maskable.sum(-1)
    held = torch.minimum(rows.clamp(min=1), n)
    u = case.uniforms(*case.x0.shape)
    given = case.diffusion, lambda xt, s: case.logits, Clean(case.x0, case.maskable)
    losses = [exact_count_loss(*given, which, u) for which in (rows, held)]
    assert torch.equal(losses[0].nats, losses[1].nats)


@settings(max_examples=15)
@given(st.sampled_from([1, 2, 10, 50]), st.sampled_from([*FIVE, LogLinear(), Geometric()]), seeds)
def test_discrete_time_is_finite_in_ten_thousand_draws(n_steps, noise, seed):
    g = torch.Generator().manual_seed(seed)
    batch = 10_000
    clean = Clean(torch.full((batch, 2), 8), torch.ones(batch, 2, dtype=torch.bool))
    t = 1 - torch.rand(batch, generator=g, dtype=torch.float64)
    t[:3] = torch.tensor([1e-300, 1 / n_steps, 1.0])
    u = torch.rand(batch, 2, generator=g, dtype=torch.float64)
    diffusion = MaskedDiffusion(noise, 3, (7, 8, 9, 10))
    loss = discrete_time_loss(diffusion, uniform, clean, t, u, n_steps)
    assert torch.isfinite(loss.nats)


def test_position_weights_scale_what_is_optimised_and_not_what_is_reported():
    x0, ok = torch.full((1, 4), 7), torch.ones(1, 4, dtype=torch.bool)
    weight = torch.tensor([[1.0, 0.1, 0.1, 0.0]])
    given = Clean(x0, ok, weight), torch.tensor([4]), torch.rand(1, 4)
    loss = exact_count_loss(DNA, uniform, *given)
    assert loss.nats.item() == pytest.approx(1.2 * math.log(4))
    assert loss.nats_unweighted.item() == pytest.approx(4 * math.log(4))
    assert loss.nats.requires_grad
    assert not loss.nats_unweighted.requires_grad


# what the denoiser is called with


def test_lengths_reach_a_denoiser_that_takes_them():
    seen: list[tuple[Tensor, ...]] = []

    def denoiser(*arguments: Tensor) -> Tensor:
        seen.append(arguments)
        return torch.zeros(*arguments[0].shape, 16)

    x0, ok = torch.full((1, 4), 7), torch.ones(1, 4, dtype=torch.bool)
    drawn, lengths = (torch.tensor([2]), torch.rand(1, 4)), torch.tensor([4])
    exact_count_loss(DNA, denoiser, Clean(x0, ok, lengths=lengths), *drawn)
    exact_count_bound(DNA, denoiser, Clean(x0, ok, lengths=lengths), *drawn)
    exact_count_loss(DNA, denoiser, Clean(x0, ok), *drawn)
    assert [len(arguments) for arguments in seen] == [3, 3, 2]
    assert seen[0][2] is lengths
    assert [(arguments[0] == 3).sum().item() for arguments in seen] == [2, 2, 2]


@pytest.mark.parametrize("time_conditioning", [False, True])
def test_sigma_reaches_the_denoiser_only_with_time_conditioning(time_conditioning):
    seen: list[float] = []

    def denoiser(xt: Tensor, sigma: Tensor) -> Tensor:
        seen.extend(sigma.tolist())
        return torch.zeros(*xt.shape, 16)

    diffusion = MaskedDiffusion(Linear(), 3, (7, 8), time_conditioning)
    x0, ok, u = torch.full((1, 4), 7), torch.ones(1, 4, dtype=torch.bool), torch.rand(1, 4)
    t = torch.tensor([0.75], dtype=torch.float64)
    continuous_time_loss(diffusion, denoiser, Clean(x0, ok), t, u)
    exact_count_loss(diffusion, denoiser, Clean(x0, ok), torch.tensor([3]), u)
    discrete_time_loss(diffusion, denoiser, Clean(x0, ok), torch.tensor([0.7]), u, 4)
    assert seen == pytest.approx([math.log(4)] * 3 if time_conditioning else [0, 0, 0])


# the estimate window by window


@given(windows())
def test_window_estimates_add_up_to_the_loss(case):
    u = case.uniforms(*case.x0.shape)
    k = counts(1 - case.uniforms(len(case.x0), stream=1), case.maskable.sum(-1))
    arguments = case.diffusion, lambda xt, s: case.logits, Clean(case.x0, case.maskable)
    window, loss = exact_count_bound(*arguments, k, u), exact_count_loss(*arguments, k, u)
    found = (window.scale[:, None] * window.ce).sum().item()
    assert found == pytest.approx(loss.nats.item(), rel=1e-9, abs=1e-9)
    n = case.maskable.sum(-1)
    assert torch.equal((window.rate * n).round().long(), k)
    assert torch.equal((window.scale * k).round().long(), n)
    assert window.ce.dtype == torch.float64


@settings(max_examples=20)
@given(seeds, st.integers(1, 9))
def test_a_strand_symmetric_denoiser_gives_a_window_and_its_reverse_complement_the_same_loss(
    seed, length
):
    complement = torch.tensor([0, 1, 2, 3, 4, 5, 6, 10, 9, 8, 7, 11, 12, 13, 14, 15])
    g = torch.Generator().manual_seed(seed)
    near, far = torch.randn(2, 16, 16, generator=g, dtype=torch.float64)

    def one_strand(xt: Tensor) -> Tensor:
        """Looks left and right differently, so symmetry is not built in."""
        return near[xt].roll(1, 1) + far[xt].cumsum(1) / 3

    def denoiser(xt: Tensor, sigma: Tensor) -> Tensor:
        return one_strand(xt) + one_strand(complement[xt].flip(1)).flip(1)[..., complement]

    x0 = torch.randint(7, 12, (2, length), generator=g)
    maskable, u = x0 != 11, torch.rand(2, length, generator=g, dtype=torch.float64)
    weight = torch.rand(2, length, generator=g, dtype=torch.float64)
    t = 1 - torch.rand(2, generator=g)
    k = counts(t.double(), maskable.sum(-1))
    here = Clean(x0, maskable, weight)
    there = Clean(complement[x0].flip(1), maskable.flip(1), weight.flip(1))
    for loss, when in ((exact_count_loss, k), (continuous_time_loss, t)):
        ours = loss(DNA, denoiser, here, when, u)
        theirs = loss(DNA, denoiser, there, when, u.flip(1))
        assert ours.nats.item() == pytest.approx(theirs.nats.item(), rel=1e-10, abs=1e-10)
        assert ours.nats_unweighted.item() == pytest.approx(
            theirs.nats_unweighted.item(), rel=1e-10, abs=1e-10
        )


BATCH, LENGTH = 32, 256


@pytest.mark.slow
def test_exact_counts_at_systematic_times_vary_at_most_half_as_much_as_stratified_times():
    world, g = dna_like(LENGTH, stay=0.4), torch.Generator().manual_seed(1)
    diffusion = MaskedDiffusion(Linear(), world.mask_id, world.targets)
    x0 = world.draw(torch.rand(BATCH, LENGTH, generator=g, dtype=torch.float64))
    clean, slot = Clean(x0, torch.ones(BATCH, LENGTH, dtype=torch.bool)), torch.arange(BATCH)
    found = defaultdict(list)
    for _ in range(120):
        own = torch.rand(BATCH, generator=g, dtype=torch.float64)
        u = torch.rand(BATCH, LENGTH, generator=g, dtype=torch.float64)
        shared = torch.rand(1, generator=g).item()
        for method in ("iid", "stratified", "systematic"):
            t = times(method, own, shared, slot, BATCH)
            if method == "systematic":
                t = counts(t, clean.n)
            loss = exact_count_loss if method == "systematic" else continuous_time_loss
            found[method].append(loss(diffusion, world.denoiser, clean, t, u).nats)
    spread = {method: torch.stack(nats).std() for method, nats in found.items()}
    assert spread["systematic"] <= spread["stratified"] / 2
    assert spread["systematic"] < spread["iid"] / 2
