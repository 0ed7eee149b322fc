"""P2 against its law, by walking over all states and all draws."""

import itertools

import pytest
import torch
from sampling import draws, masks
from small_worlds import MASK, States, assert_counts, random_world
from torch import Tensor

from genodiff.diffusion.sampler import SamplerOptions
from genodiff.diffusion.samplers.path_planning import path_planning
from genodiff.errors import UsageError


def untrained(length: int = 3, seed: int = 0) -> States:
    """Any network: random logits in every state, visible positions too."""
    world = random_world(length)
    g = torch.Generator().manual_seed(seed)
    logits = torch.randn(5**length, length, 12, generator=g, dtype=torch.float64)
    return States(world, logits)


def exact_law(states: States, kept: list[int], eta: float) -> Tensor:
    """Every way to draw tokens at every step; the best `kept` scores stay."""
    law, targets = states.start(), states.world.targets
    for n in kept:
        after = torch.zeros_like(law)
        for i in law.nonzero()[:, 0].tolist():
            x, logp = states.all[i].tolist(), states.p[i].log()
            masked = [j for j, v in enumerate(x) if v == MASK]
            for drawn in itertools.product(range(len(targets)), repeat=len(masked)):
                y, chance = list(x), law[i].item()
                score = [
                    eta * logp[j, targets.index(v)].item() if v != MASK else 0.0
                    for j, v in enumerate(x)
                ]
                for j, v in zip(masked, drawn, strict=True):
                    y[j], score[j] = targets[v], logp[j, v].item()
                    chance *= states.p[i, j, v].item()
                out = sorted(range(len(y)), key=score.__getitem__, reverse=True)[n:]
                y = [MASK if j in out else v for j, v in enumerate(y)]
                after[states.number[tuple(y)]] += chance
        law = after
    return states.of_sequences(law)


@pytest.mark.parametrize("eta", [0.5, 1.0, 3.0])
def test_samples_follow_the_exact_law(eta: float) -> None:
    states, n = untrained(), 30_000
    exact = exact_law(states, [1, 2, 3], eta)
    options = SamplerOptions(**draws(n, 3), steps=3)
    found = path_planning(states.world.diffusion(), states.denoiser, masks(n, 3), options, eta=eta)
    assert_counts(states.world, found.x0, exact)
    assert (found.nfe == 3).all()


def test_tokens_are_taken_back_only_where_eta_says_so() -> None:
    states, n = untrained(seed=1), 300

    def count_taken_back(eta: float) -> int:
        before, back = {}, 0

        def watching(x: Tensor, sigma: Tensor) -> Tensor:
            nonlocal back
            if len(x) == n and before:
                back += int(((x == MASK) & (before["x"] != MASK)).sum())
            before["x"] = x.clone()
            return states.denoiser(x, sigma)

        options = SamplerOptions(**draws(n, 3), steps=3)
        path_planning(states.world.diffusion(), watching, masks(n, 3), options, eta=eta)
        return back

    assert count_taken_back(0.0) == 0
    assert count_taken_back(3.0) > count_taken_back(1.0) > 0


def test_its_order_prefers_likely_tokens_so_its_law_is_not_the_denoisers() -> None:
    from worlds import independent

    world, n = independent(3, (0.1, 0.2, 0.7)), 20_000
    options = SamplerOptions(**draws(n, 3), steps=3)
    found = path_planning(world.diffusion(), world.denoiser, masks(n, 3), options)
    share = (found.x0 == world.targets[2]).double().mean().item()
    assert share > 0.75  # 0.7 in the data


def test_an_impossible_eta_is_refused() -> None:
    options = SamplerOptions(**draws(1, 3), steps=3)
    states = untrained()
    with pytest.raises(UsageError, match="eta"):
        path_planning(states.world.diffusion(), states.denoiser, masks(1, 3), options, eta=-1.0)
