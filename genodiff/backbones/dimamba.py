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
from jaxtyping import Float
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
    """A denoiser `(xt, sigma) -> logits` of partly masked sequences.

    Ids may also be weights of the ids (one-hot, or a mixture), through which a gradient flows.
    """

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
        self.head_bias = None

    @property
    def d_out(self) -> int:
        return self.settings.width

    @property
    def n_logits(self) -> int:
        """Logits of a position: the vocabulary, and spare rows where the head is tied."""
        return self.vocab_size + (self.settings.spare_rows if self.settings.tie_head else 0)

    def logits(self, features: Float[Tensor, "*shape D"]) -> Float[Tensor, "*shape V"]:
        """The head: what `features` says of each token."""
        first = 0 if self.head is not None else self.settings.width - self.settings.d_model
        return super().logits(features[..., first:])

    def _stream(
        self, xt: Tensor, sigma: Tensor | None, lengths: Tensor | None, labels: Tensor | None = None
    ) -> Iterator[Tensor]:
        c = self._find_condition(xt, sigma, labels)
        keys = self.dropout_keys if self.training else None
        mask = mask_padding(xt, lengths, self.embedding)
        yield from self._read(self._embed(xt, c), c, mask, keys)

    def _embed(self, xt: Tensor, c: Tensor | None) -> Float[Tensor, "B L D"]:
        one_hot, table = xt.is_floating_point(), self.embedding
        h = xt @ table[: xt.shape[2]] if one_hot else look_up(xt, table)
        if self.settings.conditioning == "concat" and c is not None:
            return torch.cat([c[:, None].expand(-1, h.shape[1], -1).to(h.dtype), h], -1)
        return h + c[:, None] if self.settings.conditioning == "add" and c is not None else h
