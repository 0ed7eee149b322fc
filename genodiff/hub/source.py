"""What a published folder or file holds, seen from the names of its tensors.

Nothing is allocated before the config and the headers of the weights have been compared.
"""

import os
from pathlib import Path
from typing import Any

from genodiff.errors import CheckpointError
from genodiff.hub.caduceus import is_caduceus, read_caduceus
from genodiff.hub.mdlm import is_mdlm, read_mdlm
from genodiff.hub.published_network import BELONG, CONFIG, PublishedNetwork, judge_config
from genodiff.hub.vocabulary import find_vocabulary
from genodiff.hub.weight_files import (
    Weights,
    find_weight_files,
    list_parts,
    open_weights,
    read_json_file,
)
from genodiff.io.file_kinds import find_folder_kind, is_adapter, name_adapter
from genodiff.runs.checkpoint import CARD, is_run
from genodiff.runs.run_paths import suggest_ready_model

_WEIGHTS = (".safetensors", ".bin", ".ckpt", ".index.json")
_READABLE = "give a published folder of Caduceus, or a network of MDLM"


def is_published(path: str | Path) -> bool:
    """Whether a folder holds a published config or weights, and is no run of ours; or its file."""
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    files = folder.iterdir() if path.is_dir() else [path] if path.is_file() else []
    return not is_run(folder) and any(p.name == CONFIG or p.name.endswith(_WEIGHTS) for p in files)


def find_published_folder(path: str | Path) -> Path:
    """The folder that a published file stands for: its config, or the weights that are read of it.

    Any other path is given back as it is, and so is a weight file that the folder's own go before.
    """
    path = Path(path)
    if not path.is_file() or not (path.parent / CONFIG).is_file():
        return path
    if path.name == CONFIG:
        return path.parent
    try:
        return path.parent if path in find_weight_files(path.parent, indices=True) else path
    except CheckpointError:  # several weight files: one of them is meant
        return path


def read_source(
    path: str | Path, *, averaged: bool = True, tokenizer: str | None = None, offline: bool = False
) -> PublishedNetwork:
    """The network in a published folder or file.

    `averaged` takes the averaged weights of a Lightning file that holds both; `tokenizer` (a name
    or a path) is needed by networks of text. Raises `CheckpointError` naming the file, the first
    thing at fault, a remedy.
    """
    path = find_published_folder(path)
    if not os.path.lexists(path):
        fix = suggest_ready_model(path) + _READABLE
        raise CheckpointError("is not there (not found)", file=path, fix=fix)
    if (path / CARD).exists():
        fix = "use it as it is"
        raise CheckpointError("is a run folder already: nothing to import", file=path, fix=fix)
    folder = path if path.is_dir() else path.parent
    files = find_weight_files(path) if path.is_dir() else list_parts(path)
    config_file = folder / CONFIG
    config: dict[str, Any] = {}
    with_config = os.path.lexists(config_file)
    if with_config:
        config = judge_config(read_json_file(config_file), config_file)
    elif path.is_dir() and not (files and files[0].suffix == ".ckpt"):
        if known := find_folder_kind(path):
            raise CheckpointError(f"is {known[0]}", file=path, fix=known[1])
        fix = "give the whole published folder"
        raise CheckpointError("is missing (not found)", file=config_file, fix=fix)
    if not files:
        what = "holds no weights: neither model.safetensors nor pytorch_model.bin"
        raise CheckpointError(what, file=folder, fix="give the whole published folder")
    weights = open_weights(files)
    if any(map(is_adapter, weights.entries)):
        what, fix = name_adapter()
        raise CheckpointError(f"holds {what}", file=files[0], fix=fix)
    _judge_together(config, config_file, weights)
    if is_mdlm(weights):
        file = config_file if with_config else None
        return read_mdlm(path, config, file, weights, averaged, tokenizer, offline)
    if is_caduceus(weights):
        if not with_config:
            what = "is missing (not found)"
            fix = "put the published config beside the weights"
            raise CheckpointError(what, file=config_file, fix=fix)
        return read_caduceus(path, config, config_file, weights)
    first = min(weights.entries, default="none")
    what = (
        f"no network that genodiff reads: {config_file.name} gives no known model_type "
        f"({config.get('model_type')!r}), and the "
        f"tensors (first: '{first}') fit neither Caduceus nor a network of MDLM"
    )
    raise CheckpointError(what, file=files[0], fix=_READABLE)


def _judge_together(config: dict[str, Any], config_file: Path, weights: Weights) -> None:
    """Compare the sizes in the config with the headers, before any allocation."""
    largest = max((side for entry in weights.entries.values() for side in entry.shape), default=0)
    width = config.get("d_model") or config.get("hidden_dim") or config.get("hidden_size")
    if isinstance(width, int) and width > largest:
        what = f"a width (d_model) of {width} asks for more memory than the weights have: their "
        what += f"largest side is {largest}"
        raise CheckpointError(what, file=config_file, fix=BELONG)
    tokens = config.get("vocab")
    if tokens is None:
        return
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise CheckpointError("vocab is no list of tokens: invalid", file=config_file, fix=BELONG)
    for name, entry in weights.entries.items():
        shape = list(entry.shape)
        if "embed" not in name.lower() or len(shape) != 2:
            continue
        if len(tokens) != shape[0]:
            what = f"vocab has {len(tokens)} tokens, but '{name}' in {entry.file.name} has the "
            raise CheckpointError(f"{what}shape {shape}", file=config_file, fix=BELONG)
        if isinstance(width, int) and shape[1] != width:
            wanted = f"not [{len(tokens)}, {width}] as in {config_file.name}"
            what = f"'{name}' has the shape {shape}, {wanted}"
            raise CheckpointError(what, file=entry.file, fix=BELONG)
    try:
        find_vocabulary(len(tokens), None, tokens)
    except CheckpointError as fault:
        raise CheckpointError(f"vocab: {fault.what}", file=config_file, fix=fault.fix) from None
