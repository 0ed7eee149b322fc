"""Interleave noised and clean blocks in one row: z¹ x¹ z² x² …, each noised block before its clean
one.

The states of a scan or convolution before a noised block are then directly before it.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Shaped
from torch import Tensor


def join(
    noised: Shaped[Tensor, "B L *rest"], clean: Shaped[Tensor, "B L *rest"], size: int
) -> Shaped[Tensor, "B two_L *rest"]:
    """The streams in turn, a block of `size` after the other; L is a multiple of it."""
    both = [x.unflatten(1, (-1, size)) for x in (noised, clean)]
    return torch.stack(both, 2).flatten(1, 3)


def separate(
    x: Shaped[Tensor, "B two_L *rest"], size: int
) -> tuple[Shaped[Tensor, "B L *rest"], Shaped[Tensor, "B L *rest"]]:
    """(noised, clean)."""
    noised, clean = x.unflatten(1, (-1, 2, size)).unbind(2)
    return noised.flatten(1, 2), clean.flatten(1, 2)


def read_before(
    clean: Shaped[Tensor, "B L E"], size: int, known: int
) -> Shaped[Tensor, "B n known E"]:
    """The `known` inputs before each block, zeros before the first."""
    at = torch.arange(0, clean.shape[1], size, device=clean.device)[:, None]
    at = at + torch.arange(known, device=clean.device)
    before: Tensor = F.pad(clean, (0, 0, known, 0))[:, at]
    return before
