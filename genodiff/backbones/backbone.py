"""What a network is: the interface that every backbone has, and the layers that they share.

Layers: fresh weights, norms, the flips that join both strands, and dropout by hashing.
"""

import copy
from collections.abc import Iterable, Iterator
from functools import partial
from math import prod
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from genodiff.backbones.settings import BACKBONES as BACKBONES
from genodiff.backbones.settings import NETWORKS as NETWORKS
from genodiff.backbones.settings import PRESETS as PRESETS
from genodiff.backbones.settings import TO_FILL
from genodiff.backbones.settings import BackboneSettings as BackboneSettings
from genodiff.counter import Purpose, uniform_rows, uniforms
from genodiff.errors import UsageError
from genodiff.kernels.norm import add_rms_norm, rms_norm


class Norm(nn.Module):
    """RMSNorm ("rms") or LayerNorm ("layer") over the last axis.

    `mirrored` reverses the order of the channels' weights. `bias` False: a LayerNorm has a weight
    only.
    """

    def __init__(self, kind: str, width: int, eps: float, bias: bool = True) -> None:
        super().__init__()
        self.eps, self.kind = eps, kind
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if kind == "layer" and bias else None

    def forward(
        self, x: Float[Tensor, "*shape D"], mirrored: bool = False
    ) -> Float[Tensor, "*shape D"]:
        weight = self._read_weight(mirrored)
        x = x.to(weight.dtype)
        if self.kind == "rms":
            return rms_norm(x, weight, self.eps)
        bias = self.bias.flip(0) if mirrored and self.bias is not None else self.bias
        return F.layer_norm(x, weight.shape, weight, bias, self.eps)

    def add(
        self, x: Float[Tensor, "*shape D"], added: Float[Tensor, "*shape D"], mirrored: bool = False
    ) -> tuple[Float[Tensor, "*shape D"], Float[Tensor, "*shape D"]]:
        """x + added, and its norm; on a GPU one kernel."""
        if self.kind == "rms":
            return add_rms_norm(x, added, self._read_weight(mirrored), self.eps)
        total = x + added
        return total, self(total, mirrored)

    def _read_weight(self, mirrored: bool) -> Tensor:
        return self.weight.flip(0) if mirrored else self.weight


def take_last(states: Iterable[Tensor]) -> Tensor:
    """The last of them; each is let go before the next is made."""
    for state in states:
        found = state
    return found


recompute = partial(checkpoint, use_reentrant=False, preserve_rng_state=False)
"""A call whose backward pass keeps its inputs alone and makes it again."""


def mask_padding(
    x: Shaped[Tensor, "B L *rest"], lengths: Int[Tensor, " B"] | None, like: Tensor
) -> Float[Tensor, "B L 1"] | None:
    """1 on each row's sequence and 0 behind it, in the dtype of `like`; None without lengths."""
    if lengths is None:
        return None
    at = torch.arange(x.shape[1], device=x.device)
    return (at < lengths[:, None])[..., None].to(like.dtype)


class InitialValues:
    """The initial values of a network's parameters.

    The i-th tensor that is asked for depends on (seed, i) alone. On the meta device it has a shape
    only, and with the seed `TO_FILL` it is zero.
    """

    def __init__(self, seed: int) -> None:
        self.seed, self.index = seed, -1

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Float[Tensor, "..."]:
        """Uniform in [low, high), float64."""
        self.index += 1
        if torch.get_default_device().type == "meta":
            return torch.empty(shape)
        if self.seed == TO_FILL:
            return torch.zeros(shape)
        u = torch.from_numpy(uniforms(self.seed, Purpose.INIT, self.index, prod(shape)))
        return (low + (high - low) * u).reshape(shape)

    def normal(self, *shape: int, std: float) -> Float[Tensor, "..."]:
        """Normal with mean 0, float64."""
        return torch.special.ndtri(self.uniform(*shape, low=1e-16)) * std

    def weight(self, *shape: int, bound: float, scale: float = 1.0) -> nn.Parameter:
        """A parameter, uniform in ±`bound`, times `scale`."""
        return nn.Parameter((self.uniform(*shape, low=-bound, high=bound) * scale).float())

    def table(self, *shape: int, std: float = 0.02) -> nn.Parameter:
        """A parameter, normal with mean 0, such as an embedding."""
        return nn.Parameter(self.normal(*shape, std=std).float())


def flip_positions(
    x: Shaped[Tensor, "B L *rest"], lengths: Int[Tensor, " B"] | None = None
) -> Shaped[Tensor, "B L *rest"]:
    """Each row read from its end; positions from `lengths` on, the padding, stay where they are."""
    if lengths is None:
        return x.flip(1)
    at = torch.arange(x.shape[1], device=x.device)
    source = torch.where(at < lengths[:, None], lengths[:, None] - 1 - at, at)
    return x.gather(1, source.reshape(*source.shape, *[1] * (x.ndim - 2)).expand(x.shape))


