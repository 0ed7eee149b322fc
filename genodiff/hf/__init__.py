"""Caduceus in Hugging Face transformers, without remote code.

`import genodiff.hf` registers the configuration, the models and the tokenizer. From then on
`AutoModelForMaskedLM.from_pretrained(FOLDER)` on a published folder runs on genodiff's kernels.
"""

from genodiff.hf.availability import TRANSFORMERS
from genodiff.hf.configuration import CaduceusConfig
from genodiff.hf.models import Caduceus, CaduceusForMaskedLM, CaduceusForSequenceClassification
from genodiff.hf.registration import register_classes
from genodiff.hf.run_models import from_run
from genodiff.hf.tokenizer import CaduceusTokenizer

register_classes()

__all__ = [
    "TRANSFORMERS",
    "Caduceus",
    "CaduceusConfig",
    "CaduceusForMaskedLM",
    "CaduceusForSequenceClassification",
    "CaduceusTokenizer",
    "from_run",
]
