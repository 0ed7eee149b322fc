"""Caduceus in Hugging Face transformers, without remote code.

`import genodiff.hf` registers the configuration, the models and the tokenizer. From then on
`AutoModelForMaskedLM.from_pretrained(FOLDER)` on a published folder runs on genodiff's kernels.
Raises `ImportError` with one line that says what to install where transformers is absent or old.
"""

from functools import wraps
from typing import Any

try:
    from transformers import __version__ as TRANSFORMERS
except ImportError:
    TRANSFORMERS = "0"
if tuple(map(int, TRANSFORMERS.split(".")[:2])) < (5, 10):  # older ones prefer remote code
    _FOUND = "" if TRANSFORMERS == "0" else f", found {TRANSFORMERS}"
    _WHAT = f"genodiff.hf needs transformers 5.10 or newer{_FOUND}"
    raise ImportError(f"{_WHAT}; install it: pip install 'genodiff[hf]'", name="transformers")

from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)

from genodiff.hf.configuration import CaduceusConfig
from genodiff.hf.folders import name_packaged
from genodiff.hf.models import (
    Caduceus,
    CaduceusForMaskedLM,
    CaduceusForSequenceClassification,
    from_run,
)
from genodiff.hf.tokenizer import CaduceusTokenizer

__all__ = [
    "TRANSFORMERS",
    "Caduceus",
    "CaduceusConfig",
    "CaduceusForMaskedLM",
    "CaduceusForSequenceClassification",
    "CaduceusTokenizer",
    "from_run",
]
_AUTO = (
    AutoConfig, AutoTokenizer, AutoModel, AutoModelForMaskedLM, AutoModelForSequenceClassification,
    CaduceusConfig, CaduceusTokenizer,
)  # fmt: skip


class TokenizerConfig(CaduceusConfig):
    """Under which the tokenizer is registered, so that it is found by its name alone.

    Registered under `CaduceusConfig`, it would be taken for folders with another tokenizer, and
    remote code would be preferred to it where `trust_remote_code` is given.
    """

    model_type = "caduceus-tokenizer"


def _take_names(auto: Any) -> None:
    """Let `auto.from_pretrained` take the name of a pretrained model of genodiff for its folder.

    Otherwise transformers looks for a repository of that name, and reports after 45 s that there
    is none. It has no hook for names: a path is a folder or the hub's, and what could be put in the
    hub's cache would be another program's folder. So the method is wrapped, here alone.
    """
    usual = auto.from_pretrained
    if getattr(usual, "takes_names", False):
        return

    @wraps(usual.__func__)
    def from_pretrained(cls: Any, name: Any, *args: Any, **kwargs: Any) -> Any:
        return usual.__func__(cls, name_packaged(name), *args, **kwargs)

    from_pretrained.takes_names = True  # type: ignore[attr-defined]
    auto.from_pretrained = classmethod(from_pretrained)


for _auto in _AUTO:
    _take_names(_auto)
AutoConfig.register("caduceus", CaduceusConfig, exist_ok=True)
AutoTokenizer.register(TokenizerConfig, CaduceusTokenizer, exist_ok=True)
AutoModel.register(CaduceusConfig, Caduceus, exist_ok=True)
AutoModelForMaskedLM.register(CaduceusConfig, CaduceusForMaskedLM, exist_ok=True)
AutoModelForSequenceClassification.register(
    CaduceusConfig, CaduceusForSequenceClassification, exist_ok=True
)
