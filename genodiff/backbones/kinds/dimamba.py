"""The shapes of a DiMamba."""

from math import ceil
from typing import Annotated, Literal

from pydantic import Field, model_validator

from genodiff.backbones.settings import (
    BACKBONES,
    PRESETS,
    BackboneSettings,
    count_condition_weights,
    count_mamba_weights,
    count_modulation_weights,
)


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
        default=True, description="condition on the noise level; otherwise on noise level 0 always"
    )
    d_cond: int = Field(
        default=128, ge=1, description="width of the condition; add uses d_model instead"
    )
    n_classes: int = Field(
        default=0, ge=0, description="number of classes, besides the unconditional one"
    )
    residual: bool = Field(
        default=True, description="residual blocks; false, without adaln: no residual, as published"
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
        default="add", description="how the two directions are combined"
    )
    tie_directions: bool = Field(
        default=True, description="both directions share their input and output projections"
    )
    tie_head: bool = Field(default=False, description="the head is the embedding")
    spare_rows: int = Field(
        default=0,
        ge=0,
        description="embedding rows beyond the tokens, as in published concat networks",
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
            what = "with adaln a block always adds to its input: residual cannot be false"
            raise ValueError(what)
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

    def n_parameters(self, vocab_size: int) -> int:
        """The number of weights, without building them."""
        d = self.width
        total = (
            (vocab_size + self.spare_rows) * self.d_model
            + (0 if self.tie_head else vocab_size * d)
            + count_mamba_weights(self, d)
        )
        if self.conditioning == "adaln":
            total += count_modulation_weights(self.d_cond, d, 3 * self.n_layer + 2)
        if self.conditioning != "none":
            total += count_condition_weights(self.width_cond, self.n_classes)
        return total


PRESETS.add("dimamba-470k", DiMambaSettings(d_model=88, n_layer=5, d_cond=64))  # 471,432
# The published networks: of ten species (4,774,912 with 12 tokens) and of text (28,407,552).
PRESETS.add("dimamba-4.8m", DiMambaSettings(d_model=256, n_layer=8))
PRESETS.add("dimamba-tiny", DiMambaSettings(d_model=512, n_layer=14))
