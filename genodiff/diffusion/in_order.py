"""Masks filled in an order that is known before the network runs."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from genodiff.diffusion.sampler import Filling, Sampled
from genodiff.errors import UsageError

When = Callable[[Int[Tensor, " A"], Int[Tensor, " A"]], Float[Tensor, " A"]]
"""(rows, the next position of each) -> the time that the denoiser is told."""


def fill_in_order(
    filling: Filling, order: Int[Tensor, "B L"], when: When | None = None, at_once: int = 1
) -> Sampled:
    """Each row's masks in its `order`, which begins with its masked positions.

    `at_once` positions are drawn with each evaluation, each by itself. Without `when` the denoiser
    is told the time at which as many masks are left on average.
    """
    n_masked = filling.masked.sum(-1)
    for j in range(0, max(n_masked.tolist(), default=0), at_once):
        rows = (n_masked > j).nonzero()[:, 0]
        some = order[rows, j : j + at_once]
        place = torch.arange(j, j + some.shape[1], device=some.device)
        due = torch.zeros_like(filling.masked[rows]).scatter(1, some, place < n_masked[rows, None])
        t = find_time(filling, rows) if when is None else when(rows, some[:, 0])
        filling.reveal(rows, due, *filling.evaluate(rows, t, due))
    return filling.done()


def find_time(filling: Filling, rows: Int[Tensor, " A"]) -> Float[Tensor, " A"]:
    """The time at which as many of these rows' first masks are left on average."""
    schedule, u = filling.diffusion.schedule, filling.u_token
    left = filling.is_masked(rows).sum(-1).double()
    shown = 1 - left / filling.masked[rows].sum(-1).double()
    end = schedule.alpha(torch.ones_like(u[rows, 0]))
    return schedule.inverse(end + (1 - end) * shown.to(u.dtype))


def count_groups(n: int, share: Float[Tensor, " S"], at_once: float = 1.0) -> float:
    """The evaluations of a sampler that reveals `at_once` positions with each."""
    return float(math.ceil(n / read_at_once(at_once)))


def read_at_once(at_once: float) -> int:
    """`at_once` as a count. Raises `UsageError` where it is none."""
    if not (at_once >= 1 and at_once == int(at_once)):
        raise UsageError(f"at_once = {at_once:g} is not a count of bases", fix="give 1 or more")
    return int(at_once)
