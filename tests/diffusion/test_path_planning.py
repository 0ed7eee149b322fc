"""P2 against its enumerated distribution and its published code."""

import itertools

import pytest
import torch
from sampling import draws, masks
from scipy.stats import chi2_contingency, kstest
from small_worlds import MASK, States, assert_counts, count, random_world
from torch import Tensor

from genodiff.diffusion.sampler import Sampled, SamplerOptions
from genodiff.diffusion.samplers.path_planning import _Plan, add_noise, path_planning


def untrained(length: int = 3, seed: int = 0, scale: float = 1.0) -> States:
    """Any network: random logits in every state, visible positions too."""
    world = random_world(length)
    g = torch.Generator().manual_seed(seed)
    logits = torch.randn(5**length, length, 12, generator=g, dtype=torch.float64)
    return States(world, scale * logits)


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


@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0, 3.0])
def test_samples_follow_the_exact_law(eta):
    states, n = untrained(), 20_000
    exact = exact_law(states, [1, 2, 3], eta)
    found = plan(states, n, eta=eta, noise=0.0)
    assert_counts(states.world, found.x0, exact)
    assert (found.nfe == 3).all()


def plan(states: States, n: int, **settings: float) -> Sampled:
    options = SamplerOptions(**draws(n, 3), steps=3)
    return path_planning(
        states.world.diffusion(), states.denoiser, masks(n, 3), options, **settings
    )


def plan_as_published(states: States, n: int, eta: float) -> Tensor:
    """P2 as its authors wrote it: the token that is best with the noise is drawn, and judged so."""
    random, x = torch.Generator().manual_seed(7), masks(n, 3)
    targets = torch.tensor(states.world.targets)
    for stay in (1, 2, 3):
        logits = states.denoiser(x, torch.zeros(n))[..., targets].double()
        uniform = torch.rand(logits.shape, generator=random, dtype=torch.float64)
        score, token = (logits - torch.log(-torch.log(uniform))).log_softmax(-1).max(-1)
        masked = x == MASK
        score = torch.where(masked, score, eta * score)
        keep = score.argsort(-1, descending=True).argsort(-1) < stay
        x = torch.where(keep, torch.where(masked, targets[token], x), MASK)
    return x


def compare_counts(states: States, one: Tensor, other: Tensor) -> float:
    """The p-value of a chi-square test that two sets of samples have one law."""
    table = torch.stack([count(states.world, x) for x in (one, other)])
    return float(chi2_contingency(table[:, table.sum(0) > 10].numpy()).pvalue)


@pytest.mark.few(2)
@pytest.mark.parametrize("eta", [0.5, 1.0, 3.0])
def test_samples_with_noise_follow_the_published_code(eta):
    states, n = untrained(scale=3.0), 30_000
    published = plan_as_published(states, n, eta)
    assert compare_counts(states, plan(states, n, eta=eta).x0, published) > 1e-3
    assert compare_counts(states, plan(states, n, eta=eta, noise=0.0).x0, published) < 1e-6


@pytest.mark.parametrize("step", [0, 5])
def test_the_noise_is_that_which_drew_the_token(step):
    random, n = torch.Generator().manual_seed(1), 20_000
    logp = torch.tensor([0.55, 0.3, 0.15, 0.0]).double().log().expand(n, 4)
    uniform = torch.rand(n, 4, generator=random, dtype=torch.float64)
    score, token = (logp - torch.log(-torch.log(uniform))).log_softmax(-1).max(-1)
    drawn = torch.multinomial(logp[0].exp(), n, replacement=True, generator=random)
    u = torch.rand(n, generator=random, dtype=torch.float64)
    found, best = add_noise(logp, drawn, u, step)
    for k in range(3):
        assert kstest(found[drawn == k].numpy(), score[token == k].numpy()).pvalue > 1e-3
    every = torch.stack([add_noise(logp, torch.full((n,), k), u, step)[0] for k in range(3)])
    assert torch.allclose(every.amax(0), best)  # whichever token had won
    after, _ = add_noise(logp, drawn, u, step + 1)
    assert abs(torch.corrcoef(torch.stack([found, after]))[0, 1]) < 0.2  # of one token, but anew


@pytest.mark.parametrize("noisy", [False, True])
def test_what_an_error_of_the_logits_could_change_is_in_doubt(noisy):
    states, n, error = untrained(scale=2.0), 20_000, 0.01
    some = states.all[torch.randint(len(states.all), (n,), generator=torch.Generator())]
    options = SamplerOptions(**draws(n, 3), steps=3)
    filling = _Plan(states.world.diffusion(), states.denoiser, masks(n, 3), options)
    filling.x, filling.u_order, filling.eta, filling.noisy = some, options.u_order, 2.0, noisy
    rows, stay = torch.arange(n), torch.full((n,), 2)
    logits = states.denoiser(some, torch.zeros(n))
    other = logits + error * (2 * torch.rand(logits.shape, dtype=logits.dtype).round() - 1)
    after, doubt = filling.plan(1, stay, rows, logits, error)
    changed = (filling.plan(1, stay, rows, other, 0.0)[0] != after).any(-1)
    assert changed.sum() > 10
    assert not (changed & ~doubt).any()
    assert doubt.double().mean() < 0.5
