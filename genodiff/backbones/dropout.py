"""Dropout without a random state: a function of (seed, sample, layer, position).

Each row of a batch has a key, drawn by counter-based randomness from the number of its sample. The
hash of an element combines the key with its position and layer. An element is dropped if its hash
is among the lowest share p of all hashes. So a repeated step drops the same elements: in other
micro-batches, on another machine or after a restart. Source of the mixing function: Appleby,
MurmurHash3 (public domain).
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from genodiff.counter import Purpose, uniform_rows

_LAYER_STEP = 0x9E3779B1 - (1 << 32)
_FIRST, _SECOND = 0x85EBCA6B - (1 << 32), 0xC2B2AE35 - (1 << 32)


def dropout_keys(seed: int, samples: Int[Tensor, " B"]) -> Int[Tensor, " B"]:
    """The int32 key of each sample, given by its global number, on the device of `samples`."""
    u = uniform_rows(seed, Purpose.DROPOUT, samples.cpu().numpy(), 1)[:, 0]
    return (torch.from_numpy(u) * 2.0**32 - 2.0**31).floor().to(torch.int32).to(samples.device)


def drop(
    x: Float[Tensor, "B L D"], p: float, keys: Int[Tensor, " B"] | None, layer: int
) -> Float[Tensor, "B L D"]:
    """x / (1 − p), with an expected share p in [0, 1) of its elements set to zero.

    Returns x itself if p is 0 or `keys` is None.
    """
    if p == 0 or keys is None:
        return x
    place = torch.arange(x.shape[1] * x.shape[2], dtype=torch.int32, device=x.device) + _wrap_int32(
        layer * _LAYER_STEP
    )
    kept = _mix(_mix(place) ^ keys[:, None]) >= _wrap_int32(round(p * 2**32) - 2**31)
    return torch.where(kept.view(x.shape), x / (1 - p), 0.0)


def _wrap_int32(value: int) -> int:
    """`value` modulo 2^32, as a signed 32-bit integer."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def _mix(x: Tensor) -> Tensor:
    """The finaliser of MurmurHash3 on int32."""
    # torch shifts int32 arithmetically; the bit masks make the shifts logical.
    x = x ^ ((x >> 16) & 0xFFFF)
    x = x * _FIRST
    x = x ^ ((x >> 13) & 0x7FFFF)
    x = x * _SECOND
    return x ^ ((x >> 16) & 0xFFFF)
