"""Names and shapes of DiT and DiMamba weights as the MDLM family publishes them, and back.

Everything stands below a prefix, `backbone.` in Hugging Face folders and Lightning files.

Source: https://github.com/kuleshov-group/mdlm and discrete-diffusion-guidance (Apache-2.0), by
their tensors; our own code.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from genodiff.backbones.conditioning import FREQUENCIES
from genodiff.backbones.dimamba import DiMambaSettings
from genodiff.backbones.dit import DiTSettings
from genodiff.hub.mdlm_config import (
    DIT_EMBEDDING,
    STEMS,
    TABLE,
    WORDS,
    MdlmSettings,
    find_mdlm_settings,
    find_prefix,
)
from genodiff.hub.mixer_names import (
    find_mixer_shape,
    find_tied_name,
    map_mixer_names,
    reshape_as_published,
    take_tensors,
)

_LEVEL = {"first": "0", "second": "2"}
_DIT_BLOCK = {
    "attention_norm.weight": "norm1.weight", "attention.qkv.weight": "attn_qkv.weight",
    "attention.out.weight": "attn_out.weight",
    "mlp_norm.weight": "norm2.weight", "mlp_in.weight": "mlp.0.weight",
    "mlp_in.bias": "mlp.0.bias", "mlp_out.weight": "mlp.2.weight",
    "mlp_out.bias": "mlp.2.bias", "modulation.weight": "adaLN_modulation.weight",
    "modulation.bias": "adaLN_modulation.bias",
}  # fmt: skip
_DIT_HEAD = {
    "head": "linear.weight", "head_bias": "linear.bias", "final_norm.weight": "norm_final.weight",
    "final_modulation.weight": "adaLN_modulation.weight",
    "final_modulation.bias": "adaLN_modulation.bias",
}  # fmt: skip


def from_published_mdlm(
    state: Mapping[str, Tensor], config: Mapping[str, Any] | None = None
) -> tuple[MdlmSettings, dict[str, Tensor]]:
    """Settings and state dict of the same network here, float32 or wider.

    The rotary table is not taken but made: compare it with `make_rotary_table`. A DiMamba without a
    condition has a map of the noise level that nothing reads; it is left out. Raises
    `CheckpointError` for a missing, foreign or misshapen tensor.
    """
    settings = find_mdlm_settings(state, config)
    prefix = find_prefix(state) or ""
    names = map_mdlm_names(settings, prefix, classifier=f"{prefix}{STEMS[1]}{WORDS}" in state)
    unread = (
        f"{prefix}sigma_map."
        if isinstance(settings, DiMambaSettings) and settings.conditioning == "none"
        else None
    )
    kept = {
        name: x
        for name, x in state.items()
        if not name.endswith(TABLE) and not (unread and name.startswith(unread))
    }
    rows = _rows(state, settings, prefix)
    shapes = {here: _shape(here, settings, rows) for here in names}

    def tied_to(name: str) -> str | None:
        if (
            isinstance(settings, DiMambaSettings)
            and settings.tie_head
            and name.endswith("lm_head.weight")
        ):
            return names["embedding"]
        return find_tied_name(name)

    return settings, take_tensors(kept, names, shapes, tied_to)


def to_published_mdlm(
    settings: MdlmSettings, tensors: Mapping[str, Tensor], prefix: str = "backbone."
) -> dict[str, Tensor]:
    """The tensors of a published file, tied ones left out, a DiT's rotary table put in."""
    found = {
        theirs: reshape_as_published(theirs, tensors[here])
        for here, theirs in map_mdlm_names(settings, prefix).items()
    }
    if isinstance(settings, DiTSettings):
        found[prefix + TABLE] = make_rotary_table(settings)
    return found


