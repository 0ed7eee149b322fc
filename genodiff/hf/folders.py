"""Published folders as transformers finds them, their weights judged before they are read.

The readers are those of `genodiff.hub`: no pickle is executed, names and shapes are compared with
the config first. A fault is the exception that transformers' users expect, with our one line.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor
from transformers.utils import cached_file

from genodiff.backbones.caduceus import Caduceus
from genodiff.errors import CheckpointError
from genodiff.hub.caduceus import (
    make_published_state,
    map_state_names,
    name_as_published,
    read_network,
    read_published_complement,
)
from genodiff.hub.export import find_origin
from genodiff.hub.published_network import BELONG, CONFIG, blame_file, judge_config
from genodiff.hub.weight_files import (
    BIN,
    SAFETENSORS,
    Weights,
    find_weight_files,
    open_weights,
    read_json_file,
)
from genodiff.runs.checkpoint import CARD
from genodiff.runs.model import collect_tensors, load_model
from genodiff.runs.run_paths import find_ready_model, is_no_network

_WORDS = "embeddings.word_embeddings."
_NAMES = (SAFETENSORS, BIN)


def name_packaged(name: Any) -> Any:
    """The folder of a pretrained model of genodiff in the place of its name; else `name` itself."""
    if not isinstance(name, str | os.PathLike) or os.path.exists(name):
        return name
    packaged = find_ready_model(os.fspath(name))
    return name if packaged is None or is_no_network(packaged) else str(packaged)


def find_folder(name: str | os.PathLike[str], variant: str | None, hub: dict[str, Any]) -> Path:
    """The folder of this path; of a repository's name, its folder in the hub's cache, downloaded.

    Raises `OSError` where there is none.
    """
    if variant is not None:
        raise ValueError(f"variant='{variant}': only the usual file names are read; leave it out")
    path = Path(name_packaged(name)) / hub.get("subfolder", "")
    if path.is_dir():
        return path
    if Path(name).is_file():
        raise OSError(f"{name}: is a file; give the folder that holds it and its {CONFIG}")
    config = cached_file(name, CONFIG, **hub)
    optional = hub | {"_raise_exceptions_for_missing_entries": False}
    for file in _NAMES:
        if cached_file(name, file, **optional) is not None:
            break
        index = cached_file(name, f"{file}.index.json", **optional)
        if index is not None:
            for part in sorted(set(read_json_file(Path(index)).get("weight_map", {}).values())):
                cached_file(name, part, **hub)
            break
    return Path(str(config)).parent


def read_weights(
    folder: Path, config: Mapping[str, Any] | None, architecture: str
) -> dict[str, Tensor]:
    """The tensors of a Caduceus under the names of a model of ours, buffers included.

    `config` stands in for the folder's. A run folder that has a config too, as a ready model has,
    gives its own. Raises `OSError` for files and `ValueError` for a config.
    """
    if (folder / CARD).is_file():
        return _read_run(folder, architecture)
    file = folder / CONFIG
    try:
        values = read_json_file(file)
    except CheckpointError as fault:
        raise OSError(str(fault)) from None
    # Remote code is never asked for here, so it needs no warning.
    values.pop("auto_map", None)
    try:
        judged = judge_config(values, file)
        weights = _open_folder(file, judged)
        return _read_caduceus(file, judged if config is None else config, weights, architecture)
    except CheckpointError as fault:
        raise (ValueError if fault.file == file else OSError)(str(fault)) from None


def _read_run(folder: Path, architecture: str) -> dict[str, Tensor]:
    try:
        run = load_model(folder)
    except CheckpointError as fault:
        raise OSError(str(fault)) from None
    if not isinstance(run.backbone, Caduceus):
        kind = run.config.backbone.kind
        raise ValueError(f"{folder}: is a network of the kind {kind}, not a Caduceus")
    tensors, vocabulary = collect_tensors(run.backbone), find_origin(run).vocabulary
    return make_published_state(run.backbone.settings, tensors, vocabulary, architecture)


def _open_folder(file: Path, config: Mapping[str, Any]) -> Weights:
    found = config.get("model_type", "caduceus")
    if found != "caduceus":
        what = f"model_type is '{found}', not 'caduceus'"
        raise CheckpointError(what, file=file, fix="give the published folder of such a network")
    files = find_weight_files(file.parent)
    if not files:
        what = "holds no weights: neither model.safetensors nor pytorch_model.bin"
        raise CheckpointError(what, file=file.parent, fix="give the whole published folder")
    return open_weights(files)


def _read_caduceus(
    file: Path, config: Mapping[str, Any], weights: Weights, architecture: str
) -> dict[str, Tensor]:
    words = [name for name in weights.entries if _WORDS in name]
    prefix = words[0][: words[0].index(_WORDS)] if words else ""
    # A head that is not published has other names.
    ours = [name for name in weights.entries if name.startswith((prefix, "lm_head."))]
    settings, tensors, maps = read_network(weights, ours, config, file)
    there = map_state_names(ours, settings)
    wrapped = ".submodule." in there["final_norm.weight"]
    if wrapped != (settings.paired and not settings.alternate_strands):
        form = "false" if wrapped else "true"
        what = f"the weights were saved with fused_add_norm {form}, which is another function"
        raise CheckpointError(what, file=file, fix=f"set fused_add_norm to {form}")
    rows = len(tensors["embedding"])
    complement = blame_file(file, lambda: read_published_complement(config, rows))
    for name, value in maps.items():
        if complement not in (None, value):
            what = f"'{name}' differs from complement_map in {CONFIG}"
            raise CheckpointError(what, file=weights.entries[name].file, fix=BELONG)
    typed = {here: x.to(weights.entries[there[here]].dtype) for here, x in tensors.items()}
    found = name_as_published(settings, typed, complement, architecture)
    return found | weights.read([n for n in weights.entries if n not in set(ours)])
