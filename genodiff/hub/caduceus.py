"""Published Caduceus: for masked language modelling, for classification, or bare.

The vocabulary is DNA of 12 to 16 ids, or PlantCaduceus' 8.
"""

import re
from pathlib import Path
from typing import Any

from torch import Tensor

from genodiff.backbones.caduceus import CaduceusSettings
from genodiff.errors import CheckpointError
from genodiff.hub.caduceus_names import from_published
from genodiff.hub.published_config import read_complement
from genodiff.hub.published_network import (
    BELONG,
    PublishedNetwork,
    blame_file,
    find_culprit,
    judge_rows,
    log_dtypes,
    make_stand_ins,
    read_listed_tokens,
)
from genodiff.hub.vocabulary import PublishedVocabulary, find_vocabulary
from genodiff.hub.weight_files import Weights, stamp_file

_SCORE = "score.weight"
_TABLES = ("embedding", "head")
_COMPLEMENT = "complement_map"
_LAYER = re.compile(r"\.layers\.([0-9]{1,6})\.")


def is_caduceus(weights: Weights) -> bool:
    """Whether these are the tensors of a Caduceus."""
    mixers = [name for name in weights.entries if ".mixer." in name and ".mamba_fwd." in name]
    return bool(mixers) and "bimamba" not in mixers[0]


def read_caduceus(
    path: Path, config: dict[str, Any], config_file: Path, weights: Weights
) -> PublishedNetwork:
    """The network, every tensor judged before it is read. Raises `CheckpointError`."""
    word = next(
        (
            n
            for n in weights.entries
            if n.endswith(("word_embeddings.weight", "word_embeddings.embedding.weight"))
        ),
        None,
    )
    if word is None:
        raise CheckpointError(
            "has no embedding of a Caduceus (word_embeddings)", file=weights.files[0], fix=BELONG
        )
    rows = weights.entries[word].shape[0]
    n_layer = 1 + max(
        (int(found[1]) for found in map(_LAYER.search, weights.entries) if found), default=-1
    )
    if config.get("n_layer") != n_layer:
        what = f"n_layer is {config.get('n_layer')}, but the weights have {n_layer} layers"
        raise CheckpointError(what, file=config_file, fix=BELONG)
    judge_rows(config, config_file, rows, word)
    complement = read_complement(config, config_file)
    vocabulary = blame_file(
        config_file,
        lambda: find_vocabulary(rows, complement, read_listed_tokens(config_file.parent)),
    )
    names = [name for name in weights.entries if name != _SCORE]
    file = find_culprit(weights, config_file)
    blame_file(
        file,
        lambda: from_published(make_stand_ins(weights, names), config),
        f"; {config_file.name} and the weights do not fit each other",
    )
    log_dtypes(weights)
    state = weights.read(names)
    _judge_buffers(state, vocabulary, weights)
    settings, tensors = blame_file(file, lambda: from_published(state, config))
    tensors = {
        n: (vocabulary.inwards(x) if n in _TABLES else x).float().contiguous()
        for n, x in tensors.items()
    }
    files = [stamp_file(config_file), *(stamp_file(file) for file in weights.files)]
    return PublishedNetwork(
        "caduceus", settings, tensors, vocabulary, config, _score(settings, weights), files, path
    )


def _judge_buffers(
    state: dict[str, Tensor], vocabulary: PublishedVocabulary, weights: Weights
) -> None:
    for name, value in state.items():
        if name.endswith(_COMPLEMENT) and tuple(value.tolist()) != vocabulary.complement():
            what = (
                f"'{name}' differs from the complement of {vocabulary.name}: another "
                f"vocabulary, or a scrambled map"
            )
            raise CheckpointError(what, file=weights.entries[name].file, fix="check complement_map")


def _score(settings: CaduceusSettings, weights: Weights) -> Tensor | None:
    if _SCORE not in weights.entries:
        return None
    entry = weights.entries[_SCORE]
    if len(entry.shape) != 2 or entry.shape[1] != settings.d_model:
        what = f"'{_SCORE}' has the shape {list(entry.shape)}, not [classes, {settings.d_model}]"
        raise CheckpointError(what, file=entry.file, fix=BELONG)
    return weights.read([_SCORE])[_SCORE].float()
