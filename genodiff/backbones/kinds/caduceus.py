"""The shapes of a Caduceus, and of a one-way Mamba."""

from collections.abc import Callable
from math import ceil
from typing import Annotated, Any, Literal

from pydantic import Field, model_serializer, model_validator

from genodiff.backbones.settings import (
    BACKBONES,
    PRESETS,
    BackboneSettings,
    StepBytes,
    count_mamba_weights,
)

RECALLED = 4
"""Numbers that a memory says of a position: the chance that it copies A, C, G or T."""
STATE_EVERY = 16
"""Steps between two states that a scan on a GPU keeps: a tile of its kernels."""

ROW_BYTES = 16
"""Of what a row of a mixer's channels takes on a GPU is a multiple."""


@BACKBONES.register("caduceus")
class CaduceusSettings(BackboneSettings):
    """The shape of a Caduceus."""

    usual_preset = "caduceus-ps-470k"

    kind: Literal["caduceus"] = "caduceus"
    strands: Literal["paired", "single"] = Field(
        default="paired", description="both strands with shared weights (PS), or one (Ph)"
    )
    d_state: int = Field(default=16, ge=1, description="states per channel")
    d_conv: int = Field(default=4, ge=1, description="width of the short convolution")
    expand: int = Field(
        default=2, ge=1, description="channels of the mixer per channel of the residual stream"
    )
    dt_rank: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        default="auto", description="rank of the step sizes; auto: d_model/16, rounded up"
    )
    bidirectional: bool = True
    bidirectional_strategy: Literal["add", "ew_multiply"] = Field(
        default="add", description="how the two directions are combined"
    )
    tie_directions: bool = Field(
        default=True, description="both directions share their input and output projections"
    )
    tie_head: bool = Field(
        default=True, description="the head is the embedding; always so with paired strands"
    )
    norm: Literal["rms", "layer"] = "rms"
    norm_eps: float = Field(default=1e-5, gt=0)
    conv_bias: bool = True
    proj_bias: bool = False
    alternate_strands: bool = Field(
        default=False,
        description="swap the strands in even blocks, as published fused weights expect",
    )
    checkpointing: bool = Field(
        default=False,
        description="recompute each block in the backward pass: less memory, a third more time",
    )
    recompute_states: bool = Field(
        default=False,
        description="on a GPU, recompute scan states in the backward pass: three quarters of "
        "the memory, one more scan",
    )

    n_classes: int = Field(default=0, ge=0, description="number of classes; 0: unconditional")
    recalls: bool = Field(
        default=False, description="reads the prediction retrieved from the training genome"
    )

    @model_serializer(mode="wrap")
    def _without_classes(self, dump: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """What is new and not used is not written: the digests of older networks stay."""
        written = dump(self)
        for name in ("n_classes", "recalls", "recompute_states"):
            if not getattr(self, name):
                written.pop(name, None)
        return written

    @model_validator(mode="after")
    def _fits_together(self) -> "CaduceusSettings":
        if self.alternate_strands and not self.paired:
            raise ValueError("alternate_strands needs strands: paired")
        return self

    @property
    def reads_blocks(self) -> bool:
        return self.bidirectional and not self.paired and not self.recalls

    @property
    def paired(self) -> bool:
        return self.strands == "paired"

    @property
    def rank(self) -> int:
        """The rank of the step sizes, resolved."""
        return ceil(self.d_model / 16) if self.dt_rank == "auto" else self.dt_rank

    @property
    def causal(self) -> bool:
        """Whether a position sees itself and those before it, and nothing else."""
        return not self.bidirectional and self.strands == "single"

    def n_parameters(self, vocab_size: int) -> int:
        """The number of weights, without building them."""
        d = self.d_model
        rows = vocab_size * (1 if self.tied_head else 2) + self.n_classes + RECALLED * self.recalls
        return rows * d + count_mamba_weights(self, d)

    def count_step_bytes(self, length: int, word: int) -> StepBytes | None:
        """As of the Triton kernels (`kernels/triton/mixer.py` says what they keep).

        None where other kernels run: LayerNorm, two projections, directions multiplied.
        """
        directions = 2 if self.bidirectional else 1
        fused = directions == 1 or (self.tie_directions and self.bidirectional_strategy == "add")
        if not fused or self.norm != "rms":
            return None
        d, strands = self.d_model, 2 if self.paired else 1
        e = -(-self.expand * d * word // ROW_BYTES) * ROW_BYTES // word
        states = word * self.d_state * e * ceil(length / STATE_EVERY) / length
        residual, normed = 4 * d, 4 + word * d
        again = directions * states if self.recompute_states else 0
        projected = word * (self.rank + 2 * self.d_state)
        mixer = 3 * word * e + directions * (projected + states) - again
        block = residual + normed + mixer
        ids = 8
        if self.checkpointing:  # the inputs of blocks, and one block at a time in full
            kept = (self.n_layer + 1) * residual + normed + block + ids
        else:
            kept = self.n_layer * block + residual + normed + ids
        # The directions go through the kernels together.
        working = e * ((1 + 3 * directions) * word + 2.5 + 5 * directions) + again
        return StepBytes(strands * kept, strands * working)

    @property
    def tied_head(self) -> bool:
        """Whether the head is the embedding."""
        return self.tie_head or self.strands == "paired"


_SHAPES = {
    "tiny": (64, 2, 16),  # 82,624: two layers, for first looks
    # 82,912: deep and narrow, for motifs under scattered masks
    "83k": (32, 6, 16),
    # 84,720: for fine-tuning on short sequences; half the states, two thirds of the time of 83k
    "85k": (48, 4, 8),
    "470k": (118, 4, 16),  # 470,702
    "1.9m": (256, 4, 16),  # 1,934,592
    "7.7m": (256, 16, 16),  # 7,725,312
}
for _size, (_width, _depth, _states) in _SHAPES.items():
    for _name, _strands in (("ps", "paired"), ("ph", "single")):
        _shape = {"d_model": _width, "n_layer": _depth, "d_state": _states, "strands": _strands}
        PRESETS.add(f"caduceus-{_name}-{_size}", CaduceusSettings(**_shape))  # type: ignore[arg-type]

# For autoregressive models. mamba-470k (468,608) is to be compared with caduceus-*-470k.
for _size, (_width, _depth) in {"tiny": (72, 2), "470k": (128, 4)}.items():
    PRESETS.add(
        f"mamba-{_size}",
        CaduceusSettings(d_model=_width, n_layer=_depth, strands="single", bidirectional=False),
    )
