"""Sampled tokens do not depend on the batch or on rounding; temperature, nucleus, large heads."""

import itertools
import math
from collections.abc import Callable

import pytest
import torch
from sampling import DNA, draws, each_sampler, masks, mixing, mixing_for, run_sampler
from torch import Tensor

from genodiff.backbones.dit import DiTSettings
from genodiff.diffusion.masked import LARGE, MaskedDiffusion
from genodiff.diffusion.sampler import SAMPLERS, Filling, Sampled, Sampler
from genodiff.diffusion.samplers.ancestral import ancestral
from genodiff.diffusion.samplers.confidence import confidence
from genodiff.diffusion.schedule import Linear

# nobody else's business


def in_parts(
    sampler: Sampler, parts: list[list[int]], xt: Tensor, u: dict[str, Tensor], **rest: object
) -> Sampled:
    x0, nfe = torch.zeros_like(xt), torch.zeros(len(xt), dtype=torch.int64)
    for rows in parts:
        done = run_sampler(
            sampler, xt=xt[rows], u_order=u["u_order"][rows], u_token=u["u_token"][rows], **rest
        )
        x0[rows], nfe[rows] = done.x0, done.nfe
    return Sampled(x0, nfe)


PARTS = [[[5, 0, 3], [1, 2, 4, 7, 6]], [[i] for i in range(8)]]


def noisy(
    exact: Callable[[Tensor, Tensor], Tensor], size: float
) -> Callable[[Tensor, Tensor], Tensor]:
    """The same denoiser with errors of up to `size` that depend on the whole batch, as single
    precision has them.
    """

    def denoiser(xt: Tensor, sigma: Tensor) -> Tensor:
        g = torch.Generator().manual_seed(len(xt) * 1000 + xt.sum().item())
        logits = exact(xt, sigma)
        return logits + size * (2 * torch.rand(logits.shape, generator=g, dtype=torch.float64) - 1)

    return denoiser


LAWS = [(1.0, 1.0), (0.7, 1.0), (0.05, 1.0), (0.0, 1.0), (1.0, 0.8), (1.3, 0.5)]


@pytest.mark.few(2)
@each_sampler
@pytest.mark.parametrize(("temperature", "top_p"), LAWS)
def test_with_refinement_rounding_errors_change_no_token(sampler, temperature, top_p):
    u, xt, exact, size = draws(8, 24), masks(8, 24), mixing_for(sampler, 24, 0.6), 0.05
    rest = {"diffusion": DNA, "steps": 12, "temperature": temperature, "top_p": top_p}
    truth = run_sampler(sampler, xt=xt, **u, **rest, denoiser=exact)
    for parts in ([list(range(8))], *PARTS):
        refined = in_parts(
            sampler, parts, xt, u, **rest, denoiser=noisy(exact, size), refine=exact, tolerance=size
        )
        assert torch.equal(refined.x0, truth.x0)
        assert torch.equal(refined.nfe, truth.nfe)


@pytest.mark.few(1)
@each_sampler
def test_without_refinement_the_same_errors_do_change_tokens(sampler):
    """Else the test above would show nothing."""
    u, xt, exact = draws(32, 24), masks(32, 24), mixing_for(sampler, 24, 0.6)
    rest = {"diffusion": DNA, "steps": 12}
    assert not torch.equal(
        run_sampler(sampler, xt=xt, **u, **rest, denoiser=noisy(exact, 0.05)).x0,
        run_sampler(sampler, xt=xt, **u, **rest, denoiser=exact).x0,
    )


def test_refinement_is_rare_and_sees_one_sequence_alone():
    calls: list[int] = []
    exact = mixing(64)

    def watched(xt: Tensor, sigma: Tensor) -> Tensor:
        calls.append(len(xt))
        return exact(xt, sigma)

    run_sampler(ancestral, DNA, exact, masks(32, 64), **draws(32, 64), steps=32, refine=watched,
                tolerance=1e-4)  # fmt: skip
    assert set(calls) <= {1}
    assert len(calls) < 10  # of 2,048 draws


def test_on_a_gpu_several_sequences_are_decided_in_one_call(monkeypatch):
    """The same tokens in fewer calls, of no more sequences than fit."""
    exact, xt, u, calls = mixing(64), masks(12, 64), draws(12, 64), []

    def watched(xt: Tensor, sigma: Tensor) -> Tensor:
        calls.append(len(xt))
        return exact(xt, sigma)

    def sample(seen: list[int]) -> Tensor:
        calls.clear()
        rest = {"steps": 8, "refine": watched, "tolerance": 0.1}
        found = run_sampler(ancestral, DNA, noisy(exact, 1e-3), xt, **u, **rest).x0
        seen += calls
        return found

    alone: list[int] = []
    together: list[int] = []
    few: list[int] = []
    truth = sample(alone)
    monkeypatch.setattr(Filling, "batches_refinement", True)
    assert torch.equal(sample(together), truth)
    monkeypatch.setattr("genodiff.diffusion.sampler._TOGETHER", 3 * 64 * len(DNA.targets))
    assert torch.equal(sample(few), truth)
    assert set(alone) == {1}
    assert sum(alone) == sum(together) == sum(few)
    assert len(together) <= 8 < len(alone)
    assert max(together) > 3 == max(few)


