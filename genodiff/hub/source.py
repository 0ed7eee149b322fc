"""A published network as one value: its settings, its weights under our names, which ids they are of, and where they came from.

What a source is, is seen from the names of its tensors, never from its own name. Nothing is allocated before the config and
the headers of the weights have been compared.
"""

import hashlib
import json
import logging
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from genodiff.backbones.caduceus import CaduceusSettings
from genodiff.backbones.published import from_published
from genodiff.errors import CheckpointError, GenodiffError
from genodiff.hub import config as published_config
from genodiff.hub.vocabulary import Vocabulary, tokens_of, vocabulary_of
from genodiff.hub.weights import Weights, json_of, open_weights, stamp, weight_files
from genodiff.train.weights import CARD

CONFIG, TOKENIZER = "config.json", "tokenizer.json"

_log = logging.getLogger("genodiff")
_BELONG = "check that config and weights belong together"
_READABLE = "give a published folder of Caduceus, or a network of MDLM"
_SCORE = "score.weight"
_TABLES = ("embedding", "head")
_COMPLEMENT = "complement_map"
_LAYER = re.compile(r"\.layers\.([0-9]{1,6})\.")


class Source(NamedTuple):
    """A published network, read and judged."""

    layout: str  # "caduceus"
    settings: CaduceusSettings
    tensors: dict[str, Tensor]  # under our names, float32, rows in the order of our ids
    vocabulary: Vocabulary
    config: dict[str, Any]  # as published, without what names code
    score: Tensor | None  # (classes, D): the classifier of a sequence-classification network
    files: list[dict[str, Any]]  # name, bytes, sha256
    path: Path

    @property
    def digest(self) -> str:
        """sha256 (hex) over the hashes of the files that were read."""
        return hashlib.sha256("".join(file["sha256"] for file in self.files).encode()).hexdigest()

    def record(self) -> dict[str, Any]:
        """What a run remembers of its source, as plain values."""
        return {
            "layout": self.layout,
            "path": str(self.path),
            "digest": self.digest,
            "files": self.files,
            "config": self.config,
            "vocabulary": self.vocabulary.name,
            "rows": self.vocabulary.size,
        }


def read_source(path: str | Path) -> Source:
    """The network in a published folder or file. Raises `CheckpointError` naming the file, the first thing at fault, a remedy."""
    path = Path(path)
    if not os.path.lexists(path):
        raise CheckpointError("is not there (not found)", file=path, fix=_READABLE)
    if (path / CARD).exists():
        raise CheckpointError("is a run folder already: nothing to import", file=path, fix="use it as it is")
    folder = path if path.is_dir() else path.parent
    files = weight_files(path) if path.is_dir() else [path]
    config_file = folder / CONFIG
    config: dict[str, Any] = {}
    with_config = os.path.lexists(config_file) and path.suffix != ".ckpt"
    if with_config:
        config = published_config.judge(json_of(config_file), config_file)
    elif path.is_dir() and not (files and files[0].suffix == ".ckpt"):
        raise CheckpointError("is missing (not found)", file=config_file, fix="give the whole published folder")
    if not files:
        what = "holds no weights: neither model.safetensors nor pytorch_model.bin"
        raise CheckpointError(what, file=folder, fix="give the whole published folder")
    weights = open_weights(files)
    _judge_together(config, config_file, weights)
    if _is_caduceus(weights):
        if not with_config:
            raise CheckpointError("is missing (not found)", file=config_file, fix="put the published config beside the weights")
        return _caduceus(path, config, config_file, weights)
    first = min(weights.entries, default="none")
    raise CheckpointError(
        f"no network that genodiff reads: {config_file.name} gives no known model_type ({config.get('model_type')!r}), and the "
        f"tensors (first: '{first}') fit neither Caduceus nor a network of MDLM",
        file=files[0],
        fix=_READABLE,
    )


def _judge_together(config: dict[str, Any], config_file: Path, weights: Weights) -> None:
    """What the config says of sizes, beside the headers: before anything knows the architecture, and before any allocation."""
    tables = {name: entry for name, entry in weights.entries.items() if "embed" in name.lower() and len(entry.shape) == 2}
    largest = max((side for entry in weights.entries.values() for side in entry.shape), default=0)
    width = config.get("d_model") or config.get("hidden_dim") or config.get("hidden_size")
    if isinstance(width, int) and width > largest:
        what = f"a width (d_model) of {width} asks for more memory than the weights have: their largest side is {largest}"
        raise CheckpointError(what, file=config_file, fix=_BELONG)
    tokens = published_config.letters_of(config, config_file)
    for name, entry in tables.items():
        shape = list(entry.shape)
        if tokens is not None and len(tokens) != shape[0]:
            what = f"vocab has {len(tokens)} tokens, but '{name}' in {entry.file.name} has the shape {shape}"
            raise CheckpointError(what, file=config_file, fix=_BELONG)
        if tokens is not None and isinstance(width, int) and shape[1] != width:
            what = f"'{name}' has the shape {shape}, not [{len(tokens)}, {width}] as in {config_file.name}"
            raise CheckpointError(what, file=entry.file, fix=_BELONG)
    if tokens is not None:
        try:
            vocabulary_of(len(tokens), None, tokens)
        except CheckpointError as fault:
            raise CheckpointError(f"vocab: {fault.what}", file=config_file, fix=fault.fix) from None


