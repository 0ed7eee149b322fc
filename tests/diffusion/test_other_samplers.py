"""The analytic and the autoregressive sampler, and draws from large vocabularies."""

import itertools
import math

import numpy as np
import pytest
import torch
from enumerated import as_ratios
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import DNA, draws, masks, run_sampler
from torch import Tensor
from worlds import markov_chain

from genodiff.backbones.caduceus import CaduceusSettings
from genodiff.counter import Purpose, uniforms
from genodiff.diffusion.draw import MANY, Draw, make_gumbel_noise, philox_uniforms
from genodiff.diffusion.objectives.ar import shifted
from genodiff.diffusion.samplers.analytic import analytic
from genodiff.diffusion.samplers.ancestral import ancestral
from genodiff.diffusion.samplers.left_to_right import left_to_right
from genodiff.diffusion.schedule import Cosine

ONE_WAY = CaduceusSettings(d_model=16, n_layer=2, d_state=4, strands="single", bidirectional=False)
# analytic


@pytest.mark.parametrize("steps", [1, 3, 8])
def test_where_the_ratios_sum_to_one_it_is_the_ancestral_sampler_to_the_token(steps):
    world = markov_chain(4)
    diffusion = world.diffusion(Cosine())
    normalised = as_ratios(world, world.denoiser)
    xt, u = torch.full((400, 4), world.mask_id), draws(400, 4, seed=steps)
    found = run_sampler(analytic, diffusion, normalised, xt, steps=steps, **u)
    wanted = run_sampler(ancestral, diffusion, normalised, xt, steps=steps, **u)
    assert torch.equal(found.x0, wanted.x0)
    assert bool((found.nfe >= wanted.nfe).all())
    assert int(found.nfe.max()) <= min(steps, 5)


@pytest.mark.parametrize("total", [0.5, 1.0, 1.7])
def test_a_position_is_revealed_at_the_rate_that_the_scores_tell(total):
    """Both tokens of a pair are drawn apart when both are revealed at one step: that tells the law
    of the moments.
    """
    steps, n = 4, 60_000

    def network(xt: Tensor, sigma: Tensor) -> Tensor:
        first = torch.full((*xt.shape, 12), 50.0, dtype=torch.float64)
        first[..., [7, 8, 9, 10]] = math.log(total)
        seen = (xt != 3).sum(1, keepdim=True).expand(xt.shape) > 0
        first[..., 7] = torch.where(
            seen, math.log(total) + math.log(4), first[..., 7]
        )  # once one is seen, the other is 7
        first[..., [8, 9, 10]] = torch.where(seen[..., None], -1e4, first[..., [8, 9, 10]])
        return first

    done = run_sampler(analytic, DNA, network, masks(n, 2), steps=steps, **draws(n, 2))
    stay, at = 1.0, []
    for j in range(steps):
        r = 1.0 if j + 1 == steps else min(1.0, total / (steps - j))
        at.append(stay * r)
        stay *= 1 - r
    together = sum(p * p for p in at)
    forced = 1 - together
    share = float(((done.x0 == 7).any(1)).double().mean())
    # revealed together: either is 7 by chance, 1 - (3/4)^2; apart: the later one is 7 for certain
    assert share == pytest.approx(forced + together * (1 - 9 / 16), abs=4 * math.sqrt(0.25 / n))
    assert bool((done.x0 != 3).all())


# left to right


@pytest.mark.parametrize("pieces", [[1] * 9, [9], [4, 1, 1, 3]])
def test_a_one_way_mamba_goes_on_from_its_state_as_if_it_had_read_the_whole(pieces):
    network = ONE_WAY.build(16, None).double()
    torch.nn.init.normal_(network.embedding, generator=torch.Generator().manual_seed(1))
    x = torch.randint(7, 11, (3, 9), generator=torch.Generator().manual_seed(2))
    cache = network.cache(9)
    with torch.no_grad():
        parts = [network.decode(part, cache) for part in x.split(pieces, 1)]
        torch.testing.assert_close(torch.cat(parts, 1), network(x), rtol=1e-9, atol=1e-9)


def test_the_state_gives_the_tokens_of_the_definition_and_reads_each_once():
    network = ONE_WAY.build(16, None).double()
    torch.nn.init.normal_(network.embedding, generator=torch.Generator().manual_seed(1))
    xt = masks(5, 12)
    xt[1, :4] = 9
    u = {**draws(5, 12), "causal": True}
    slow = run_sampler(left_to_right, DNA, network, xt, **u)
    fast = run_sampler(left_to_right, DNA, network, xt, **u, decoder=network)
    assert torch.equal(slow.x0, fast.x0)
    assert fast.nfe.tolist() == [12, 8, 12, 12, 12]
    assert shifted(xt, 3)[1].tolist() == [3, 9, 9, 9, 9, *[3] * 7]


