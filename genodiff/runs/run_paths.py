"""Where a model is: a run, a checkpoint, a sweep or unit, or a pretrained model by its name.

A pretrained model is a run folder that holds weights alone, as `genodiff checkpoint export --format
safetensors` writes it. It lies in a folder that the environment variable GENODIFF_MODELS names, in
the package itself, or with a plug-in, which registers it:

    READY_MODELS.add("maize", Path(__file__).parent / "maize")

If several have the same name, the first of these is used. Nothing is ever written into a pretrained
model. Nothing heavy is imported here.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from genodiff.errors import CheckpointError, DataError, MachineError, UsageError
from genodiff.io.file_kinds import find_elsewhere, find_stranger
from genodiff.registry import Registry

CONFIG = "config.yaml"
_log = logging.getLogger("genodiff")
_OF_MODELS = (CONFIG, "model.json", "predictor.json", "metrics.csv", "results.jsonl")


def locate(run: str | Path, *, there: bool = True) -> Path:
    """Locate a model: the folder of a run, a checkpoint, a sweep or a unit of one.

    A file of such a folder means the folder; `checkpoints` and `units` mean the folder that holds
    them. The name of a pretrained model is its folder, unless a path has that name.

    With `there` it must be a model: raises `CheckpointError` if there is no such path or it is
    something else, `UsageError` if `run` is no path. Otherwise any other path is returned as is.
    """
    if not there:
        return _find_folder(run)
    if not isinstance(run, str | Path):
        what = f"an object of type {type(run).__name__} is no path"
        raise UsageError(what, fix="give a run folder, a checkpoint or a published folder")
    path = _find_folder(run)
    if not path.exists():
        if elsewhere := find_elsewhere(run):
            what = f"is {elsewhere[0]}: models are folders of this machine"
            raise CheckpointError(what, file=run, fix="download it first")
        fix = "give a run folder, a checkpoint folder or a pretrained model"
        fix = suggest_ready_model(run) + fix
        raise CheckpointError("is not there (not found)", file=path, fix=fix)
    ours = any((path / name).exists() for name in _OF_MODELS)
    if not (ours or is_no_network(path)) and (known := find_stranger(path)):
        raise CheckpointError(f"is {known[0]}", file=path, fix=known[1])
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


def _find_folder(path: str | Path) -> Path:
    if not os.path.lexists(path):
        return find_ready_model(path) or Path(path)
    _say_which(str(path))
    path = Path(path)
    inside = path.suffix in (".safetensors", ".json", ".yaml") or path.name in _OF_MODELS
    if path.is_dir():
        inside = path.name in ("checkpoints", "units")
    ours = any((path.parent / name).is_file() for name in _OF_MODELS)
    return path.parent if inside and ours and path.exists() else path


@cache
def _say_which(path: str) -> None:
    if ready := find_ready_model(path):
        what = "%s is used as a path, not as the pretrained model of that name: %s"
        _log.warning(what, path, ready)


def find_only_run() -> Path:
    """Return the only run under `runs`. Raises `CheckpointError` for none, and for several."""
    folder = Path("runs")
    runs = [p for p in folder.iterdir() if (p / CONFIG).is_file()] if folder.is_dir() else []
    if not runs:
        fix = "give --checkpoint RUN, or `genodiff train` first"
        raise CheckpointError("there is no run", file=folder, fix=fix)
    if len(runs) > 1:
        runs.sort(key=lambda p: p.stat().st_mtime, reverse=True)
        named = ", ".join(str(p) for p in runs[:5]) + (", …" if len(runs) > 5 else "")
        fix = f"give --checkpoint {runs[0]}"
        raise CheckpointError(f"there are {len(runs)} runs: {named}", file=folder, fix=fix)
    return runs[0]


VARIABLE = "GENODIFF_MODELS"
CARD = "model.json"
SPLITS = "splits.bed"  # the BED of an exported model's splits, beside its weights
NO_NETWORK = "none"
"""The model without a network (`no_network.py`); its folder holds no weights."""
NO_FEATURES = f"the model '{NO_NETWORK}' has no network, so nothing to embed or to fine-tune"
READY_MODELS: Registry[Path] = Registry("model")
_PACKAGED = Path(__file__).resolve().parents[1] / "models"


def list_ready_models() -> dict[str, Path]:
    """The folders of all ready models by name, in the order of their names."""
    found: dict[str, Path] = {}
    for root in _list_roots():
        for folder in sorted(root.iterdir()) if root.is_dir() else ():
            if (folder / CARD).is_file():
                found.setdefault(folder.name, folder)
    for name, folder in READY_MODELS.items():
        found.setdefault(name, folder)
    return dict(sorted(found.items()))


def find_ready_model(name: str | Path) -> Path | None:
    """The folder of the ready model of this name; None where there is none."""
    name = str(name)
    if not name or Path(name).name != name:
        return None
    for root in _list_roots():
        if (root / name / CARD).is_file():
            return root / name
    if name == NO_NETWORK:
        return _PACKAGED / NO_NETWORK
    return dict(READY_MODELS.items()).get(name)


def is_no_network(folder: Path) -> bool:
    """Whether this is the folder of the model without a network."""
    return folder.name == NO_NETWORK and folder.resolve() == _PACKAGED / NO_NETWORK


def reads_network(run: str | Path) -> bool:
    """Whether a model has a network, so that torch is needed; it need not be there."""
    return not is_no_network(locate(run, there=False))


def suggest_ready_model(name: str | Path) -> str:
    """In words, the ready model whose name is near this one; "" where none is."""
    name = str(name)
    if not name or Path(name).name != name:
        return ""
    near = get_close_matches(name.lower(), list_ready_models(), n=1)
    return f"did you mean the pretrained model '{near[0]}'? " if near else ""


def check_may_write(folder: Path, fix: str) -> None:
    """Raises `MachineError` where something is to be written into a ready model."""
    ready = [*list_ready_models().values(), _PACKAGED / NO_NETWORK]
    if folder.resolve() in [one.resolve() for one in ready]:
        raise MachineError("is a pretrained model, which is read-only", file=folder, fix=fix)


def _list_roots() -> Iterator[Path]:
    for one in (os.environ.get(VARIABLE) or "").split(os.pathsep):
        if one:
            yield Path(one).expanduser()
    yield _PACKAGED
