"""What can be said of a run and of files before anything heavy is imported."""

from __future__ import annotations

import json
import logging
import os
from functools import cache
from pathlib import Path

from genodiff.errors import CheckpointError, DataError, UsageError
from genodiff.io.file_kinds import find_stranger
from genodiff.io.file_names import find_elsewhere
from genodiff.runs.ready_models import find_ready_model, is_no_network, suggest_ready_model

CONFIG = "config.yaml"
_log = logging.getLogger("genodiff")
_OF_MODELS = (CONFIG, "model.json", "predictor.json", "metrics.csv", "results.jsonl")


def choose_run(run: str | Path | None) -> Path:
    """As `check_run`; None is the one run under runs/."""
    return find_only_run(Path("runs")) if run is None else check_run(run)


def check_run(run: str | Path) -> Path:
    """The folder of a run or checkpoint, or of the ready model of that name.

    Raises `CheckpointError` where there is no such path, `UsageError` for what is no path.
    """
    if not isinstance(run, str | Path):
        what = f"an object of type {type(run).__name__} is no path"
        raise UsageError(what, fix="give a run folder, a checkpoint or a published folder")
    path = find_model_folder(run)
    if not path.exists():
        fix = f"{suggest_ready_model(run)}give a run folder, a checkpoint folder or a ready model"
        if elsewhere := find_elsewhere(run):
            what = f"is {elsewhere[0]}: models are folders of this machine"
            raise CheckpointError(what, file=run, fix="download it first")
        raise CheckpointError("is not there (not found)", file=path, fix=fix)
    refuse_other_model(path)
    return path


def refuse_other_model(path: Path) -> None:
    """Raises `CheckpointError` where a folder or a file is something else than a model."""
    if is_no_network(path) or any((path / name).exists() for name in _OF_MODELS):
        return
    if known := find_stranger(path):
        raise CheckpointError(f"is {known[0]}", file=path, fix=known[1])


def find_domain_of_run(run: Path) -> str | None:
    """The domain that RUN/model.json names; None where it cannot be told without its checkpoint."""
    try:
        found = json.loads((run / "model.json").read_text(encoding="utf-8")).get("domain")
    except (OSError, ValueError, AttributeError):
        return None
    return found if isinstance(found, str) else None


def check_input(file: str | Path | None) -> None:
    """Raises `DataError` where `file` is named and not there; "-" is stdin."""
    if file is not None and str(file) != "-" and not Path(file).exists():
        raise DataError("is not there (not found)", file=file, fix="check the path")


def find_model_folder(path: str | Path) -> Path:
    """The folder of a run, a checkpoint, a sweep or a unit of one, where `path` is a file of it.

    A file and its folder are the same request, and so are the checkpoints of a run or the units of
    a sweep and the whole. The name of a ready model is its folder, where no path is called so. Any
    other path is given back as it is.
    """
    if not os.path.lexists(path):
        return find_ready_model(path) or Path(path)
    _say_which(str(path))
    path = Path(path)
    if path.is_dir():
        inside = path.name in ("checkpoints", "units")
    else:
        inside = path.suffix in (".safetensors", ".json", ".yaml") or path.name in _OF_MODELS
    if not inside or not path.exists():
        return path
    ours = any((path.parent / name).is_file() for name in _OF_MODELS)
    return path.parent if ours else path


@cache
def _say_which(path: str) -> None:
    """A line, once, where a path is called as a ready model is."""
    ready = find_ready_model(path)
    if ready is not None:
        _log.warning("%s is the path that is here, not the ready model; that is %s", path, ready)


def find_only_run(folder: Path) -> Path:
    """The only run under `folder`. Raises `CheckpointError` where there is none, or a choice."""
    runs = [p for p in folder.iterdir() if (p / CONFIG).is_file()] if folder.is_dir() else []
    if not runs:
        raise CheckpointError(
            "there is no run", file=folder, fix="give --checkpoint RUN, or `genodiff train` first"
        )
    if len(runs) > 1:
        runs.sort(key=lambda p: p.stat().st_mtime, reverse=True)
        named = ", ".join(str(p) for p in runs[:5]) + (", …" if len(runs) > 5 else "")
        raise CheckpointError(
            f"there are {len(runs)} runs: {named}", file=folder, fix=f"give --checkpoint {runs[0]}"
        )
    return runs[0]