def test_exact_symmetry_is_broken_by_the_uniforms_and_not_by_rounding():
    """Equal logits with errors of the last digit: the tie is the same tie."""

    def almost_equal(seed: int) -> Callable[[Tensor, Tensor], Tensor]:
        g = torch.Generator().manual_seed(seed)
        return lambda x, s: 1e-13 * torch.randn(*x.shape, 12, generator=g, dtype=torch.float64)

    def ever_more_a(seed: int) -> Callable[[Tensor, Tensor], Tensor]:
        """The same at every position, not at every step: the order shows in the tokens."""
        rounding = almost_equal(seed)
        tilt = torch.nn.functional.one_hot(torch.tensor(7), 12)
        return lambda x, s: rounding(x, s) + tilt * (x != 3).sum(-1)[:, None, None]

    orders = [
        run_sampler(confidence, DNA, ever_more_a(seed), masks(4, 16), **draws(4, 16), steps=8).x0
        for seed in range(3)
    ]
    assert torch.equal(orders[0], orders[1])
    assert torch.equal(orders[0], orders[2])

    for sampler, rest in itertools.product(
        SAMPLERS.values(), ({"temperature": 0.0}, {"top_p": 0.5})
    ):
        results = [
            run_sampler(
                sampler, DNA, almost_equal(seed), masks(2, 8), **draws(2, 8), steps=4, **rest
            ).x0
            for seed in range(2)
        ]
        assert torch.equal(results[0], results[1])


# temperature and nucleus


def one_position(logits: list[float], n: int = 20_000, **rest: float) -> Tensor:
    """How often each target is drawn from these logits of its own."""
    full = torch.full((12,), 40.0, dtype=torch.float64)
    full[7:11] = torch.tensor(logits)
    given = DNA, lambda x, s: full.expand(*x.shape, 12), masks(n, 1)
    done = run_sampler(ancestral, *given, **draws(n, 1), steps=1, **rest)
    return torch.bincount(done.x0[:, 0] - 7, minlength=4) / n


def test_temperature_zero_and_almost_zero_take_the_best_token():
    for temperature in (0.0, 1e-12, 1e-3):
        assert one_position([1.0, 1.1, 0.9, 1.05], temperature=temperature).tolist() == [0, 1, 0, 0]


def test_temperature_scales_the_logits():
    logits = torch.tensor([0.0, 1.0, 2.0, 3.0])
    for temperature in (0.5, 1.0, 2.0):
        found = one_position(logits.tolist(), temperature=temperature)
        assert ((found - (logits / temperature).softmax(-1)).abs() < 0.015).all()


@pytest.mark.parametrize(
    ("top_p", "kept"),
    [(1e-12, 1), (0.05, 1), (0.4, 1), (0.4001, 2), (0.7, 2), (0.7001, 3), (0.9, 3), (0.95, 4),
     (1.0, 4)],
)  # fmt: skip
def test_the_nucleus_is_the_smallest_set_that_reaches_top_p_crossing_token_included(top_p, kept):
    p = torch.tensor([0.2, 0.4, 0.1, 0.3])
    found = one_position(p.log().tolist(), top_p=top_p)
    inside = p.argsort(descending=True)[:kept]
    assert set(found.nonzero()[:, 0].tolist()) == set(inside.tolist())
    assert ((found[inside] - p[inside] / p[inside].sum()).abs() < 0.02).all()


def test_a_forbidden_token_is_never_drawn_not_even_by_the_extreme_uniforms():
    logits = torch.full((12,), 0.0, dtype=torch.float64)
    logits[[7, 10]] = -math.inf
    for u in (0.0, 1 - 2**-53):
        u_token = torch.full((1, 1), u, dtype=torch.float64)
        given = DNA, lambda x, s: logits.expand(*x.shape, 12), masks(1, 1)
        done = run_sampler(ancestral, *given, u_order=u_token, u_token=u_token, steps=3)
        assert done.x0.item() == (8 if u == 0 else 9)


SHAPE = DiTSettings(d_model=16, n_layer=1, n_head=2, adaln=False)


@each_sampler
def test_a_sampler_gets_the_same_tokens_from_the_rows_it_reveals(sampler):
    network = SHAPE.build(LARGE + 1).double()
    with torch.no_grad():
        network.head.normal_(std=1.0, generator=torch.Generator().manual_seed(0))  # type: ignore[union-attr]
    diffusion = MaskedDiffusion(Linear(), LARGE, tuple(range(LARGE)))
    xt = torch.full((3, 6), LARGE)
    xt[1, 2:] = 5
    u = torch.rand(2, 3, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)

    def whole(x: Tensor, sigma: Tensor) -> Tensor:
        return network(x, sigma)  # type: ignore[no-any-return]

    found = [
        run_sampler(sampler, diffusion, denoiser, xt, u_order=u[0], u_token=u[1], steps=4)
        for denoiser in (network, whole)
    ]
    assert torch.equal(found[0].x0, found[1].x0)
    assert torch.equal(found[0].nfe, found[1].nfe)
