"""Guidance over draws under constraints, in a world of 4^8 sequences that are all listed.

The sampler's own law q is found by enumeration, step by step, without automata. SMC gives each
record a sequence x and an estimate of Z, and E[Z 1(x in B)] = sum over B of q e^(beta r), exactly,
for any number of particles.
"""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor

from genodiff.alphabet import DNA
from genodiff.constraints.constraint import free_space
from genodiff.constraints.layers import compile_constraints
from genodiff.constraints.words import Avoid
from genodiff.diffusion.guided import GUIDANCES, Aim, Guided, GuidedChain
from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.sampler import SAMPLERS, SamplerOptions
from genodiff.diffusion.schedule import SCHEDULES
from genodiff.errors import UsageError
from genodiff.generate.constrained import ConstrainedPiece, ConstrainedRows

LENGTH, STEPS, BETA = 8, 3, 1.2
MASK, TARGETS = DNA.mask_id, DNA.targets
FORBIDDEN = ("AC", "GT", "TA", "GG", "CC")  # GT is AC, and CC is GG, on the other strand
ALLOWED = [
    text
    for letters in product("ACGT", repeat=LENGTH)
    if not any(word in (text := "".join(letters)) for word in FORBIDDEN)
]
IDS = torch.stack([torch.from_numpy(DNA.encode(text).astype(np.int64)) for text in ALLOWED])
NUMBER = {tuple(x): i for i, x in enumerate(IDS.tolist())}


def draw_table(seed: int) -> Tensor:
    return 0.8 * torch.randn(
        LENGTH, 16, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )


class Network:
    """Logits of each place that hang on its visible neighbours."""

    def __init__(self, seed: int) -> None:
        self.table = draw_table(seed)

    def __call__(self, x: Tensor, sigma: Tensor) -> Tensor:
        logits = torch.full((*x.shape, 12), -1e4, dtype=torch.float64)
        near = torch.nn.functional.pad(x, (1, 1), value=MASK)
        place = torch.arange(x.shape[1])
        logits[..., list(TARGETS)] = (
            self.table[place, near[:, :-2] % 16] + self.table[place, near[:, 2:] % 16]
        )
        return logits


class Reward:
    """A number for each allowed sequence; none other may be asked for."""

    def __init__(self, seed: int = 5) -> None:
        g = torch.Generator().manual_seed(seed)
        self.r = torch.randn(len(IDS), generator=g, dtype=torch.float64)

    def __call__(self, record: int, x: Tensor) -> Tensor:
        return self.r[index(x)]

    def gradient(self, record: int, x: Tensor) -> tuple[Tensor, Tensor]:
        return self(record, x), torch.zeros(*x.shape, 4, dtype=torch.float64)


def make_chain(n: int, seed: int = 0, net: Any = None, steps: int = STEPS) -> GuidedChain:
    """A chain of n records that share their order, under the constraint.

    Its numbers differ a little: a record's picks among its particles hang on them.
    """
    layers = compile_constraints(Avoid(("AC", "TA", "GG")), free_space(LENGTH))
    piece = ConstrainedPiece(layers, layers.positions)
    ids = np.full(LENGTH, MASK, np.uint8)
    joint = ConstrainedRows([(piece, ids, slice(0, LENGTH))] * n, DNA)
    g = torch.Generator().manual_seed(seed)
    order = torch.tensor([0.1, 0.75, 0.4, 0.9, 0.2, 0.55, 0.8, 0.3], dtype=torch.float64)
    options = SamplerOptions(
        u_order=order + 1e-3 * torch.rand(n, LENGTH, generator=g, dtype=torch.float64),
        u_token=torch.rand(n, LENGTH, generator=g, dtype=torch.float64),
        steps=steps,
        joint=joint,
    )
    diffusion = MaskedDiffusion(SCHEDULES["loglinear"](), MASK, TARGETS)
    return GuidedChain(SAMPLERS["ancestral"].draw, diffusion, net or Network(1), options)


def guide(name: str, n: int, aim: Aim, seed: int = 0, **settings: float) -> Guided:
    xt = torch.full((n, LENGTH), MASK)
    numbers = {key: float(value) for key, value in settings.items()}
    return GUIDANCES[name].run(make_chain(n, seed), xt, aim, **numbers)


def find_groups() -> list[list[int]]:
    """Which places each step reveals: those of the one order that all records have."""
    seen = []
    chain = make_chain(1)
    joint = chain.options.joint

    def watch(row: int, x: Tensor, due: Tensor, *given: Any) -> Any:
        seen.append(due.nonzero()[:, 0].tolist())
        return joint(row, x, due, *given)

    chain.run(torch.full((1, LENGTH), MASK), joint=watch)
    return seen


def enumerate_law() -> Tensor:
    """q of every allowed sequence."""
    net, groups = Network(1), find_groups()
    order = [place for group in groups for place in group]
    assert order != sorted(order)
    assert max(map(len, groups)) > 1
    law = torch.ones(len(IDS), dtype=torch.float64)
    visible: list[int] = []
    for group in groups:
        masked = [place for place in range(LENGTH) if place not in visible]
        for state in map(torch.tensor, sorted(set(map(tuple, IDS[:, visible].tolist())))):
            now = torch.full((1, LENGTH), MASK)
            now[0, visible] = state.long()
            p = net(now, torch.zeros(1))[0, :, list(TARGETS)].softmax(-1)
            agrees = (IDS[:, visible] == state).all(-1)
            some = IDS[agrees]
            weight = p[masked, some[:, masked] - TARGETS[0]].prod(-1)
            drawn = some[:, group].unique(dim=0, return_inverse=True)[1]
            mass = torch.zeros(len(some), dtype=torch.float64).index_add(0, drawn, weight)
            law[agrees] *= mass[drawn] / weight.sum()
        visible += group
    assert float(law.sum()) == pytest.approx(1)
    return law


