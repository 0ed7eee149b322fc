"""The classes under transformers' Auto classes."""

from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)

from genodiff.hf.configuration import CaduceusConfig
from genodiff.hf.mdlm import MDLM, UDLM, MDLMConfig, UDLMConfig
from genodiff.hf.models import Caduceus, CaduceusForMaskedLM, CaduceusForSequenceClassification
from genodiff.hf.tokenizer import CaduceusTokenizer


class TokenizerConfig(CaduceusConfig):
    """Under which the tokenizer is registered, so that it is found by its name alone.

    Registered under `CaduceusConfig`, it would be taken for folders with another tokenizer, and
    remote code would be preferred to it where `trust_remote_code` is given.
    """

    model_type = "caduceus-tokenizer"


def register_classes() -> None:
    """Makes `AutoX.from_pretrained` take our classes for these model types."""
    AutoConfig.register("caduceus", CaduceusConfig, exist_ok=True)
    AutoModel.register(CaduceusConfig, Caduceus, exist_ok=True)
    AutoModelForMaskedLM.register(CaduceusConfig, CaduceusForMaskedLM, exist_ok=True)
    AutoModelForSequenceClassification.register(
        CaduceusConfig, CaduceusForSequenceClassification, exist_ok=True
    )
    for config, model in ((MDLMConfig, MDLM), (UDLMConfig, UDLM)):
        AutoConfig.register(config.model_type, config, exist_ok=True)
        AutoModelForMaskedLM.register(config, model, exist_ok=True)
    AutoTokenizer.register(TokenizerConfig, CaduceusTokenizer, exist_ok=True)
