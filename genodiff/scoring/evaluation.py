"""How well a model knows its domain: one evaluator for each, and `RUN/eval.json`.

`RUN/eval.json` holds one object for each split that was scored, `{"test": {...}, "valid": {...}}`.
Data that the run was not trained on stand under "SPLIT of FILE". The keys of an object are
described where it is made: of DNA in dna_evaluation.py, of text in text_evaluation.py.
"""

import logging
from pathlib import Path
from typing import Any

from genodiff.errors import GenodiffError
from genodiff.io import atomic
from genodiff.runs.folder import PROVENANCE
from genodiff.runs.model import TrainedModel
from genodiff.runs.sealed_files import read_json
from genodiff.scoring.bound import Progress, seconds_per_window
from genodiff.scoring.dna_evaluation import evaluate_dna
from genodiff.scoring.eval_data import open_data
from genodiff.scoring.eval_options import EvalOptions
from genodiff.scoring.text_evaluation import evaluate_text

log = logging.getLogger("genodiff")

EVAL = "eval.json"
_EVALUATORS = {"dna": evaluate_dna, "text": evaluate_text}


def evaluate(
    model: TrainedModel, split: str = "test", *, progress: Progress | None = None, **options: Any
) -> dict[str, Any]:
    """The evaluation of `model` on a split, as plain values. `options` are those of `EvalOptions`.

    It depends on the seed, the split and the numbers of windows and repeats, but not on the batch
    size (up to float32 error). Raises `DataError` where the data are missing or have no usable
    window, `UsageError` for options that cannot be meant.
    """
    chosen = EvalOptions(split=split, **options)
    domain = model.alphabet.domain
    chosen.check(domain)
    return _EVALUATORS[domain](model, chosen, progress)


def plan_evaluation(model: TrainedModel, options: EvalOptions) -> dict[str, Any]:
    """What `evaluate` would take: network, windows, tokens, seconds, files."""
    options.check(model.alphabet.domain)
    data = open_data(model, options)
    windows = data.windows
    if options.max_windows is not None:
        windows = windows.spread(options.max_windows)
    repeats = options.repeats
    seconds = seconds_per_window(model, windows, options.batch_size) * len(windows) * repeats
    return {
        "parameters": sum(p.numel() for p in model.backbone.parameters()),
        "checkpoint": model.digest,
        "split": options.split,
        "windows": len(windows),
        "windows_total": data.total,
        "tokens": int(windows.length.sum()) * repeats,
        "seconds": round(seconds, 1),
        "files": [str(model.run / EVAL)],
    }


def write_evaluation(run: Path, result: dict[str, Any]) -> str:
    """Put a result of `evaluate` into RUN/eval.json, beside those of other splits; return the name
    it stands under.

    Data that is not what the run was trained on (by its fingerprint in provenance.json) stands
    under "SPLIT of FILE", and what saw whole contigs under "SPLIT in whole contigs". Raises
    `MachineError`.
    """
    trained_on = (_read(run / PROVENANCE).get("data") or {}).get("fingerprint")
    name = str(result["split"])
    if trained_on not in (None, result["fingerprint"]):
        name += f" of {_data_name(result)}"
    if result["context"] == "contig":
        name += " in whole contigs"
    atomic.write_json(run / EVAL, {**_read(run / EVAL), name: result})
    return name


def _data_name(result: dict[str, Any]) -> str:
    if "text" in result and result["recipe"] != "own":
        return str(result["recipe"])
    return Path(result.get("fasta") or result.get("text") or result["recipe"]).name


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        return read_json(path)
    except GenodiffError as fault:
        log.warning("%s; it is passed over", fault)
        return {}
