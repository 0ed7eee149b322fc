"""The published configuration of Caduceus as transformers keeps it."""

from typing import Any, ClassVar

from transformers import PreTrainedConfig

from genodiff.alphabet import DNA
from genodiff.hf.adapted_weights import name_adapted_layers

_TOKENIZER = "CaduceusTokenizer"
_USUAL: dict[str, Any] = {
    "pooling_strategy": "mean", "conjoin_train": False, "conjoin_eval": False,
    "pad_token_id": None, "tokenizer_class": _TOKENIZER,
}  # fmt: skip


class CaduceusConfig(PreTrainedConfig):
    """The configuration of a Caduceus. Names and defaults are the published ones.

    `pooling_strategy`, `conjoin_train` and `conjoin_eval` are the classifier's.
    """

    model_type: ClassVar[str] = "caduceus"
    attribute_map: ClassVar[dict[str, str]] = {
        "hidden_size": "d_model",
        "num_hidden_layers": "n_layer",
    }

    d_model: int = 2560
    n_layer: int = 64
    vocab_size: int = 50277
    ssm_cfg: dict[str, Any] | None = None
    rms_norm: bool = True
    residual_in_fp32: bool = True
    fused_add_norm: bool = True
    pad_vocab_size_multiple: int = 8
    norm_epsilon: float = 1e-5
    initializer_cfg: dict[str, Any] | None = None
    bidirectional: bool = True
    bidirectional_strategy: str | None = "add"
    bidirectional_weight_tie: bool = True
    rcps: bool = False
    complement_map: dict[Any, int] | None = None
    tie_word_embeddings: bool = True
    pad_token_id: int | None = None
    pooling_strategy: str = "mean"
    conjoin_train: bool = False
    conjoin_eval: bool = False

    def __post_init__(self, **kwargs: Any) -> None:
        if self.complement_map is not None:
            # JSON has made text of the keys. Numbers keep their order when they are saved again.
            pairs = {int(key): int(value) for key, value in self.complement_map.items()}
            self.complement_map = dict(sorted(pairs.items()))
        if DNA.size <= self.vocab_size <= DNA.padded_size:
            # A folder without tokenizer files has the published tokenizer.
            kwargs.setdefault("tokenizer_class", _TOKENIZER)
        super().__post_init__(**kwargs)

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as PEFT reads it, which then knows the layers to adapt."""
        name_adapted_layers(self.model_type)
        found: dict[str, Any] = super().to_dict()
        return found

    def to_diff_dict(self) -> dict[str, Any]:
        """What is saved: the published settings, and others where they are not the usual ones."""
        found = super().to_diff_dict()
        return {key: x for key, x in found.items() if (key, x) not in _USUAL.items()}

    def pad_vocabulary(self) -> None:
        """Rounds `vocab_size` up as published; the padding rows are their own complements."""
        multiple = max(self.pad_vocab_size_multiple, 1)
        self.vocab_size = -(-self.vocab_size // multiple) * multiple
        if self.complement_map is not None:
            for token in range(self.vocab_size):
                self.complement_map.setdefault(token, token)
