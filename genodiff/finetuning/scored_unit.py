"""Scoring a unit: the test part is opened once, after the fit, and the row is written.

No fit is given the test part. A unit that has a result is never scored again.
"""

import logging
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from genodiff.finetuning.fit import SavedPredictor
from genodiff.finetuning.fit_loop import Watch
from genodiff.finetuning.fitted_unit import FittedUnit, fit_unit
from genodiff.finetuning.predictor_files import can_keep, write_predictor
from genodiff.finetuning.results import null_nonfinite
from genodiff.finetuning.unit import MODEL, PREDICTOR, RESULT, TEST, Unit
from genodiff.io import atomic
from genodiff.io.file_kinds import stamp_time
from genodiff.runs.sealed_files import encode_tensors, read_json, read_tensors
from genodiff.tasks.metrics import Floats, measure, measure_spread
from genodiff.tasks.task import TaskData
from genodiff.version import __version__, name_revision

_log = logging.getLogger("genodiff")
Keep = Literal["new", "all", "none"]


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
