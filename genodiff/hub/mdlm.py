"""Networks of the MDLM family (DiT, DiMamba): Hugging Face folders and Lightning files.

A Lightning file holds the raw weights by name and their averages as a list. The list has the
parameters in the order in which the modules were made, which is the order of the state dict without
buffers and with each tied tensor once.
"""

import logging
import re
from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from genodiff.backbones.dit import DiTSettings
from genodiff.data.tokenizer import FileTokenizer, open_tokenizer
from genodiff.errors import CheckpointError
from genodiff.hub.archive import Opaque, Stored
from genodiff.hub.mdlm_layout import (
    TABLE,
    find_prefix,
    from_published_mdlm,
    make_rotary_table,
    map_mdlm_names,
)
from genodiff.hub.published_network import (
    BELONG,
    PublishedNetwork,
    blame_file,
    find_culprit,
    find_unused,
    judge_rows,
    log_dtypes,
    make_stand_ins,
    read_listed_tokens,
    take_inwards,
)
from genodiff.hub.tensor_names import list_parameters
from genodiff.hub.vocabulary import PublishedVocabulary, find_vocabulary, make_text_vocabulary
from genodiff.hub.weight_files import Weights, stamp_file

_log = logging.getLogger("genodiff")
_BUFFER = re.compile(r"(^|\.)mask_index$|complement_map$")
_NOT_OURS = re.compile(rf"(^|\.)(noise|ema|teacher)\.|{_BUFFER.pattern}")
_READ = ("backbone", "time_conditioning", "parameterization", "vocab_size")
_DEEPEST = 12
_LARGEST_TABLE_ERROR = 1e-5


def is_mdlm(weights: Weights) -> bool:
    """Whether these are the tensors of a DiT or a DiMamba of the MDLM family."""
    return find_prefix(weights.entries) is not None and not any(
        ".mixer.submodule." in name for name in weights.entries
    )


def read_mdlm(
    path: Path,
    config: dict[str, Any],
    config_file: Path | None,
    weights: Weights,
    averaged: bool,
    tokenizer: str | None = None,
    offline: bool = False,
) -> PublishedNetwork:
    """The network, every tensor judged before it is read. Raises `CheckpointError`."""
    file = find_culprit(weights, config_file or weights.files[0])
    names = [name for name in weights.entries if not _NOT_OURS.search(name)]
    unused = find_unused(weights, (*names, *filter(_BUFFER.search, weights.entries)))
    if config_file is None:
        config = read_hyper_parameters(weights.extra)
    shapes = make_stand_ins(weights, names)
    settings, ours = blame_file(file, lambda: from_published_mdlm(shapes, config))
    rows = ours["embedding"].shape[0] - getattr(settings, "spare_rows", 0)
    embedding = map_mdlm_names(settings, find_prefix(names) or "")["embedding"]
    judge_rows(config, config_file or file, rows, embedding)
    folder = path if path.is_dir() else path.parent
    vocabulary, files = _vocabulary(rows, folder, file, tokenizer, offline)
    log_dtypes(weights)
    state, kind = _read_weights(weights, names, averaged)
    settings, tensors = blame_file(file, lambda: from_published_mdlm(state, config))
    for name in state if isinstance(settings, DiTSettings) else ():
        if name.endswith(TABLE):
            table, wanted = state[name].float(), make_rotary_table(settings)
            off = float((table - wanted).abs().max()) if table.shape == wanted.shape else inf
            if off > _LARGEST_TABLE_ERROR:
                what = f"'{name}' holds other frequencies than rotary positions have"
                raise CheckpointError(what, file=file, fix=BELONG)
    read = [stamp_file(one) for one in (config_file, *weights.files) if one is not None]
    ready = take_inwards(tensors, vocabulary)
    length = config.get("model_length") or (config.get("model") or {}).get("length")
    return PublishedNetwork(
        "mdlm", settings, ready, vocabulary, config, None, read, path, length, kind, files, unused
    )


def _vocabulary(
    rows: int, folder: Path, file: Path, tokenizer: str | None, offline: bool
) -> tuple[PublishedVocabulary, dict[str, bytes]]:
    if tokenizer is None:
        try:
            tokens = read_listed_tokens(folder) if folder.is_dir() else None
            return find_vocabulary(rows, None, tokens), {}
        except CheckpointError as fault:
            fix = "give --tokenizer where it is a network of text"
            raise CheckpointError(fault.what, file=file, fix=fix) from None
    found = open_tokenizer(tokenizer, offline=offline)
    vocabulary = blame_file(file, lambda: make_text_vocabulary(found.vocabulary, rows))
    return vocabulary, found.files if isinstance(found, FileTokenizer) else {}