@pytest.fixture(scope="module")
def law():
    return enumerate_law()


def cut_bins(reward: Reward, mass: Tensor, number: int = 4) -> Tensor:
    """(bins, sequences): bins of growing reward that are about equally likely."""
    order = reward.r.argsort()
    share = torch.empty_like(mass)
    share[order] = (mass[order].cumsum(0) - mass[order] / 2) / mass.sum()
    which = (share * number).long().clamp(max=number - 1)
    return torch.stack([which == i for i in range(number)])


def index(x: Tensor) -> Tensor:
    """Which allowed sequences these are; any other is a KeyError."""
    return torch.tensor([NUMBER[tuple(one)] for one in x.tolist()])


def assert_follows(x: Tensor, law: Tensor) -> None:
    """Chi-square, neighbours put together until 8 are expected: by first letters, then by last."""
    seen = torch.bincount(index(x), minlength=len(IDS)).numpy()
    wanted = (law / law.sum() * len(x)).numpy()
    for order in (np.arange(len(IDS)), np.lexsort(IDS.numpy().T)):
        bins = np.floor((wanted[order].cumsum() - wanted[order] / 2) / 8).astype(int)
        bins = np.unique(bins, return_inverse=True)[1]
        expected = np.bincount(bins, wanted[order])
        found = chisquare(np.bincount(bins, seen[order]), expected)
        assert len(expected) > 10
        assert found.pvalue > 1e-3, found


@pytest.mark.slow
def test_without_guidance_draws_follow_the_enumerated_law(law):
    assert_follows(guide("smc", 400, Aim(0.0, Reward())).x0, law)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("drawn", "threshold"), [(1, 0.5), (1, 0.0), pytest.param(3, 0.5, marks=pytest.mark.slow)]
)
def test_smc_follows_q_times_the_tilt_and_z_is_unbiased(law, drawn, threshold):
    """Without resampling (threshold 0) all hangs on how the last particle is chosen."""
    reward, n = Reward(), 200
    how = {"particles": 4, "drawn": drawn, "threshold": threshold}
    found = guide("smc", n, Aim(BETA, reward), seed=drawn, **how)
    tilted = law * (BETA * reward.r).exp()
    z = found.log_z.exp()
    assert abs(z.mean() - tilted.sum()) < 3 * z.std() / n**0.5
    for chosen in cut_bins(reward, tilted):
        each = z * chosen[index(found.x0)]
        assert abs(each.mean() - tilted[chosen].sum()) < 4 * each.std() / n**0.5
    most = GUIDANCES["smc"].calls(LENGTH, STEPS, 4, particles=4.0, drawn=float(drawn))
    assert (found.calls > 0).all()
    assert (found.calls <= most).all()


def test_the_best_of_n_follows_its_law_over_q(law):
    reward = Reward()
    found = guide("best-of-n", 120, Aim(1.0, reward), particles=3)
    order = reward.r.argsort()
    below = torch.empty_like(law)
    below[order] = law[order].cumsum(0) - law[order]
    assert_follows(found.x0, (below + law) ** 3 - below**3)


def test_a_beam_is_better_than_draws_and_stays_allowed(law):
    reward = Reward()
    found = guide("beam", 30, Aim(1.0, reward), particles=8, width=2, drawn=1)
    assert float(reward(0, found.x0).mean()) > float(law @ reward.r) + 0.25


def test_cfg_draws_from_the_mixed_network_under_the_constraint():
    aim = Aim(1.0, conditional=Network(2))
    found = guide("cfg", 50, aim).x0
    chain = make_chain(50, net=Network(2))
    assert torch.equal(found, chain.run(torch.full((50, LENGTH), MASK)).x0)


def test_strength_zero_is_the_constrained_sampler_bit_for_bit():
    plain = make_chain(40).run(torch.full((40, LENGTH), MASK))
    for name in ("smc", "beam", "best-of-n"):
        found = guide(name, 40, Aim(0.0, Reward()))
        assert torch.equal(found.x0, plain.x0)
        assert (found.calls == 0).all()


def test_a_record_is_the_same_in_any_company():
    found = guide("smc", 5, Aim(BETA, Reward()), particles=4)
    chain = make_chain(5)
    part = {
        "u_order": chain.options.u_order[3:4],
        "u_token": chain.options.u_token[3:4],
        "joint": make_chain(1).options.joint,
    }
    alone = GuidedChain(chain.draw, chain.diffusion, chain.denoiser, replace(chain.options, **part))
    xt = torch.full((1, LENGTH), MASK)
    other = GUIDANCES["smc"].run(alone, xt, Aim(BETA, Reward()), particles=4.0)
    assert torch.equal(other.x0[0], found.x0[3])
    assert other.log_z[0] == found.log_z[3]


@pytest.mark.parametrize("name", [one for one in GUIDANCES if GUIDANCES[one].tilts])
def test_what_moves_single_bases_is_refused(name):
    with pytest.raises(UsageError, match="need joint draws"):
        guide(name, 2, Aim(1.0, Reward()))
