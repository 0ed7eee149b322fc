"""The bound of T steps from draws of the bound of infinitely many: exact where all counts are
drawn.
"""

import numpy as np
import pytest
import torch
from worlds import markov_chain

from genodiff.diffusion.likelihood import count_terms, nelbo_discrete
from genodiff.diffusion.objectives.mdlm import Mdlm
from genodiff.diffusion.objectives.sedd import Sedd
from genodiff.diffusion.schedule import Cosine, Linear, OneMinusCosine, Schedule
from genodiff.scoring.steps import STEPS, step_bits, step_weight

WORLD = markov_chain(4)


@pytest.mark.parametrize("schedule", [Linear(), Cosine(), OneMinusCosine()])
@pytest.mark.parametrize("steps", [1, 2, 10, 1000])
def test_weighted_count_terms_are_the_bound_of_the_chain(schedule: Schedule, steps: int) -> None:
    x0 = WORLD.sequences[3]
    terms = count_terms(WORLD.diffusion(), WORLD.denoiser, x0, torch.ones(4, dtype=torch.bool))
    k = np.arange(1, 5)
    weights = step_weight(np.full(4, 4), k, schedule, steps)
    wanted = float(nelbo_discrete(terms, schedule, steps))
    assert float((weights * terms[1:].numpy()).sum()) == pytest.approx(wanted, rel=1e-9)


def test_fewer_steps_cost_more_and_many_cost_what_infinitely_many_do() -> None:
    """All counts of all sequences, each with its mean cross-entropy: no randomness is left."""
    repeats, windows = 4, len(WORLD.sequences)
    k = np.broadcast_to(np.arange(1, 5)[:, None], (repeats, windows))
    terms = np.stack(
        [
            count_terms(
                WORLD.diffusion(), WORLD.denoiser, x, torch.ones(4, dtype=torch.bool)
            ).numpy()
            for x in WORLD.sequences
        ]
    )
    nats = 4 / k * terms[np.arange(windows)[None], k]
    weight = WORLD.p.numpy() * windows
    found = step_bits(
        Mdlm(WORLD.diffusion()), nats * weight, np.full(windows, 4.0), k / 4, np.full(windows, 1.0)
    )
    bits = [found[str(steps)]["bits"] for steps in STEPS]
    assert bits == sorted(bits, reverse=True)
    assert bits[0] * np.log(2) == pytest.approx(1.758858, abs=1e-5)
    assert bits[-1] * np.log(2) == pytest.approx(1.669279, abs=1e-5)


def test_a_figure_that_is_no_cross_entropy_of_counts_has_no_such_curve() -> None:
    nats, tokens = np.ones((1, 3)), np.full(3, 4.0)
    assert step_bits(Sedd(WORLD.diffusion()), nats, tokens, np.ones((1, 3))) == {}
    assert step_bits(Mdlm(WORLD.diffusion(), time_steps=10), nats, tokens, None) == {}


def test_a_window_without_tokens_is_passed_over() -> None:
    found = step_bits(
        Mdlm(WORLD.diffusion()),
        np.array([[1.0, 0.0]]),
        np.array([4.0, 0.0]),
        np.array([[0.5, 0.0]]),
    )
    assert np.isfinite(found["10"]["bits"])
