"""A run's folder: who may write into it, what is in it, and what it remembers of where it came
from.

config.yaml  metrics.csv  plan.json  provenance.json  checkpoints/  model.safetensors + model.json
.lock
"""

import os
import platform
import socket
import subprocess
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from genodiff import __version__
from genodiff.alphabet import Alphabet
from genodiff.errors import CheckpointError, GenodiffError, UsageError
from genodiff.io import atomic
from genodiff.io.identity import time_stamp
from genodiff.runs import checkpoint
from genodiff.runs.checkpoint import State
from genodiff.runs.config import RunConfig
from genodiff.runs.lock import FILE as LOCK
from genodiff.runs.metrics import Metrics
from genodiff.runs.resolve import read_config
from genodiff.runs.weights import CARD, plain, read_card, read_json
from genodiff.settings import to_yaml

CONFIG, PROVENANCE = "config.yaml", "provenance.json"


class RunFolder:
    """The folder of one run, held by this process."""

    def __init__(
        self, path: Path, config: RunConfig, alphabet: Alphabet, data: dict[str, Any], step: int
    ) -> None:
        self.path, self.config, self.alphabet, self.data = path, config, alphabet, data
        self.metrics = Metrics(path, step)

    def save(self, state: State) -> None:
        """Checkpoint: rows first, then the state, then older ones go. Refuses a state that is not
        finite.
        """
        for name, tensor in (*state.weights.items(), *state.tensors.items()):
            refuse_nonfinite(name, tensor, state.step)
        self.metrics.sync()
        state = state._replace(
            counters=state.counters | {"data": self.data, "threads": torch.get_num_threads()}
        )
        checkpoint.save(self.path, state, self.config, self.alphabet, self.data)
        checkpoint.prune(self.path, self.config.train.keep)


def refuse_nonfinite(name: str, tensor: Tensor, step: int) -> None:
    """Raises `GenodiffError` where a tensor that is about to be saved is not finite."""
    if not bool(torch.isfinite(tensor).all()):
        raise GenodiffError(
            f"step {step}: {name} is not finite; no checkpoint is written",
            fix="lower --lr and resume",
        )


def prepare(path: Path) -> None:
    """Make the folder. Raises `UsageError` where a file stands there, `MachineError` where it
    cannot be made.
    """
    if path.exists() and not path.is_dir():
        raise UsageError(
            "exists and is a file, not a directory", file=path, fix="choose another --out"
        )
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise atomic.write_error(path, fault) from None


def remove_unused(path: Path) -> None:
    """Remove a folder in which no run ever began: one with nothing but its lock."""
    with suppress(OSError):
        if [entry.name for entry in path.iterdir()] == [LOCK]:
            (path / LOCK).unlink()
            path.rmdir()


def check_config(path: Path, config: RunConfig) -> None:
    """Raises `UsageError`, naming what differs, where the folder holds a run of another
    configuration.
    """
    there = path / CONFIG
    if not there.is_file():
        if checkpoint.steps_of(path):
            raise CheckpointError(
                "is missing (not found), but there are checkpoints", file=there, fix="restore it"
            )
        return
    differing = config.differences(read_config(there))
    if differing:
        more = f" and {len(differing) - 4} more" if len(differing) > 4 else ""
        raise UsageError(
            f"holds a run with another configuration; {'; '.join(differing[:4])}{more}",
            file=path,
            fix="give the same settings to resume it, or another --out for a new run",
        )


def write_config(path: Path, config: RunConfig) -> None:
    """Write `config.yaml`, unless it says the same already."""
    text = to_yaml(config)
    there = path / CONFIG
    if not there.is_file() or there.read_text(encoding="utf-8") != text:
        atomic.write_text(there, text)


def published(path: Path, step: int) -> bool:
    """Whether the model at the top of the folder is that of `step`."""
    try:
        return read_card(path).step == step if (path / CARD).exists() else False
    except CheckpointError:
        return False


def record(path: Path, config: RunConfig, data: dict[str, Any], session: dict[str, Any]) -> None:
    """Write `provenance.json`: this session in place of its own earlier record, beside those of
    former sessions.
    """
    there = path / PROVENANCE
    try:
        sessions = [s for s in read_json(there)["sessions"] if s["started"] != session["started"]]
    except (CheckpointError, KeyError, TypeError):
        sessions = []
    values = {
        "genodiff": __version__,
        "config_sha256": config.digest(),
        "seed": config.seed,
        "data": data,
        "sessions": [*sessions, session],
    }
    atomic.write_json(there, plain(values))


def session_of(argv: list[str], device: str, step: int) -> dict[str, Any]:
    """What a session is run with: command, versions, code, hardware, time."""
    packages = ("torch", "lightning", "numpy", "safetensors")
    return {
        "started": time_stamp("milliseconds"),
        "from_step": step,
        "argv": argv,
        "host": socket.gethostname(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "versions": {name: metadata.version(name) for name in packages},
        "git": git_revision(),
        "device": torch.cuda.get_device_name()
        if device == "cuda"
        else platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "world_size": int(os.environ.get("WORLD_SIZE", "1")),
    }


def git_revision() -> str | None:
    """The commit of the source tree that this package runs from, with `+` where it is changed; None
    outside of one.
    """
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        sha, changed = (
            subprocess.run(
                ["git", "-C", str(root), *words],
                capture_output=True,
                text=True,
                timeout=10,
                check=True,
            ).stdout
            for words in (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return sha.strip() + ("+" if changed.strip() else "")
