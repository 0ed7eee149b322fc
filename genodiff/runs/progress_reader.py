"""How far a run is, read from its folder while another process writes it; changes nothing."""

import csv
import io
import json
import math
import os
import socket
import time
from pathlib import Path
from typing import Any, NamedTuple

from genodiff.errors import UsageError
from genodiff.io.progress import format_duration
from genodiff.runs.lock import FILE as LOCK
from genodiff.runs.metrics import COLUMNS
from genodiff.runs.metrics import FILE as METRICS

_RECENT = 50  # rows that pace and loss are means of
_SILENT = 600.0  # seconds without a row, after which a run elsewhere is taken for stopped


class Progress(NamedTuple):
    """A run as it stands: rows of metrics.csv, the planned steps, and whether a process trains."""

    run: Path
    steps: list[int]
    loss: list[float]
    valid: list[tuple[int, float]]
    seconds: list[float]
    tokens: list[int]
    horizon: int | None
    trainer: str  # "pid 12 on host", or empty

    @property
    def state(self) -> str:
        """Training, finished or stopped."""
        if self.trainer:
            return f"training, {self.trainer}"
        step = self.steps[-1] if self.steps else 0
        return "finished" if self.horizon is not None and step >= self.horizon else "stopped"

    def describe(self) -> str:
        """The state in one line: step, bits, pace, time to go."""
        if not self.steps:
            return f"{self.run}: no step yet; {self.state}"
        of = "" if self.horizon is None else f"/{self.horizon:,}"
        recent = [x for x in self.loss[-_RECENT:] if math.isfinite(x)]
        parts = [f"step {self.steps[-1]:,}{of}"]
        if recent:
            parts.append(f"loss {sum(recent) / len(recent):.4f} bits")
        if self.valid:
            parts.append(f"validation {self.valid[-1][1]:.4f} at step {self.valid[-1][0]:,}")
        first = max(0, len(self.steps) - 1 - _RECENT)
        took = self.seconds[-1] - self.seconds[first]
        if took > 0:
            parts.append(f"{(self.tokens[-1] - self.tokens[first]) / took:,.0f} tok/s")
            if self.trainer and self.horizon is not None:
                pace = took / (self.steps[-1] - self.steps[first])
                parts.append(f"{format_duration(pace * (self.horizon - self.steps[-1]))} to go")
        return f"{self.run}: {' · '.join(parts)}; {self.state}"


class ProgressReader:
    """Reads a run again and again; each time only the rows that came since."""

    def __init__(self, run: Path) -> None:
        """Raises `UsageError` where the folder holds no run."""
        if not (run / METRICS).is_file() and not (run / "config.yaml").is_file():
            fix = "give the folder of a training run"
            raise UsageError("is no run folder (no metrics.csv)", file=run, fix=fix)
        self.run = run
        self._forget()

    def read(self) -> Progress:
        """The run as it stands now."""
        self._read_rows()
        return Progress(
            self.run, self._steps, self._loss, self._valid, self._seconds, self._tokens,
            _read_horizon(self.run), _find_trainer(self.run),
        )  # fmt: skip

    def _forget(self) -> None:
        self._at, self._inode = 0, 0
        self._steps: list[int] = []
        self._loss: list[float] = []
        self._valid: list[tuple[int, float]] = []
        self._seconds: list[float] = []
        self._tokens: list[int] = []

    def _read_rows(self) -> None:
        try:
            with (self.run / METRICS).open("rb") as file:
                about = os.fstat(file.fileno())
                if about.st_ino != self._inode or about.st_size < self._at:
                    self._forget()  # a run that went on has written its rows anew
                    self._inode = about.st_ino
                file.seek(self._at)
                new = file.read()
        except OSError:
            return
        whole = new[: new.rfind(b"\n") + 1]
        self._at += len(whole)
        for row in csv.DictReader(io.StringIO(whole.decode("utf-8", "replace")), COLUMNS):
            if str(row["step"]).isdecimal():
                self._take(row)

    def _take(self, row: dict[str, Any]) -> None:
        try:
            step, seconds, tokens = int(row["step"]), float(row["seconds"]), int(row["tokens"])
            loss, valid = float(row["loss_bits"] or "nan"), row["valid_bits"]
            self._valid += [(step, float(valid))] if valid else []
        except (TypeError, ValueError):
            return
        self._steps.append(step)
        self._loss.append(loss)
        self._seconds.append(seconds)
        self._tokens.append(tokens)


def _read_horizon(run: Path) -> int | None:
    """The planned steps; None before they are known."""
    try:
        decisions = json.loads((run / "plan.json").read_text(encoding="utf-8"))["decisions"]
        return int(decisions[-1]["horizon"])
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None


def _find_trainer(run: Path) -> str:
    """The process that trains, by what the lock says of it; empty where none does.

    The lock itself is not tried: that could turn away a run that begins at the same moment.
    """
    try:
        about = json.loads((run / LOCK).read_text(encoding="utf-8"))
        pid, host = int(about["pid"]), str(about["host"])
        if host != socket.gethostname():
            silent = time.time() - (run / METRICS).stat().st_mtime
            return f"pid {pid} on {host[:80]}" if silent < _SILENT else ""
        os.kill(pid, 0)
    except PermissionError:
        return f"pid {pid}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return f"pid {pid}"
