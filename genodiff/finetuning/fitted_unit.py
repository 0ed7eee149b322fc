"""Fitting a unit: its network or baseline on the seed's train rows, chosen by its validation rows.

There is no test part here. A fit that was stopped goes on from `state.safetensors`. One that is
done is read from `model.safetensors` and `fitted.json`.
"""

import hashlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.domain import TEXT
from genodiff.errors import CheckpointError, GenodiffError
from genodiff.finetuning.adapters.adapter import adapted_weights
from genodiff.finetuning.baselines import fit_baseline
from genodiff.finetuning.batches import EncodedPart, Encoder, count_texts, encode
from genodiff.finetuning.cnn import CnnPredictor
from genodiff.finetuning.fit import (
    FitOptions,
    FitResult,
    Watch,
    count_outputs,
    fit,
    probabilities,
    raw_scores,
)
from genodiff.finetuning.fit_state import STATE, WorkClock
from genodiff.finetuning.head import Classifier
from genodiff.finetuning.kmer_regression import KmerPredictor
from genodiff.finetuning.model_words import BASELINES
from genodiff.finetuning.predictor_files import KeptFit
from genodiff.finetuning.results import null_nonfinite
from genodiff.finetuning.unit import FITTED, MODEL, Unit
from genodiff.io import atomic
from genodiff.runs.model import collect_tensors, fill_module
from genodiff.runs.sealed_files import encode_tensors, read_json, read_tensors
from genodiff.tasks.examples import Examples
from genodiff.tasks.metrics import Floats, measure
from genodiff.tasks.suite import Task
from genodiff.tasks.task import TaskData, seed_split

_log = logging.getLogger("genodiff")
Predict = Callable[[Examples], Floats]
Rows = NDArray[np.int64]


class FittedUnit(NamedTuple):
    """A unit after its fit: how it predicts, and what is known of it without any test.

    `count_cut` counts examples it would shorten.
    `keep` gives what is kept for prediction, None for a baseline that cannot be kept.
    """

    predict: Predict
    found: dict[str, Any]
    count_cut: Callable[[Examples], int] = lambda examples: 0
    keep: Callable[[], KeptFit] | None = None


class _EncodedUnit(NamedTuple):
    """A network with its encoded parts. `counts` goes into the row."""

    task: Task
    classifier: Classifier
    encoder: Encoder
    train: EncodedPart
    valid: EncodedPart
    counts: dict[str, int]
    max_length: int
    n_texts: int = 1

    def encode(self, examples: Examples) -> EncodedPart:
        return encode(examples, self.encoder, self.max_length)

    def count_cut(self, examples: Examples) -> int:
        return self.encode(examples).cut


def fit_unit(
    unit: Unit, data: TaskData, out: Path, *, device: str = "cpu", watch: Watch | None = None
) -> FittedUnit:
    """Fit on the seed's train rows, choose by its validation rows.

    `data.test` is not read and may be empty. Raises `GenodiffError` for a fit that fails.
    """
    folder = unit.folder(out)
    folder.mkdir(parents=True, exist_ok=True)
    atomic.clear_leftovers(folder)
    rows, valid_rows = seed_split(data, unit.seed)
    counts = {"n_train": len(rows), "n_valid": len(valid_rows)}
    task, settings = data.task, unit.settings
    if unit.model.kind == "baseline":
        return _fit_baseline_once(unit, data, rows, valid_rows, out)
    max_length = min(task.max_length, settings.max_length or task.max_length)
    classifier, encoder = build_classifier(unit, task, device)
    whole = encode(data.train, encoder, max_length)
    counts |= {"cut_train": whole.cut, "max_length": max_length}
    train = whole.take(rows)
    inputs = _EncodedUnit(
        task, classifier, encoder, train, whole.take(valid_rows), counts, max_length,
        count_texts(data.train.sequences) if task.domain == TEXT.name else 1
    )  # fmt: skip
    return _fit_network(unit, inputs, folder, watch)


def build_classifier(unit: Unit, task: Task, device: str) -> tuple[Classifier, Encoder]:
    """The network of a unit with a new head, before any fit, and what encodes its sequences."""
    backbone, alphabet = unit.model.network(unit.seed, device)
    classifier = Classifier.of(
        backbone,
        count_outputs(task.kind, task.classes),
        unit.settings,
        alphabet.complement,
        seed=unit.seed,
    )
    return classifier.to(device), unit.model.encoder()


def null_nonfinite_key(values: dict[str, Any], key: str) -> dict[str, Any]:
    """The values with None under `key` where that is not finite."""
    return values | null_nonfinite({key: values[key]})