def test_refinement_makes_tokens_independent_of_rounding():
    network = ONE_WAY.build(16, None).double()
    torch.nn.init.normal_(network.embedding, std=0.3, generator=torch.Generator().manual_seed(1))

    def noisy(xt: Tensor, sigma: Tensor) -> Tensor:
        logits = network(xt)
        return logits + 9e-2 * torch.rand(logits.shape, dtype=torch.float64).sub(0.5).mul(2)

    xt, u = masks(60, 5), {**draws(60, 5), "causal": True}
    exact = run_sampler(left_to_right, DNA, network, xt, **u)
    torch.manual_seed(0)
    found = [
        run_sampler(left_to_right, DNA, noisy, xt, **u, refine=refine, tolerance=0.1).x0
        for refine in (lambda x, s: network(x), None)
    ]
    assert torch.equal(found[0], exact.x0)
    assert not torch.equal(found[1], exact.x0)


# draws from many tokens


def test_many_tokens_are_drawn_by_their_chances():
    k, n = MANY + 8, 10_000
    logits = torch.randn(k, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    u = torch.rand(n, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for temperature, top_p in ((1.0, 1.0), (0.7, 0.8)):
        token, _ = Draw(temperature, top_p)(logits.expand(n, k), u, 0.0)
        p = (logits / temperature).softmax(-1)
        ranked, order = p.sort(descending=True)
        kept = order[(ranked.cumsum(0) - ranked) < top_p]
        law = torch.zeros(k, dtype=torch.float64)
        law[kept] = p[kept] / p[kept].sum()
        counted = token.bincount(minlength=k)
        assert int(counted[law == 0].sum()) == 0
        chi2 = float(((counted - n * law)[kept] ** 2 / (n * law[kept])).sum())
        assert chi2 < len(kept) + 5 * math.sqrt(2 * len(kept))


@pytest.mark.slow
@settings(max_examples=20)
@given(st.integers(0, 10_000), st.sampled_from([1.0, 0.9, 0.3]), st.sampled_from([1.0, 0.5]))
def test_a_draw_that_is_not_called_close_survives_any_rounding(seed, top_p, temperature):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(300, MANY + 20, generator=generator, dtype=torch.float64).round(decimals=1)
    u, error = torch.rand(300, generator=generator, dtype=torch.float64), 1e-2
    draw = Draw(temperature, top_p)
    token, close = draw(logits, u, error)
    exact, never = draw(logits, u, 0.0)
    assert torch.equal(token[~close], exact[~close])
    assert not never.any()
    for _ in range(3):
        moved = logits + error * torch.rand(
            logits.shape, generator=generator, dtype=torch.float64
        ).sub(0.5).mul(2)
        assert torch.equal(draw(moved, u, 0.0)[0][~close], exact[~close])
    if top_p == 1.0:
        assert float(close.double().mean()) < 0.2


def test_noise_is_a_function_of_the_uniform_alone():
    u = torch.tensor([0.0, 0.25, 1 - 2**-53], dtype=torch.float64)
    whole = make_gumbel_noise(u, 50)
    assert torch.equal(make_gumbel_noise(u[1:2], 50), whole[1:2])
    assert torch.equal(make_gumbel_noise(u, 20), whole[:, :20])
    assert len({tuple(row.tolist()) for row in whole}) == 3
    # In single precision it would be cut off at 16.6, and lower the temperature of many tokens.
    assert make_gumbel_noise(u.float(), 5).dtype == torch.float64
    long = make_gumbel_noise(torch.tensor([0.5], dtype=torch.float64), 200_000)
    assert float(long.mean()) == pytest.approx(0.5772, abs=0.02)
    assert list(itertools.islice(long[0].isfinite().tolist(), 10)) == [True] * 10


@settings(max_examples=25, deadline=None)
@given(
    seeds=st.lists(st.integers(0, (1 << 63) - 1), min_size=1, max_size=3),
    purpose=st.sampled_from(list(Purpose)),
    n=st.integers(1, 41),
    sub_index=st.integers(0, 9),
)
def test_rows_are_those_of_numpy(seeds, purpose, n, sub_index):
    found = philox_uniforms(torch.tensor(seeds), purpose, n, sub_index)
    wanted = [uniforms(seed, purpose, 0, n, sub_index) for seed in seeds]
    assert np.array_equal(found.numpy(), np.stack(wanted))


def test_noise_is_the_same_where_it_is_made_on_the_device(monkeypatch):
    u = torch.tensor([0.0, 0.3, 1 - 2.0**-53], dtype=torch.float64)
    here = make_gumbel_noise(u, 101)
    keys = (u * 2.0**53).long()
    assert keys.tolist() == [0, int(0.3 * 2**53), 2**53 - 1]
    there = -torch.log(-torch.log(philox_uniforms(keys, Purpose.SAMPLE_TOKEN, 101, 1)))
    assert torch.equal(here, there)
    on_device = make_gumbel_noise(u.to("meta"), 101)  # nothing is read back from the device
    assert on_device.shape == here.shape