def map_mdlm_names(
    settings: MdlmSettings, prefix: str = "backbone.", *, classifier: bool = False
) -> dict[str, str]:
    """Parameter name here → published name.

    `classifier`: a DiMamba that scores sequences; it has no head of tokens (`tie_head`).
    """
    s = settings
    kinds = ["weight", "bias"]
    condition = {
        f"condition.level.{here}.{kind}": f"{prefix}sigma_map.mlp.{theirs}.{kind}"
        for here, theirs in _LEVEL.items()
        for kind in kinds
    }
    if s.n_classes:
        condition["condition.label.embedding"] = f"{prefix}cond_map.embedding_table.weight"
    if isinstance(s, DiTSettings):
        names = {"embedding": prefix + DIT_EMBEDDING, **condition}
        for i in range(s.n_layer):
            names |= {
                f"blocks.{i}.{here}": f"{prefix}blocks.{i}.{theirs}"
                for here, theirs in _DIT_BLOCK.items()
            }
        return names | {
            here: f"{prefix}output_layer.{theirs}" for here, theirs in _DIT_HEAD.items()
        }
    stem = prefix + STEMS[classifier]
    names = {} if s.conditioning == "none" else condition
    names["embedding"] = stem + WORDS
    norms = kinds if s.norm == "layer" else ["weight"]
    modulations = kinds if s.conditioning == "adaln" else []
    for i in range(s.n_layer):
        layer = f"{stem}layers.{i}"
        names |= map_mixer_names(s, f"blocks.{i}.mixer", f"{layer}.mixer")
        names |= {f"blocks.{i}.norm.{kind}": f"{layer}.norm.{kind}" for kind in norms}
        names |= {
            f"blocks.{i}.modulation.{kind}": f"{layer}.adaLN_modulation.{kind}"
            for kind in modulations
        }
    names |= {f"final_norm.{kind}": f"{stem}norm_f.{kind}" for kind in norms}
    names |= {
        f"final_modulation.{kind}": f"{stem}adaLN_modulation_final.{kind}" for kind in modulations
    }
    if not s.tie_head:
        names["head"] = f"{prefix}model.lm_head.weight"
    return names


def list_parameters(names: Iterable[str], *, tied_head: bool = False) -> list[str]:
    """The names of a state dict's parameters in its order, each tied tensor once.

    A list of averages (EMA) is of these.
    """
    names = list(names)
    return [
        name
        for name in names
        if not name.endswith((TABLE, "complement_map"))
        and find_tied_name(name) not in names
        and not (tied_head and name.endswith("lm_head.weight"))
    ]


def make_rotary_table(settings: DiTSettings) -> Tensor:
    """The frequencies that a published DiT of this shape carries, float32."""
    width = settings.d_model // settings.n_head
    return 1.0 / (10_000.0 ** (torch.arange(0, width, 2, dtype=torch.float32) / width))


def _rows(state: Mapping[str, Tensor], settings: MdlmSettings, prefix: str) -> int:
    """Tokens that the network knows."""
    if isinstance(settings, DiTSettings):
        return state[prefix + DIT_EMBEDDING].shape[0]
    stem = next(stem for stem in STEMS if prefix + stem + WORDS in state)
    return state[prefix + stem + WORDS].shape[0] - settings.spare_rows


def _shape(here: str, s: MdlmSettings, vocab_size: int) -> tuple[int, ...]:
    """The shape of a parameter."""
    d = s.d_model
    width, c = (d, s.d_cond) if isinstance(s, DiTSettings) else (s.width, s.width_cond)
    if isinstance(s, DiMambaSettings):
        if ".mixer." in here:
            return find_mixer_shape(here, s, width)
        per_block, rows = 3, vocab_size + s.spare_rows
    else:
        per_block, rows = 6, vocab_size
        hidden = s.mlp_ratio * d
        more = {
            "qkv.weight": (3 * d, d),
            "out.weight": (d, d),
            "mlp_in.weight": (hidden, d),
            "mlp_in.bias": (hidden,),
        }
        more |= {"mlp_out.weight": (d, hidden), "mlp_out.bias": (d,)}
        for end, shape in more.items():
            if here.endswith(f".{end}"):
                return shape
    n = 2 if here.startswith("final_modulation") else per_block
    table: dict[str, tuple[int, ...]] = {
        "condition.label.embedding": (s.n_classes + 1, c), "embedding": (rows, d),
        "head": (vocab_size, width), "head_bias": (vocab_size,),
        "first.weight": (c, FREQUENCIES), "first.bias": (c,), "second.weight": (c, c),
        "second.bias": (c,),
        "modulation.weight": (n * width, c), "modulation.bias": (n * width,),
        "norm.weight": (width,), "norm.bias": (width,),
    }  # fmt: skip
    return next(shape for end, shape in table.items() if here.endswith(end))
