"""Fitting a unit: its network or baseline on the seed's train rows, chosen by its validation rows.

There is no test part here. A fit that was stopped goes on from `state.safetensors`. One that is
done is read from `model.safetensors` and `fitted.json`.
"""

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

from genodiff.domain import TEXT
from genodiff.finetuning.adapters.adapter import adapted_weights
from genodiff.finetuning.baselines import fit_baseline
from genodiff.finetuning.batches import count_texts, encode
from genodiff.finetuning.fit import NetworkPredictor, Predict, SequenceLesson, count_outputs
from genodiff.finetuning.fit_loop import STATE, FitLoop, Watch, WorkClock
from genodiff.finetuning.head import Classifier
from genodiff.finetuning.model_words import BASELINES
from genodiff.finetuning.results import null_nonfinite
from genodiff.finetuning.unit import FITTED, MODEL, Unit
from genodiff.io import atomic
from genodiff.runs.model import collect_tensors, fill_module
from genodiff.runs.sealed_files import encode_tensors, read_json, read_tensors
from genodiff.tasks.metrics import measure
from genodiff.tasks.task import TaskData, seed_split


class FittedUnit(NamedTuple):
    """A unit after its fit: how it predicts, and what is known of it without any test."""

    predict: Predict
    found: dict[str, Any]


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
        return _fit_baseline(unit, data, out)
    return _fit_network(unit, data, folder, device, watch)


_undrawn: dict[tuple[object, ...], FittedUnit] = {}  # the last such fit, and no other


def _fit_baseline(unit: Unit, data: TaskData, out: Path) -> FittedUnit:
    """The fit of a baseline. One that draws nothing is the same for all seeds with these rows."""
    rows, valid_rows = seed_split(data, unit.seed)
    task, name = data.task, str(unit.model.preset)
    key = (unit.model_copy(update={"seed": 0}).key, rows.tobytes(), valid_rows.tobytes(), out)
    if key not in _undrawn:
        _undrawn.clear()
        train, valid = data.train.take(rows), data.train.take(valid_rows)
        clock = WorkClock()
        predict = fit_baseline(name, task, train, valid, unit.seed)
        value = measure(task.metrics[0], task.kind, valid.labels, predict(valid))
        found: dict[str, Any] = {"valid": value, "seconds": clock.seconds}
        found |= {"n_train": train.n, "n_valid": valid.n, "cut_train": 0, "max_length": None}
        if BASELINES[name].is_drawn:
            return FittedUnit(predict, found)
        _undrawn[key] = FittedUnit(predict, found)
    known = _undrawn[key]
    return known._replace(found=dict(known.found))


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
        with adapted_weights(backbone, settings.adapter, unit.seed):
            parts, metric = (train, valid), task.metrics[0]
            lesson = SequenceLesson(classifier, parts, task.kind, metric, settings, unit.seed)
            loop = FitLoop(lesson)
            history = list(loop.run(state=state, identity=unit.key, watch=watch))
        weights = encode_tensors(collect_tensors(classifier))
        found = {
            "n_train": train.n,
            "n_valid": valid.n,
            "cut_train": whole.cut,
            "max_length": max_length,
            "valid": history[loop.best_epoch].valid,
            "best_epoch": loop.best_epoch,
            "epochs": len(history),
            "seconds": loop.seconds,
            "scale": list(lesson.scale),
            "trained": loop.trained,
            "history": [null_nonfinite(e._asdict()) for e in history],
            "sha256": hashlib.sha256(weights).hexdigest(),
        }
        atomic.write_bytes(folder / MODEL, weights)
        atomic.write_json(here, null_nonfinite(found))
        state.unlink(missing_ok=True)
    found["parameters"] = sum(p.numel() for p in classifier.parameters())
    predict = NetworkPredictor(
        classifier,
        encoder,
        task.kind,
        max_length,
        bf16=settings.precision == "bf16",
        scale=(found["scale"][0], found["scale"][1]),
        n_texts=count_texts(data.train.sequences) if task.domain == TEXT.name else 1,
    )
    return FittedUnit(predict, found)
