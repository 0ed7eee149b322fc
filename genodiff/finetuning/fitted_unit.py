"""Fitting a unit: its network or baseline on the seed's train rows, chosen by its validation rows.

There is no test part here. A fit that was stopped goes on from `state.safetensors`. One that is
done is read from `model.safetensors` and `fitted.json`.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from genodiff.domain import TEXT
from genodiff.errors import GenodiffError
from genodiff.finetuning.adapters.adapter import adapted_weights
from genodiff.finetuning.baselines import fit_baseline
from genodiff.finetuning.batches import count_texts, encode
from genodiff.finetuning.cnn import CnnPredictor
from genodiff.finetuning.fit import (
    FitOptions,
    Watch,
    count_outputs,
    fit,
    probabilities,
    raw_scores,
)
from genodiff.finetuning.fit_loop import STATE, WorkClock, drop_foreign_state
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

Predict = Callable[[Examples], Floats]


class FittedUnit(NamedTuple):
    """A unit after its fit: how it predicts, and what is known of it without any test.

    `count_cut` counts examples it would shorten.
    `keep` gives what is kept for prediction, None for a baseline that cannot be kept.
    """

    predict: Predict
    found: dict[str, Any]
    count_cut: Callable[[Examples], int] = lambda examples: 0
    keep: Callable[[], KeptFit] | None = None


def fit_unit(
    unit: Unit, data: TaskData, out: Path, *, device: str = "cpu", watch: Watch | None = None
) -> FittedUnit:
    """Fit on the seed's train rows, choose by its validation rows.

    `data.test` is not read and may be empty. Raises `GenodiffError` for a fit that fails.
    """
    folder = unit.folder(out)
    folder.mkdir(parents=True, exist_ok=True)
    atomic.clear_leftovers(folder)
    if unit.model.kind == "baseline":
        return _fit_baseline_once(unit, data, out)
    return _fit_network(unit, data, folder, device, watch)


def null_nonfinite_key(values: dict[str, Any], key: str) -> dict[str, Any]:
    """The values with None under `key` where that is not finite."""
    return values | null_nonfinite({key: values[key]})


_undrawn: dict[tuple[object, ...], FittedUnit] = {}  # the last such fit, and no other


def _fit_baseline_once(unit: Unit, data: TaskData, out: Path) -> FittedUnit:
    """The fit of a baseline. One that draws nothing is the same for all seeds with these rows."""
    rows, valid_rows = seed_split(data, unit.seed)
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
    value = measure(task.metrics[0], task.kind, valid.labels, predict(valid))
    found: dict[str, Any] = {"valid": value, "seconds": clock.seconds}
    found |= {"n_train": train.n, "n_valid": valid.n, "cut_train": 0, "max_length": None}
    if not isinstance(predict, CnnPredictor | KmerPredictor):
        return FittedUnit(predict, found)
    kept = KeptFit(predict.form, predict.tensors(), predict.about(), max_length=predict.longest)
    return FittedUnit(predict, found, keep=lambda: kept)


def _fit_network(
    unit: Unit, data: TaskData, folder: Path, device: str, watch: Watch | None
) -> FittedUnit:
    task, settings = data.task, unit.settings
    max_length = min(task.max_length, settings.max_length or task.max_length)
    backbone, alphabet = unit.model.network(unit.seed, device)
    n_out, encoder = count_outputs(task.kind, task.classes), unit.model.encoder()
    classifier = Classifier(backbone, n_out, settings, alphabet.complement, seed=unit.seed)
    classifier.to(device)
    here = folder / FITTED
    if here.exists() and (folder / MODEL).exists():
        found = read_json(here)
        tensors = read_tensors(folder / MODEL, None, found["sha256"])
        fill_module(classifier, {k: v.to(classifier.device) for k, v in tensors.items()})
    else:
        whole, state = encode(data.train, encoder, max_length), folder / STATE
        train, valid = (whole.take(rows) for rows in seed_split(data, unit.seed))
        options = FitOptions(task.kind, task.metrics[0], settings, unit.seed)
        drop_foreign_state(state, unit.key)
        with adapted_weights(backbone, settings.adapter, unit.seed):
            result = fit(
                classifier, train, valid, options, state=state, identity=unit.key, watch=watch
            )
        weights = encode_tensors(collect_tensors(classifier))
        found = {
            "n_train": train.n,
            "n_valid": valid.n,
            "cut_train": whole.cut,
            "max_length": max_length,
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
        state.unlink(missing_ok=True)
    found["parameters"] = sum(p.numel() for p in classifier.parameters())
    scale = (found["scale"][0], found["scale"][1])

    def predict(examples: Examples) -> Floats:
        part, bf16 = encode(examples, encoder, max_length), settings.precision == "bf16"
        return probabilities(task.kind, raw_scores(classifier, part, bf16=bf16), scale)

    def keep() -> KeptFit:
        return KeptFit(
            "network",
            collect_tensors(classifier),
            {"head": classifier.pooling.sizes},
            scale=scale,
            max_length=max_length,
            n_texts=count_texts(data.train.sequences) if task.domain == TEXT.name else 1,
        )

    return FittedUnit(predict, found, lambda some: encode(some, encoder, max_length).cut, keep)
