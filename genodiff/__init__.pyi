"""The names of the door, for type checkers: a verb has the fields of its request as arguments."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from genodiff.api.checkpoint import (
    CheckpointCheckRequest,
    ExportRequest,
    ImportRequest,
    MemoryFitRequest,
    ReportRequest,
)
from genodiff.api.data import BuildRequest, FetchRequest, RecipeListRequest
from genodiff.api.data import check_documents as check_documents
from genodiff.api.demo import DemoRequest
from genodiff.api.doctor import DoctorRequest
from genodiff.api.finetuned import FinetunedModel as FinetunedModel
from genodiff.api.genomes import GenomesRequest, RelativesRequest
from genodiff.api.genomes import list_relatives as list_relatives
from genodiff.api.load import load as load
from genodiff.api.load import score_variants as score_variants
from genodiff.api.merge import MergeRequest
from genodiff.api.model import Model as Model
from genodiff.api.models import ModelListRequest, ModelShowRequest
from genodiff.conservation.request import AlignRequest, ConstraintRequest
from genodiff.design.request import RedesignRequest
from genodiff.embedding.request import EmbedRequest
from genodiff.evaluation.request import EvalRequest
from genodiff.finetuning.base_request import BasesRequest
from genodiff.finetuning.predict_request import PredictRequest
from genodiff.generate.request import SampleRequest
from genodiff.jobs.request import make_function
from genodiff.maps.request import DependenciesRequest, IsmRequest, TracksRequest
from genodiff.quality.requests import ScorecardRequest
from genodiff.scoring.one_hot import one_hot_network as one_hot_network
from genodiff.studies.compare_request import CompareRequest
from genodiff.studies.sweep_request import SweepRequest
from genodiff.training.run import RunResult
from genodiff.variants.request import ScoreRequest
from genodiff.version import __version__ as __version__

_BESIDE: dict[str, str]

build_genomes = make_function("build_genomes", GenomesRequest)
build_relatives = make_function("build_relatives", RelativesRequest)
build_store = make_function("build_store", BuildRequest)
check_checkpoint = make_function("check_checkpoint", CheckpointCheckRequest)
compare = make_function("compare", CompareRequest)
align = make_function("align", AlignRequest)
constraint = make_function("constraint", ConstraintRequest)
demo = make_function("demo", DemoRequest)
dependencies = make_function("dependencies", DependenciesRequest)
doctor = make_function("doctor", DoctorRequest)
embed = make_function("embed", EmbedRequest)
evaluate = make_function("evaluate", EvalRequest)
export_checkpoint = make_function("export_checkpoint", ExportRequest)
fetch_data = make_function("fetch_data", FetchRequest)
finetune = make_function("finetune", SweepRequest)
finetune_bases = make_function("finetune_bases", BasesRequest)
fit_memory = make_function("fit_memory", MemoryFitRequest)
import_checkpoint = make_function("import_checkpoint", ImportRequest)
ism = make_function("ism", IsmRequest)
list_models = make_function("list_models", ModelListRequest)
list_recipes = make_function("list_recipes", RecipeListRequest)
merge = make_function("merge", MergeRequest)
predict = make_function("predict", PredictRequest)
redesign = make_function("redesign", RedesignRequest)
sample = make_function("sample", SampleRequest)
report = make_function("report", ReportRequest)
score = make_function("score", ScoreRequest)
scorecard = make_function("scorecard", ScorecardRequest)
show_model = make_function("show_model", ModelShowRequest)
tracks = make_function("tracks", TracksRequest)

def train(
    source: str | Path | None = None,
    *,
    fasta: str | Path | None = None,
    bed: str | Path | None = None,
    text: str | Path | None = None,
    genomes: str | Path | None = None,
    labels: str | Path | None = None,
    teacher: str | Path | None = None,
    memory: bool = False,
    preset: str | None = None,
    config: Path | str | None = None,
    out: Path | str | None = None,
    resume: Path | str | None = None,
    fresh: bool = False,
    init: str | Path | None = None,
    domain: Literal["dna", "text"] | None = None,
    seed: int | None = None,
    device: str = "auto",
    offline: bool = False,
    logger: Sequence[Literal["csv", "tensorboard", "wandb"]] = ("csv",),
    argv: list[str] | None = None,
    devices: int = 1,
    fsdp: bool = False,
    plan: bool = False,
    print_sbatch: bool = False,
    force: bool = False,
    **settings: Any,
) -> RunResult: ...
