"""The operations in plain torch, for `torch.export` and `torch.jit.trace`, which record them.

Nothing here depends on numbers in tensors or loops over time, so a recorded program holds for other
batches and lengths. The scan h_t = a_t h_{t−1} + b_t doubles its reach k in each of log₂ L rounds
(Hillis and Steele, 1986):

    b_t ← b_t + a_t b_{t−k}        a_t ← a_t a_{t−k}        k = 1, 2, 4, ...

It holds L · E · N numbers at once: for inference on sequences of some thousand bases.
"""

from itertools import takewhile

import torch
import torch.nn.functional as F
from torch import Tensor

LONGEST = 1 << 20
"""Positions that a recorded program of any length can take."""


def graph_scan(
    u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor | None, z: Tensor | None,
    delta_bias: Tensor | None, delta_softplus: bool, reverse: bool, h0: Tensor | None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """As `naive_scan`."""
    dt = delta if delta_bias is None else delta + delta_bias
    if delta_softplus:
        dt = F.softplus(dt)
    a, b = torch.exp(dt[..., None] * A), (dt * u)[..., None] * B[:, :, None, :]
    if reverse:
        a, b = a.flip(1), b.flip(1)
    if h0 is not None:
        b = torch.cat([b[:, :1] + a[:, :1] * h0[:, None], b[:, 1:]], 1)
    length = u.shape[1]
    # A length that is a symbol must not be compared with numbers: all rounds are recorded then.
    known = length if isinstance(length, int) else LONGEST
    place = torch.arange(length, device=u.device)
    for k in takewhile(lambda k: k < known, (1 << i for i in range(LONGEST.bit_length()))):
        before = (place - k).clamp(min=0)
        reached = (place >= k)[:, None, None]
        b = b + torch.where(reached, a * b.index_select(1, before), 0.0)
        a = torch.where(reached, a * a.index_select(1, before), a)
    state = b[:, -1]
    if reverse:
        b = b.flip(1)
    y = (b * C[:, :, None, :]).sum(-1)
    if D is not None:
        y = y + D * u
    return (y if z is None else y * F.silu(z)), state


def graph_conv(
    x: Tensor, weight: Tensor, bias: Tensor | None, reverse: bool, activation: str | None
) -> Tensor:
    """As `causal_conv1d`."""
    width, taps = weight.shape[1], weight.to(x.dtype)
    ahead = (0, width - 1) if reverse else (width - 1, 0)
    wide = F.pad(x.transpose(1, 2), ahead)
    kernel = (taps.flip(1) if reverse else taps)[:, None]
    shift = None if bias is None else bias.to(x.dtype)
    y = F.conv1d(wide, kernel, shift, groups=x.shape[2]).transpose(1, 2)
    return F.silu(y) if activation == "silu" else y


def graph_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """As `rms_norm`."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight
