"""Published folders as they stand on the hub: remote code named and present, which must not run."""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForMaskedLM

from genodiff.backbones.caduceus import Caduceus
from tests.hub.published_folders import write_published

TRAP = "raise AssertionError('remote code ran')\n"
TOKENIZER = {
    "add_prefix_space": False,
    "bos_token": "[BOS]", "cls_token": "[CLS]", "eos_token": "[SEP]", "mask_token": "[MASK]",
    "pad_token": "[PAD]", "sep_token": "[SEP]", "unk_token": "[UNK]",
    "clean_up_tokenization_spaces": True, "model_max_length": 1024, "padding_side": "left",
    "tokenizer_class": "CaduceusTokenizer",
    "auto_map": {"AutoTokenizer": ["tokenization_caduceus.CaduceusTokenizer", None]},
}  # fmt: skip


def write_with_remote_code(folder: Path, **changes: Any) -> Caduceus:
    """A published folder with `auto_map` and code that fails where it is run; its network."""
    code = {
        "auto_map": {
            "AutoConfig": "configuration_caduceus.CaduceusConfig",
            "AutoModel": "modeling_caduceus.Caduceus",
            "AutoModelForMaskedLM": "modeling_caduceus.CaduceusForMaskedLM",
            "AutoModelForSequenceClassification": "someone/else--modeling_caduceus.Classifier",
        }
    }
    network = write_published(folder, **code, **changes)
    for stem in ("configuration", "modeling", "tokenization"):
        (folder / f"{stem}_caduceus.py").write_text(TRAP)
    (folder / "tokenizer_config.json").write_text(json.dumps(TOKENIZER))
    return network


def logits_of(folder: Path | str, ids: Tensor, **options: Any) -> Tensor:
    """What `AutoModelForMaskedLM` says of the folder."""
    with torch.no_grad():
        return AutoModelForMaskedLM.from_pretrained(folder, **options)(ids).logits
