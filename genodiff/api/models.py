"""The ready models, and what is known of each: `genodiff.list_models`, `genodiff.show_model`."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any

from genodiff.errors import CheckpointError, UsageError, did_you_mean
from genodiff.io.identity import sha256_file, sha256_json
from genodiff.runs.run_paths import find_ready_model, list_ready_models

FACTS, _WEIGHTS, _CARD = "facts.json", "model.safetensors", "model.json"
_SEALED = (
    _CARD, _WEIGHTS, "config.yaml", "config.json", "tokenizer_config.json",
    "special_tokens_map.json",
)  # fmt: skip


def list_models() -> list[dict[str, Any]]:
    """Each ready model as `show_model` gives it, in the order of their names.

    >>> [one["name"] for one in genodiff.list_models()]                # doctest: +SKIP
    ['ecoli', 'yeast']
    """
    return [describe_model(name, folder) for name, folder in list_ready_models().items()]


def show_model(name: str) -> dict[str, Any]:
    """What is known of a ready model: its name, folder, size in bytes, weights, kind, and facts.

    "facts" is what FOLDER/facts.json holds (`api/ready_card.py`): what it was trained on, its
    licence, tables of figures, limits, and how it was made; empty for a model without. Raises
    `UsageError` for an unknown name, naming what is near, and `CheckpointError` for a damaged file.

    >>> genodiff.show_model("yeast")["parameters"]                     # doctest: +SKIP
    470702
    """
    return describe_model(name, find_model(name))


def find_model(name: str) -> Path:
    """The folder of a ready model. Raises `UsageError` for an unknown name, and `CheckpointError`
    where its facts name files that are not as they were written.
    """
    folder = find_ready_model(name)
    if folder is None:
        raise UsageError(f"no ready model '{name}'; {did_you_mean(name, list_ready_models())}")
    read_facts(folder)
    return folder


def describe_model(name: str, folder: Path) -> dict[str, Any]:
    """What `show_model` gives of a folder."""
    card, facts = _read(folder / _CARD), read_facts(folder)
    return {
        "name": name,
        "folder": str(folder),
        "bytes": sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
        "parameters": _count_weights(folder / _WEIGHTS),
        "domain": card.get("domain"),
        "preset": (card.get("config") or {}).get("preset"),
        "genodiff": card.get("genodiff"),
        "facts": facts,
    }


def _read(path: Path) -> dict[str, Any]:
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        what = f"cannot be read: missing, truncated or corrupt ({str(fault)[:80]})"
        raise CheckpointError(what, file=path, fix="install genodiff again") from None
    if not isinstance(held, dict):
        raise CheckpointError("is no JSON object", file=path, fix="install genodiff again")
    return held


def seal_facts(facts: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The facts of a model with the sha256 of its other files and of themselves, to be kept."""
    files = {name: sha256_file(folder / name) for name in _SEALED if (folder / name).is_file()}
    body = facts | {"files": files}
    return body | {"seal": sha256_json(body)}


def read_facts(folder: Path) -> dict[str, Any]:
    """What FOLDER/facts.json says, empty where there is none; it and the files that it names are
    as they were written. Raises `CheckpointError`.
    """
    path = folder / FACTS
    if not path.exists():
        return {}
    facts = _read(path)
    body = {key: value for key, value in facts.items() if key != "seal"}
    changed = [path] if "seal" in facts and facts["seal"] != sha256_json(body) else []
    files = body.pop("files", None) or {}
    changed = changed or [
        folder / name for name in _SEALED if name in files and _digest(folder / name) != files[name]
    ]
    if changed:
        what = "was changed after it was written, or is missing (checksum differs)"
        raise CheckpointError(what, file=changed[0], fix="install genodiff again")
    return body


def _digest(path: Path) -> str:
    return sha256_file(path) if path.is_file() else ""


def _count_weights(path: Path) -> int:
    """The numbers in a safetensors file, from its header."""
    try:
        with path.open("rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        shapes = (one["shape"] for key, one in header.items() if key != "__metadata__")
        return sum(prod(shape) for shape in shapes)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, MemoryError):
        what = "is no safetensors file: missing, truncated or corrupt"
        raise CheckpointError(what, file=path, fix="install genodiff again") from None
