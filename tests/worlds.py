"""Worlds small enough to be solved exactly: every sequence, its probability, and the perfect
denoiser.

    F1   binary Markov chain, uniform start, stays with chance 0.9      dependent neighbours
    F2   copy task, all tokens equal                                    total dependence
    F3   independent tokens                                             no dependence

The ids are scattered on purpose (targets not sorted, not contiguous, mask in between) and the
logits of everything that is no target are large: code that confuses columns with ids, or lets a
special token compete, is caught.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy.stats import chisquare
from torch import Tensor

from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.schedule import Linear, Schedule


@dataclass(frozen=True)
class World:
    """All sequences (N, L) that can occur, as ids, with their probabilities (N,)."""

    sequences: Tensor
    p: Tensor
    targets: tuple[int, ...]
    mask_id: int
    vocab_size: int

    @property
    def length(self) -> int:
        return self.sequences.shape[1]

    @property
    def entropy(self) -> float:
        return -(self.p * self.p.log()).sum().item()

    def diffusion(
        self, schedule: Schedule | None = None, time_conditioning: bool = False
    ) -> MaskedDiffusion:
        return MaskedDiffusion(schedule or Linear(), self.mask_id, self.targets, time_conditioning)

    def denoiser(self, xt: Tensor, sigma: Tensor) -> Tensor:
        """Logits of the exact posterior p(x0 | xt) at every position, in double precision."""
        agrees = (xt[:, None] == self.sequences) | (xt[:, None] == self.mask_id)
        weight = agrees.all(-1) * self.p  # (B, N)
        weight = torch.where(
            weight.sum(-1, keepdim=True) > 0, weight, self.p
        )  # a context that never occurs
        one_hot = torch.nn.functional.one_hot(self.sequences, self.vocab_size).double()
        posterior = torch.einsum("bn,nlv->blv", weight, one_hot) / weight.sum(-1)[:, None, None]
        logits = torch.full((*xt.shape, self.vocab_size), 30.0, dtype=torch.float64)
        targets = list(self.targets)
        logits[..., targets] = posterior[..., targets].log().clamp(min=-1e4)
        return logits

    def index(self, x: Tensor) -> Tensor:
        """The number of each row of x among the world's sequences; -1 for one that cannot occur."""
        same = (x[:, None] == self.sequences).all(-1)
        return torch.where(same.any(-1), same.int().argmax(-1), -1)

    def draw(self, u: Tensor) -> Tensor:
        """Sequences of the world from uniforms (B,)."""
        return self.sequences[torch.searchsorted(self.p.cumsum(0), u).clamp(max=len(self.p) - 1)]


def assert_law(seen: np.ndarray, law: np.ndarray) -> None:
    """Counts agree with a law, up to a factor, by chi-square; rare outcomes are put together."""
    expected = law / law.sum() * seen.sum()
    rare = expected < 8
    if rare.any():
        seen, expected = (np.append(one[~rare], one[rare].sum()) for one in (seen, expected))
        if expected[-1] < 1e-9:
            assert seen[-1] == 0
            seen, expected = seen[:-1], expected[:-1]
    assert chisquare(seen, expected).pvalue > 1e-3


def markov_chain(length: int = 4, stay: float = 0.9) -> World:
    """F1. Entropy ln 2 + (L - 1) h(stay): 1.6683961007 nats for the default."""
    bits = torch.tensor(list(itertools.product((0, 1), repeat=length)))
    same = (bits[:, 1:] == bits[:, :-1]).double()
    p = 0.5 * (stay * same + (1 - stay) * (1 - same)).prod(-1)
    targets = (4, 2)
    return World(torch.tensor(targets)[bits], p, targets, mask_id=3, vocab_size=6)


def copy_task(length: int = 2, n_symbols: int = 3) -> World:
    """F2. Entropy ln V."""
    targets = tuple(range(5, 5 + n_symbols))
    sequences = torch.tensor(targets)[:, None].expand(-1, length).contiguous()
    return World(sequences, torch.full((n_symbols,), 1 / n_symbols, dtype=torch.float64), targets,
                 1, 5 + n_symbols)  # fmt: skip


