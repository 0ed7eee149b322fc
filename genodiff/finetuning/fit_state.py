"""Where a fit is, as one file: tensors, counters, and the name of the fit that they belong to.

A state is believed where its hash and its identity agree; nothing else goes on from it.

Seconds of work: what a fit takes, without what it waited for a processor.

On a busy machine a fit that has one core to itself for half of the time takes twice as long.
Budgets and tables should not depend on that. So time on a CPU is the smaller of wall time and of
the processor time of the process. On a GPU, where the processor waits, it is wall time.
"""

import hashlib
import json
import logging
import time
from pathlib import Path
from typing import Any, NamedTuple

from safetensors.torch import save as to_safetensors
from torch import Tensor

from genodiff.errors import CheckpointError
from genodiff.io import atomic
from genodiff.runs.sealed_files import read_tensors

_log = logging.getLogger("genodiff")

STATE = "state.safetensors"
SAVE_SECONDS = 60.0
"""A state is written as often as this."""


class FitState(NamedTuple):
    """Groups of tensors by name, such as the weights and the moments, and plain counters."""

    groups: dict[str, dict[str, Tensor]]
    counters: dict[str, Any]


def write_state(path: Path, state: FitState, identity: str) -> None:
    """Write the file, atomically. `identity` names the fit."""
    tensors = {f"{group}.{k}": v for group, of in state.groups.items() for k, v in of.items()}
    body = {k: v.detach().cpu().contiguous() for k, v in sorted(tensors.items())}
    digest = _digest(body, state.counters, identity)
    about = {"counters": json.dumps(state.counters), "identity": identity, "sha256": digest}
    atomic.write_bytes(path, to_safetensors(body, about))


def read_state(path: Path, identity: str, groups: tuple[str, ...]) -> FitState:
    """What `write_state` wrote. Raises `CheckpointError` for a foreign or corrupt file."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        try:
            about = json.loads(file.read(size))["__metadata__"]
            counters = json.loads(about["counters"])
        except (ValueError, KeyError, TypeError, MemoryError, OverflowError):
            fix = "remove it; the unit begins again"
            raise CheckpointError("is no state of a fit: corrupt", file=path, fix=fix) from None
    tensors = read_tensors(path)
    if about.get("identity") != identity or about.get("sha256") != _digest(
        tensors, counters, identity
    ):
        fix = "remove it; the unit begins again"
        raise CheckpointError("is the state of another fit, or corrupt", file=path, fix=fix)
    parts = {
        group: {k[len(group) + 1 :]: v for k, v in tensors.items() if k.startswith(f"{group}.")}
        for group in groups
    }
    return FitState(parts, counters)


def drop_foreign_state(path: Path, identity: str) -> None:
    """Remove a state of another fit, or a corrupt one, with a warning: the fit begins again."""
    try:
        if path.exists():
            read_state(path, identity, ())
    except CheckpointError as fault:
        _log.warning("%s: starting again", fault)
        path.unlink()


def _digest(tensors: dict[str, Tensor], counters: dict[str, Any], identity: str) -> str:
    found = hashlib.sha256(f"{identity}{json.dumps(counters)}".encode())
    for name in sorted(tensors):
        found.update(name.encode())
        found.update(tensors[name].detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()


class WorkClock:
    """Counts seconds of work from now on, on top of `spent` ones; `device` is a device's type."""

    def __init__(self, spent: float = 0.0, device: str = "cpu") -> None:
        self._spent, self._on_cpu = spent, device == "cpu"
        self._wall, self._cpu = time.monotonic(), time.process_time()

    @property
    def seconds(self) -> float:
        """Seconds of work so far."""
        wall = time.monotonic() - self._wall
        if self._on_cpu:
            wall = min(wall, time.process_time() - self._cpu)
        return self._spent + wall
