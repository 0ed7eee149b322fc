"""A unit: one (task, model, setting, seed), fitted, then scored on the test part once, with a
folder and a row of its own.

    UNITS/KEY/state.safetensors    where the fit is, while it runs
    UNITS/KEY/model.safetensors    the weights of its best epoch, network and head, once it is
                                   fitted
    UNITS/KEY/fitted.json          what the fit found on the validation part
    UNITS/KEY/test.safetensors     the predictions for the test part, and the truth
    UNITS/KEY/result.json          the row, and the history of the epochs: written last

The test part comes in a `Sealed` envelope. Fitting takes train and validation examples and nothing
else; the envelope opens after `fitted.json` is there, once. A unit that has a result is never
scored again.
"""

import hashlib
import logging
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from genodiff import __version__
from genodiff.alphabet import Alphabet
from genodiff.errors import CheckpointError, GenodiffError
from genodiff.finetune import probe, saliency
from genodiff.finetune.batches import Part, Reader, encode
from genodiff.finetune.contender import Contender
from genodiff.finetune.fit import STATE, Watch, fit, n_out_of, probabilities, raw_scores
from genodiff.finetune.head import Classifier, Strands
from genodiff.finetune.protocol import FitSettings
from genodiff.finetune.results import finite
from genodiff.io import atomic
from genodiff.io.identity import sha256_json, time_stamp
from genodiff.runs.folder import git_revision
from genodiff.runs.weights import fill, own_tensors, read_json, read_tensors, to_bytes
from genodiff.settings import Settings
from genodiff.tasks.examples import Examples
from genodiff.tasks.metrics import Floats, measure, spread
from genodiff.tasks.task import Task, TaskData, seed_split

MODEL, FITTED, TEST, RESULT = "model.safetensors", "fitted.json", "test.safetensors", "result.json"
UNITS = "units"

_log = logging.getLogger("genodiff")
Predict = Callable[[Examples], Floats]


class Unit(Settings):
    """What one unit is. `data` is the digest of the task's examples; `setting` is a name for
    `settings`, for people.
    """

    suite: str
    task: str
    split: str
    data: str
    contender: Contender
    settings: FitSettings
    setting: str = "paper"
    seed: int

    @property
    def key(self) -> str:
        """16 hex digits: the hash of everything that decides the unit's value."""
        who = self.contender
        what: dict[str, Any] = {
            "suite": self.suite,
            "task": self.task,
            "split": self.split,
            "data": self.data,
            "seed": self.seed,
        }
        what |= {"kind": who.kind, "digest": who.digest}
        settings = self.settings.model_dump(mode="json")
        if self.settings.parts == 1:
            del settings["parts"]  # what was fitted before there were parts keeps its key
        what |= {"baseline": who.preset} if who.kind == "baseline" else {"settings": settings}
        return sha256_json(what)[:16]

    @property
    def method(self) -> str:
        """full, probe or baseline."""
        return "baseline" if self.contender.kind == "baseline" else self.settings.method

    def folder(self, out: Path) -> Path:
        """Where the unit keeps what it made, inside a sweep's folder."""
        return out / UNITS / self.key


class Sealed:
    """A test part that can be opened once."""

    def __init__(self, test: Examples) -> None:
        self._test: Examples | None = test

    def open(self) -> Examples:
        """The examples. Raises `GenodiffError` the second time."""
        if self._test is None:
            raise GenodiffError("the test part was opened twice: a bug", fix="report it")
        test, self._test = self._test, None
        return test


class Fit(NamedTuple):
    """What fitting a unit gives: what to predict with, what is known without any test, how many
    examples it would shorten.
    """

    predict: Predict
    found: dict[str, Any]
    explain: Callable[[bytes, int, float], dict[str, Any]] | None = None
    cut: Callable[[Examples], int] = lambda examples: 0


Baseline = Callable[[str, Task, Examples, Examples, int], Predict]
"""`(name, task, train, valid, seed) -> predict`."""


