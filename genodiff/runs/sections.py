"""The settings of a run's data, optimiser and loop."""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from genodiff.settings import Settings


def _check_rates(betas: tuple[float, float]) -> tuple[float, float]:
    if not all(0 <= b < 1 for b in betas):
        raise ValueError("must be two numbers of at least 0 and below 1")
    return betas


Betas = Annotated[tuple[float, float], AfterValidator(_check_rates)]
"""AdamW's two decay rates."""


def _read_auto(value: object) -> object:
    if value == 0:
        raise ValueError("must be at least 1, or auto")
    return 0 if value == "auto" else value


AutoInt = Annotated[
    int,
    BeforeValidator(_read_auto),
    PlainSerializer(lambda value: value or "auto", return_type=int | str),
]
"""A number from 1 on; "auto" leaves it open, and is 0 until a run begins."""


SPECIES = "species"
"""In the place of a file of labels: the column of a list of genomes."""
LABEL_SETTINGS = ("label_quantiles", "label_column", "label_dropout")


def leave_unused_out(written: dict[str, Any], *later: str) -> dict[str, Any]:
    """Settings without those of `later` that are None or {}: digests of runs without them stay."""
    return {name: x for name, x in written.items() if name not in later or x not in (None, {})}


class DataSettings(Settings, use_attribute_docstrings=True):
    """Which windows a step sees."""

    seq_len: Annotated[int, Field(ge=2, le=1 << 20)] = 1024
    """Bases or tokens in a training window."""
    rc_augment: bool | Literal["auto"] = "auto"
    """Train on a random strand of each window; auto: single-strand networks only."""
    soft_mask_weight: Annotated[float | None, Field(ge=0, le=1)] = None
    """Weight of a soft-masked base in training (default: the recipe's)."""
    teacher_weight: Annotated[float | None, Field(gt=0, le=100)] = None
    """Weight of the cross-entropy to the teacher at visible bases (default: 1)."""
    max_n_fraction: Annotated[float | None, Field(ge=0, le=1)] = None
    """Drop windows with a larger share of N (default: the recipe's)."""
    legacy_caduceus_tiling: bool = False
    """Stretch BED intervals as the Caduceus loader does."""
    label_quantiles: Annotated[int | None, Field(ge=2, le=64)] = None
    """Labels are numbers: classes q1 (lowest) to qN."""
    label_column: Annotated[int | None, Field(ge=2, le=1000)] = None
    """For --labels, from 1 (default: 4 in BED, 2 in a table)."""
    label_dropout: Annotated[float | None, Field(ge=0, le=1)] = None
    """Share of windows trained without their label (default: 0.1)."""
    temperature: Annotated[float | None, Field(gt=0, le=1e6)] = None
    """For many genomes: shares are weight x windows^(1/T); 1: by size, high: equal (default: 1)."""
    tokenizer: Annotated[str, Field(min_length=1)] = "bytes"
    """For text: bytes, text8, gpt2, bert-base-uncased, or a tokenizer's folder or file."""
    packing: Literal["auto", "packed", "padded"] = "auto"
    """For text: windows across documents, or one document each; auto: the recipe's."""
    document_attention: bool = False
    """For packed text: tokens see their own document only."""

    @model_serializer(mode="wrap")
    def _without_unused(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return leave_unused_out(dump(self), *LABEL_SETTINGS, "temperature", "teacher_weight")


class OptimSettings(Settings, use_attribute_docstrings=True):
    """AdamW, its learning rate over the steps, and the average of the weights."""

    lr: Annotated[float, Field(gt=0, le=10)] = 2e-3
    """Highest learning rate."""
    lr_schedule: Literal["cosine", "constant"] = "cosine"
    """Schedule after the warm-up."""
    lr_min_ratio: Annotated[float, Field(ge=0, le=1)] = 0.01
    """The cosine ends at lr times this."""
    warmup_steps: Annotated[int, Field(ge=0, le=10**9)] = 100
    """Steps of linear warm-up."""
    weight_decay: Annotated[float, Field(ge=0, le=10)] = 0.01
    """Weight decay; not applied to norms, biases, A_log, D."""
    betas: Betas = (0.9, 0.999)
    """AdamW's two decay rates."""
    eps: Annotated[float, Field(gt=0, le=1)] = 1e-8
    """AdamW's epsilon."""
    clip: Annotated[float, Field(gt=0)] = 1.0
    """Largest gradient norm."""
    ema_decay: Annotated[float, Field(ge=0, lt=1)] = 0.9999
    """Decay of the weights' average, warmed up as min(decay, (1+n)/(10+n))."""


class TrainSettings(Settings, use_attribute_docstrings=True):
    """The loop."""

    batch_size: Annotated[
        AutoInt,
        Field(
            ge=0,
            le=1 << 20,
            description="Windows per optimiser step, over all devices; auto: as many as fit, "
            "up to 131,072 tokens.",
        ),
    ] = 16
    accumulate: Annotated[AutoInt, Field(ge=0, le=1 << 20)] = 1
    """Parts that a batch is computed in, to save memory; auto: as few as fit."""
    max_steps: Annotated[int | None, Field(ge=1, le=10**12)] = None
    """Stop after this many steps (10,000 if no limit is given)."""
    max_minutes: Annotated[float | None, Field(gt=0, le=10**7)] = None
    """Stop after this many minutes of training."""
    precision: Annotated[
        Literal["auto", "fp32", "bf16"],
        Field(
            description="bf16: products and activations, while weights, states and sums stay "
            "fp32; auto: bf16 on a GPU, else fp32."
        ),
    ] = "auto"
    compile: Annotated[
        Literal["none", "auto"],
        Field(
            description="auto: on a GPU a DiT's blocks are compiled by torch, without "
            "autotuning: reproducible, but not bit-identical to uncompiled blocks."
        ),
    ] = "none"
    checkpoint_every: Annotated[int, Field(ge=1, le=10**12)] = 500
    """Steps between checkpoints."""
    validate_every: Annotated[int, Field(ge=1, le=10**12)] = 500
    """Steps between validations."""
    validate_windows: Annotated[int, Field(ge=0, le=10**9)] = 64
    """Validation windows; 0: no validation."""
    keep: Annotated[int, Field(ge=1, le=10**6)] = 2
    """Number of newest checkpoints to keep."""
    workers: Annotated[int, Field(ge=0, le=256)] | Literal["auto"] = "auto"
    """Processes that prepare batches; auto: up to 4 on a GPU, else none."""
    max_skipped: Annotated[int, Field(ge=0, le=10**9)] = 3
    """Maximum number of non-finite steps and spikes."""
    on_spike: Annotated[
        Literal["warn", "skip", "rewind", "stop"],
        Field(
            description="At a loss spike: warn, skip the step, return to the last checkpoint "
            "and skip the batches since, or stop."
        ),
    ] = "warn"
    deterministic: bool = False
    """On a GPU, use only deterministic operations. On a CPU all are."""

    @model_validator(mode="after")
    def _batches_split_evenly(self) -> Self:
        if self.batch_size and self.accumulate and self.batch_size % self.accumulate:
            what = f"batch_size {self.batch_size} is not a multiple of accumulate {self.accumulate}"
            raise ValueError(what)
        return self
