"""Helpers for tests of objectives: denoisers of worlds, means over masks and orders."""

import itertools
import math
from collections.abc import Callable

import torch
from torch import Tensor
from worlds import World, copy_task, independent, markov_chain

from genodiff.diffusion.loss import count_terms
from genodiff.diffusion.masked import Clean
from genodiff.diffusion.objective import Draws, Objective
from genodiff.diffusion.schedule import (
    Cosine,
    CosineSquared,
    Linear,
    OneMinusCosine,
    Polynomial,
    Schedule,
)

Network = Callable[[Tensor, Tensor], Tensor]
WORLDS = [markov_chain(3), copy_task(3), independent(2)]
FIVE = [Linear(), Cosine(), CosineSquared(), OneMinusCosine(), Polynomial(power=2.0)]
NEVER = -1e4


def with_mask(world: World, mask_logit: float, noise: float = 0.0, seed: int = 0):  # type: ignore[no-untyped-def]
    """The world's own denoiser, its logit for the mask set and, with `noise`, made wrong in a way
    that depends on xt.
    """
    draw, size = torch.Generator().manual_seed(seed), world.vocab_size
    table = noise * torch.randn(size, size, generator=draw, dtype=torch.float64)

    def denoiser(xt: Tensor, sigma: Tensor, lengths: Tensor | None = None) -> Tensor:
        logits = world.denoiser(xt, sigma) + table[xt].mean(1, keepdim=True)
        logits[..., world.mask_id] = mask_logit
        return logits

    return denoiser


def read_one_way(world: World) -> Network:
    """The perfect network that reads one way: position i knows the tokens before it."""

    def network(xt: Tensor, sigma: Tensor) -> Tensor:
        hidden = torch.full((len(xt), world.length), world.mask_id)
        rows = [torch.cat([xt[:, 1 : i + 1], hidden[:, i:]], 1) for i in range(xt.shape[1])]
        return torch.stack([world.denoiser(row, sigma)[:, i] for i, row in enumerate(rows)], 1)

    return network


def as_ratios(world: World, net: Network) -> Network:
    """The scores of a network of probabilities: their ratios sum to one."""
    columns = list(world.targets)

    def network(xt: Tensor, sigma: Tensor) -> Tensor:
        logits = net(xt, sigma)
        logits[..., columns] = logits[..., columns].log_softmax(-1) + math.log(len(columns))
        return logits

    return network


def draws(u_mask: Tensor, t: Tensor) -> Draws:
    """Every window at its own time, to 2^-40, whatever the way that times are drawn."""
    return Draws(u_mask, t % 1, 0.0, (t.double() * 2**40).round().long(), 2**40)


def mean_over_masks(of: Objective, denoiser, x0: Tensor, steps: int, schedule: Schedule) -> float:  # type: ignore[no-untyped-def]
    """The exact mean of the training loss in T steps: every position stays masked, is revealed in
    the step, or is visible.
    """
    total, fates = 0.0, list(itertools.product(range(3), repeat=len(x0)))
    for i in range(1, steps + 1):
        ends = schedule.masked(torch.tensor([i - 1, i], dtype=torch.float64) / steps)
        s, t = (0.0 if i == 1 else float(ends[0])), float(ends[1])
        chance = torch.tensor([s, t - s, 1 - t], dtype=torch.float64)
        place = torch.tensor([s / 2, (s + t) / 2, (t + 1) / 2])
        fate = torch.tensor(fates)
        weight = chance[fate].prod(-1, keepdim=True).expand(fate.shape)
        time = torch.full((len(fate),), (i - 0.5) / steps, dtype=torch.float64)
        rows, given = x0.expand(len(fate), -1), draws(place.double()[fate], time)
        clean = Clean(rows, everywhere(rows), weight)
        total += float(of.loss(denoiser, clean, given).nats) / steps
    return total


def exact_bound(of: Objective, denoiser, x0: Tensor) -> float:  # type: ignore[no-untyped-def]
    """The exact mean of `bound` where it draws counts: all counts, all orders."""
    n, orders = len(x0), all_orders(len(x0))
    rows, total = x0.expand(len(orders), -1), 0.0
    for k in range(1, n + 1):
        given = draws(orders, torch.full((len(orders),), (k - 0.5) / n, dtype=torch.float64))
        clean = Clean(rows, everywhere(rows))
        found = of.bound(denoiser, clean, given)
        assert (given.counts(clean) == k).all()
        total += float((found.scale * found.ce.sum(-1)).mean()) / n
    return total


def world_terms(world: World, denoiser: Network | None = None) -> Tensor:
    """C_0 .. C_L averaged over the world."""
    ok = torch.ones(world.length, dtype=torch.bool)
    return sum(
        p * count_terms(world.diffusion(), denoiser or world.denoiser, x, ok)
        for x, p in zip(world.sequences, world.p, strict=True)
    )


def everywhere(x0: Tensor) -> Tensor:
    return torch.ones_like(x0, dtype=torch.bool)


def all_orders(length: int) -> Tensor:
    return torch.tensor(list(itertools.permutations(range(length))), dtype=torch.float64) / length


def everything(world: World) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Every (sequence, mask) pair: x0, the mask, uniforms that draw it at any time inside (0, 1),
    and p(x0).
    """
    masks = torch.tensor(list(itertools.product((False, True), repeat=world.length)))
    x0 = world.sequences.repeat_interleave(len(masks), 0)
    masked = masks.repeat(len(world.sequences), 1)
    u = torch.where(masked, 0.0, 1 - 2**-53).double()
    return x0, masked, u, world.p.repeat_interleave(len(masks))


def chance_of(masked: Tensor, share: float) -> Tensor:
    k = masked.sum(-1).double()
    return share**k * (1 - share) ** (masked.shape[1] - k)
