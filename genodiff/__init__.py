"""genodiff: masked-diffusion language models of genomes, on a CPU or a GPU.

    import genodiff

    m = genodiff.load("runs/demo")
    m.sample(4, length=200)
    m.infill("ACGTNNNNACGT")

What is public stands in one table, `_DOOR`. A name is imported when it is first used, so that
`import genodiff` loads neither torch nor numpy.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

from genodiff.version import __version__ as __version__

_DOOR = {
    "FinetunedModel": "genodiff.api.finetuned",
    "Model": "genodiff.api.model",
    "build_genomes": "genodiff.api.genomes",
    "build_relatives": "genodiff.api.relatives",
    "build_store": "genodiff.api.data",
    "check_checkpoint": "genodiff.api.checkpoint",
    "check_documents": "genodiff.api.data",
    "clean_cache": "genodiff.api.cache",
    "compare": "genodiff.api.compare",
    "compare_designs": "genodiff.api.scorecard",
    "constraint": "genodiff.api.constraint",
    "deletion_effect": "genodiff.api.effects",
    "demo": "genodiff.api.demo",
    "dependencies": "genodiff.api.maps",
    "doctor": "genodiff.api.doctor",
    "embed": "genodiff.api.embedding",
    "evaluate": "genodiff.api.evaluate",
    "export_checkpoint": "genodiff.api.checkpoint",
    "fetch_data": "genodiff.api.data",
    "fit_memory": "genodiff.api.memory",
    "finetune": "genodiff.api.finetune",
    "finetune_bases": "genodiff.api.finetune_bases",
    "import_checkpoint": "genodiff.api.checkpoint",
    "insertion_effect": "genodiff.api.effects",
    "ism": "genodiff.api.maps",
    "judge": "genodiff.api.judge",
    "list_cache": "genodiff.api.cache",
    "list_models": "genodiff.api.models",
    "list_recipes": "genodiff.api.data",
    "list_relatives": "genodiff.api.relatives",
    "load": "genodiff.api.load",
    "merge": "genodiff.api.merge",
    "one_hot_network": "genodiff.api.effects",
    "predict": "genodiff.api.predict",
    "redesign": "genodiff.api.redesign",
    "report": "genodiff.api.report",
    "sample": "genodiff.api.sample",
    "score": "genodiff.api.score",
    "score_variants": "genodiff.api.load",
    "show_model": "genodiff.api.models",
    "scorecard": "genodiff.api.scorecard",
    "substitution_effect": "genodiff.api.effects",
    "tracks": "genodiff.api.maps",
    "train": "genodiff.api.train",
    "train_tokenizer": "genodiff.api.data",
    "watch": "genodiff.api.watch",
}
"""Public name → module that defines it. Add a row here, and an import for type checkers below."""

if TYPE_CHECKING:
    from genodiff.api.cache import clean_cache as clean_cache
    from genodiff.api.cache import list_cache as list_cache
    from genodiff.api.checkpoint import check_checkpoint as check_checkpoint
    from genodiff.api.checkpoint import export_checkpoint as export_checkpoint
    from genodiff.api.checkpoint import import_checkpoint as import_checkpoint
    from genodiff.api.compare import compare as compare
    from genodiff.api.constraint import constraint as constraint
    from genodiff.api.data import build_store as build_store
    from genodiff.api.data import check_documents as check_documents
    from genodiff.api.data import fetch_data as fetch_data
    from genodiff.api.data import list_recipes as list_recipes
    from genodiff.api.data import train_tokenizer as train_tokenizer
    from genodiff.api.demo import demo as demo
    from genodiff.api.doctor import doctor as doctor
    from genodiff.api.effects import deletion_effect as deletion_effect
    from genodiff.api.effects import insertion_effect as insertion_effect
    from genodiff.api.effects import one_hot_network as one_hot_network
    from genodiff.api.effects import substitution_effect as substitution_effect
    from genodiff.api.embedding import embed as embed
    from genodiff.api.evaluate import evaluate as evaluate
    from genodiff.api.finetune import finetune as finetune
    from genodiff.api.finetune_bases import finetune_bases as finetune_bases
    from genodiff.api.finetuned import FinetunedModel as FinetunedModel
    from genodiff.api.genomes import build_genomes as build_genomes
    from genodiff.api.judge import judge as judge
    from genodiff.api.load import load as load
    from genodiff.api.load import score_variants as score_variants
    from genodiff.api.maps import dependencies as dependencies
    from genodiff.api.maps import ism as ism
    from genodiff.api.maps import tracks as tracks
    from genodiff.api.memory import fit_memory as fit_memory
    from genodiff.api.merge import merge as merge
    from genodiff.api.model import Model as Model
    from genodiff.api.models import list_models as list_models
    from genodiff.api.models import show_model as show_model
    from genodiff.api.predict import predict as predict
    from genodiff.api.redesign import redesign as redesign
    from genodiff.api.relatives import build_relatives as build_relatives
    from genodiff.api.relatives import list_relatives as list_relatives
    from genodiff.api.report import report as report
    from genodiff.api.sample import sample as sample
    from genodiff.api.score import score as score
    from genodiff.api.scorecard import compare_designs as compare_designs
    from genodiff.api.scorecard import scorecard as scorecard
    from genodiff.api.train import train as train
    from genodiff.api.watch import watch as watch


def __getattr__(name: str) -> Any:
    if name not in _DOOR:
        what = f"module 'genodiff' has no attribute {name!r}"
        raise AttributeError(what, name=name, obj=sys.modules[__name__])  # a traceback's near name
    limits = importlib.import_module("genodiff.io.process")
    limits.cut_environment()  # before torch and polars read it
    found = getattr(importlib.import_module(_DOOR[name]), name)
    globals()[name] = found  # the next look-up does not come here
    return found


def __dir__() -> list[str]:
    unlisted = {"Any", "TYPE_CHECKING", "_DOOR", "importlib", "sys"}
    return sorted({*globals(), *_DOOR} - unlisted)
