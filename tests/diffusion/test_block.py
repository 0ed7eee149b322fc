"""Block diffusion in enumerated worlds: an unbiased bound, exact for blocks of one token."""

import itertools
import math

import pytest
import torch
from enumerated import WORLDS, draws, everywhere, with_mask
from small_worlds import random_world
from torch import Tensor
from worlds import World, markov_chain

from genodiff.diffusion.loss import count_terms, nelbo_exact
from genodiff.diffusion.masked import Clean
from genodiff.diffusion.objectives.block import BlockDiffusion, mask_blocks
from genodiff.diffusion.objectives.mdlm import Mdlm
from genodiff.errors import UsageError

TALL = [*WORLDS, random_world(4, 3, seed=2), markov_chain(5)]
NAMES = ["markov", "copy", "iid", "random", "long"]


def in_blocks(world: World, noise: float = 0.0):  # type: ignore[no-untyped-def]
    """The world's denoiser, or with `noise` a wrong one, that sees a block and its clean past."""
    whole = with_mask(world, 0.0, noise)

    def denoiser(xt: Tensor, sigma: Tensor, *, clean: Tensor, block: int) -> Tensor:
        logits = []
        for start in range(0, xt.shape[1], block):
            seen = torch.full_like(xt, world.mask_id)
            seen[:, :start], end = clean[:, :start], start + block
            seen[:, start:end] = xt[:, start:end]
            logits.append(whole(seen, sigma)[:, start:end])
        return torch.cat(logits, 1)

    return denoiser


def expect(world: World, x0: Tensor, block: int, noise: float) -> float:
    """The bound, written out: the count terms of each block given its past."""
    total = 0.0
    for start in range(0, len(x0), block):
        end = min(start + block, len(x0))

        def of_block(xt: Tensor, sigma: Tensor, start: int = start, end: int = end) -> Tensor:
            hidden = torch.full((len(xt), len(x0) - end), world.mask_id)
            return with_mask(world, 0.0, noise)(
                torch.cat([x0[:start].expand(len(xt), -1), xt[:, start:end], hidden], 1), sigma
            )

        own = torch.zeros(len(x0), dtype=torch.bool)
        own[start:end] = True
        total += float(nelbo_exact(count_terms(world.diffusion(), of_block, x0, own)))
    return total


def all_draws(x0: Tensor, block: int, n_blocks: int) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of x0, uniforms and times whose plain mean is that over all masks and counts.

    The blocks have the same order: each by itself has all of them.
    """
    orders = torch.tensor(list(itertools.permutations(range(block))), dtype=torch.float64)
    grid = math.lcm(*range(1, block + 1)) * n_blocks
    t = (torch.arange(grid, dtype=torch.float64) + 0.5) / grid
    u = (orders + 0.5) / (block + 1)
    length = len(x0)
    u = u.repeat(1, n_blocks)[:, :length].repeat_interleave(grid, 0)
    return x0.expand(len(u), -1), u, t.repeat(len(orders))


@pytest.mark.few(4)
@pytest.mark.parametrize("world", TALL, ids=NAMES)
@pytest.mark.parametrize("block", [1, 2, 3, 4])
@pytest.mark.parametrize("noise", [0.0, 0.7])
def test_loss_and_bound_have_the_mean_of_the_enumerated_bound(world, block, noise):
    block = min(block, world.length)
    of, net = BlockDiffusion(world.diffusion(), block=block), in_blocks(world, noise)
    for x0 in world.sequences[:4]:
        rows, u, t = all_draws(x0, block, -(-len(x0) // block))
        clean = Clean(rows, everywhere(rows))
        wanted = expect(world, x0, block, noise)
        found = of.bound(net, clean, draws(u, t))
        assert float((found.scale[:, None] * found.ce).sum(-1).mean()) == pytest.approx(wanted)
        loss = of.loss(net, clean, draws(u, t))
        assert float(loss.nats) / len(rows) == pytest.approx(wanted)
        assert int(loss.n_tokens) == rows.numel()


@pytest.mark.parametrize("noise", [0.0, 0.7])
def test_blocks_of_one_have_a_likelihood_that_no_draw_changes(noise):
    world = random_world(3, 3, seed=1)
    of, net = BlockDiffusion(world.diffusion(), block=1), in_blocks(world, noise)
    x0 = torch.tensor(list(itertools.product(world.targets, repeat=3)))
    generator = torch.Generator().manual_seed(0)
    both = []
    for _ in range(2):
        given = draws(
            torch.rand(x0.shape, generator=generator), torch.rand(len(x0), generator=generator)
        )
        both.append(of.bound(net, Clean(x0, everywhere(x0)), given).ce.sum(-1))
    torch.testing.assert_close(*both, rtol=0, atol=1e-12)
    assert float((-both[0]).exp().sum()) == pytest.approx(1, abs=1e-12)  # over all sequences
    assert (of.figure, BlockDiffusion(world.diffusion(), block=2).figure) == ("exact", "bound")


@pytest.mark.parametrize("block", [5, 9])
def test_one_block_is_mdlm(block):
    world = markov_chain(5)
    net, x0 = in_blocks(world, 0.7), world.sequences
    clean = Clean(x0, everywhere(x0))
    generator = torch.Generator().manual_seed(3)
    given = draws(torch.rand(x0.shape, generator=generator), torch.rand(32, generator=generator))

    def whole(xt: Tensor, sigma: Tensor) -> Tensor:
        return net(xt, sigma, clean=x0, block=5)

    mine, theirs = BlockDiffusion(world.diffusion(), block=block), Mdlm(world.diffusion())
    found, wanted = mine.bound(net, clean, given), theirs.bound(whole, clean, given)
    torch.testing.assert_close(found.ce, wanted.scale[:, None] * wanted.ce, rtol=0, atol=1e-12)
    assert float(mine.loss(net, clean, given).nats) == pytest.approx(
        float(theirs.loss(whole, clean, given).nats), abs=1e-12
    )


def test_counts_are_exact_and_what_cannot_be_masked_is_not():
    generator = torch.Generator().manual_seed(1)
    maskable = torch.rand(40, 11, generator=generator) < 0.6
    maskable[:, 8:] = False  # a block with nothing to mask
    t, u = torch.rand(40, generator=generator), torch.rand(40, 11, generator=generator)
    masked, scale = mask_blocks(maskable, t, u, 4)
    assert not (masked & ~maskable).any()
    for b in range(3):
        here = slice(4 * b, 4 * b + 4)
        n, k = maskable[:, here].sum(-1), masked[:, here].sum(-1)
        wanted = torch.ceil((t.double() + b * 0.6180339887498949) % 1 * n).long()
        assert k.tolist() == wanted.tolist()
        torch.testing.assert_close(
            (scale[:, here] * masked[:, here]).sum(-1), n.double() * (k > 0), rtol=0, atol=1e-12
        )


def test_blocks_without_positions_are_refused():
    with pytest.raises(UsageError, match="blocks of 0"):
        BlockDiffusion(markov_chain(3).diffusion(), block=0)
