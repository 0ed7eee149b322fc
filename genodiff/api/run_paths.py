"""What can be said of a run and of files before anything heavy is imported."""

from __future__ import annotations

import json
from pathlib import Path

from genodiff.errors import CheckpointError, DataError, UsageError
from genodiff.runs.resolve import find_model_folder, find_only_run


def choose_run(run: str | Path | None) -> Path:
    """As `check_run`; None is the one run under runs/."""
    return find_only_run(Path("runs")) if run is None else check_run(run)


def check_run(run: str | Path) -> Path:
    """The folder of a run or checkpoint.

    Raises `CheckpointError` where there is no such path, `UsageError` for what is no path.
    """
    if not isinstance(run, str | Path):
        what = f"an object of type {type(run).__name__} is no path"
        raise UsageError(what, fix="give a run folder, a checkpoint or a published folder")
    path = find_model_folder(run)
    if not path.exists():
        raise CheckpointError(
            "is not there (not found)", file=path, fix="give a run folder or a checkpoint folder"
        )
    return path


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
