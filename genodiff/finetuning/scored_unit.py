"""Scoring a unit: the test part is opened once, after the fit, and the row is written.

The test part is `Sealed`, and opens after `fitted.json` is written. A unit that has a result is
never scored again.
"""

import logging
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from genodiff.errors import GenodiffError
from genodiff.finetuning.fit import Watch
from genodiff.finetuning.fitted_unit import FittedUnit, fit_unit, null_nonfinite_key
from genodiff.finetuning.predictor_files import can_keep, write_predictor
from genodiff.finetuning.results import null_nonfinite
from genodiff.finetuning.unit import MODEL, PREDICTOR, RESULT, TEST, Unit
from genodiff.io import atomic
from genodiff.io.identity import stamp_time
from genodiff.runs.sealed_files import encode_tensors, read_json, read_tensors
from genodiff.tasks.examples import Examples
from genodiff.tasks.metrics import Floats, measure, measure_spread
from genodiff.tasks.suite import Task
from genodiff.tasks.task import TaskData
from genodiff.version import __version__, name_revision

_log = logging.getLogger("genodiff")
Keep = Literal["new", "all", "none"]


class Sealed:
    """A test part that can be opened once."""

    def __init__(self, test: Examples) -> None:
        self._test: Examples | None = test

    def open(self) -> Examples:
        """The examples. Raises `GenodiffError` the second time."""
        if self._test is None:
            raise GenodiffError("the test part was opened twice: this is a bug", fix="report it")
        test, self._test = self._test, None
        return test


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
        if keep == "all" and can_keep(unit) and not (folder / PREDICTOR).exists():
            again = fit_unit(unit, without_test, out, device=device, watch=watch)
            _keep_again(unit, data.task, again, row, folder)
        return row
    fitted = fit_unit(unit, without_test, out, device=device, watch=watch)
    row = score_unit(
        unit, data.task, data.notes, fitted, Sealed(data.test), folder, keep=keep != "none"
    )
    if keep == "none":
        (folder / MODEL).unlink(missing_ok=True)
    return row


def remove_test(data: TaskData) -> TaskData:
    """The task with an empty test part, as a fit gets it."""
    return data._replace(test=data.test.take(np.zeros(0, np.int64)))


def try_unit(
    unit: Unit, data: TaskData, out: Path, *, device: str = "cpu", watch: Watch | None = None
) -> tuple[float, float]:
    """(validation value, seconds) of a unit that is fitted and not scored.

    The test part is not read. Raises `GenodiffError` for a fit that fails.
    """
    fitted = fit_unit(unit, remove_test(data), out, device=device, watch=watch)
    return fitted.found["valid"], fitted.found["seconds"]


def _encode_predictions(predicted: Floats, examples: Examples) -> bytes:
    truth = np.float32 if examples.labels.dtype.kind == "f" else np.int64
    tensors = {
        "predicted": torch.from_numpy(np.ascontiguousarray(predicted, np.float32)),
        "truth": torch.from_numpy(np.ascontiguousarray(examples.labels, truth)),
        "lengths": torch.from_numpy(examples.lengths.astype(np.int64)),
    }
    return encode_tensors(tensors)


def _keep_again(
    unit: Unit, task: Task, fitted: FittedUnit, row: dict[str, Any], folder: Path
) -> None:
    """Keep the fit of a unit whose row is of an earlier one: its test values if both agree."""
    assert fitted.keep is not None
    valid = null_nonfinite_key(fitted.found, "valid")["valid"]
    same = valid == row["valid"]
    if not same:
        _log.warning(
            "%s: the fit is not the recorded one (validation %s, then %s); its card has no test "
            "values", unit.title, valid, row["valid"],
        )  # fmt: skip
    write_predictor(unit, task, fitted.keep(), row | {"valid": valid}, folder, scored=same)


def score_unit(
    unit: Unit,
    task: Task,
    notes: tuple[str, ...],
    fitted: FittedUnit,
    sealed: Sealed,
    folder: Path,
    *,
    keep: bool = True,
) -> dict[str, Any]:
    """Open the test part, predict, and write the unit's result. Returns its row.

    With `keep`, what prediction needs is written before the result.
    """
    test = sealed.open()
    predicted = fitted.predict(test)
    metric, kind, truth = task.metrics[0], task.kind, test.labels
    values: dict[str, float] = {m: measure(m, kind, truth, predicted) for m in task.metrics}
    interval = measure_spread(metric, kind, truth, [predicted], seed=unit.seed).ci95
    found = {k: v for k, v in fitted.found.items() if k not in ("history", "sha256", "scale")}
    row: dict[str, Any] = {
        "suite": unit.suite, "task": unit.task, "split": unit.split, "model": unit.model.name,
        "kind": unit.model.kind,
        "method": unit.method, "setting": unit.setting, "seed": unit.seed, "key": unit.key,
        "metric": metric, "value": values[metric], "ci95": interval,
        "metrics": null_nonfinite(values),
        "valid_metric": metric, "digest": unit.model.digest, **unit.model.describe(),
        **null_nonfinite_key(found, "valid"), "n_test": test.n,
        "cut_test": fitted.count_cut(test), "data": unit.data,
        "settings": None if unit.method == "baseline" else unit.settings.model_dump(mode="json"),
        "notes": list(notes), "device": _device(), "threads": torch.get_num_threads(),
        "genodiff": __version__, "git": name_revision(),
        "created": stamp_time(),
    }  # fmt: skip
    row |= unit.tell_choice()
    folder.mkdir(parents=True, exist_ok=True)
    atomic.write_bytes(folder / TEST, _encode_predictions(predicted, test))
    history = {k: v for k, v in fitted.found.items() if k == "history"}
    if keep and fitted.keep is not None:
        write_predictor(unit, task, fitted.keep(), row, folder)
    atomic.write_json(folder / RESULT, {"row": null_nonfinite_key(row, "value"), **history})
    return row


def _device() -> str:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"


def read_predictions(
    folder: Path, name: str = TEST
) -> tuple[Floats, NDArray[Any], NDArray[np.int64]]:
    """(predicted, truth, lengths) of a unit that is done (or tried). Raises `CheckpointError`."""
    tensors = read_tensors(folder / name)
    predicted = tensors["predicted"].double().numpy()
    return predicted, tensors["truth"].numpy(), tensors["lengths"].numpy()
