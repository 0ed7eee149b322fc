"""Names and shapes of Caduceus weights as their authors publish them, and back.

A published network is a flat state dict and a config. Its conv1d.weight is (E, 1, K), here (E, K).
With tied directions the file holds in_proj and out_proj once, under mamba_fwd; the head is tied to
the embedding and absent. `fused_add_norm` on both strands means that every other block reads the
strands exchanged: `alternate_strands`.
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from genodiff.backbones.caduceus import CaduceusSettings
from genodiff.errors import CheckpointError
from genodiff.hub.mixer_names import (
    BELONG,
    find_mixer_shape,
    find_tied_name,
    map_mixer_names,
    take_tensors,
)

_BUFFERS = ("complement_map",)


def read_published_settings(config: Mapping[str, Any]) -> CaduceusSettings:
    """The settings that a published config stands for.

    Raises `CheckpointError` for what genodiff does not build.
    """
    ssm = dict(config.get("ssm_cfg") or {})
    if ssm.get("layer", "Mamba1") != "Mamba1":
        raise CheckpointError(
            f"the mixer '{ssm['layer']}' is not known here", fix="use weights of a Mamba-1 Caduceus"
        )
    bidirectional = bool(config.get("bidirectional", True))
    paired = bool(config.get("rcps", False))
    return CaduceusSettings.parse(
        {
            "d_model": config.get("d_model"),
            "n_layer": config.get("n_layer"),
            "strands": "paired" if paired else "single",
            "d_state": ssm.get("d_state", 16),
            "d_conv": ssm.get("d_conv", 4),
            "expand": ssm.get("expand", 2),
            "dt_rank": ssm.get("dt_rank", "auto"),
            "conv_bias": ssm.get("conv_bias", True),
            "proj_bias": ssm.get("bias", False),
            "bidirectional": bidirectional,
            "bidirectional_strategy": config.get("bidirectional_strategy") or "add",
            "tie_directions": bool(config.get("bidirectional_weight_tie", True)),
            "tie_head": paired or bool(config.get("tie_word_embeddings", True)),
            "norm": "rms" if config.get("rms_norm", True) else "layer",
            "norm_eps": config.get("norm_epsilon", 1e-5),
            "alternate_strands": paired and bool(config.get("fused_add_norm", True)),
        },
        error=CheckpointError,
    )


def read_published_complement(config: Mapping[str, Any], vocab_size: int) -> tuple[int, ...] | None:
    """The complement of each id, or None where the config has none.

    Ids beyond its map, the padding, are their own complement. JSON has turned the map's keys into
    strings, and saving again sorts them as text: they are read as numbers.
    """
    found = config.get("complement_map")
    if not found:
        return None
    pairs = {int(key): int(value) for key, value in found.items()}
    complement = tuple(pairs.get(token, token) for token in range(vocab_size))
    if any(complement[complement[token]] != token for token in range(vocab_size)):
        raise CheckpointError(
            "the complement map is not its own inverse", fix="check complement_map in the config"
        )
    return complement


def map_names(
    settings: CaduceusSettings, prefix: str = "caduceus.backbone.", submodules: bool = False
) -> dict[str, str]:
    """Parameter name here → name in a published file.

    `submodules`: norms are wrapped too, as in files saved without fusion.
    """
    s = settings
    paired, norm = s.strands == "paired", ".submodule" if submodules else ""
    names = {
        "embedding": f"{prefix}embeddings.word_embeddings{'.embedding' if paired else ''}.weight"
    }
    kinds = ["weight", "bias"] if s.norm == "layer" else ["weight"]
    for i in range(s.n_layer):
        names |= {
            f"blocks.{i}.norm.{kind}": f"{prefix}layers.{i}.norm{norm}.{kind}" for kind in kinds
        }
        mixer = f"{prefix}layers.{i}.mixer{'.submodule' if paired else ''}"
        names |= map_mixer_names(s, f"blocks.{i}.mixer", mixer)
    names |= {f"final_norm.{kind}": f"{prefix}norm_f{norm}.{kind}" for kind in kinds}
    if not s.tied_head:
        names["head"] = "lm_head.weight"
    return names


def map_state_names(state: Mapping[str, Tensor], settings: CaduceusSettings) -> dict[str, str]:
    """`map_names` for the names in this state dict."""
    word = next(
        (
            name
            for name in state
            if name.endswith(("word_embeddings.weight", "word_embeddings.embedding.weight"))
        ),
        None,
    )
    if word is None:
        raise CheckpointError(
            "has no embedding of a Caduceus", fix="give the state dict of a published Caduceus"
        )
    prefix = word[: word.index("embeddings.word_embeddings")]
    return map_names(
        settings, prefix, any(name.startswith(f"{prefix}norm_f.submodule") for name in state)
    )


def from_published(
    state: Mapping[str, Tensor], config: Mapping[str, Any]
) -> tuple[CaduceusSettings, dict[str, Tensor]]:
    """Settings and state dict of the same network here, float32 or wider.

    Tensors that the file leaves out because they are tied are not needed; where they are present
    they must agree. Raises `CheckpointError` for a missing, foreign or misshapen tensor.
    """
    settings = read_published_settings(config)
    names = map_state_names(state, settings)
    if not settings.tied_head and "lm_head.weight" not in state:
        settings = settings.model_copy(update={"tie_head": True})
        names.pop("head")
    rest = {name: x for name, x in state.items() if not name.endswith(_BUFFERS)}
    if names["embedding"] not in rest:
        raise CheckpointError(f"lacks '{names['embedding']}'", fix=BELONG)
    rows = rest[names["embedding"]].shape[0]
    shapes = {here: _shape(here, settings, rows) for here in names}
    return settings, take_tensors(rest, names, shapes, lambda name: _tied_to(name, names))


def _shape(here: str, s: CaduceusSettings, vocab_size: int) -> tuple[int, ...]:
    """The shape of a parameter."""
    if here in ("embedding", "head"):
        return (vocab_size, s.d_model)
    return find_mixer_shape(here, s, s.d_model) if ".mixer." in here else (s.d_model,)


def _tied_to(name: str, names: Mapping[str, str]) -> str | None:
    """The tensor that a published name duplicates, if it is a tied one."""
    return names["embedding"] if name.startswith("lm_head.") else find_tied_name(name)
