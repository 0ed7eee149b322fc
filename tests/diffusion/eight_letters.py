"""A world of all 4^8 = 65,536 sequences, and the laws of samplers by walking over its 5^8 states.

A law over states is an array of shape (5,) * 8: the last entry of an axis stands for the mask. A
visible part V of the positions and what is revealed, N, give arrays with axes of 4 at V and N, and
of 1 elsewhere. Nothing here shares code with a sampler.
"""

from functools import cached_property
from itertools import combinations

import numpy as np
import torch
from scipy.stats import chisquare
from small_worlds import MASK, TARGETS
from torch import Tensor

from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.schedule import Linear

LENGTH = 8
FULL = (4,) * LENGTH
EVERY = tuple(range(LENGTH))
DIFFUSION = MaskedDiffusion(Linear(), MASK, TARGETS)
Places = tuple[int, ...]


def list_parts(places: Places) -> list[Places]:
    """All subsets, the smaller ones first."""
    return [part for n in range(len(places) + 1) for part in combinations(places, n)]


class EightLetters:
    """Each pair of positions has an interaction of its own, so all depend on all others."""

    def __init__(self, seed: int = 0, spread: float = 0.5) -> None:
        draws = np.random.default_rng(seed)
        energy = np.zeros(FULL)
        for i, j in combinations(EVERY, 2):
            shape = [4 if k in (i, j) else 1 for k in EVERY]
            energy = energy + draws.normal(0, spread, (4, 4)).reshape(shape)
        self.p = np.exp(energy - energy.max())
        self.p /= self.p.sum()

    @cached_property
    def mass(self) -> np.ndarray:
        """(5,) * 8: the chance of all sequences that agree with a state."""
        return sum_out(self.p)

    @cached_property
    def _table(self) -> Tensor:
        return torch.from_numpy(np.log(self.mass).reshape(-1))

    def denoiser(self, x: Tensor, sigma: Tensor) -> Tensor:
        """The perfect one: log p(x_i = v | all other visible letters), by look-up."""
        digits = torch.where(x == MASK, 4, x - TARGETS[0])
        place = 5 ** torch.arange(LENGTH - 1, -1, -1)
        others = (digits * place).sum(-1, keepdim=True) - digits * place
        logits = torch.full((*x.shape, 12), 30.0, dtype=torch.float64)
        for column, target in enumerate(TARGETS):
            logits[..., target] = self._table[others + column * place]
        return logits

    def given(self, i: int, visible: Places) -> np.ndarray:
        """p(x_i | x_V), with axes of 4 at V and i."""
        joint = self.mass[cut(tuple({*visible, i}))]
        return joint / joint.sum(i, keepdims=True)


class Mixed(EightLetters):
    """The network of CFG: logits_u + strength (logits_c - logits_u)."""

    def __init__(self, one: EightLetters, other: EightLetters, strength: float) -> None:
        self.one, self.other, self.strength = one, other, strength

    def given(self, i: int, visible: Places) -> np.ndarray:
        base, wanted = self.one.given(i, visible), self.other.given(i, visible)
        found = np.exp(np.log(base) + self.strength * (np.log(wanted) - np.log(base)))
        return found / found.sum(i, keepdims=True)


def sum_out(p: np.ndarray) -> np.ndarray:
    """The array with a fifth entry on each axis: its sum."""
    for axis in EVERY:
        p = np.concatenate([p, p.sum(axis, keepdims=True)], axis)
    return p


def cut(visible: Places) -> tuple[slice, ...]:
    """Where the states lie in which these positions are visible, and no others."""
    return tuple(slice(0, 4) if i in visible else slice(4, 5) for i in EVERY)


def start() -> np.ndarray:
    """All masks, for certain."""
    law = np.zeros((5,) * LENGTH)
    law[(4,) * LENGTH] = 1.0
    return law


def move(net: EightLetters, law: np.ndarray, reveal: float, remask: float = 0.0) -> np.ndarray:
    """One step in which every position is revealed or masked by itself."""
    after = np.zeros_like(law)
    for visible in list_parts(EVERY):
        here = law[cut(visible)]
        if not here.any():
            continue
        hidden = tuple(i for i in EVERY if i not in visible)
        chances = {i: net.given(i, visible) for i in hidden}
        for new in list_parts(hidden):
            mass = here * reveal ** len(new) * (1 - reveal) ** (len(hidden) - len(new))
            for i in new:
                mass = mass * chances[i]
            where = list(cut((*visible, *new)))
            if remask:
                for i in visible:
                    gone = remask * mass.sum(i, keepdims=True)
                    mass = np.concatenate([(1 - remask) * mass, gone], i)
                    where[i] = slice(0, 5)
            after[tuple(where)] += mass
    return after


def of_sequences(law: np.ndarray) -> np.ndarray:
    """The chance of each sequence; no mask may be left."""
    found = law[(slice(0, 4),) * LENGTH].reshape(-1)
    assert abs(found.sum() - 1) < 1e-9
    return found


def number(x: Tensor) -> np.ndarray:
    """Which of the 65,536 sequences each row is."""
    assert torch.isin(x, torch.tensor(TARGETS)).all()
    place = 4 ** torch.arange(LENGTH - 1, -1, -1)
    return ((x - TARGETS[0]) * place).sum(-1).numpy()


def assert_follows(x: Tensor, law: np.ndarray) -> None:
    """Samples agree with a law by chi-square, twice.

    Neighbours in the order of the first letters are put together until 8 are expected, and then
    neighbours in the order of the last letters.
    """
    seen = np.bincount(number(x), minlength=4**LENGTH)
    wanted = law.reshape(-1) / law.sum() * len(x)
    assert not seen[wanted == 0].any()
    for order in (slice(None), np.arange(4**LENGTH).reshape(FULL).transpose(EVERY[::-1]).ravel()):
        bins = np.floor((wanted[order].cumsum() - wanted[order] / 2) / 8).astype(int)
        observed, expected = np.bincount(bins, seen[order]), np.bincount(bins, wanted[order])
        some = expected > 0
        found = chisquare(observed[some], expected[some] * observed.sum() / expected.sum())
        assert found.pvalue > 1e-3, found


def draws(n: int, seed: int = 0) -> dict[str, Tensor]:
    g = torch.Generator().manual_seed(seed)
    return {
        name: torch.rand(n, LENGTH, generator=g, dtype=torch.float64)
        for name in ("u_order", "u_token")
    }


def all_masks(n: int) -> Tensor:
    return torch.full((n, LENGTH), MASK)
