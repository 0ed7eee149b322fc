"""Conditioning of a network on a noise level and a class (adaptive layer norm, adaLN).

    c = silu(MLP(sinusoid(sigma))) + silu(E[label])
    sinusoid(s) = [cos(s f_0) .. cos(s f_h-1), sin(s f_0) .. sin(s f_h-1)]
    modulate(x; shift, scale) = x (1 + scale) + shift      f_j = 10000^(-j/h)

Shift, scale and gate of a layer are linear in c. They start at zero, so a new block is the
identity. Sources: Peebles and Xie, 2023, arXiv 2212.09748; Sahoo et al., 2024, arXiv 2406.07524;
Schiff et al., 2024, arXiv 2412.10193 (classes).
"""

from collections.abc import Iterator
from math import log
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from genodiff.backbones.backbone import Backbone, InitialValues, recompute
from genodiff.backbones.mamba import Projection
from genodiff.backbones.settings import FREQUENCIES
from genodiff.kernels.linear import look_up

_LONGEST_PERIOD = 10_000.0


def make_sinusoid(sigma: Float[Tensor, " B"], width: int) -> Float[Tensor, "B {width}"]:
    """[cos | sin] of sigma at width // 2 frequencies, from 1 down to 1/10000.

    An odd width ends with a zero. The table of frequencies is computed in float32, as in
    the published models. The rest is computed in the dtype of `sigma`.
    """
    half = width // 2
    table = torch.exp(
        -log(_LONGEST_PERIOD) * torch.arange(half, dtype=torch.float32, device=sigma.device) / half
    )
    angle = sigma[:, None] * table.to(sigma.dtype)
    return F.pad(torch.cat([torch.cos(angle), torch.sin(angle)], -1), (0, width % 2))


class NoiseLevel(nn.Module):
    """The embedding of a noise level: silu(MLP(sinusoid(sigma)))."""

    def __init__(self, d_cond: int, draws: InitialValues) -> None:
        super().__init__()
        self.first = Projection(FREQUENCIES, d_cond, True, draws)
        self.second = Projection(d_cond, d_cond, True, draws)

    def forward(self, sigma: Float[Tensor, " B"]) -> Float[Tensor, "B D"]:
        hidden = F.silu(self.first(make_sinusoid(sigma.to(self.first.weight.dtype), FREQUENCIES)))
        return F.silu(self.second(hidden))


class Label(nn.Module):
    """The embedding of a class: silu(E[label]). The last row, `n_classes`, means "no class".

    So it is in published networks. A label of -1 is none either: it adds nothing.
    """

    def __init__(self, n_classes: int, d_cond: int, draws: InitialValues) -> None:
        super().__init__()
        self.embedding = draws.table(n_classes + 1, d_cond)

    def forward(self, label: Int[Tensor, " B"]) -> Float[Tensor, "B D"]:
        return F.silu(embed_classes(label, self.embedding))


def embed_classes(
    label: Int[Tensor, " B"], table: Float[Tensor, "classes D"]
) -> Float[Tensor, "B D"]:
    """The row of each label, and zeros for -1."""
    return look_up(label.clamp(min=0), table) * (label >= 0)[:, None]


class Condition(nn.Module):
    """The condition c: of the noise level, and of the class if `n_classes` is above 0."""

    def __init__(self, d_cond: int, n_classes: int, time: bool, draws: InitialValues) -> None:
        super().__init__()
        self.time = time
        self.level = NoiseLevel(d_cond, draws)
        self.label = Label(n_classes, d_cond, draws) if n_classes else None

    def forward(self, n: int, sigma: Tensor | None, labels: Tensor | None) -> Float[Tensor, "B D"]:
        """The condition of `n` rows, from `sigma` (n,) and integer `labels` (n,).

        Sigma is 0 for a network without time conditioning, and where `sigma` is None.
        """
        zero = self.level.first.weight.new_zeros(n)
        c: Tensor = self.level(sigma if self.time and sigma is not None else zero)
        return c if self.label is None or labels is None else c + self.label(labels)


class Modulation(nn.Module):
    """`n` vectors of width d_model, linear in the condition and initially zero."""

    def __init__(self, d_cond: int, d_model: int, n: int) -> None:
        super().__init__()
        self.n = n
        self.weight = nn.Parameter(torch.zeros(n * d_model, d_cond))
        self.bias = nn.Parameter(torch.zeros(n * d_model))

    def forward(self, c: Float[Tensor, "B D"]) -> tuple[Tensor, ...]:
        return F.linear(c, self.weight, self.bias)[:, None].chunk(self.n, -1)


def modulate(x: Float[Tensor, "B L D"], shift: Tensor, scale: Tensor) -> Float[Tensor, "B L D"]:
    """x (1 + scale) + shift, with `shift` and `scale` of shape (B, 1, D)."""
    return x * (1 + scale) + shift


class ConditionedBackbone(Backbone):
    """A network of blocks that read the residual stream, a condition (if any) and more."""

    selects_rows = True
    condition: Condition | None
    final_modulation: Modulation | None
    head_bias: Tensor | None

    @property
    def n_logits(self) -> int:
        """Logits of a position."""
        return self.vocab_size

    def forward(
        self,
        xt: Int[Tensor, "B L"] | Float[Tensor, "B L _"],
        sigma: Float[Tensor, " B"] | None = None,
        lengths: Int[Tensor, " B"] | None = None,
        *,
        rows: Bool[Tensor, "B L"] | None = None,
        **options: Any,
    ) -> Float[Tensor, "*positions {self.n_logits}"]:
        """Logits (B, L, V), or those of the true positions of `rows`, (n, V), in reading order.

        lengths   each row's length where rows are padded on the right; padding then changes nothing
        labels    (an option) the class of each row, -1 or `n_classes` for none
        segments  (of a DiT) the document of each position where several are packed into a row; they
                  do not see one another
        """
        h = self.features(xt, sigma, lengths, **options)
        return self.logits(h if rows is None else h[rows])

    def logits(self, features: Float[Tensor, "*shape D"]) -> Float[Tensor, "*shape V"]:
        """The head: what `features` says of each token."""
        return F.linear(features, self.head_weight, self.head_bias)

    def _find_condition(
        self, xt: Tensor, sigma: Tensor | None, labels: Tensor | None
    ) -> Float[Tensor, "B D"] | None:
        """The condition of these rows; None where the network has none."""
        labels = self.fill_labels(xt, labels)
        return None if self.condition is None else self.condition(xt.shape[0], sigma, labels)

    def _read(self, h: Tensor, c: Tensor | None, *more: Any) -> Iterator[Tensor]:
        """The input of each block, the first being h, then what the head reads."""
        s: Any = self.settings
        again = s.checkpointing and torch.is_grad_enabled()
        for block in self.blocks:  # type: ignore[union-attr]
            yield h
            h = recompute(block, h, c, *more) if again else block(h, c, *more)
        h = self.final_norm(h)  # type: ignore[operator]
        yield h if self.final_modulation is None else modulate(h, *self.final_modulation(c))
