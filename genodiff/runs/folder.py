"""A run's folder: its checkpoints, its configuration and its provenance.

config.yaml  metrics.csv  plan.json  provenance.json  checkpoints/  model.safetensors + model.json
.lock
"""

import os
import platform
import socket
from collections.abc import Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from genodiff.alphabet import Alphabet
from genodiff.errors import CheckpointError, GenodiffError, UsageError
from genodiff.io import atomic
from genodiff.io.file_kinds import stamp_time
from genodiff.io.process import read_processor
from genodiff.io.target import check_folder, set_aside, write_error
from genodiff.runs.checkpoint import (
    CARD,
    FOLDER,
    STATE_CARD,
    WEIGHTS,
    State,
    list_steps,
    prune_checkpoints,
    read_card,
    save_checkpoint,
)
from genodiff.runs.config import RunConfig
from genodiff.runs.lock import FILE as LOCK
from genodiff.runs.lock import FILES as LOCKS
from genodiff.runs.metrics import FILE as METRICS
from genodiff.runs.metrics import Metrics
from genodiff.runs.model import PUBLISHED
from genodiff.runs.resolve import CONFIG, refuse_other_run
from genodiff.runs.sealed_files import read_json, refuse_pickles, to_utf8
from genodiff.settings import to_yaml
from genodiff.version import __version__, name_revision
from genodiff.version import find_git_revision as find_git_revision

PROVENANCE = "provenance.json"
PLAN = "plan.json"
FILES = (PROVENANCE, METRICS, PLAN, WEIGHTS)
"""What training writes into its folder, beside the configuration, the checkpoints and the card."""


class RunFolder:
    """The folder of one run, held by this process."""

    def __init__(
        self, path: Path, config: RunConfig, alphabet: Alphabet, data: dict[str, Any], step: int
    ) -> None:
        self.path, self.config, self.alphabet, self.data = path, config, alphabet, data
        self.metrics = Metrics(path, step)

    def save(self, state: State) -> None:
        """Write rows, then a checkpoint; remove older ones. Raises `GenodiffError` for a NaN."""
        for name, tensor in (*state.weights.items(), *state.tensors.items()):
            if not bool(torch.isfinite(tensor).all()):
                what = f"step {state.step}: {name} is not finite; no checkpoint is written"
                raise GenodiffError(what, fix="lower --lr and resume")
        self.metrics.sync()
        save_checkpoint(self.path, state, self.config, self.alphabet, self.data)
        prune_checkpoints(self.path, self.config.train.keep)


def prepare_folder(path: Path) -> list[Path]:
    """Make the folder; new ones above it, nearest first. Raises `UsageError`, `MachineError`."""
    if path.exists() and not path.is_dir():
        fix = "choose another --out"
        raise UsageError("exists and is a file, not a directory", file=path, fix=fix)
    made = [above for above in path.parents if not above.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise write_error(path, fault) from None
    return made


def check_run_folder(path: Path, *, force: bool) -> None:
    """Raises `UsageError` for a run's file names in a folder without a run, unless with `force`."""
    ours = any((path / name).exists() for name in (CONFIG, CARD, FOLDER))
    check_folder(path, FILES, own=ours, force=force)


def set_foreign_files_aside(path: Path) -> None:
    """Rename the files that `check_run_folder` finds, so that a run can begin."""
    if not (path / CONFIG).exists():
        for name in FILES:
            set_aside(path / name)


def remove_unused_folder(path: Path, made: Sequence[Path] = ()) -> None:
    """Remove a folder in which no run ever began (no more than lock and plan), and `made`."""
    with suppress(OSError):
        names = {entry.name for entry in path.iterdir()}
        if LOCK in names <= {*LOCKS, PLAN}:
            for name in names:
                (path / name).unlink()
            for folder in (path, *made):
                folder.rmdir()


def check_config(path: Path, config: RunConfig) -> None:
    """Raises `UsageError` naming what differs where the folder holds another run."""
    there = path / CONFIG
    if not there.is_file() and list_steps(path):
        what = "is missing (not found), but there are checkpoints"
        raise CheckpointError(what, file=there, fix="restore it")
    refuse_other_run(path, config)


def write_config(path: Path, config: RunConfig) -> None:
    """Write `config.yaml`, unless it says the same already."""
    text = to_yaml(config)
    there = path / CONFIG
    if not there.is_file() or there.read_text(encoding="utf-8") != text:
        atomic.write_text(there, text)


def explain_no_run(path: Path) -> GenodiffError:
    """Why training cannot go on without `config.yaml`. Raises `CheckpointError` for a pickle."""
    if path.is_dir():
        refuse_pickles(path)
    if (path / STATE_CARD).is_file():
        told = read_json(path / STATE_CARD)
        said = ", ".join(f"{k} {v}" for k, v in told.items() if isinstance(v, int | str | None))
        what = f"holds no exact state of the optimizer and of random numbers, and {path.name} "
        what += f"no config.yaml (it says {said[:80]})"
        fix = "give a run folder of genodiff, or begin from the weights with --init"
        return CheckpointError(what, file=path / STATE_CARD, fix=fix)
    if any(os.path.lexists(path / name) for name in (WEIGHTS, CARD, PUBLISHED)):
        what = "is no run folder (no config.yaml): weights only, without the state of an optimizer"
        fix = "begin from them with --init, and another --out"
        return CheckpointError(what, file=path, fix=fix)
    fix = "give an existing run folder"
    if inside := sorted(p.name for p in path.glob("*/")):
        what = f"is no run folder (no config.yaml), and none of {', '.join(inside[:4])} is a "
        return CheckpointError(f"{what}usable checkpoint of genodiff", file=path, fix=fix)
    return UsageError("is no run folder (no such config.yaml)", file=path, fix=fix)


def has_model_of(path: Path, step: int) -> bool:
    """Whether the model at the top of the folder is that of `step`."""
    try:
        return read_card(path).step == step if (path / CARD).exists() else False
    except CheckpointError:
        return False


def write_provenance(
    path: Path, config: RunConfig, data: dict[str, Any], session: dict[str, Any]
) -> None:
    """Write `provenance.json`: this session, its latest record, beside those before it."""
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
    atomic.write_json(there, to_utf8(values))


def describe_session(argv: list[str], device: str, step: int) -> dict[str, Any]:
    """What a session is run with: command, versions, code, hardware, time."""
    packages = ("torch", "lightning", "numpy", "safetensors")
    is_cuda = device.startswith("cuda")
    return {
        "started": stamp_time("milliseconds"),
        "from_step": step,
        "argv": argv,
        "host": socket.gethostname(),
        "python": platform.python_version(),
        "platform": f"{platform.system()}-{platform.release()}-{platform.machine()}",
        "versions": {name: metadata.version(name) for name in packages},
        "git": name_revision(),
        "device": torch.cuda.get_device_name(device) if is_cuda else read_processor(),
        "threads": torch.get_num_threads(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "world_size": int(os.environ.get("WORLD_SIZE", "1")),
    }
