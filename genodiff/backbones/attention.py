"""Self-attention over heads with rotary positions, and the cache of a causal decoder.

    q_i → R(i) q_i, k_j → R(j) k_j: the score of a query and a key depends on i − j only. R(i)
    rotates the pair (x_m, x_{m + h/2}) by the angle i · 10000^(−2m/h), h the width of a head.

With biases on queries and keys (`qk_bias`), heads initially attend to the neighbours on either
side, at distances 1, 1, 2, 2, ...: a masked token carries no information, and a network that
attends uniformly takes long to learn that its neighbours matter.

A query sees the keys of its own document if rows are packed (`segments`), none beyond its row's
length, and none after it if attention is causal. Source: Vaswani et al., 2017, arXiv 1706.03762; Su
et al., 2021, arXiv 2104.09864.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from genodiff.backbones.backbone import InitialValues
from genodiff.backbones.mamba import Projection
from genodiff.errors import UsageError

_BASE = 10_000.0
_FAST = 0.1  # radians per position: slower pairs hardly tell near positions apart
_SHARPNESS = 7.0  # the logit of the position that a head looks at first, a far one having about 0


class Rotation(NamedTuple):
    """cos and sin of the angles of L positions, each (L, h/2)."""

    cos: Tensor
    sin: Tensor


def make_rotation(start: int, length: int, width: int, like: Tensor) -> Rotation:
    """The angles of the positions start .. start + length − 1.

    The heads have the width `width`; the tensors are on the device of `like`. Frequencies are made
    in float32, as published weights have seen them, angles in the precision of `like`, at least
    float32.
    """
    dtype = torch.promote_types(like.dtype, torch.float32)
    frequencies = 1.0 / (
        _BASE ** (torch.arange(0, width, 2, dtype=torch.float32, device=like.device) / width)
    )
    angle = torch.outer(
        torch.arange(start, start + length, device=like.device).to(dtype), frequencies.to(dtype)
    )
    return Rotation(angle.cos(), angle.sin())


def rotate(x: Float[Tensor, "B H L h"], by: Rotation) -> Float[Tensor, "B H L h"]:
    """Rotate the pairs (x_m, x_{m + h/2}) of each position of x by its angles."""
    a, b = x.chunk(2, -1)
    return torch.cat([a * by.cos - b * by.sin, b * by.cos + a * by.sin], -1).to(x.dtype)


def make_visible_mask(
    length: int,
    lengths: Int[Tensor, " B"] | None,
    segments: Int[Tensor, "B L"] | None,
    causal: bool,
) -> Bool[Tensor, "B 1 _ {length}"] | None:
    """Mask of the keys that each query sees; None if no mask is needed."""
    if lengths is None and segments is None:
        return None
    device = next(x.device for x in (lengths, segments) if x is not None)
    at = torch.arange(length, device=device)
    seen = torch.ones(1, 1, 1, length, dtype=torch.bool, device=device)
    if lengths is not None:
        seen = (at < lengths[:, None])[:, None, None]
    if segments is not None:
        seen = seen & (segments[:, None, :, None] == segments[:, None, None, :])
    if causal:
        seen = seen & (at <= at[:, None])
    return seen


@dataclass
class KeyValueCache:
    """Keys and values of all layers at the `length` positions that a causal network has read."""

    capacity: int
    length: int = 0
    keys: list[Tensor] = field(default_factory=list)
    values: list[Tensor] = field(default_factory=list)

    def extend(
        self, layer: int, k: Float[Tensor, "B H n h"], v: Float[Tensor, "B H n h"]
    ) -> tuple[Tensor, Tensor]:
        """Add the next n positions of `layer`; returns all of its keys and values so far."""
        until = self.length + k.shape[2]
        if until > self.capacity:
            what = f"the cache holds {self.capacity} positions, {until} are requested"
            raise UsageError(what, fix="make a larger cache")
        if layer == len(self.keys):
            for store in (self.keys, self.values):
                store.append(k.new_empty(*k.shape[:2], self.capacity, k.shape[3]))
        self.keys[layer][:, :, self.length : until] = k
        self.values[layer][:, :, self.length : until] = v
        return self.keys[layer][:, :, :until], self.values[layer][:, :, :until]


def near(n_head: int, width: int, causal: bool) -> Float[Tensor, "2 H 1 h"]:
    """Biases of queries and keys that make heads attend to near positions first.

    Head n attends to the position 1, 1, 2, 2, ... before and after in turn; a causal one 1, 2, ...
    before. q = a e, k = a R(d) e, e having a 1 in the first half of each fast pair, so that the
    logit of position j for position i is a² Σ cos((i − j − d) θ_m) / √h, with its maximum,
    `_SHARPNESS`, at j = i − d.
    """
    angle = 1.0 / (_BASE ** (torch.arange(0, width, 2) / width))
    fast = (angle >= _FAST).float()
    scale = (_SHARPNESS * width**0.5 / fast.sum()) ** 0.5
    heads = torch.arange(n_head)
    distance = heads + 1 if causal else (heads // 2 + 1) * torch.where(heads % 2 == 0, 1, -1)
    turned = torch.outer(distance.float(), angle)
    q = torch.cat([fast, torch.zeros_like(fast)]).expand(n_head, width)
    k = torch.cat([fast * turned.cos(), fast * turned.sin()], -1)
    return scale * torch.stack([q, k])[:, :, None]


class Attention(nn.Module):
    """Multi-head self-attention (B, L, D) → (B, L, D).

    With `qk_bias`, (2, H, 1, h), queries and keys have biases.
    """

    def __init__(
        self,
        d_model: int,
        n_head: int,
        causal: bool,
        draws: InitialValues,
        out_scale: float = 1.0,
        qk_bias: bool = False,
    ) -> None:
        super().__init__()
        self.n_head, self.causal = n_head, causal
        self.qkv = Projection(d_model, 3 * d_model, False, draws)
        self.out = Projection(d_model, d_model, False, draws, out_scale)
        self.qk_bias = nn.Parameter(near(n_head, d_model // n_head, causal)) if qk_bias else None
        if self.qk_bias is not None:
            self.qk_bias._no_weight_decay = True  # type: ignore[attr-defined]

    def forward(
        self,
        x: Float[Tensor, "B L D"],
        turn: Rotation | None,
        seen: Tensor | None = None,
        cache: KeyValueCache | None = None,
        layer: int = 0,
    ) -> Float[Tensor, "B L D"]:
        """`seen` is a `make_visible_mask`. With a `cache` the L positions follow those in it."""
        batch, length, width = x.shape
        heads = self.qkv(x).view(batch, length, 3, self.n_head, width // self.n_head)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        if self.qk_bias is not None:
            q, k = q + self.qk_bias[0], k + self.qk_bias[1]
        if turn is not None:
            q, k = rotate(q, turn), rotate(k, turn)
        causal = self.causal and seen is None and length > 1
        if cache is not None:
            before = cache.length
            k, v = cache.extend(layer, k, v)
            if before and length > 1:
                seen = torch.ones(length, before + length, dtype=torch.bool, device=x.device)
                seen, causal = seen.tril(before), False
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, is_causal=causal)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))
