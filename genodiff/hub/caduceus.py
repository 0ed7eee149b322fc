"""Published Caduceus: for masked language modelling, for classification, or bare; and back.

The vocabulary is DNA of 12 to 16 ids, or PlantCaduceus' 8.

On both strands, published `fused_add_norm: true` means that every other block reads the strands
exchanged (`alternate_strands`). With R the flip of positions and channels, R M R is again a mixer:
its two directions change places and its outer channels are read from the other end. So a network of
one form is a network of the other with other numbers in its even blocks, and the same logits.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from genodiff.backbones.caduceus import CaduceusSettings
from genodiff.errors import CheckpointError
from genodiff.hub.published_network import (
    PublishedNetwork,
    blame_file,
    find_culprit,
    judge_rows,
    log_dtypes,
    make_stand_ins,
    read_listed_tokens,
    take_inwards,
)
from genodiff.hub.tensor_names import (
    BELONG,
    CADUCEUS,
    judge_depth,
    order_rows,
    reshape_as_published,
    take_tensors,
    translate_names,
)
from genodiff.hub.vocabulary import PublishedVocabulary, find_vocabulary
from genodiff.hub.weight_files import Weights, stamp_file

MASKED_LM, CLASSIFIER, BARE = "CaduceusForMaskedLM", "CaduceusForSequenceClassification", "Caduceus"
COMPLEMENT = "complement_map"

_SWITCHES = (("bidirectional", "bidirectional"), ("bidirectional_weight_tie", "tie_directions"))
_MIXER = (
    ("d_state", "d_state", 16), ("d_conv", "d_conv", 4), ("expand", "expand", 2),
    ("dt_rank", "dt_rank", "auto"), ("conv_bias", "conv_bias", True), ("bias", "proj_bias", False),
)  # fmt: skip
"""Keys of ssm_cfg, our settings, and what a missing key means."""
_FIXED: dict[str, Any] = {
    "initializer_cfg": {
        "initializer_range": 0.02, "n_residuals_per_layer": 1, "rescale_prenorm_residual": True
    },
    "model_type": "caduceus", "pad_vocab_size_multiple": 8, "residual_in_fp32": False,
    "torch_dtype": "float32", "transformers_version": "4.38.1",
}  # fmt: skip
_TIME_STEPS = {
    "dt_init": "random", "dt_init_floor": 1e-4, "dt_max": 0.1, "dt_min": 1e-3, "dt_scale": 1.0,
    "use_fast_path": True,
}  # fmt: skip
_SCORE = "score.weight"
_LAYER = re.compile(r"\.layers\.([0-9]{1,6})\.")


def is_caduceus(weights: Weights) -> bool:
    """Whether these are the tensors of a Caduceus."""
    mixers = [name for name in weights.entries if ".mixer." in name and ".mamba_fwd." in name]
    return bool(mixers) and "bimamba" not in mixers[0]


def read_caduceus(
    path: Path, config: dict[str, Any], config_file: Path, weights: Weights
) -> PublishedNetwork:
    """The network, every tensor judged before it is read. Raises `CheckpointError`."""
    word = blame_file(weights.files[0], lambda: find_words(weights.entries))
    rows = weights.entries[word].shape[0]
    layers = [int(found[1]) for found in map(_LAYER.search, weights.entries) if found]
    n_layer = 1 + max(layers, default=-1)
    if config.get("n_layer") != n_layer:
        what = f"n_layer is {config.get('n_layer')}, but the weights have {n_layer} layers"
        raise CheckpointError(what, file=config_file, fix=BELONG)
    judge_rows(config, config_file, rows, word)
    tokens = read_listed_tokens(config_file.parent)
    complement = blame_file(config_file, lambda: read_complement(config))
    vocabulary = blame_file(config_file, lambda: find_vocabulary(rows, complement, tokens))
    names = [name for name in weights.entries if name != _SCORE]
    settings, tensors, maps = read_network(weights, names, config, config_file)
    log_dtypes(weights)
    for name, value in maps.items():
        if value != vocabulary.complement():
            what = f"'{name}' differs from the complement of {vocabulary.name}: another "
            what += "vocabulary, or a scrambled map"
            raise CheckpointError(what, file=weights.entries[name].file, fix="check complement_map")
    tensors = take_inwards(tensors, vocabulary)
    files = [stamp_file(file) for file in (config_file, *weights.files)]
    score = None
    if entry := weights.entries.get(_SCORE):
        if len(entry.shape) != 2 or entry.shape[1] != settings.d_model:
            wanted = f"not [classes, {settings.d_model}]"
            what = f"'{_SCORE}' has the shape {list(entry.shape)}, {wanted}"
            raise CheckpointError(what, file=entry.file, fix=BELONG)
        score = weights.read([_SCORE])[_SCORE].float()
    return PublishedNetwork("caduceus", settings, tensors, vocabulary, config, score, files, path)


def read_network(
    weights: Weights, names: list[str], config: Mapping[str, Any], config_file: Path
) -> tuple[CaduceusSettings, dict[str, Tensor], dict[str, tuple[int, ...]]]:
    """As `from_published` of the tensors `names`, whose names and shapes are judged before they are
    read; and the complement maps among them.
    """
    file, stand_ins = find_culprit(weights, config_file), make_stand_ins(weights, names)
    more = f"; {config_file.name} and the weights do not fit each other"
    blame_file(file, lambda: from_published(stand_ins, config), more)
    state = weights.read(names)
    maps = {name: tuple(x.tolist()) for name, x in state.items() if name.endswith(COMPLEMENT)}
    return *blame_file(file, lambda: from_published(state, config)), maps


def read_published_settings(config: Mapping[str, Any]) -> CaduceusSettings:
    """The settings that a published config stands for.

    Raises `CheckpointError` for what genodiff does not build.
    """
    ssm = dict(config.get("ssm_cfg") or {})
    if ssm.get("layer", "Mamba1") != "Mamba1":
        fix = "use weights of a Mamba-1 Caduceus"
        raise CheckpointError(f"the mixer '{ssm['layer']}' is not known here", fix=fix)
    paired = bool(config.get("rcps", False))
    return CaduceusSettings.parse(
        {
            "d_model": config.get("d_model"),
            "n_layer": config.get("n_layer"),
            "strands": "paired" if paired else "single",
            **{ours: ssm.get(theirs, usual) for theirs, ours, usual in _MIXER},
            **{ours: bool(config.get(theirs, True)) for theirs, ours in _SWITCHES},
            "bidirectional_strategy": config.get("bidirectional_strategy") or "add",
            "tie_head": paired or bool(config.get("tie_word_embeddings", True)),
            "norm": "rms" if config.get("rms_norm", True) else "layer",
            "norm_eps": config.get("norm_epsilon", 1e-5),
            "alternate_strands": paired and bool(config.get("fused_add_norm", True)),
        },
        error=CheckpointError,
    )


def make_published_config(
    settings: CaduceusSettings,
    vocabulary: PublishedVocabulary,
    given: Mapping[str, Any],
    architecture: str,
    fused: bool | None = None,
) -> dict[str, Any]:
    """The published config of a network; `given` is that of its source, where it has one.

    A network of both strands says by its settings whether it is fused. Of one strand both forms
    compute the same function: `fused` None is the form of its source, else the fused one.
    """
    s = settings
    if s.paired:
        fused = s.alternate_strands
    elif fused is None:
        fused = bool(given.get("fused_add_norm", True))
    complement = vocabulary.complement() or range(vocabulary.size)
    config: dict[str, Any] = {
        **_FIXED,
        **{theirs: getattr(s, ours) for theirs, ours in _SWITCHES},
        "architectures": [architecture],
        "bidirectional_strategy": s.bidirectional_strategy if s.bidirectional else None,
        COMPLEMENT: {str(i): int(c) for i, c in enumerate(complement)},
        "d_model": s.d_model,
        "n_layer": s.n_layer,
        "norm_epsilon": s.norm_eps,
        "rcps": s.paired,
        "rms_norm": s.norm == "rms",
        "ssm_cfg": _TIME_STEPS | dict(sorted((a, getattr(s, b)) for a, b, _ in _MIXER)),
        "vocab_size": vocabulary.size,
    }
    if not s.tied_head:
        config["tie_word_embeddings"] = False
    return dict(sorted({**(given or config), "fused_add_norm": fused}.items()))


def read_complement(config: Mapping[str, Any]) -> dict[int, int] | None:
    """`complement_map` with its keys as numbers, in any order. Raises `CheckpointError`."""
    found = config.get(COMPLEMENT)
    try:
        return {int(key): int(value) for key, value in found.items()} if found else None
    except (AttributeError, TypeError, ValueError):
        what = "complement_map is no map from ids to ids: invalid"
        raise CheckpointError(what, fix=BELONG) from None


def read_published_complement(config: Mapping[str, Any], vocab_size: int) -> tuple[int, ...] | None:
    """The complement of each id, or None where the config has none.

    Ids beyond its map, the padding, are their own complement.
    """
    pairs = read_complement(config)
    if pairs is None:
        return None
    complement = tuple(pairs.get(token, token) for token in range(vocab_size))
    if dict(enumerate(complement)) != {c: token for token, c in enumerate(complement)}:
        fix = "check complement_map in the config"
        raise CheckpointError("the complement map is not its own inverse", fix=fix)
    return complement


def map_names(
    settings: CaduceusSettings, prefix: str = "caduceus.backbone.", submodules: bool = False
) -> dict[str, str]:
    """Parameter name here → name in a published file.

    `submodules`: norms are wrapped too, as in files saved without fusion.
    """
    norm, mixer = ".submodule" * submodules, ".submodule" * settings.paired
    table = ".embedding" * settings.paired
    return translate_names(settings, CADUCEUS, prefix=prefix, table=table, norm=norm, mixer=mixer)


def find_words(names: Iterable[str]) -> str:
    """The name of the embedding among those of a state dict. Raises `CheckpointError`."""
    ends = ("word_embeddings.weight", "word_embeddings.embedding.weight")
    if found := next((name for name in names if name.endswith(ends)), None):
        return found
    raise CheckpointError("has no embedding of a Caduceus (word_embeddings)", fix=BELONG)


def map_state_names(state: Collection[str], settings: CaduceusSettings) -> dict[str, str]:
    """`map_names` for the names in this state dict."""
    word = find_words(state)
    prefix = word[: word.index("embeddings.word_embeddings")]
    wrapped = any(name.startswith(f"{prefix}norm_f.submodule") for name in state)
    return map_names(settings, prefix, wrapped)


def from_published(
    state: Mapping[str, Tensor], config: Mapping[str, Any]
) -> tuple[CaduceusSettings, dict[str, Tensor]]:
    """Settings and state dict of the same network here, float32 or wider.

    Tensors that the file leaves out because they are tied are not needed; where they are present
    they must agree. Raises `CheckpointError` for a missing, foreign or misshapen tensor.
    """
    settings = read_published_settings(config)
    if not settings.tied_head and "lm_head.weight" not in state:
        settings = settings.model_copy(update={"tie_head": True})
    judge_depth(settings.n_layer, state)
    names = map_state_names(state, settings)
    rest = {name: x for name, x in state.items() if not name.endswith(COMPLEMENT)}
    if names["embedding"] not in rest:
        raise CheckpointError(f"lacks '{names['embedding']}'", fix=BELONG)
    return settings, take_tensors(rest, names, settings, len(rest[names["embedding"]]))


def make_published_state(
    settings: CaduceusSettings,
    tensors: Mapping[str, Tensor],
    vocabulary: PublishedVocabulary,
    architecture: str = MASKED_LM,
    score: Tensor | None = None,
) -> dict[str, Tensor]:
    """The tensors of a published file, with buffers and without tied ones.

    Rows stand in the published order.
    """
    moved = order_rows(tensors, vocabulary.outwards)
    state = name_as_published(settings, moved, vocabulary.complement(), architecture)
    return state if score is None else state | {_SCORE: score}


def name_as_published(
    settings: CaduceusSettings,
    tensors: Mapping[str, Tensor],
    complement: tuple[int, ...] | None,
    architecture: str,
) -> dict[str, Tensor]:
    """The same of tensors with rows in the published order; a head only of `MASKED_LM`."""
    prefix = "backbone." if architecture == BARE else "caduceus.backbone."
    wrapped = settings.paired and not settings.alternate_strands
    has_head = architecture == MASKED_LM
    state = {
        theirs: reshape_as_published(theirs, tensors[here]).contiguous()
        for here, theirs in map_names(settings, prefix, wrapped).items()
        if has_head or here != "head"
    }
    if settings.paired and complement is not None:
        for name in (f"{prefix}embeddings.word_embeddings", *(["lm_head"] if has_head else [])):
            state[f"{name}.{COMPLEMENT}"] = torch.tensor(complement)
    return state


def exchange_form(
    settings: CaduceusSettings, tensors: Mapping[str, Tensor]
) -> tuple[CaduceusSettings, dict[str, Tensor]]:
    """The same function with `alternate_strands` the other way round.

    Raises `CheckpointError` where there is none.
    """
    if not settings.paired:
        what = "only networks on both strands have a fused form of their own"
        raise CheckpointError(what, fix="leave the form as it is")
    if not settings.bidirectional or settings.n_layer % 2:
        why = f"has an odd number of layers ({settings.n_layer})"
        why = why if settings.bidirectional else "reads one direction only"
        form = "fused" if settings.alternate_strands else "unfused"
        fix = f"export it with --{form}"
        raise CheckpointError(f"the network {why}: it exists in one form only", fix=fix)
    out: dict[str, Tensor] = {}
    for name, x in tensors.items():
        if name.startswith("blocks.") and int(name.split(".")[1]) % 2 == 0:
            name, x = _mirrored(name, x, settings.tie_directions)
        out[name] = x
    return settings.model_copy(update={"alternate_strands": not settings.alternate_strands}), out


def _mirrored(name: str, x: Tensor, tied: bool) -> tuple[str, Tensor]:
    """A tensor of the block R N, R M R, from one of N, M: its name and its numbers."""
    block, _, rest = name.partition(".mixer.")
    if not rest:  # the norm
        return name, x.flip(0).contiguous()
    part, _, kind = rest.partition(".")
    if part in ("ahead", "back"):
        return f"{block}.mixer.{'back' if part == 'ahead' else 'ahead'}.{kind}", x
    if not part.startswith("in_proj"):
        x = x.flip(0)
    elif kind == "weight":
        x = x.flip(1)
    if not tied:
        part = part.removesuffix("_back") if part.endswith("_back") else f"{part}_back"
    return f"{block}.mixer.{part}.{kind}", x.contiguous()