def stack_strands(
    xt: Int[Tensor, "B L"], complement: Int[Tensor, " V"], lengths: Int[Tensor, " B"] | None = None
) -> Int[Tensor, "2*B L"]:
    """The rows [x; rc x]."""
    return torch.cat([xt, flip_positions(complement[xt], lengths)])


def _halves(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Both strands' rows; as `chunk`, for a number of rows that may be a symbol (torch.export)."""
    half = rows.shape[0] // 2
    return rows[:half], rows[half:]


def vote(
    logits: Float[Tensor, "rows L V"],
    complement: Int[Tensor, " V"],
    lengths: Int[Tensor, " B"] | None = None,
) -> Float[Tensor, "B L V"]:
    """The sum of what both strands say about each base of the given one."""
    given, other = _halves(logits)
    return given + flip_positions(other, lengths)[..., complement]


def join_strands(
    rows: Float[Tensor, "rows L D"], lengths: Int[Tensor, " B"] | None = None
) -> Float[Tensor, "B L 2*D"]:
    """[s(x), R s(rc x)] over channels.

    For rc x it is the same tensor, flipped in positions and channels.
    """
    given, other = _halves(rows)
    return torch.cat([given, flip_positions(other, lengths).flip(2)], 2)


def exchange_strands(
    rows: Float[Tensor, "rows L D"], lengths: Int[Tensor, " B"] | None = None
) -> Float[Tensor, "rows L D"]:
    """The rows after the two halves of `join_strands` have changed places."""
    given, other = _halves(rows)
    return torch.cat([flip_positions(half, lengths).flip(2) for half in (other, given)])


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


class Backbone(nn.Module):
    """A denoiser `(xt, sigma, lengths) -> logits`, (B, L, V).

    `lengths` gives the length of each row where rows are padded on the right. A network whose
    settings have `n_classes` above 0 takes `labels` (B,) too: 0 to n_classes - 1, or -1 for none.
    """

    settings: BackboneSettings
    vocab_size: int
    paired: bool = False  # both strands stand side by side in `features`
    selects_rows: bool = False  # `forward` takes `rows`, a mask of the positions that get logits
    dropout_keys: Tensor | None = None  # of a step in training, from `dropout.dropout_keys`
    relatives: Any = None
    """The related genomes that it reads (`runs/related_model.py`)."""
    label: int | None = None
    """The class of rows that come without labels; None is no class."""

    @property
    def recalls(self) -> bool:
        """Whether `forward` takes `recalled` (B, L, 4), what a memory says of each position."""
        return self.settings.reads_memory

    @property
    def d_out(self) -> int:
        """The width of `features`."""
        return self.settings.d_model

    @property
    def head_weight(self) -> Tensor:
        """The weight of the head, which may be the embedding."""
        weight: Tensor = self.embedding if self.head is None else self.head  # type: ignore[assignment]
        return weight

    def of_class(self, label: int) -> "Backbone":
        """This network, its weights shared, for one class: `label` is 0 to n_classes - 1."""
        one = copy.copy(self)
        one.label = label
        return one

    def fill_labels(self, xt: Tensor, labels: Int[Tensor, " B"] | None) -> Int[Tensor, " B"] | None:
        """The labels of rows: those given, or else the network's own; a label of -1 is none.

        Raises `UsageError` where the network knows no classes.
        """
        if labels is None and self.label is not None:
            labels = torch.full((xt.shape[0],), self.label, device=xt.device)
        if labels is not None and not getattr(self.settings, "n_classes", 0):
            fix = "train one with --labels"
            raise UsageError("this network was trained without classes", fix=fix)
        return labels

    def _stream(self, *given: Any, **options: Any) -> Iterator[Tensor]:
        """The input of each block, then what the head reads."""
        raise NotImplementedError

    def features(
        self,
        xt: Int[Tensor, "B L"] | Float[Tensor, "B L _"],
        sigma: Tensor | None = None,
        lengths: Int[Tensor, " B"] | None = None,
        **options: Any,
    ) -> Float[Tensor, "B L {self.d_out}"]:
        """What the head reads. Needed by `embed` and `finetune` only."""
        return take_last(self._stream(xt, sigma, lengths, **options))

    def hidden_states(
        self,
        xt: Int[Tensor, "B L"] | Float[Tensor, "B L _"],
        sigma: Tensor | None = None,
        lengths: Int[Tensor, " B"] | None = None,
        **options: Any,
    ) -> list[Float[Tensor, "B L {self.d_out}"]]:
        """n_layer + 1 tensors: the input of each block (of a Caduceus, without the residual), then
        `features`. Needed by `embed` only.
        """
        return list(self._stream(xt, sigma, lengths, **options))