# Caduceus ------------------------------------------------------------------------------------------------------------


def _is_caduceus(weights: Weights) -> bool:
    mixers = [name for name in weights.entries if ".mixer." in name and ".mamba_fwd." in name]
    return bool(mixers) and "bimamba" not in mixers[0]


def _caduceus(path: Path, config: dict[str, Any], config_file: Path, weights: Weights) -> Source:
    word = next((n for n in weights.entries if n.endswith(("word_embeddings.weight", "word_embeddings.embedding.weight"))), None)
    if word is None:
        raise CheckpointError("holds no embedding of a Caduceus (word_embeddings)", file=weights.files[0], fix=_BELONG)
    rows = weights.entries[word].shape[0]
    n_layer = 1 + max((int(found[1]) for found in map(_LAYER.search, weights.entries) if found), default=-1)
    if config.get("n_layer") != n_layer:
        what = f"n_layer is {config.get('n_layer')}, but the weights have {n_layer} layers"
        raise CheckpointError(what, file=config_file, fix=_BELONG)
    _judge_vocab_size(config, config_file, rows, word)
    complement = published_config.complement_of(config, config_file)
    vocabulary = _named(lambda: vocabulary_of(rows, complement, _tokens(config_file.parent)), config_file)
    names = [name for name in weights.entries if name != _SCORE]
    shapes = {name: torch.zeros(()).expand(weights.entries[name].shape) for name in names}
    culprit = weights.files[0] if len(weights.files) == 1 else config_file.parent
    _named(lambda: from_published(shapes, config), culprit, f"; {config_file.name} and the weights do not fit each other")
    _say_types(weights)
    state = weights.read(names)
    _judge_buffers(state, vocabulary, weights)
    settings, tensors = _named(lambda: from_published(state, config), culprit)
    tensors = {n: (vocabulary.inwards(x) if n in _TABLES else x).float().contiguous() for n, x in tensors.items()}
    files = [stamp(config_file), *(stamp(file) for file in weights.files)]
    return Source("caduceus", settings, tensors, vocabulary, config, _score(settings, weights), files, path)


def _judge_vocab_size(config: dict[str, Any], config_file: Path, rows: int, word: str) -> None:
    size, multiple = config.get("vocab_size", rows), config.get("pad_vocab_size_multiple") or 1
    if rows not in (size, -(-size // multiple) * multiple):
        what = f"vocab_size is {size}, but '{word}' has {rows} rows"
        raise CheckpointError(what, file=config_file, fix=_BELONG)


def _tokens(folder: Path) -> list[str] | None:
    return tokens_of(json_of(folder / TOKENIZER)) if os.path.lexists(folder / TOKENIZER) else None


def _judge_buffers(state: dict[str, Tensor], vocabulary: Vocabulary, weights: Weights) -> None:
    for name, value in state.items():
        if name.endswith(_COMPLEMENT) and tuple(value.tolist()) != vocabulary.complement():
            what = f"'{name}' differs from the complement of {vocabulary.name}: another vocabulary, or a scrambled map"
            raise CheckpointError(what, file=weights.entries[name].file, fix="check complement_map")


def _score(settings: CaduceusSettings, weights: Weights) -> Tensor | None:
    if _SCORE not in weights.entries:
        return None
    entry = weights.entries[_SCORE]
    if len(entry.shape) != 2 or entry.shape[1] != settings.d_model:
        what = f"'{_SCORE}' has the shape {list(entry.shape)}, not [classes, {settings.d_model}]"
        raise CheckpointError(what, file=entry.file, fix=_BELONG)
    return weights.read([_SCORE])[_SCORE].float()


def _say_types(weights: Weights) -> None:
    others = {entry.dtype for entry in weights.entries.values() if entry.dtype.is_floating_point} - {torch.float32}
    for dtype in sorted(map(str, others)):
        label = dtype.removeprefix("torch.").replace("bfloat", "BF").replace("float", "F")
        _log.warning("%s: weights of dtype %s are read as float32", weights.files[0], label)


def _named(work: Any, file: Path, more: str = "") -> Any:
    """`work()`, with `file` in the message of its `CheckpointError`."""
    try:
        return work()
    except CheckpointError as fault:
        raise CheckpointError(f"{fault.what}{more}", file=fault.file or file, fix=fault.fix) from None
    except GenodiffError as fault:
        raise CheckpointError(fault.what, file=file, fix=fault.fix) from None


def plain_config(config: dict[str, Any]) -> dict[str, Any]:
    """A copy of plain values, as JSON has them."""
    copied: dict[str, Any] = json.loads(json.dumps(config))
    return copied
