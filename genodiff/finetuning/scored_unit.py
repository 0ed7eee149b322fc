"""A unit, fitted and scored: its network or baseline on the seed's train and validation rows.

No fit is given the test part, which is opened once, after the fit, and then the row is written. A
fit that was stopped resumes from `state.safetensors`. One that is done is read from
`model.safetensors` and `fitted.json`. A unit that has a result is never scored again.
"""

import hashlib
import logging
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from genodiff.domain import TEXT
from genodiff.finetuning.adapters import adapted_weights
from genodiff.finetuning.baselines import fit_baseline
from genodiff.finetuning.batches import count_texts, encode
from genodiff.finetuning.fit import NetworkPredictor, Predict, SavedPredictor, SequenceLesson
from genodiff.finetuning.fit_loop import STATE, FitLoop, Watch, WorkClock
from genodiff.finetuning.head import Classifier
from genodiff.finetuning.model_words import BASELINES
from genodiff.finetuning.predictor_files import can_keep, write_predictor
from genodiff.finetuning.unit import FITTED, MODEL, PREDICTOR, RESULT, TEST, Unit, null_nonfinite
from genodiff.io import atomic
from genodiff.io.file_kinds import stamp_time
from genodiff.runs.model import collect_tensors, fill_module
from genodiff.runs.sealed_files import encode_tensors, read_json, read_tensors
from genodiff.tasks.metrics import Floats, measure, measure_spread
from genodiff.tasks.task import TaskData, seed_split
from genodiff.version import __version__, name_revision

_log = logging.getLogger("genodiff")
Keep = Literal["new", "all", "none"]


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
    encoder, complement = unit.model.encoder(), alphabet.complement
    classifier = Classifier(backbone, task.n_out, settings, complement, seed=unit.seed).to(device)
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


def run_unit(
    unit: Unit,
    data: TaskData,
    out: Path,
    *,
    device: str = "cpu",
    keep: Keep = "new",
    watch: Watch | None = None,
) -> dict[str, Any]:
    """The row of a unit. It is fitted (or its fit resumed) and scored, or read if it is done.

    `keep` says whether the fit is kept for prediction: of `new` units, of `all` (one that is done
    without is fitted again, and its row stays), or of `none`.
    """
    folder = unit.folder(out)
    without_test = remove_test(data)
    if (folder / RESULT).exists():
        row = dict(read_json(folder / RESULT)["row"])
        without = can_keep(unit.method, unit.model.preset) and not (folder / PREDICTOR).exists()
        if keep == "all" and without:
            again = fit_unit(unit, without_test, out, device=device, watch=watch)
            assert isinstance(again.predict, SavedPredictor)
            valid = null_nonfinite(again.found)["valid"]
            same = valid == row["valid"]
            if not same:
                _log.warning(
                    "%s: the fit is not the recorded one (validation %s, then %s); its card has no "
                    "test values", unit.title, valid, row["valid"],
                )  # fmt: skip
            told = row | {"valid": valid}
            write_predictor(unit, data.task, again.predict, told, folder, scored=same)
        return row
    fitted = fit_unit(unit, without_test, out, device=device, watch=watch)
    row = score_unit(unit, data, fitted, folder, keep=keep != "none")
    if keep == "none":
        (folder / MODEL).unlink(missing_ok=True)
    return row


def remove_test(data: TaskData) -> TaskData:
    """The task with an empty test part, as a fit gets it."""
    return data._replace(test=data.test.take(np.zeros(0, np.int64)))


def score_unit(
    unit: Unit, data: TaskData, fitted: FittedUnit, folder: Path, *, keep: bool = True
) -> dict[str, Any]:
    """Predict the test part, and write the unit's result. Returns its row.

    With `keep`, what prediction needs is written before the result.
    """
    task, test = data.task, data.test
    predicted = fitted.predict(test)
    saved = fitted.predict if isinstance(fitted.predict, SavedPredictor) else None
    metric, kind, truth = task.metrics[0], task.kind, test.labels
    values: dict[str, float] = {m: measure(m, kind, truth, predicted) for m in task.metrics}
    interval = measure_spread(metric, kind, truth, [predicted], seed=unit.seed).ci95
    found = {k: v for k, v in fitted.found.items() if k not in ("history", "sha256", "scale")}
    row = {
        "suite": unit.suite, "task": unit.task, "split": unit.split, "model": unit.model.name,
        "kind": unit.model.kind,
        "method": unit.method, "setting": unit.setting, "seed": unit.seed, "key": unit.key,
        "metric": metric, "value": values[metric], "ci95": interval,
        "metrics": null_nonfinite(values),
        "valid_metric": metric, "digest": unit.model.digest, **unit.model.describe(),
        **found, "n_test": test.n,
        "cut_test": 0 if saved is None else saved.count_cut(test), "data": unit.data,
        "settings": None if unit.method == "baseline" else unit.settings.model_dump(mode="json"),
        "notes": list(data.notes),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "threads": torch.get_num_threads(),
        "genodiff": __version__, "git": name_revision(),
        "created": stamp_time(),
    }  # fmt: skip
    row = null_nonfinite(row) | unit.tell_choice()
    folder.mkdir(parents=True, exist_ok=True)
    kind_of_truth = np.float32 if truth.dtype.kind == "f" else np.int64
    arrays = {
        "predicted": predicted.astype(np.float32),
        "truth": truth.astype(kind_of_truth),
        "lengths": test.lengths.astype(np.int64),
    }
    tensors = {name: torch.from_numpy(np.ascontiguousarray(x)) for name, x in arrays.items()}
    atomic.write_bytes(folder / TEST, encode_tensors(tensors))
    history = {k: v for k, v in fitted.found.items() if k == "history"}
    if keep and saved is not None:
        write_predictor(unit, task, saved, row, folder)
    atomic.write_json(folder / RESULT, {"row": row, **history})
    return row


def read_predictions(
    folder: Path, name: str = TEST
) -> tuple[Floats, NDArray[Any], NDArray[np.int64]]:
    """(predicted, truth, lengths) of a unit that is done (or tried). Raises `CheckpointError`."""
    tensors = read_tensors(folder / name)
    predicted = tensors["predicted"].double().numpy()
    return predicted, tensors["truth"].numpy(), tensors["lengths"].numpy()
