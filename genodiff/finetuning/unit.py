"""A unit of a sweep: one (task, model, setting, seed), with a folder and a row of its own.

UNITS/KEY/state.safetensors    where the fit is, while it runs
UNITS/KEY/model.safetensors    the weights of its best epoch, network and head
UNITS/KEY/fitted.json          what the fit found on the validation part
UNITS/KEY/test.safetensors     the predictions for the test part, and the truth
UNITS/KEY/predictor.json       what prediction needs beside the weights, with README.md
UNITS/KEY/result.json          the row, and the history of the epochs: written last

`results.jsonl` of the sweep has all rows. It is written again as a whole, under a lock, for every
new row, sorted by task, model, method, setting and seed. So it is never half written, several
processes may add to it, and a sweep leaves the same rows in the same order, however often it was
killed. The keys of a row:

    suite, task, split, model, method, setting, seed, key    what was run
    kind                                                     checkpoint, scratch or baseline
    metric, value, ci95                                      the task's first metric on test
    metrics                                                  all metrics, by name
    valid, valid_metric, best_epoch, epochs                  how the epoch was chosen
    choices, choice_seconds                                  how validation chose the settings
    n_train, n_valid, n_test                                 examples
    cut_train, cut_test, max_length                          how many were shortened, and to what
    data                                                     sha256 of sequences and labels
    network, parameters, checkpoint, step, pretrained_on     of a network
    trained                                                  weights that the fit changed
    seconds, device, threads, genodiff, git, created         how long, where, with which code
"""

import hashlib
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import Field

from genodiff.errors import DataError
from genodiff.finetuning.model_spec import ModelSpec
from genodiff.finetuning.protocol import FitSettings
from genodiff.finetuning.unit_files import PREDICTOR as PREDICTOR
from genodiff.finetuning.unit_files import RESULT as RESULT
from genodiff.finetuning.unit_files import ROWS as FILE
from genodiff.finetuning.unit_files import UNITS as UNITS
from genodiff.io import atomic
from genodiff.io.file_kinds import sha256_json
from genodiff.io.file_lock import hold_file
from genodiff.settings import Settings
from genodiff.tasks.task import TaskData

MODEL, FITTED, TEST = "model.safetensors", "fitted.json", "test.safetensors"
README = "README.md"


class Unit(Settings):
    """What one unit is. `data` is the digest of the examples; `setting` names `settings`.

    `choices` says how validation chose the settings, and `choice_seconds` how long that took.
    `seen` says what pretraining saw of the test part, and what was left out of it.
    """

    suite: str
    task: str
    split: str
    data: str
    model: ModelSpec
    settings: FitSettings
    setting: str = "paper"
    seed: int
    choices: list[dict[str, Any]] = Field(default_factory=list)
    choice_seconds: float = 0.0
    seen: dict[str, Any] = Field(default_factory=dict)

    @property
    def key(self) -> str:
        """16 hex digits: the hash of everything that decides the unit's value."""
        names = ("suite", "task", "split", "data", "seed")
        what: dict[str, Any] = {name: getattr(self, name) for name in names}
        what |= {"kind": self.model.kind, "digest": self.model.digest}
        if self.model.kind == "baseline":
            what["baseline"] = self.model.preset
        else:
            what["settings"] = self.settings.model_dump(mode="json")
            what["settings"]["probe_c"] = [0.01, 0.1, 1.0, 10.0]  # that older units had, too
            if self.settings.parts == 1:
                del what["settings"]["parts"]  # older units had no parts and keep their key
            if self.settings.head in ("mean", "parts"):
                del what["settings"]["head"]  # which the number of parts says
            if self.settings.shift == 0:
                del what["settings"]["shift"]
        return sha256_json(what)[:16]

    def tell_choice(self) -> dict[str, Any]:
        """`choices` and `choice_seconds`, as rows have them; nothing where nothing was chosen."""
        if not self.choices:
            return {}
        return {"choices": self.choices, "choice_seconds": self.choice_seconds}

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"{self.task} {self.model.name} seed {self.seed}"

    @property
    def method(self) -> str:
        """full, frozen or baseline."""
        return "baseline" if self.model.kind == "baseline" else self.settings.method

    def folder(self, out: Path) -> Path:
        """The unit's own folder inside a sweep's folder."""
        return out / UNITS / self.key


TIMES = ("seconds", "choice_seconds", "created", "device", "threads", "git", "genodiff")
"""Keys of a row that may differ between two runs of the same unit."""

_ORDER = ("suite", "task", "split", "model", "method", "setting", "seed", "key")


def read_results(folder: Path) -> list[dict[str, Any]]:
    """All rows, in the file's order. Raises `DataError` for a line that is no row."""
    path = folder / FILE
    if not path.exists():
        return []
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = json.loads(line)
            needed = {"task", "model", "seed", "key", "value"}
            if not (isinstance(row, dict) and needed <= row.keys()):
                raise ValueError("no row of results")
        except ValueError as fault:
            what = f"is no row of results ({fault})"
            fix = "remove the line; the unit runs again"
            raise DataError(what, file=path, line=number, fix=fix) from None
        rows.append(row)
    return rows


def add_rows(folder: Path, new: Iterable[dict[str, Any]]) -> None:
    """Put rows into the file, each in the place of an older one with the same key."""
    with hold_file(folder / f".{FILE}.lock"):
        rows = {row["key"]: row for row in read_results(folder)}
        before = dict(rows)
        rows |= {row["key"]: row for row in new}
        if rows != before or not (folder / FILE).exists():
            text = "".join(
                json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"
                for row in sorted(rows.values(), key=_place)
            )
            atomic.write_text(folder / FILE, text)


def _place(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(
        f"{row.get(k, ''):09d}" if isinstance(row.get(k), int) else str(row.get(k, ""))
        for k in _ORDER
    )


def strip_variable_keys(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what may differ between two runs of the same unit."""
    return {k: v for k, v in row.items() if k not in TIMES}


def hash_data(data: TaskData) -> str:
    """sha256 of a task's sequences and labels with the validation part, 12 hex digits."""
    found = hashlib.sha256()
    for part in (data.train, data.test):
        found.update(f"{part.n} {part.labels.dtype} {part.labels.shape}".encode())
        for sequence in part.sequences:
            found.update(sequence)
            found.update(b"\n")
        found.update(part.labels.tobytes())
    if data.valid_index is not None:
        found.update(data.valid_index.tobytes())
    return found.hexdigest()[:12]


def null_nonfinite(values: dict[str, Any]) -> dict[str, Any]:
    """The values with None in place of a float that is not finite, as JSON wants them."""
    return {
        k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()
    }