def run_unit(
    unit: Unit,
    data: TaskData,
    out: Path,
    *,
    device: str = "cpu",
    baseline: Baseline | None = None,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Fit the unit, or go on with it, score the test part, and return its row. Done already: only
    the row is read.
    """
    folder = unit.folder(out)
    if (folder / RESULT).exists():
        return dict(read_json(folder / RESULT)["row"])
    fitted = fit_unit(
        unit,
        data._replace(test=_nothing(data.test)),
        out,
        device=device,
        baseline=baseline,
        watch=watch,
    )
    return score_unit(unit, data.task, data.notes, fitted, Sealed(data.test), folder)


def _nothing(test: Examples) -> Examples:
    return test.take(np.zeros(0, np.int64))


def fit_unit(
    unit: Unit,
    data: TaskData,
    out: Path,
    *,
    device: str = "cpu",
    baseline: Baseline | None = None,
    watch: Watch | None = None,
) -> Fit:
    """Fit on the seed's train rows, choose by its validation rows. `data.test` is not looked at and
    may be empty.
    """
    folder = unit.folder(out)
    folder.mkdir(parents=True, exist_ok=True)
    atomic.clear_leftovers(folder)
    rows, valid_rows = seed_split(data, unit.seed)
    counts = {"n_train": len(rows), "n_valid": len(valid_rows)}
    if unit.contender.kind == "baseline":
        if baseline is None or unit.contender.preset is None:
            raise GenodiffError(f"no baseline '{unit.contender.name}' here")
        began = time.monotonic()
        valid = data.train.take(valid_rows)
        predict = baseline(
            unit.contender.preset, data.task, data.train.take(rows), valid, unit.seed
        )
        value = measure(data.task.metrics[0], data.task.kind, valid.labels, predict(valid))
        found = {
            "valid": value,
            "seconds": time.monotonic() - began,
            **counts,
            "cut_train": 0,
            "max_length": None,
        }
        return Fit(predict, found)
    return _fit_network(unit, data, rows, valid_rows, folder, counts, device, watch)


def _fit_network(
    unit: Unit, data: TaskData, rows: NDArray[np.int64], valid_rows: NDArray[np.int64],
    folder: Path, counts: dict[str, int],
    device: str, watch: Watch | None,
) -> Fit:  # fmt: skip
    task, settings = data.task, unit.settings
    max_length = min(task.max_length, settings.max_length or task.max_length)
    classifier, reader = classifier_of(unit, task, device)
    everything = encode(data.train, reader, max_length)
    train, valid = everything.take(rows), everything.take(valid_rows)
    counts |= {"cut_train": everything.cut, "max_length": max_length}
    if settings.method == "probe":
        return _fit_probe(unit, task, classifier, reader, train, valid, counts, max_length)
    here = folder / FITTED
    if here.exists():
        found = read_json(here)
        fill(
            classifier,
            {
                k: v.to(device)
                for k, v in read_tensors(folder / MODEL, None, found["sha256"]).items()
            },
        )
        scale = (found["scale"][0], found["scale"][1])
    else:
        state = folder / STATE
        arguments: dict[str, Any] = {
            "kind": task.kind,
            "metric": task.metrics[0],
            "settings": settings,
            "seed": unit.seed,
            "watch": watch,
        }
        try:
            done = fit(classifier, train, valid, state=state, identity=unit.key, **arguments)
        except CheckpointError as fault:
            _log.warning("%s: it begins again", fault)
            state.unlink()
            classifier, _ = classifier_of(unit, task, device)
            done = fit(classifier, train, valid, state=state, identity=unit.key, **arguments)
        weights = to_bytes(own_tensors(classifier))
        scale = done.scale
        found = {
            **counts, "valid": done.valid, "best_epoch": done.best_epoch,
            "epochs": len(done.history), "seconds": done.seconds,
            "scale": list(scale), "history": [finite(e._asdict()) for e in done.history],
            "sha256": hashlib.sha256(weights).hexdigest(),
        }  # fmt: skip
        atomic.write_bytes(folder / MODEL, weights)
        atomic.write_json(here, finite_at(found, "valid"))
        state.unlink(missing_ok=True)

    def predict(examples: Examples) -> Floats:
        scores = raw_scores(
            classifier, encode(examples, reader, max_length), bf16=settings.precision == "bf16"
        )
        return probabilities(task.kind, scores, scale)

    if not isinstance(reader, Alphabet):
        return Fit(predict, found, None, _cuts(reader, max_length))

    def explain(sequence: bytes, label: int, probability: float) -> dict[str, Any]:
        return saliency.about(classifier, reader, sequence[:max_length], label, probability)

    return Fit(predict, found, explain, _cuts(reader, max_length))


def _cuts(reader: Reader, max_length: int) -> Callable[[Examples], int]:
    return lambda examples: encode(examples, reader, max_length).cut


def finite_at(values: dict[str, Any], key: str) -> dict[str, Any]:
    """The values with None under `key` where that is not finite."""
    return values | finite({key: values[key]})


def _fit_probe(
    unit: Unit,
    task: Task,
    classifier: Classifier,
    reader: Reader,
    train: Part,
    valid: Part,
    counts: dict[str, int],
    max_length: int,
) -> Fit:
    began = time.monotonic()
    n_out = n_out_of(task.kind, task.classes)
    probed = probe.fit_probe(
        probe.embeddings(classifier, train), train.labels, probe.embeddings(classifier, valid),
        valid.labels,
        kind=task.kind, metric=task.metrics[0], n_out=n_out, strengths=unit.settings.probe_c,
    )  # fmt: skip

    def predict(examples: Examples) -> Floats:
        return probed.predict(
            task.kind, probe.embeddings(classifier, encode(examples, reader, max_length))
        )

    found = {
        **counts,
        "valid": probed.valid,
        "probe_c": probed.c,
        "tried": finite(probed.tried),
        "seconds": time.monotonic() - began,
    }
    return Fit(predict, found, None, _cuts(reader, max_length))


def classifier_of(unit: Unit, task: Task, device: str) -> tuple[Classifier, Reader]:
    """The network of a unit with a fresh head, before anything is fitted, and what makes its ids."""
    backbone, alphabet = unit.contender.network(unit.seed, device)
    rc: Strands = unit.settings.rc
    classifier = Classifier(
        backbone, n_out_of(task.kind, task.classes), strands=rc, complement=alphabet.complement,
        dropout=unit.settings.dropout,
        parts=unit.settings.parts, seed=unit.seed,
    )  # fmt: skip
    return classifier.to(device), unit.contender.reader()


def score_unit(
    unit: Unit, task: Task, notes: tuple[str, ...], fitted: Fit, sealed: Sealed, folder: Path
) -> dict[str, Any]:
    """Open the test part, predict, and write the unit's result. Returns its row."""
    test = sealed.open()
    predicted = fitted.predict(test)
    values: dict[str, float] = {
        name: measure(name, task.kind, test.labels, predicted) for name in task.metrics
    }
    interval = spread(task.metrics[0], task.kind, test.labels, [predicted], seed=unit.seed).ci95
    found = {
        k: v for k, v in fitted.found.items() if k not in ("history", "sha256", "scale", "tried")
    }
    row: dict[str, Any] = {
        "suite": unit.suite, "task": unit.task, "split": unit.split, "model": unit.contender.name,
        "kind": unit.contender.kind,
        "method": unit.method, "setting": unit.setting, "seed": unit.seed, "key": unit.key,
        "metric": task.metrics[0], "value": values[task.metrics[0]], "ci95": interval,
        "metrics": finite(values),
        "valid_metric": task.metrics[0], "digest": unit.contender.digest, **finite_at(found,
        "valid"), "n_test": test.n,
        "cut_test": fitted.cut(test), "data": unit.data,
        **unit.contender.about(),
        "settings": None if unit.method == "baseline" else unit.settings.model_dump(mode="json"),
        "notes": list(notes), "device": _device(), "threads": torch.get_num_threads(),
        "genodiff": __version__, "git": git_revision(),
        "created": time_stamp("milliseconds"),
    }  # fmt: skip
    tensors = {
        "predicted": torch.from_numpy(np.ascontiguousarray(predicted, np.float32)),
        "truth": _truth(test.labels),
    }
    tensors["lengths"] = torch.from_numpy(test.lengths.astype(np.int64))
    folder.mkdir(parents=True, exist_ok=True)
    atomic.write_bytes(folder / TEST, to_bytes(tensors))
    history: dict[str, Any] = {
        k: fitted.found[k] for k in ("history", "tried") if k in fitted.found
    }
    history |= _example(unit, task, fitted, test, predicted)
    atomic.write_json(folder / RESULT, {"row": finite_at(row, "value"), **history})
    return row


def _example(
    unit: Unit, task: Task, fitted: Fit, test: Examples, predicted: Floats
) -> dict[str, Any]:
    """What the first seed's network looks at in the test example of the last class that it is
    surest of.
    """
    last = len(task.classes) - 1
    if (
        unit.seed != 1
        or fitted.explain is None
        or task.kind not in ("binary", "multiclass")
        or not (test.labels == last).any()
    ):
        return {}
    of_class = np.flatnonzero(test.labels == last)
    at = of_class[predicted[of_class, last].argmax()]
    return {
        "saliency": fitted.explain(test.sequences[at], last, float(predicted[at, last]))
        | {"example": test.names[at]}
    }


def _truth(labels: NDArray[Any]) -> torch.Tensor:
    kind = np.float32 if labels.dtype.kind == "f" else np.int64
    return torch.from_numpy(np.ascontiguousarray(labels, kind))


def _device() -> str:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"


def predictions(folder: Path) -> tuple[Floats, NDArray[Any], NDArray[np.int64]]:
    """(predicted, truth, lengths) of a unit that is done. Raises `CheckpointError`."""
    tensors = read_tensors(folder / TEST)
    return (
        tensors["predicted"].double().numpy(),
        tensors["truth"].numpy(),
        tensors["lengths"].numpy(),
    )


def remove(unit: Unit, out: Path) -> None:
    """Forget a unit."""
    shutil.rmtree(unit.folder(out), ignore_errors=True)
