"""Worlds of a few letters whose every state is listed, with and without masks: laws of samplers by
walking over all states.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from worlds import World, assert_law

MASK = 3
TARGETS = (7, 8, 9, 10)


def random_world(length: int = 4, letters: int = 4, seed: int = 0, spread: float = 1.0) -> World:
    """Every sequence with a chance of its own: all positions depend on all others."""
    choice = torch.tensor(list(itertools.product(range(letters), repeat=length)))
    g = torch.Generator().manual_seed(seed)
    p = (spread * torch.randn(len(choice), generator=g, dtype=torch.float64)).softmax(0)
    targets = TARGETS[:letters]
    return World(torch.tensor(targets)[choice], p, targets, MASK, 12)


def complement(x: Tensor) -> Tensor:
    """The reverse complement: 7 and 10, 8 and 9 pair; a mask stays a mask."""
    return torch.where(x == MASK, x, 17 - x).flip(-1)


def symmetric_world(length: int = 4, seed: int = 0) -> World:
    """p(x) = p(rc x): the perfect denoiser of such a world commutes with the reverse complement."""
    world = random_world(length, seed=seed)
    p = (world.p + world.p[world.index(complement(world.sequences))]) / 2
    return World(world.sequences, p, world.targets, world.mask_id, world.vocab_size)


def number_rows(listed: Tensor) -> Callable[[Tensor], Tensor]:
    """Which of the listed sequences each one is, by its ids read as digits."""
    code = 12 ** torch.arange(listed.shape[1])
    row = torch.full((12 ** len(code),), -1)
    row[(listed * code).sum(-1)] = torch.arange(len(listed))
    return lambda x: row[(x * code).sum(-1)]


@dataclass(frozen=True)
class States:
    """All sequences of a world with masks in any places, and the denoiser's law in each."""

    world: World
    logits: Tensor | None = None  # (states, L, V) in place of the world's perfect ones

    @cached_property
    def all(self) -> Tensor:
        letters = sorted((*self.world.targets, MASK))
        return torch.tensor(list(itertools.product(letters, repeat=self.world.length)))

    @cached_property
    def number(self) -> dict[tuple[int, ...], int]:
        return {tuple(x): i for i, x in enumerate(self.all.tolist())}

    @cached_property
    def p(self) -> Tensor:
        """(states, L, targets): x_theta without the rule that a visible token stays."""
        return self.table[..., list(self.world.targets)].softmax(-1)

    @cached_property
    def table(self) -> Tensor:
        """The logits of every state."""
        if self.logits is not None:
            return self.logits
        return self.world.denoiser(self.all, self.all[:, 0])

    @cached_property
    def row(self) -> Callable[[Tensor], Tensor]:
        return number_rows(self.all)

    def denoiser(self, x: Tensor, sigma: Tensor) -> Tensor:
        """The network of the world: a look-up, so that many samples are quick."""
        return self.table[self.row(x)]

    def start(self) -> Tensor:
        """All masks, for certain."""
        return (self.all == MASK).all(-1).double()

    def move(self, law: Tensor, reveal: float, remask: float = 0.0) -> Tensor:
        """One step in which every position moves by itself."""
        column = torch.full((12,), -1)
        column[list(self.world.targets)] = torch.arange(len(self.world.targets))
        step = torch.ones(len(self.all), len(self.all), dtype=torch.float64)
        for i in range(self.world.length):
            now, then = self.all[:, i][:, None], self.all[:, i][None]
            drawn = self.p[:, i].gather(1, column[then].clamp(min=0).expand(len(self.all), -1))
            to_mask = (then == MASK).double()
            from_mask = to_mask * (1 - reveal) + (1 - to_mask) * reveal * drawn
            kept = to_mask * remask + (then == now).double() * (1 - remask)
            step *= torch.where(now == MASK, from_mask, kept)
        return law @ step

    def of_sequences(self, law: Tensor) -> Tensor:
        """The chance of each sequence of the world."""
        return law[[self.number[tuple(x)] for x in self.world.sequences.tolist()]]


def assert_counts(world: World, samples: Tensor, law: Tensor) -> None:
    assert_law(count(world, samples).numpy(), law.numpy())


def count(world: World, samples: Tensor) -> Tensor:
    """How often each sequence of the world is among the samples."""
    rows = number_rows(world.sequences)(samples)
    return torch.bincount(rows, minlength=len(world.p)).double()


def divergence(p: Tensor, q: Tensor) -> float:
    """KL(p || q) in nats."""
    some = p > 0
    return (p[some] * (p[some] / q[some]).log()).sum().item()
