"""Ready models: folders of trained networks that go by a name, `--model yeast`.

A ready model is a run folder that holds weights alone, as `genodiff checkpoint export --format
safetensors` writes it. It stands in a folder that the environment variable GENODIFF_MODELS names,
in the package itself, or with a plug-in, which registers it:

    READY_MODELS.add("maize", Path(__file__).parent / "maize")

Of one name the first of these is taken. Nothing is ever written into a ready model.
"""

import os
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from genodiff.errors import MachineError
from genodiff.registry import Registry

VARIABLE = "GENODIFF_MODELS"
CARD = "model.json"
NO_NETWORK = "none"
"""The model without a network (`no_network.py`); its folder holds no weights."""
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


def suggest_ready_model(name: str | Path) -> str:
    """In words, the ready model whose name is near this one; "" where none is."""
    name = str(name)
    if not name or Path(name).name != name:
        return ""
    near = get_close_matches(name.lower(), list_ready_models(), n=1)
    return f"did you mean the ready model '{near[0]}'? " if near else ""


def is_ready_model(folder: Path) -> bool:
    """Whether a folder is a ready model's, into which nothing is written."""
    folder = folder.resolve()
    ready = [*list_ready_models().values(), _PACKAGED / NO_NETWORK]
    return any(folder == one.resolve() for one in ready)


def check_may_write(folder: Path, fix: str) -> None:
    """Raises `MachineError` where something is to be written into a ready model."""
    if is_ready_model(folder):
        raise MachineError("is a ready model, and nothing is written there", file=folder, fix=fix)


def _list_roots() -> Iterator[Path]:
    for one in (os.environ.get(VARIABLE) or "").split(os.pathsep):
        if one:
            yield Path(one).expanduser()
    yield _PACKAGED
