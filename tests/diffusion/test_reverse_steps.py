"""One step back in time costs what the papers of D3PM and SEDD say, token by token."""

import math

import pytest
import torch
from enumerated import draws, everywhere
from hypothesis import given
from hypothesis import strategies as st
from sampling import DNA
from torch import Tensor

from genodiff.diffusion.masked import Clean, MaskedDiffusion
from genodiff.diffusion.objectives.d3pm import D3pm
from genodiff.diffusion.objectives.mdlm import Mdlm
from genodiff.diffusion.objectives.sedd import score_entropy
from genodiff.diffusion.schedule import Linear


def chain_kl(x_theta: Tensor, x: int, alpha_s: float, alpha_t: float) -> float:
    """KL(q(zs | zt = mask, x) || p) from the transition matrices of Austin et al., the mask being
    the last state.
    """
    size = len(x_theta)
    eye, absorb = torch.eye(size, dtype=torch.float64), torch.zeros(size, size, dtype=torch.float64)
    absorb[:, -1] = 1
    to_s = alpha_s * eye + (1 - alpha_s) * absorb
    s_to_t = alpha_t / alpha_s * eye + (1 - alpha_t / alpha_s) * absorb

    def posterior(clean: Tensor) -> Tensor:
        p = s_to_t[:, -1] * (clean @ to_s)
        return p / p.sum()

    q, p = posterior(eye[x]), posterior(x_theta)
    return float(torch.where(q > 0, q * (q.clamp(min=1e-300) / p).log(), 0.0).sum())


@given(
    st.lists(st.floats(-4, 4), min_size=3, max_size=3),
    st.floats(-6, 6),
    st.integers(1, 20),
    st.integers(1, 20),
    st.sampled_from([0, 1, 2]),
)
def test_a_step_of_d3pm_costs_the_kl_of_the_transition_matrices(logits, mask, steps, i, x):
    i = min(i, steps)
    diffusion = MaskedDiffusion(Linear(), 3, (0, 1, 2))
    given_logits = torch.tensor([[[*logits, mask]]], dtype=torch.float64)
    x0 = torch.tensor([[x]])
    of = D3pm(diffusion, time_steps=steps, carry_over=True)
    time = torch.tensor([(i - 0.5) / steps], dtype=torch.float64)
    given = Clean(x0, everywhere(x0)), draws(torch.zeros(1, 1, dtype=torch.float64), time)
    loss = of.loss(lambda xt, s: given_logits, *given)
    wanted = chain_kl(given_logits[0, 0].softmax(-1), x, 1 - (i - 1) / steps, 1 - i / steps)
    assert float(loss.nats) == pytest.approx(steps * wanted, rel=1e-8, abs=1e-9)


@given(st.lists(st.floats(-4, 4), min_size=3, max_size=3), st.floats(-6, 6), st.floats(0.05, 1.0))
def test_without_zero_masking_continuous_time_is_the_limit_of_many_steps(logits, mask, t):
    diffusion = MaskedDiffusion(Linear(), 3, (0, 1, 2))
    given_logits = torch.tensor([[[*logits, mask]]], dtype=torch.float64)
    of = Mdlm(diffusion, zero_masking=False)
    x0, u = torch.tensor([[1]]), torch.zeros(1, 1, dtype=torch.float64)
    given = Clean(x0, everywhere(x0)), draws(u, torch.tensor([t], dtype=torch.float64))
    loss = float(of.loss(lambda xt, s: given_logits, *given).nats)
    step = 1e-6
    slow = chain_kl(given_logits[0, 0].softmax(-1), 1, 1 - t + step, max(1 - t, 0.0)) / step
    assert loss == pytest.approx(slow, rel=1e-3, abs=1e-3)
    normalised = float(diffusion.nll(given_logits, x0, everywhere(x0)).sum()) / t
    assert loss >= normalised - 1e-9


@pytest.mark.parametrize("steps", [1, 2, 10, 50])
def test_d3pm_and_its_gradient_are_finite_at_every_time(steps):
    torch.manual_seed(0)
    for scale in (1.0, 1e4):
        logits = (scale * torch.randn(64, 5, 16)).requires_grad_()
        x0 = torch.randint(7, 11, (64, 5))
        t = torch.cat([torch.tensor([1e-300, 1 / steps, 1.0]), torch.rand(61)]).double()
        given = Clean(x0, everywhere(x0)), draws(torch.rand(64, 5).double(), t)
        loss = D3pm(DNA, time_steps=steps).loss(lambda xt, s: logits, *given)  # noqa: B023
        loss.nats.backward()
        assert torch.isfinite(loss.nats)
        assert torch.isfinite(logits.grad).all()  # type: ignore[arg-type]


# SEDD


@given(st.lists(st.floats(-4, 4), min_size=4, max_size=4), st.floats(0.02, 0.98))
def test_score_entropy_is_that_of_the_paper_and_mdlms_where_the_ratios_sum_to_one(logits, t):
    full = torch.full((1, 1, 16), 30.0, dtype=torch.float64)
    full[..., 7:11] = torch.tensor(logits, dtype=torch.float64)
    x0 = torch.tensor([[9]])
    found = float(score_entropy(DNA, full, x0, everywhere(x0)).sum())
    ratio = (1 - t) / t
    score = ratio * full[0, 0, 7:11].exp() / 4
    paper = score.sum() - ratio * score[2].log() + ratio * (math.log(ratio) - 1)
    paper = float(paper) / (1 - t)
    assert found / t == pytest.approx(paper, rel=1e-6, abs=1e-7)
    normalised = float(DNA.nll(full, x0, everywhere(x0)).sum())
    assert found >= normalised - 1e-9
    full[..., 7:11] = full[..., 7:11].log_softmax(-1) + math.log(4)
    found = float(score_entropy(DNA, full, x0, everywhere(x0)).sum())
    assert found == pytest.approx(normalised, abs=1e-9)
