"""`RUN/memory.json`: the numbers of a run's memory, fitted on its valid split.

    {"fingerprint": of the memory, "numbers": {...}, "effort": {...}, "fitted_on": {...}}

Whoever opens the memory of such a run takes them (`training_memory.py`). A run that is trained
beside its memory has its numbers from the beginning, and no such file.
"""

from pathlib import Path
from typing import Any

from genodiff.errors import CheckpointError
from genodiff.io import atomic
from genodiff.io.target import read_json_object
from genodiff.memory.numbers import MemoryNumbers
from genodiff.memory.search import is_effort
from genodiff.runs.sealed_files import read_json

FILE = "memory.json"
_KEYS = ("fingerprint", "numbers", "effort", "fitted_on")


def write_fitted(run: Path, told: dict[str, Any]) -> None:
    """Keep fitted numbers with a run. Raises `MachineError`."""
    atomic.write_json(run / FILE, {key: told[key] for key in _KEYS})


def is_fitted(path: Path) -> bool:
    """Whether a file is one that `write_fitted` wrote."""
    return read_json_object(path).keys() == set(_KEYS)


def read_fitted(run: Path) -> dict[str, Any] | None:
    """What is kept with a run; None where nothing was fitted.

    Raises `CheckpointError` where the file is damaged.
    """
    path = run / FILE
    if not path.exists():
        return None
    told = read_json(path)
    if not set(_KEYS) <= told.keys() or not is_effort(told["effort"]):
        what, fix = "does not hold the numbers of a memory", "remove it, and fit them again"
        raise CheckpointError(what, file=path, fix=fix)
    MemoryNumbers.parse(told["numbers"], file=path, error=CheckpointError)
    return told
