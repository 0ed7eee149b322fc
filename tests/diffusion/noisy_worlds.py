"""Worlds under noise of letters and masks: every state, its law, and networks that judge it."""

import itertools
import math
from collections.abc import Callable

import torch
from torch import Tensor
from worlds import World

Network = Callable[[Tensor, Tensor], Tensor]


def list_states(world: World) -> Tensor:
    """All sequences of targets and masks, (states, L)."""
    tokens = [*world.targets, world.mask_id]
    return torch.tensor(list(itertools.product(tokens, repeat=world.length)))


def forward(world: World, x: Tensor, z: Tensor, share: float, alpha: float | Tensor) -> Tensor:
    """q(z | x) of each position, written out: alpha 1(z = x) + (1 - alpha) pi(z)."""
    letter = (1 - share) / len(world.targets)
    pi = torch.full(z.shape, letter, dtype=torch.float64).masked_fill(z == world.mask_id, share)
    return alpha * (x == z).double() + (1 - alpha) * pi


def leave_one_out(world: World, share: float) -> Network:
    """The exact p(x_l | all of z but z_l), told how much noise there is by sigma."""

    def network(z: Tensor, sigma: Tensor) -> Tensor:
        logits = torch.full((*z.shape, world.vocab_size), 30.0, dtype=torch.float64)
        columns = torch.tensor(world.targets)
        alpha = torch.exp(-sigma)[:, None, None]
        q = forward(world, world.sequences[None], z[:, None], share, alpha)  # (B, N, L)
        for at in range(world.length):
            others = torch.cat([q[..., :at], q[..., at + 1 :]], -1).prod(-1) * world.p
            same = (world.sequences[:, at, None] == columns).double()
            chance = others @ same / others.sum(-1, keepdim=True)
            # What cannot be: any guess will do.
            logits[:, at, columns] = chance.nan_to_num(0.5).log().clamp(min=-1e4)
        return logits

    return network


def wrong(world: World, share: float, by: float = 0.8, seed: int = 0) -> Network:
    """A network that is wrong in a way that depends on z, its own token too, and on the noise."""
    right = leave_one_out(world, share)
    g = torch.Generator().manual_seed(seed)
    size = world.vocab_size
    table = by * torch.randn(size, size, generator=g, dtype=torch.float64)

    def network(z: Tensor, sigma: Tensor) -> Tensor:
        off = table[z] + table[z].mean(1, keepdim=True)
        return 0.7 * right(z, sigma).clamp(min=-8) + off + 0.1 * sigma[:, None, None].clamp(max=3)

    return network


def chain_step(
    share: float, network: Network, world: World, states: Tensor, ends: tuple[float, float],
    correct: float = 0.0,
) -> Tensor:  # fmt: skip
    """p(z_s | z_t) of the model, (states, states), from Bayes' rule alone: no closed form.

    `ends` are 1 - k at t and at s. With `correct`, some draw a clean token and noise it.
    """
    t, s = ends
    sigma = torch.full((len(states),), -math.log(max(1 - t, 1e-9)), dtype=torch.float64)
    guess = network(states, sigma)[..., list(world.targets)].softmax(-1)
    tokens = [*world.targets, world.mask_id]

    def find_law(at: int, end: float) -> Tensor:
        law = torch.zeros(len(states), len(tokens), dtype=torch.float64)
        for j, token in enumerate(tokens):
            here = torch.full((1,), token)
            of_end = sum(
                guess[:, at, k] * forward(world, torch.full((1,), x), here, share, 1 - end)
                for k, x in enumerate(world.targets)
            )
            law[:, j] = of_end * forward(world, here, states[:, at], share, (1 - t) / (1 - end))
        return (law / law.sum(-1, keepdim=True)).nan_to_num(0.2)  # a state that cannot be

    step = torch.ones(len(states), len(states), dtype=torch.float64)
    for at in range(world.length):
        law = find_law(at, s)
        if correct:
            clean = find_law(at, 0.0)
            again = [
                sum(
                    clean[:, k]
                    * forward(world, torch.full((1,), x), torch.tensor([j]), share, 1 - s)
                    for k, x in enumerate(world.targets)
                )
                for j in tokens
            ]
            law = (1 - correct) * law + correct * torch.stack(again, -1)
        step *= law[:, [tokens.index(int(x)) for x in states[:, at]]]
    return step


def start_law(world: World, states: Tensor, share: float) -> Tensor:
    """pi at every position."""
    return forward(world, torch.full((1, 1), -5), states, share, 0.0).prod(-1)


def chain_law(
    share: float, network: Network, world: World, ends: list[float], correct: float = 0.0,
    begin: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The chance of each state after steps between `ends`, 1 - k from the start to 0."""
    states = list_states(world)
    law = start_law(world, states, share) if begin is None else begin
    for both in itertools.pairwise(ends):
        law = law @ chain_step(share, network, world, states, both, correct)
    return law
