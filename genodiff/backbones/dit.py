"""DiT: a pre-norm transformer with rotary positions, for masked or causal modelling.

    h ← h + g_1 ⊙ attention(modulate(N_1(h); b_1, a_1))
    h ← h + g_2 ⊙ W_2 gelu(W_1 modulate(N_2(h); b_2, a_2))
    per block; logits = W modulate(N(h); b, a) + bias

With adaLN, shifts b, scales a and gates g are linear in the condition c (`conditioning`) and zero
at first; without it, b = a = 0 and g = 1. With adaLN the head starts at zero, as published, so that
a fresh network gives every token the same chance; without, it is drawn: through a head of zeros the
first gradients reach the blocks along one direction only (that of the tokens' shares), and a masked
denoiser stays at the shares for thousands of small steps. Source: Peebles and Xie, 2023, arXiv
2212.09748; as a masked denoiser, Lou et al., 2024, arXiv 2310.16834 and Sahoo et al., 2024, arXiv
2406.07524, whose published weights have this form.
"""

from collections.abc import Iterator
from math import sqrt

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from genodiff.backbones.attention import (
    Attention,
    KeyValueCache,
    Rotation,
    make_rotation,
    make_visible_mask,
)
from genodiff.backbones.backbone import NETWORKS, InitialValues, Norm, drop, take_last
from genodiff.backbones.conditioning import Condition, ConditionedBackbone, Modulation, modulate
from genodiff.backbones.kinds.dit import DiTSettings
from genodiff.backbones.mamba import Projection
from genodiff.errors import UsageError
from genodiff.kernels.linear import look_up

_HEAD_STD = 0.05


class Block(nn.Module):
    """Attention, then a hidden layer, each beside the residual stream."""

    def __init__(self, s: DiTSettings, layer: int, draws: InitialValues) -> None:
        super().__init__()
        self.layer, self.p = layer, s.dropout
        # Gates that open from zero need no smaller start.
        scale = 1.0 if s.adaln else 1 / sqrt(2 * s.n_layer)
        self.attention_norm = Norm(s.norm, s.d_model, s.norm_eps, bias=not s.adaln)
        self.attention = Attention(s.d_model, s.n_head, s.causal, draws, scale, s.qk_bias)
        self.mlp_norm = Norm(s.norm, s.d_model, s.norm_eps, bias=not s.adaln)
        self.mlp_in = Projection(s.d_model, s.mlp_ratio * s.d_model, True, draws)
        self.mlp_out = Projection(s.mlp_ratio * s.d_model, s.d_model, True, draws, scale)
        self.modulation = Modulation(s.d_cond, s.d_model, 6) if s.adaln else None

    def forward(
        self,
        h: Tensor,
        c: Tensor | None,
        turn: Rotation | None,
        seen: Tensor | None,
        keys: Tensor | None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        n = 2 * self.layer
        if self.modulation is None or c is None:
            y = self.attention(self.attention_norm(h), turn, seen, cache, self.layer)
            h = h + drop(y, self.p, keys, n)
            return h + drop(self._mlp(self.mlp_norm(h)), self.p, keys, n + 1)
        shift, scale, gate, shift_mlp, scale_mlp, gate_mlp = self.modulation(c)
        x = modulate(self.attention_norm(h), shift, scale)
        h = h + gate * drop(self.attention(x, turn, seen, cache, self.layer), self.p, keys, n)
        y = self._mlp(modulate(self.mlp_norm(h), shift_mlp, scale_mlp))
        return h + gate_mlp * drop(y, self.p, keys, n + 1)

    def _mlp(self, x: Tensor) -> Tensor:
        y: Tensor = self.mlp_out(F.gelu(self.mlp_in(x), approximate="tanh"))
        return y


@NETWORKS.register("dit")
class DiT(ConditionedBackbone):
    """A denoiser `(xt, sigma) -> logits`; a causal one gives the logits of the next token."""

    settings: DiTSettings

    def __init__(self, *, settings: DiTSettings, vocab_size: int, seed: int = 0) -> None:
        super().__init__()
        s = self.settings = settings
        self.vocab_size = vocab_size
        draws = InitialValues(seed)
        self.embedding = draws.weight(vocab_size, s.d_model, bound=1 / sqrt(s.d_model))
        of = (s.d_cond, s.n_classes, s.time_conditioning, draws)
        self.condition = Condition(*of) if s.adaln else None
        self.blocks = nn.ModuleList(Block(s, i, draws) for i in range(s.n_layer))
        self.final_norm = Norm(s.norm, s.d_model, s.norm_eps, bias=not s.adaln)
        self.final_modulation = Modulation(s.d_cond, s.d_model, 2) if s.adaln else None
        self.head: nn.Parameter | None = None
        if not s.tie_head and s.adaln:
            self.head = nn.Parameter(torch.zeros(vocab_size, s.d_model))
        elif not s.tie_head:
            self.head = draws.table(vocab_size, s.d_model, std=_HEAD_STD)
        self.head_bias = None if s.tie_head else nn.Parameter(torch.zeros(vocab_size))

    def cache(self, capacity: int) -> KeyValueCache:
        """An empty cache for `decode`, of `capacity` positions."""
        if not self.settings.causal:
            what = "only a causal network can continue from a cached state"
            raise UsageError(what, fix="train it with causal: true")
        return KeyValueCache(capacity)

    def decode(
        self,
        x: Int[Tensor, "B n"],
        cache: KeyValueCache,
        sigma: Float[Tensor, " B"] | None = None,
        labels: Int[Tensor, " B"] | None = None,
    ) -> Float[Tensor, "B n {self.vocab_size}"]:
        """Logits of the n positions that follow those in the cache, which then holds them too."""
        features = take_last(self._stream(x, sigma, None, None, labels, cache))
        cache.length += x.shape[1]
        return self.logits(features)

    def _stream(
        self,
        xt: Tensor,
        sigma: Tensor | None,
        lengths: Tensor | None,
        segments: Tensor | None = None,
        labels: Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Iterator[Tensor]:
        s, length = self.settings, xt.shape[1]
        seen = make_visible_mask(length, lengths, segments, s.causal)
        start = 0 if cache is None else cache.length
        width = s.d_model // s.n_head
        turn = make_rotation(start, length, width, self.embedding) if s.rotary else None
        keys = self.dropout_keys if self.training else None
        c = self._find_condition(xt, sigma, labels)
        yield from self._read(look_up(xt, self.embedding), c, turn, seen, keys, cache)
