"""Samplers: their evaluations, and invariances of their result."""

from collections.abc import Callable

import pytest
import torch
from sampling import DNA, draws, masks, mixing, run_sampler, watch
from torch import Tensor

from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.sampler import revealed_share
from genodiff.diffusion.samplers.ancestral import ancestral
from genodiff.diffusion.samplers.confidence import confidence
from genodiff.diffusion.samplers.first_hitting import first_hitting
from genodiff.diffusion.schedule import Geometric, Linear, LogLinear, OneMinusCosine

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
