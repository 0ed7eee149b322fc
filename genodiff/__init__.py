"""genodiff: masked-diffusion language models of genomes, on a CPU or a GPU.

    import genodiff

    m = genodiff.load("runs/demo")
    m.sample(4, length=200)
    m.infill("ACGTNNNNACGT")

What is public stands in one table, `_DOOR`. A name is imported when it is first used, so that
`import genodiff` loads neither torch nor numpy.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_DOOR = {
    "FinetunedModel": "genodiff.api.finetuned",
    "Model": "genodiff.api.model",
    "compare": "genodiff.api.compare",
    "embed": "genodiff.api.embed",
    "evaluate": "genodiff.api.evaluate",
    "finetune": "genodiff.api.finetune",
    "judge": "genodiff.api.judge",
    "load": "genodiff.api.load",
    "predict": "genodiff.api.predict",
    "report": "genodiff.api.report",
    "sample": "genodiff.api.sample",
    "train": "genodiff.api.train",
}
"""Public name → module that defines it. Add a row here, and an import for type checkers below."""

if TYPE_CHECKING:
    from genodiff.api.compare import compare as compare
    from genodiff.api.embed import embed as embed
    from genodiff.api.evaluate import evaluate as evaluate
    from genodiff.api.finetune import finetune as finetune
    from genodiff.api.finetuned import FinetunedModel as FinetunedModel
    from genodiff.api.judge import judge as judge
    from genodiff.api.load import load as load
    from genodiff.api.model import Model as Model
    from genodiff.api.predict import predict as predict
    from genodiff.api.report import report as report
    from genodiff.api.sample import sample as sample
    from genodiff.api.train import train as train


def __getattr__(name: str) -> Any:
    if name not in _DOOR:
        raise AttributeError(f"module 'genodiff' has no attribute {name!r}")
    found = getattr(importlib.import_module(_DOOR[name]), name)
    globals()[name] = found  # the next look-up does not come here
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_DOOR})
