"""Uniform tokens cost ln K each under every objective, schedule and number of steps."""

import itertools
import math
from functools import partial

import pytest
import torch
from enumerated import NEVER, draws, everywhere, exact_bound
from torch import Tensor
from worlds import independent

from genodiff.diffusion.masked import Clean
from genodiff.diffusion.objective import OBJECTIVES, Objective
from genodiff.diffusion.objectives.d3pm import D3pm
from genodiff.diffusion.objectives.mdlm import Mdlm
from genodiff.diffusion.schedule import SCHEDULES

WORLD = independent(3)
TWO_BITS = 2 * math.log(2)
IN_STEPS = {
    "mdlm": Mdlm,
    "mdlm, without Rao-Blackwellisation": partial(Mdlm, rao_blackwell=False),
    "mdlm, without carry-over": partial(Mdlm, carry_over=False),
    "mdlm, without zero-masking": partial(Mdlm, zero_masking=False),
    "d3pm": D3pm,
}


def denoise(
    xt: Tensor, sigma: Tensor, lengths: Tensor | None = None, **of_blocks: object
) -> Tensor:
    """Certain of what is visible, undecided about the rest, and never the mask."""
    logits = WORLD.denoiser(xt, sigma) + math.log(len(WORLD.targets))  # scores that sum to one
    logits[..., WORLD.mask_id] = NEVER
    visible = (xt != WORLD.mask_id)[..., None]
    ids = xt.long().masked_fill(xt == WORLD.mask_id, WORLD.targets[0])[..., None]
    return torch.where(visible, torch.full_like(logits, NEVER).scatter(-1, ids, 0.0), logits)


def find_bounds(made: Objective, time: float, share: float) -> tuple[Tensor, Tensor]:
    """(bound in nats per token, masked) of every mask of a window, all drawn at one time.

    `share` is the chance that a position is masked at that time.
    """
    x0 = WORLD.sequences[5]
    masks = torch.tensor(list(itertools.product([False, True], repeat=WORLD.length)))
    rows, t = x0.expand(len(masks), -1), torch.full((len(masks),), time, dtype=torch.float64)
    u = torch.where(masks, 0.5 * share, 0.5 * (1 + share)).double()
    found = made.bound(denoise, Clean(rows, everywhere(rows)), draws(u, t))
    return (found.scale[:, None] * found.ce).sum(-1) / WORLD.length, masks


def find_chances(masks: Tensor, share: float) -> Tensor:
    return torch.where(masks, share, 1 - share).double().prod(-1)


@pytest.mark.few(6)
@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=list(SCHEDULES))
@pytest.mark.parametrize(
    ("told", "steps"), [(False, 1), (False, 2), (False, 10), (False, 1000), (True, 1), (True, 6)]
)
@pytest.mark.parametrize("of", IN_STEPS.values(), ids=list(IN_STEPS))
def test_uniform_tokens_cost_two_bits_in_any_number_of_steps(schedule, told, steps, of):
    made = of(WORLD.diffusion(schedule(), told), time_steps=steps)
    grid = torch.arange(1, steps + 1, dtype=torch.float64) / steps
    shares = made.diffusion.schedule.masked(grid).tolist()
    nats, masks = find_bounds(made, 0.5 / steps, shares[0])
    mean = 0.0
    for i, share in enumerate(shares):
        if told:  # without it the bound of a mask is the same whichever step drew it
            nats, masks = find_bounds(made, (i + 0.5) / steps, share)
        mean += float((find_chances(masks, share) * nats).sum()) / steps
    assert mean == pytest.approx(TWO_BITS, abs=1e-6 * math.log(2))


@pytest.mark.few(3)
@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=list(SCHEDULES))
@pytest.mark.parametrize("time", [1e-4, 0.3, 1.0])
def test_uniform_tokens_cost_two_bits_in_continuous_time_without_zero_masking(schedule, time):
    made = Mdlm(WORLD.diffusion(schedule()), zero_masking=False)
    nats, masks = find_bounds(made, time, time)
    mean = float((find_chances(masks, time) * nats).sum())
    assert mean == pytest.approx(TWO_BITS, abs=1e-6 * math.log(2))


@pytest.mark.few(4)
@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=list(SCHEDULES))
@pytest.mark.parametrize(
    "name", [name for name in OBJECTIVES if name not in ("ar", "d3pm", "uniform")]
)
def test_uniform_tokens_cost_two_bits_by_exact_counts(schedule, name):
    made = OBJECTIVES[name](WORLD.diffusion(schedule()))
    found = exact_bound(made, denoise, WORLD.sequences[5]) / WORLD.length
    assert found == pytest.approx(TWO_BITS, abs=1e-6 * math.log(2))