def independent(length: int = 3, p: tuple[float, ...] = (0.25, 0.25, 0.25, 0.25)) -> World:
    """F3. Entropy L H(p)."""
    targets = (7, 8, 9, 10)[: len(p)]
    choice = torch.tensor(list(itertools.product(range(len(p)), repeat=length)))
    return World(torch.tensor(targets)[choice],
                 torch.tensor(p, dtype=torch.float64)[choice].prod(-1), targets, 3, 16)  # fmt: skip


@dataclass(frozen=True)
class LongChain:
    """A stationary 4-letter Markov chain of any length, its perfect denoiser in closed form: a
    DNA-like reference.

    The posterior of a masked position depends on the nearest visible neighbours only, through
    powers of the transition matrix.
    """

    transition: Tensor
    length: int
    targets: tuple[int, ...] = (7, 8, 9, 10)
    mask_id: int = 3
    vocab_size: int = 16

    @cached_property
    def powers(self) -> Tensor:
        return torch.stack(
            [torch.linalg.matrix_power(self.transition, d) for d in range(self.length + 1)]
        )

    @cached_property
    def stationary(self) -> Tensor:
        return torch.linalg.matrix_power(self.transition, 4096)[0]

    @property
    def entropy(self) -> float:
        """Nats of a window of `length` tokens."""
        start, rows = self.stationary, -(self.transition * self.transition.log()).sum(-1)
        return (-(start * start.log()).sum() + (self.length - 1) * (start * rows).sum()).item()

    def log_p(self, ids: Sequence[int]) -> float:
        """log p of a window, base after base."""
        states = [self.targets.index(int(i)) for i in ids]
        rest = sum(math.log(self.transition[a, b]) for a, b in itertools.pairwise(states))
        return math.log(self.stationary[states[0]]) + rest

    def log_p_span(self, ids: Sequence[int], span: Sequence[bool]) -> float:
        """log p(span | flanks), by summing over all that could stand in the span."""
        at = [i for i, here in enumerate(span) if here]
        total = []
        for letters in itertools.product(self.targets, repeat=len(at)):
            other = list(ids)
            for i, letter in zip(at, letters, strict=True):
                other[i] = letter
            total.append(self.log_p(other))
        return self.log_p(ids) - float(np.logaddexp.reduce(total))

    def draw(self, u: Tensor) -> Tensor:
        """Windows from uniforms (B, L)."""
        state = torch.searchsorted(
            self.stationary.cumsum(0)[:-1].contiguous(), u[:, 0].contiguous(), right=True
        )
        states, cdf = [state], self.transition.cumsum(-1)[:, :-1]
        for i in range(1, self.length):
            state = (cdf[state] <= u[:, i, None]).sum(-1)
            states.append(state)
        return torch.tensor(self.targets)[torch.stack(states, 1)]

    def denoiser(self, xt: Tensor, sigma: Tensor) -> Tensor:
        length = xt.shape[1]
        power = self.powers
        state_of = torch.full((self.vocab_size,), -1)
        state_of[list(self.targets)] = torch.arange(len(self.targets))
        place, visible = torch.arange(length).expand_as(xt), xt != self.mask_id
        left = torch.where(visible, place, -1).cummax(1).values
        right = torch.where(visible, place, length).flip(1).cummin(1).values.flip(1)
        a = state_of[xt].gather(1, left.clamp(min=0))
        b = state_of[xt].gather(1, right.clamp(max=length - 1))
        before = torch.where((left < 0)[..., None], self.stationary, power[place - left, a])
        after = torch.where(
            (right >= length)[..., None], 1.0, power.transpose(1, 2)[right - place, b]
        )
        logits = torch.zeros(*xt.shape, self.vocab_size, dtype=torch.float64)
        logits[..., list(self.targets)] = (before * after).log().clamp(min=-1e4)
        return logits


def dna_like(length: int = 256, stay: float = 0.4) -> LongChain:
    """Uniform letters, 1.332 nats per token given the past: what yeast costs an order-8 Markov
    model (1.343).
    """
    eye = torch.eye(4, dtype=torch.float64)
    move = (1 - stay) / 3
    return LongChain(torch.full_like(eye, move) + (stay - move) * eye, length)


def uneven_chain(length: int = 40) -> LongChain:
    """A chain whose letters depend on one another in no symmetric way."""
    rows = torch.from_numpy(np.random.default_rng(0).dirichlet(np.full(4, 0.6), 4))
    return LongChain(0.9 * rows + 0.025, length)