_undrawn: dict[tuple[object, ...], FittedUnit] = {}  # the last such fit, and no other


def _fit_baseline_once(
    unit: Unit, data: TaskData, rows: Rows, valid_rows: Rows, out: Path
) -> FittedUnit:
    """The fit of a baseline. One that draws nothing is the same for all seeds with these rows."""
    key = (unit.model_copy(update={"seed": 0}).key, rows.tobytes(), valid_rows.tobytes(), out)
    if key not in _undrawn:
        _undrawn.clear()
        train, valid = data.train.take(rows), data.train.take(valid_rows)
        fitted = _fit_baseline(unit, data.task, train, valid)
        if BASELINES[str(unit.model.preset)].is_drawn:
            return fitted
        _undrawn[key] = fitted
    known = _undrawn[key]
    return known._replace(found=dict(known.found))


def _fit_baseline(unit: Unit, task: Task, train: Examples, valid: Examples) -> FittedUnit:
    if unit.model.preset is None:
        raise GenodiffError(f"no baseline '{unit.model.name}' here")
    clock = WorkClock()
    predict = fit_baseline(unit.model.preset, task, train, valid, unit.seed)
    found: dict[str, Any] = {
        "valid": measure(task.metrics[0], task.kind, valid.labels, predict(valid)),
        "seconds": clock.seconds,
        "n_train": train.n,
        "n_valid": valid.n,
        "cut_train": 0,
        "max_length": None,
    }
    if not isinstance(predict, CnnPredictor | KmerPredictor):
        return FittedUnit(predict, found)
    kept = KeptFit(predict.form, predict.tensors(), predict.about(), max_length=predict.longest)
    return FittedUnit(predict, found, keep=lambda: kept)


def _fit_network(unit: Unit, inputs: _EncodedUnit, folder: Path, watch: Watch | None) -> FittedUnit:
    task, classifier = inputs.task, inputs.classifier
    here = folder / FITTED
    if here.exists() and (folder / MODEL).exists():
        found = read_json(here)
        tensors = read_tensors(folder / MODEL, None, found["sha256"])
        fill_module(classifier, {k: v.to(classifier.weight.device) for k, v in tensors.items()})
    else:
        result = _fit_or_begin_again(unit, inputs, folder / STATE, watch)
        classifier = result.classifier
        weights = encode_tensors(collect_tensors(classifier))
        found = {
            **inputs.counts,
            "valid": result.valid,
            "best_epoch": result.best_epoch,
            "epochs": len(result.history),
            "seconds": result.seconds,
            "scale": list(result.scale),
            "trained": result.trained,
            "history": [null_nonfinite(e._asdict()) for e in result.history],
            "sha256": hashlib.sha256(weights).hexdigest(),
        }
        atomic.write_bytes(folder / MODEL, weights)
        atomic.write_json(here, null_nonfinite_key(found, "valid"))
        (folder / STATE).unlink(missing_ok=True)
    found["parameters"] = sum(p.numel() for p in classifier.parameters())
    scale = (found["scale"][0], found["scale"][1])

    def predict(examples: Examples) -> Floats:
        part, bf16 = inputs.encode(examples), unit.settings.precision == "bf16"
        return probabilities(task.kind, raw_scores(classifier, part, bf16=bf16), scale)

    def keep() -> KeptFit:
        return KeptFit(
            "network",
            collect_tensors(classifier),
            {"head": classifier.pooling.describe()},
            scale=scale,
            max_length=inputs.max_length,
            n_texts=inputs.n_texts,
        )

    return FittedUnit(predict, found, inputs.count_cut, keep)


def _fit_or_begin_again(
    unit: Unit, inputs: _EncodedUnit, state: Path, watch: Watch | None
) -> FitResult:
    """A fit that goes on from `state`, or a new one if that file cannot be used."""
    begun = collect_tensors(inputs.classifier) if state.exists() else {}
    begun = {name: tensor.clone() for name, tensor in begun.items()}

    options = FitOptions(inputs.task.kind, inputs.task.metrics[0], unit.settings, unit.seed)

    def run(classifier: Classifier) -> FitResult:
        with adapted_weights(classifier.backbone, unit.settings.adapter, unit.seed):
            return fit(
                classifier,
                inputs.train,
                inputs.valid,
                options,
                state=state,
                identity=unit.key,
                watch=watch,
            )

    try:
        return run(inputs.classifier)
    except CheckpointError as fault:
        _log.warning("%s: starting again", fault)
        state.unlink()
        fill_module(inputs.classifier, begun)
        return run(inputs.classifier)
