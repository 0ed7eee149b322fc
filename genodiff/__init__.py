"""genodiff: masked-diffusion language models of genomes, on a CPU or a GPU.

    import genodiff

    m = genodiff.load("runs/demo")
    m.sample(4, length=200)
    m.infill("ACGTNNNNACGT")

What is public are the functions of the verbs (`jobs/verbs.py`) and the names of `_BESIDE`. A name
is imported when it is first used, so that `import genodiff` loads neither torch nor numpy. The
types of all are in `__init__.pyi`.
"""

import importlib
import sys
from typing import Any

from genodiff.version import __version__ as __version__

_BESIDE = {
    "FinetunedModel": "genodiff.api.finetuned",
    "Model": "genodiff.api.model",
    "check_documents": "genodiff.api.data",
    "list_relatives": "genodiff.api.genomes",
    "load": "genodiff.api.load",
    "one_hot_network": "genodiff.scoring.one_hot",
    "score_variants": "genodiff.api.load",
}
"""Public name → module that defines it, of what is no verb."""


def __getattr__(name: str) -> Any:
    found = None
    if not name.startswith("_"):
        importlib.import_module("genodiff.io.process").cut_environment()  # before torch reads it
        if name in _BESIDE:
            found = getattr(importlib.import_module(_BESIDE[name]), name)
        else:
            found = importlib.import_module("genodiff.jobs.verbs").find_function(name)
    if found is None:
        what = f"module 'genodiff' has no attribute {name!r}"
        raise AttributeError(what, name=name, obj=sys.modules[__name__])  # a traceback's near name
    globals()[name] = found  # the next look-up does not come here
    return found


def __dir__() -> list[str]:
    verbs = importlib.import_module("genodiff.jobs.verbs").list_functions()
    return sorted({*globals(), *_BESIDE, *verbs} - {"Any", "_BESIDE", "importlib", "sys"})
