"""The shapes of a DiT."""

from typing import Literal

from pydantic import Field, model_validator

from genodiff.backbones.settings import (
    BACKBONES,
    PRESETS,
    BackboneSettings,
    StepBytes,
    count_condition_weights,
    count_modulation_weights,
)


@BACKBONES.register("dit")
class DiTSettings(BackboneSettings):
    """The shape of a DiT."""

    usual_preset = "dit-470k"

    kind: Literal["dit"] = "dit"
    n_head: int = Field(ge=1, description="attention heads; d_model is a multiple")
    mlp_ratio: int = Field(
        default=4,
        ge=1,
        description="width of a block's hidden layer per channel of the residual stream",
    )
    rotary: bool = Field(
        default=True, description="rotary positions; without them attention ignores order"
    )
    qk_bias: bool = Field(
        default=False, description="biases of queries and keys that favour near positions"
    )
    causal: bool = Field(default=False, description="causal attention, for autoregressive models")
    norm: Literal["rms", "layer"] = "layer"
    norm_eps: float = Field(default=1e-5, gt=0)
    adaln: bool = Field(
        default=True, description="scale, shift and gate each block by the condition"
    )
    time_conditioning: bool = Field(
        default=False, description="condition on the noise level; otherwise on noise level 0 always"
    )
    d_cond: int = Field(default=128, ge=1, description="width of the condition")
    n_classes: int = Field(
        default=0, ge=0, description="number of classes, besides the unconditional one"
    )
    tie_head: bool = Field(default=False, description="the head is the embedding, and has no bias")
    dropout: float = Field(
        default=0.0, ge=0, lt=1, description="share of a sublayer's output dropped in training"
    )
    checkpointing: bool = Field(
        default=False,
        description="recompute each block in the backward pass: less memory, a third more time",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> "DiTSettings":
        if self.d_model % self.n_head:
            raise ValueError(f"d_model {self.d_model} is not a multiple of n_head {self.n_head}")
        if self.rotary and self.d_model // self.n_head % 2:
            raise ValueError(
                f"heads of odd width {self.d_model // self.n_head} cannot turn: change n_head, "
                f"or set rotary: false"
            )
        if self.qk_bias and not self.rotary:
            raise ValueError("qk_bias needs rotary: true")
        if not self.adaln and (self.time_conditioning or self.n_classes):
            raise ValueError("time_conditioning and n_classes need adaln: true")
        return self

    def count_step_bytes(self, length: int, word: int) -> StepBytes | None:
        """With flash attention; counted of a block's saved tensors. None with RMSNorm.

        A block keeps its hidden layer twice, 9 tensors of the stream's width in the products' dtype
        (queries, keys and values as they come and turned, what attention gives, inputs of
        products), and the inputs of two norms in float32; adaLN keeps two more of either kind.
        """
        if self.norm != "layer":
            return None
        d, more = self.d_model, 2 if self.adaln else 0
        block = d * (word * (9 + more + 2 * self.mlp_ratio) + 4 * (2 + more))
        last, residual, ids = d * (word + 4 + 2 * more), 4 * d, 8
        kept = self.n_layer * residual + block if self.checkpointing else self.n_layer * block
        return StepBytes(kept + last + ids, 10 * d)

    def n_parameters(self, vocab_size: int) -> int:
        """The number of weights, without building them."""
        d, hidden = self.d_model, self.mlp_ratio * self.d_model
        norm = d * (1 if self.norm == "rms" or self.adaln else 2)
        block = 2 * norm + 4 * d * d + 2 * d * hidden + hidden + d + (2 * d if self.qk_bias else 0)
        head = 0 if self.tie_head else vocab_size * (d + 1)
        total = vocab_size * d + self.n_layer * block + norm + head
        if not self.adaln:
            return total
        modulations = count_modulation_weights(self.d_cond, d, 6 * self.n_layer + 2)
        return total + modulations + count_condition_weights(self.d_cond, self.n_classes)


# The published text models have GPT-2's vocabulary and a mask, 50,258 tokens.
for _name, _size in {
    "dit-tiny": (512, 8, 8),  # 28,559,116 with 12 tokens
    "dit-small": (768, 12, 12),  # 169,627,218 with 50,258
    "dit-medium": (1024, 24, 16),  # 424,477,010 with 50,258
}.items():
    PRESETS.add(_name, DiTSettings(d_model=_size[0], n_layer=_size[1], n_head=_size[2]))

# 471,520: to be compared with caduceus-*-470k at equal parameters.
for _name, _one_way in (("dit-470k", False), ("dit-causal-470k", True)):
    _shape = DiTSettings(d_model=88, n_layer=5, n_head=4, adaln=False, norm="rms", qk_bias=True)
    PRESETS.add(_name, _shape.model_copy(update={"causal": _one_way}))

# The default for text on a CPU: 1,254,536 with the 264 rows of the byte vocabulary.
PRESETS.add(
    "dit-tiny-bytes",
    DiTSettings(d_model=128, n_layer=6, n_head=4, adaln=False, norm="rms", qk_bias=True),
)