def _read_weights(
    weights: Weights, names: list[str], averaged: bool
) -> tuple[dict[str, Tensor], str]:
    """The weights, averaged where they are asked for and there; and which they are."""
    found = weights.extra.get("ema")
    if not isinstance(found, dict) or not isinstance(found.get("shadow_params"), list):
        return weights.read(names), "as published"
    if not averaged:
        return weights.read(names), "raw"
    shadow, file = found["shadow_params"], weights.files[0]

    def demand(holds: bool, otherwise: str) -> None:
        if not holds:
            fix = "give --raw to take the weights themselves"
            raise CheckpointError(otherwise, file=file, fix=fix)

    is_list = all(isinstance(x, Stored) for x in shadow)
    demand(is_list, "ema.shadow_params is no list of tensors: corrupt")
    order = _parameters(weights, len(shadow))
    what = f"has {len(shadow)} averages for {len(order)} parameters: they cannot be told apart"
    demand(len(order) == len(shadow), what)
    for name, x in zip(order, shadow, strict=True):
        shape = weights.entries[name].shape
        what = f"the average in the place of '{name}' has the shape {list(x.shape)}, not "
        demand(x.shape == shape, what + str(list(shape)))
    numbers = dict(zip(order, weights.stored(shadow), strict=True))
    for name, tensor in numbers.items():
        is_finite = not tensor.is_floating_point() or bool(torch.isfinite(tensor).all())
        demand(is_finite, f"the average of '{name}' is not finite")
    aliases = _aliases(weights)
    first = {name: aliases.get(name, name) for name in names}
    missing = [name for name in names if name not in numbers and first[name] not in numbers]
    state = weights.read(missing) | {n: numbers[a] for n, a in first.items() if a in numbers}
    what = "%s: averaged weights (EMA of %s updates); --raw takes the others"
    _log.info(what, file, found.get("num_updates", "?"))
    return state, "averaged"


def _aliases(weights: Weights) -> dict[str, str]:
    """Names of one and the same storage, each with the first of them."""
    first: dict[Any, str] = {}
    return {
        name: first.setdefault((e.stored.key, e.stored.offset, e.shape), name)
        for name, e in weights.entries.items()
        if e.stored
    }


def _parameters(weights: Weights, n: int) -> list[str]:
    """The state dict's parameters in order, each tied tensor once.

    Tied ones are known by their storage, or else by their names.
    """
    aliases = _aliases(weights)
    names = [
        name
        for name in weights.entries
        if not name.endswith((TABLE, "complement_map")) and aliases.get(name, name) == name
    ]
    if len(names) == n:
        return names
    choices = [list_parameters(weights.entries, tied_head=tied) for tied in (False, True)]
    return next((names for names in choices if len(names) == n), names)


def read_hyper_parameters(extra: Mapping[str, Any]) -> dict[str, Any]:
    """What a Lightning file says of its network: only what is read here, as plain values."""
    found = to_plain(extra.get("hyper_parameters"))
    config = found.get("config", found) if isinstance(found, dict) else {}
    if not isinstance(config, dict):
        return {}
    model = config.get("model")
    told = {key: config[key] for key in _READ if key in config}
    if isinstance(model, dict):
        told["model"] = {
            k: v
            for k, v in model.items()
            if isinstance(v, int | float | str | bool | None) and "${" not in str(v)
        }
    return told


def to_plain(value: Any, depth: int = 0) -> Any:
    """A pickled configuration as plain values.

    The classes of omegaconf keep theirs under `_content` and `_val`.
    """
    if depth > _DEEPEST:
        return None
    if isinstance(value, Opaque):
        state = value.state if isinstance(value.state, dict) else {}
        held = (state[key] for key in ("_content", "_val") if key in state)
        return to_plain(next(held, value.entries or None), depth + 1)
    if isinstance(value, dict):
        return {k: to_plain(v, depth + 1) for k, v in value.items() if isinstance(k, str)}
    if isinstance(value, list | tuple):
        return [to_plain(v, depth + 1) for v in value]
    return value if isinstance(value, int | float | str | bool | None) else None
