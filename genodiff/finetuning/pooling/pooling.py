"""What a pooling is, and the waves that tell it where a position stands.

Features h (B, L, D) become vectors (B, groups, channels); the head's linear layer reads them all.
A pooling sees a strand in its own direction of reading. What lies behind `lengths` is padding, and
changes nothing.
"""

import math
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn


class Pooling(nn.Module):
    """Features of positions (B, L, D) as vectors (B, groups, channels)."""

    rank: ClassVar[int]
    """The order of simplicity: `--head auto` prefers a lower one within noise."""

    reads_places: ClassVar[bool] = True
    """Whether the answer depends on where a feature stands."""

    keeps_channels: ClassVar[bool] = False
    """Whether each channel is pooled alike and by itself, so that channels may be flipped after."""

    groups: int
    channels: int
    sizes: dict[str, int] = {}  # noqa: RUF012
    """Its options, as its class takes them again."""

    def forward(
        self, h: Float[Tensor, "B L D"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B groups channels"]:
        """The pooled vectors of each row."""
        raise NotImplementedError


def mask_padding(length: int, lengths: Int[Tensor, " B"]) -> Bool[Tensor, "B {length}"]:
    """Which positions are padding."""
    return torch.arange(length, device=lengths.device) >= lengths[:, None]


def place_waves(length: int, lengths: Int[Tensor, " B"], n: int) -> Float[Tensor, "B {length} {n}"]:
    """cos(pi k u) for k = 1..n, where u runs from 0 at a row's first base to 1 at its last.

    The row of the other strand has 1 − u: place i there is place (length − 1 − i) here.
    """
    at = torch.arange(length, device=lengths.device)
    u = at / (lengths[:, None] - 1).clamp(min=1)
    k = torch.arange(1, n + 1, device=lengths.device)
    return torch.cos(math.pi * u[..., None] * k)
