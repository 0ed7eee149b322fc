"""DiMamba: blocks of bidirectional Mamba under a condition (noise level, class), on one strand.

    adaln    h ← h + g ⊙ M(modulate(N(h); b, a));  logits = W modulate(N(h); b, a)
    b, a, g linear in the condition c
    add      h_0 = E[x] + c        concat   h_0 = [c, E[x]] over channels        none   h_0 = E[x]
             h ← h + M(N(h));      logits = W N(h)

Published weights of the last three were trained without the skip, h ← M(N(h)), by an oversight:
`residual: false`. Published concat networks have an embedding of more rows than tokens, and where
its head is tied, logits for all of them, from the channels behind c: `spare_rows`. Source: Sahoo et
al., 2024, arXiv 2406.07524; Schiff et al., 2024, arXiv 2412.10193 (classes).
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from genodiff.backbones.backbone import NETWORKS, InitialValues, Norm, drop, mask_padding
from genodiff.backbones.conditioning import Condition, ConditionedBackbone, Modulation, modulate
from genodiff.backbones.kinds.dimamba import DiMambaSettings
from genodiff.backbones.mamba import Mamba
from genodiff.kernels.linear import look_up


class Block(nn.Module):
    """Norm, modulation, mixer, and the way back into the stream."""

    def __init__(self, s: DiMambaSettings, layer: int, draws: InitialValues) -> None:
        super().__init__()
        self.layer, self.p, self.residual = layer, s.dropout, s.residual
        self.norm = Norm(s.norm, s.width, s.norm_eps)
        self.mixer = Mamba(s.width, s, draws)
        self.modulation = Modulation(s.d_cond, s.width, 3) if s.conditioning == "adaln" else None

    def forward(
        self, h: Tensor, c: Tensor | None, mask: Tensor | None, keys: Tensor | None
    ) -> Tensor:
        if self.modulation is None or c is None:
            y: Tensor = self.mixer(self.norm(h), mask)
            return h + y if self.residual else y
        shift, scale, gate = self.modulation(c)
        return h + gate * drop(
            self.mixer(modulate(self.norm(h), shift, scale), mask), self.p, keys, self.layer
        )


@NETWORKS.register("dimamba")
class DiMamba(ConditionedBackbone):
    """A denoiser `(xt, sigma) -> logits` of partly masked sequences."""

    settings: DiMambaSettings

    def __init__(self, *, settings: DiMambaSettings, vocab_size: int, seed: int = 0) -> None:
        super().__init__()
        s = self.settings = settings
        self.vocab_size = vocab_size
        draws = InitialValues(seed)
        self.embedding = draws.table(vocab_size + s.spare_rows, s.d_model)
        of = (s.width_cond, s.n_classes, s.time_conditioning, draws)
        self.condition = None if s.conditioning == "none" else Condition(*of)
        self.blocks = nn.ModuleList(Block(s, i, draws) for i in range(s.n_layer))
        self.final_norm = Norm(s.norm, s.width, s.norm_eps)
        adaln = s.conditioning == "adaln"
        self.final_modulation = Modulation(s.d_cond, s.width, 2) if adaln else None
        self.head = None if s.tie_head else draws.table(vocab_size, s.width)

    @property
    def d_out(self) -> int:
        return self.settings.width

    @property
    def n_logits(self) -> int:
        """Logits of a position: the vocabulary, and spare rows where the head is tied."""
        return self.vocab_size + (self.settings.spare_rows if self.settings.tie_head else 0)

    def forward(
        self,
        xt: Int[Tensor, "B L"] | Float[Tensor, "B L _"],
        sigma: Float[Tensor, " B"] | None = None,
        lengths: Int[Tensor, " B"] | None = None,
        *,
        rows: Bool[Tensor, "B L"] | None = None,
        labels: Int[Tensor, " B"] | None = None,
    ) -> Float[Tensor, "*positions {self.n_logits}"]:
        """Logits (B, L, V), or those of the true positions of `rows`, (n, V), in reading order.

        xt       ids, or weights of the ids (one-hot, or a mixture), through which a gradient flows
        lengths  each row's length where rows are padded on the right; padding then changes nothing
        labels   the class of each row, -1 or `n_classes` for none
        """
        h = self.features(xt, sigma, lengths, labels=labels)
        return self.logits(h if rows is None else h[rows])

    def logits(self, features: Float[Tensor, "*shape D"]) -> Float[Tensor, "*shape V"]:
        """The head: what `features` says of each token."""
        if self.head is None:
            features = features[..., self.settings.width - self.settings.d_model :]
        return F.linear(features, self.head_weight)

    def _stream(
        self, xt: Tensor, sigma: Tensor | None, lengths: Tensor | None, labels: Tensor | None = None
    ) -> Iterator[Tensor]:
        c = self._find_condition(xt, sigma, labels)
        keys = self.dropout_keys if self.training else None
        yield from self._read(
            self._embed(xt, c), c, mask_padding(xt, lengths, self.embedding), keys
        )

    def _embed(self, xt: Tensor, c: Tensor | None) -> Float[Tensor, "B L D"]:
        one_hot, table = xt.is_floating_point(), self.embedding
        h = xt @ table[: xt.shape[2]] if one_hot else look_up(xt, table)
        if self.settings.conditioning == "concat" and c is not None:
            return torch.cat([c[:, None].expand(-1, h.shape[1], -1).to(h.dtype), h], -1)
        return h + c[:, None] if self.settings.conditioning == "add" and c is not None else h
