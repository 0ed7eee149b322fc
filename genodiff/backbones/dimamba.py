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
from math import ceil, sqrt
from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from genodiff.backbones.backbone import BACKBONES, PRESETS, Backbone, BackboneSettings
from genodiff.backbones.conditioning import Condition, Modulation, modulate
from genodiff.backbones.dropout import drop
from genodiff.backbones.layers import InitialValues, Norm, take_last
from genodiff.backbones.mamba import Mamba
from genodiff.errors import UsageError

_EMBEDDING_STD = 0.02


@BACKBONES.register("dimamba")
class DiMambaSettings(BackboneSettings):
    """The shape of a DiMamba."""

    usual_preset = "dimamba-470k"

    kind: Literal["dimamba"] = "dimamba"
    d_model: int = Field(ge=1, description="width of the residual stream; concat adds d_cond to it")
    conditioning: Literal["adaln", "add", "concat", "none"] = Field(
        default="adaln", description="how the condition reaches the blocks"
    )
    time_conditioning: bool = Field(
        default=True,
        description="the condition is of the noise level; else of noise level 0 always",
    )
    d_cond: int = Field(
        default=128, ge=1, description="width of the condition; add takes d_model in its place"
    )
    n_classes: int = Field(
        default=0, ge=0, description="classes that may be asked for; one more stands for none"
    )
    residual: bool = Field(
        default=True,
        description="a block adds to its input; false, without adaln: it replaces it, as published",
    )
    d_state: int = Field(default=16, ge=1, description="states per channel")
    d_conv: int = Field(default=4, ge=1, description="width of the short convolution")
    expand: int = Field(
        default=2, ge=1, description="channels of the mixer per channel of the residual stream"
    )
    dt_rank: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        default="auto",
        description="rank of the step sizes; auto: width of the stream / 16, rounded up",
    )
    bidirectional: bool = True
    bidirectional_strategy: Literal["add", "ew_multiply"] = Field(
        default="add", description="how the two directions meet"
    )
    tie_directions: bool = Field(
        default=True, description="both directions share their input and output projections"
    )
    tie_head: bool = Field(default=False, description="the head is the embedding")
    spare_rows: int = Field(
        default=0,
        ge=0,
        description="rows of the embedding beyond the tokens, as published concat networks have",
    )
    norm: Literal["rms", "layer"] = "rms"
    norm_eps: float = Field(default=1e-5, gt=0)
    conv_bias: bool = True
    proj_bias: bool = False
    dropout: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="share of a block's output dropped in training; with adaln only",
    )
    checkpointing: bool = Field(
        default=False,
        description="recompute each block in the backward pass: less memory, a third more time",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> "DiMambaSettings":
        if self.conditioning == "adaln" and not self.residual:
            raise ValueError(
                "with adaln a block always adds to its input: residual cannot be false"
            )
        if self.conditioning != "adaln" and self.dropout:
            raise ValueError("dropout needs conditioning: adaln")
        if self.conditioning == "none" and (self.time_conditioning or self.n_classes):
            raise ValueError("time_conditioning and n_classes need a conditioning")
        return self

    @property
    def causal(self) -> bool:
        """Whether a position sees only itself and those before it."""
        return not self.bidirectional

    @property
    def time_conditioned(self) -> bool:
        """Whether the logits depend on sigma."""
        return self.time_conditioning

    @property
    def width(self) -> int:
        """Channels of the residual stream."""
        return self.d_model + (self.d_cond if self.conditioning == "concat" else 0)

    @property
    def rank(self) -> int:
        """The rank of the step sizes, resolved."""
        return ceil(self.width / 16) if self.dt_rank == "auto" else self.dt_rank

    @property
    def width_cond(self) -> int:
        """Width of the condition, resolved."""
        return self.d_model if self.conditioning == "add" else self.d_cond

    def build(
        self, vocab_size: int, complement: tuple[int, ...] | None = None, *, seed: int = 0
    ) -> "DiMamba":
        """A network with weights drawn from `seed`; `complement` is not used."""
        return DiMamba(settings=self, vocab_size=vocab_size, seed=seed)

    def n_parameters(self, vocab_size: int) -> int:
        """The number of weights, without building them."""
        d, e, n = self.width, self.expand * self.width, self.d_state
        direction = (
            e * self.d_conv
            + e * self.conv_bias
            + e * (self.rank + 2 * n)
            + e * self.rank
            + e
            + e * n
            + e
        )
        projections = 3 * d * e + (2 * e + d) * self.proj_bias
        norm = d * (1 if self.norm == "rms" else 2)
        pairs = 2 if self.bidirectional and not self.tie_directions else 1
        block = norm + pairs * projections + (2 if self.bidirectional else 1) * direction
        total = (
            (vocab_size + self.spare_rows) * self.d_model
            + (0 if self.tie_head else vocab_size * d)
            + self.n_layer * block
            + norm
        )
        if self.conditioning == "adaln":
            total += self.n_layer * Modulation.n_parameters(
                self.d_cond, d, 3
            ) + Modulation.n_parameters(self.d_cond, d, 2)
        return total + (
            0
            if self.conditioning == "none"
            else Condition.n_parameters(self.width_cond, self.n_classes)
        )


class Block(nn.Module):
    """Norm, modulation, mixer, and the way back into the stream."""

    def __init__(self, s: DiMambaSettings, layer: int, draws: InitialValues) -> None:
        super().__init__()
        self.layer, self.p, self.residual = layer, s.dropout, s.residual
        self.norm = Norm(s.norm, s.width, s.norm_eps)
        self.mixer = Mamba(
            s.width, d_state=s.d_state, d_conv=s.d_conv, expand=s.expand, dt_rank=s.rank,
            conv_bias=s.conv_bias,
            proj_bias=s.proj_bias, bidirectional=s.bidirectional, strategy=s.bidirectional_strategy,
            tie_directions=s.tie_directions, out_scale=1 / sqrt(s.n_layer), draws=draws,
        )  # fmt: skip
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


class DiMamba(Backbone):
    """A denoiser `(xt, sigma) -> logits` of partly masked sequences."""

    settings: DiMambaSettings
    selects_rows = True

    def __init__(self, *, settings: DiMambaSettings, vocab_size: int, seed: int = 0) -> None:
        super().__init__()
        s = self.settings = settings
        self.vocab_size = vocab_size
        draws = InitialValues(seed)
        self.embedding = nn.Parameter(
            draws.normal(vocab_size + s.spare_rows, s.d_model, std=_EMBEDDING_STD).float()
        )
        has_condition = s.conditioning != "none"
        self.condition = (
            Condition(s.width_cond, s.n_classes, s.time_conditioning, draws)
            if has_condition
            else None
        )
        self.blocks = nn.ModuleList(Block(s, i, draws) for i in range(s.n_layer))
        self.final_norm = Norm(s.norm, s.width, s.norm_eps)
        self.final_modulation = (
            Modulation(s.d_cond, s.width, 2) if s.conditioning == "adaln" else None
        )
        self.head = (
            None
            if s.tie_head
            else nn.Parameter(draws.normal(vocab_size, s.width, std=_EMBEDDING_STD).float())
        )

    @property
    def d_out(self) -> int:
        """The width of `features`."""
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
        labels   the class of each row, `n_classes` for none
        """
        h = self.features(xt, sigma, lengths, labels=labels)
        return self.logits(h if rows is None else h[rows])

    def logits(self, features: Float[Tensor, "*shape D"]) -> Float[Tensor, "*shape V"]:
        """The head: what `features` says of each token."""
        if self.head is not None:
            return F.linear(features, self.head)
        return F.linear(
            features[..., self.settings.width - self.settings.d_model :], self.embedding
        )

    def features(
        self,
        xt: Int[Tensor, "B L"] | Float[Tensor, "B L _"],
        sigma: Float[Tensor, " B"] | None = None,
        lengths: Int[Tensor, " B"] | None = None,
        *,
        labels: Int[Tensor, " B"] | None = None,
    ) -> Float[Tensor, "B L {self.d_out}"]:
        """What the head reads."""
        return take_last(self._stream(xt, sigma, lengths, labels))

    def hidden_states(
        self,
        xt: Int[Tensor, "B L"] | Float[Tensor, "B L _"],
        sigma: Float[Tensor, " B"] | None = None,
        lengths: Int[Tensor, " B"] | None = None,
        *,
        labels: Int[Tensor, " B"] | None = None,
    ) -> list[Float[Tensor, "B L {self.d_out}"]]:
        """n_layer + 1 tensors of the residual stream.

        They are the first block's input, the stream after each block but the last, and the
        features.
        """
        return list(self._stream(xt, sigma, lengths, labels))

    def _stream(
        self, xt: Tensor, sigma: Tensor | None, lengths: Tensor | None, labels: Tensor | None
    ) -> Iterator[Tensor]:
        """The input of each block, then what the head reads."""
        s = self.settings
        if labels is not None and not s.n_classes:
            raise UsageError("this network knows no classes", fix="train one with n_classes")
        c = None if self.condition is None else self.condition(xt.shape[0], sigma, labels)
        mask = None
        if lengths is not None:
            mask = (torch.arange(xt.shape[1], device=xt.device) < lengths[:, None])[..., None].to(
                self.embedding.dtype
            )
        keys = self.dropout_keys if self.training else None
        h = (
            xt @ self.embedding[: xt.shape[2]]
            if xt.is_floating_point()
            else F.embedding(xt, self.embedding)
        )
        if s.conditioning == "concat" and c is not None:
            h = torch.cat([c[:, None].expand(-1, h.shape[1], -1).to(h.dtype), h], -1)
        elif s.conditioning == "add" and c is not None:
            h = h + c[:, None]
        for block in self.blocks:
            yield h
            if s.checkpointing and torch.is_grad_enabled():
                h = checkpoint(
                    block, h, c, mask, keys, use_reentrant=False, preserve_rng_state=False
                )
            else:
                h = block(h, c, mask, keys)
        h = self.final_norm(h)
        if self.final_modulation is not None and c is not None:
            h = modulate(h, *self.final_modulation(c))
        yield h


PRESETS.add("dimamba-470k", DiMambaSettings(d_model=88, n_layer=5, d_cond=64))  # 471,432
# The published networks: of ten species (4,774,912 with 12 tokens) and of text (28,407,552).
PRESETS.add("dimamba-4.8m", DiMambaSettings(d_model=256, n_layer=8))
PRESETS.add("dimamba-tiny", DiMambaSettings(d_model=512, n_layer=14))
