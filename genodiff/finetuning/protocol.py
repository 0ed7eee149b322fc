"""How a network is fine-tuned: the settings of a fit, and the papers' protocols and grids.

Genomic Benchmarks (Schiff et al., 2024, arXiv 2403.03234, App. D.2 and Table 5, and its scripts):
10 epochs, batches of 256, AdamW with weight decay 0.1 and betas (0.9, 0.999), a cosine after 1 % of
warm-up from 1e-6 down to a tenth of the rate, gradients clipped at 1, the epoch with the best
validation accuracy; learning rates 1e-3 and 2e-3 tried, the best per task below. Nucleotide
Transformer tasks (the same paper, Table 2): 20 epochs, batches of 128 and 512, the same rates, ten
seeds.
GUE has no published protocol for networks of this size: batches of 32 as DNABERT-2's (Zhou et al.,
2024, arXiv 2306.15006), the rest below is ours. GLUE: batches of 32 as BERT's (Devlin et al., 2019,
arXiv 1810.04805), the rest is ours, for networks of a few million weights; for one of BERT's size
its own are --lr 3e-5 --epochs 3.
"""

import math
from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from genodiff.errors import did_you_mean
from genodiff.finetuning.pooling import HEADS
from genodiff.runs.sections import Betas
from genodiff.settings import Settings

PARTS = 7
"""The stretches of the head `parts` where nothing says how many."""

Strands = Literal["auto", "conjoin", "average", "augment", "none"]
"""What is done about the reverse complement (see `head`)."""


class FitSettings(Settings):
    """Everything that decides a fit but its data, its network and its seed.

    Settings that are flags of `finetune` are explained in its request (`FitFlags`).
    """

    method: Literal["full", "frozen"] = "full"
    rc: Strands = "auto"
    epochs: int = Field(default=10, ge=1, le=10_000)
    max_steps: int | None = Field(default=None, ge=1)
    batch_size: int = Field(default=256, ge=1, le=1 << 20)
    lr: float = Field(default=1e-3, gt=0, le=10)
    warmup_share: float = Field(default=0.01, ge=0, le=1)
    """Share of the steps in which the rate rises from `warmup_lr`."""
    warmup_lr: float = Field(default=1e-6, ge=0)
    lr_min_ratio: float = Field(default=0.1, ge=0, le=1)
    """The cosine ends at `lr` times this."""
    weight_decay: float = Field(default=0.1, ge=0, le=10)
    """Not applied to norms, biases, A_log and D."""
    betas: Betas = (0.9, 0.999)
    clip: float = Field(default=1.0, gt=0)
    """Largest norm of the gradient."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    head: str = "mean"
    parts: int = Field(default=1, ge=1, le=64)
    shift: int = Field(default=0, ge=0, le=1000)
    mask_share: float = Field(default=0.0, ge=0, lt=1)
    patience: int | None = Field(default=None, ge=1)
    ema: float = Field(default=0.0, ge=0, lt=1)
    precision: Literal["fp32", "bf16"] = "fp32"
    max_length: int | None = Field(default=None, ge=1)
    adapter: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _parts_are_a_head(cls, values: Any) -> Any:
        """More than one part means the head `parts`, which has `PARTS` where none are given."""
        if not isinstance(values, dict):
            return values
        old = ("budget", "adapt", "probe_c")  # of older versions
        values = {k: v for k, v in values.items() if k not in old}
        many = values.get("parts", 1) not in (1, None)
        if many and "head" not in values:
            return values | {"head": "parts"}
        if values.get("head") == "parts" and "parts" not in values:
            return values | {"parts": PARTS}
        return values

    @model_validator(mode="after")
    def _settings_agree(self) -> "FitSettings":
        if self.head not in HEADS.list_names():
            what = f"no head '{self.head}'; {did_you_mean(self.head, HEADS.list_names())}"
            raise ValueError(what)
        if self.head == "parts" and self.parts == 1:
            raise ValueError("head parts with 1 part is the head mean")
        if self.head != "parts" and self.parts > 1:
            raise ValueError(f"{self.parts} parts are of the head parts, and this is {self.head}")
        if self.adapter is not None and self.method != "full":
            raise ValueError(f"method {self.method} trains no network that could be adapted")
        return self

    @model_serializer(mode="wrap")
    def _without_what_is_off(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """What is off is not written: rows and keys of before it stay as they are."""
        written: dict[str, Any] = dump(self)
        for name in ("adapter", "ema", "mask_share"):
            if not getattr(self, name):
                written.pop(name, None)
        return written

    def steps(self, n_train: int) -> int:
        """Steps of a whole fit; the last batch of an epoch may be smaller."""
        whole = self.epochs * math.ceil(n_train / self.batch_size)
        return whole if self.max_steps is None else self.max_steps

    def learning_rate(self, step: int, steps: int) -> float:
        """The rate of the step after `step` of `steps`: linear warm-up, then a cosine."""
        warmup = round(self.warmup_share * steps)
        if step < warmup:
            return self.warmup_lr + (self.lr - self.warmup_lr) * step / warmup
        falling = (1 + math.cos(math.pi * min(1.0, (step - warmup) / max(1, steps - warmup)))) / 2
        return self.lr * (self.lr_min_ratio + (1 - self.lr_min_ratio) * falling)


_STEPS = 16
"""Steps of an epoch of a small table, at least; a batch has 8 examples or more."""

# Caduceus, Table 5: the best rates of (Mamba, Caduceus without equivariance, Ph, PS), in
# thousandths.
_BEST = {
    "dummy_mouse_enhancers_ensembl": (2, 2, 2, 2),
    "demo_coding_vs_intergenomic_seqs": (2, 1, 2, 1),
    "demo_human_or_worm": (2, 1, 2, 1),
    "human_enhancers_cohn": (1, 1, 1, 2),
    "human_enhancers_ensembl": (2, 1, 1, 1),
    "human_ensembl_regulatory": (1, 2, 2, 1),
    "human_ocr_ensembl": (2, 2, 2, 2),
    "human_nontata_promoters": (1, 2, 2, 2),
}
_COLUMN = {"augment": 1, "average": 2, "conjoin": 3}

_SUITES: dict[str, dict[str, Any]] = {
    "genomic-benchmarks": {},
    "gue": {"epochs": 10, "batch_size": 32},
    "nt": {"epochs": 20, "batch_size": 128},
    "nt-revised": {"epochs": 20, "batch_size": 128},
    "glue": {
        "epochs": 10, "batch_size": 32, "lr": 3e-4, "warmup_share": 0.06, "lr_min_ratio": 0.0,
        "weight_decay": 0.01, "dropout": 0.1,
        "patience": 3,
    },
}  # fmt: skip


def list_protocol_settings(suite: str, task: str, rc: Strands, n_train: int = 0) -> dict[str, Any]:
    """The papers' settings for a task, as changes of the defaults; `rc` is already resolved.

    One's own table has no paper: an epoch of its `n_train` examples has at least `_STEPS` steps.
    """
    found: dict[str, Any] = dict(_SUITES.get(suite, {}))
    if suite == "table" and n_train:
        found["batch_size"] = min(256, max(8, n_train // _STEPS))
    if suite == "genomic-benchmarks" and task in _BEST and rc in _COLUMN:
        found["lr"] = _BEST[task][_COLUMN[rc]] * 1e-3
    return found
