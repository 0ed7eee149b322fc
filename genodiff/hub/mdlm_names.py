"""DiT and DiMamba weights as the MDLM family publishes them, and back.

Which network a state dict holds, and all its sizes, are seen from the names and shapes; a config
adds what shapes cannot say (heads where there is no rotary table, time conditioning, what becomes
of the condition) and must not contradict them. Configs come in three forms: flat (Hugging Face:
hidden_dim, n_blocks), nested (`model: {hidden_size, ...}`, as trained), and none at all (a
Lightning checkpoint by itself). Everything stands below a prefix, `backbone.` in Hugging Face
folders and Lightning files.

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
from genodiff.errors import CheckpointError
from genodiff.hub.mixer_names import (
    BELONG,
    mixer_names,
    mixer_shape,
    other_direction,
    published_shape,
    take,
)

TABLE = "rotary_emb.inv_freq"
"""A buffer of published DiTs: the frequencies of their rotary positions, 10000^(−2m/h)."""

_DIT, _WORDS = "vocab_embed.embedding", "embeddings.word_embeddings.weight"
_STEMS = ("model.bimamba.backbone.", "model.backbone.")  # a language model, a classifier
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
_HARD_CODED_DROPOUT = 0.1  # of DiMamba with adaLN, whatever its config says

MdlmSettings = DiTSettings | DiMambaSettings


def prefix_of(names: Iterable[str]) -> str | None:
    """What stands before the names of a published DiT or DiMamba; None where it is neither."""
    for name in names:
        if name.endswith(_DIT):
            return name[: -len(_DIT)]
        if name.endswith(_WORDS):
            stem = name[: -len(_WORDS)]
            return next((stem[: -len(end)] for end in _STEMS if stem.endswith(end)), None)
    return None


def mdlm_settings(
    state: Mapping[str, Tensor], config: Mapping[str, Any] | None = None
) -> MdlmSettings:
    """The settings of the network whose tensors these are. Raises `CheckpointError` for what does
    not fit together.
    """
    prefix = prefix_of(state)
    if prefix is None:
        raise CheckpointError(
            "holds neither a DiT nor a DiMamba of the MDLM family",
            fix="give the state dict of such a network",
        )
    shapes = {name.removeprefix(prefix): tuple(x.shape) for name, x in state.items()}
    told = dict(config or {})
    told |= dict(told.get("model") or told.get("classifier_model") or {})
    found = _dit(shapes, told) if _DIT in shapes else _dimamba(shapes, told)
    return (DiTSettings if found["kind"] == "dit" else DiMambaSettings).parse(
        found, error=CheckpointError
    )


def from_published_mdlm(
    state: Mapping[str, Tensor], config: Mapping[str, Any] | None = None
) -> tuple[MdlmSettings, dict[str, Tensor]]:
    """Settings and state dict of the same network here, float32 or wider.

    The rotary table is not taken but made: compare it with `rotary_table`. A DiMamba without a
    condition has a map of the noise level that nothing reads; it is left out. Raises
    `CheckpointError` for a missing, foreign or misshapen tensor.
    """
    settings = mdlm_settings(state, config)
    prefix = prefix_of(state) or ""
    names = mdlm_names(settings, prefix, classifier=f"{prefix}{_STEMS[1]}{_WORDS}" in state)
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
        return other_direction(name)

    return settings, take(kept, names, shapes, tied_to)


def to_published_mdlm(
    settings: MdlmSettings, tensors: Mapping[str, Tensor], prefix: str = "backbone."
) -> dict[str, Tensor]:
    """The tensors of a published file, tied ones left out, a DiT's rotary table put in."""
    found = {
        theirs: published_shape(theirs, tensors[here])
        for here, theirs in mdlm_names(settings, prefix).items()
    }
    if isinstance(settings, DiTSettings):
        found[prefix + TABLE] = rotary_table(settings)
    return found


def mdlm_config(settings: MdlmSettings, vocab_size: int, length: int) -> dict[str, Any]:
    """The config of a published folder: flat for a DiT, nested for a DiMamba. Raises
    `CheckpointError` for what has no published form.
    """
    s = settings
    if isinstance(s, DiMambaSettings):
        model = {
            "type": "dimamba", "hidden_size": s.d_model, "cond_dim": s.d_cond,
            "n_blocks": s.n_layer, "length": length,
            "temb_strategy": None if s.conditioning == "none" else s.conditioning,
            "tie_word_embeddings": s.tie_head,
            "dropout": s.dropout, "scale_by_sigma": True,
        }  # fmt: skip
        if s.conditioning != "adaln" and s.residual:
            raise CheckpointError(
                "has skip connections, which published DiMambas without adaLN lack",
                fix="export it as safetensors",
            )
        return {
            "backbone": "dimamba",
            "time_conditioning": s.time_conditioning,
            "vocab_size": vocab_size,
            "model": model,
        }
    if (
        not (s.adaln and s.rotary and s.norm == "layer" and s.mlp_ratio == 4)
        or s.tie_head
        or s.causal
        or s.qk_bias
    ):
        raise CheckpointError(
            "is a DiT of a form that has never been published", fix="export it as safetensors"
        )
    classes = {"cfg": True, "cfg_num_classes": s.n_classes} if s.n_classes else {}
    return {
        "architectures": ["UDLM" if s.n_classes else "MDLM"],
        "model_type": "udlm" if s.n_classes else "mdlm", **classes,
        "cond_dim": s.d_cond, "dropout": s.dropout, "hidden_dim": s.d_model,
        "model_length": length, "n_blocks": s.n_layer,
        "n_heads": s.n_head, "time_conditioning": s.time_conditioning, "torch_dtype": "float32",
        "vocab_size": vocab_size,
    }  # fmt: skip


def mdlm_names(
    settings: MdlmSettings, prefix: str = "backbone.", *, classifier: bool = False
) -> dict[str, str]:
    """Parameter name here → published name. `classifier`: a DiMamba that scores sequences; it has
    no head of tokens, and no weights for one here (`tie_head`).
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
        names = {"embedding": prefix + _DIT, **condition}
        for i in range(s.n_layer):
            names |= {
                f"blocks.{i}.{here}": f"{prefix}blocks.{i}.{theirs}"
                for here, theirs in _DIT_BLOCK.items()
            }
        return names | {
            here: f"{prefix}output_layer.{theirs}" for here, theirs in _DIT_HEAD.items()
        }
    stem = prefix + _STEMS[classifier]
    names = {} if s.conditioning == "none" else condition
    names["embedding"] = stem + _WORDS
    norms = kinds if s.norm == "layer" else ["weight"]
    modulations = kinds if s.conditioning == "adaln" else []
    for i in range(s.n_layer):
        layer = f"{stem}layers.{i}"
        names |= mixer_names(s, f"blocks.{i}.mixer", f"{layer}.mixer")
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


def parameter_names(names: Iterable[str], *, tied_head: bool = False) -> list[str]:
    """Of a state dict's names, in its order, those of its parameters, each tied tensor once: what a
    list of averages (EMA) is of.
    """
    names = list(names)
    return [
        name
        for name in names
        if not name.endswith((TABLE, "complement_map"))
        and other_direction(name) not in names
        and not (tied_head and name.endswith("lm_head.weight"))
    ]


def rotary_table(settings: DiTSettings) -> Tensor:
    """The frequencies that a published DiT of this shape carries, float32."""
    width = settings.d_model // settings.n_head
    return 1.0 / (10_000.0 ** (torch.arange(0, width, 2, dtype=torch.float32) / width))


def _dit(shapes: Mapping[str, tuple[int, ...]], told: Mapping[str, Any]) -> dict[str, Any]:
    d = _side(shapes, _DIT, 1)
    heads = told.get("n_heads")
    if TABLE in shapes:
        found = d // (2 * shapes[TABLE][0])
        _agree("n_heads", heads, found)
        heads = found
    if heads is None:
        raise CheckpointError(
            "says nowhere how many heads it has", fix="put the published config beside the weights"
        )
    n_layer = _count(shapes, "blocks.")
    d_cond = _side(shapes, "sigma_map.mlp.0.weight", 0)
    for key, found in (
        ("hidden_dim", d),
        ("hidden_size", d),
        ("n_blocks", n_layer),
        ("cond_dim", d_cond),
    ):
        _agree(key, told.get(key), found)
    _agree("vocab_size", told.get("vocab_size"), shapes[_DIT][0])
    return {
        "kind": "dit", "d_model": d, "n_layer": n_layer, "n_head": heads, "d_cond": d_cond,
        "norm": "layer", "adaln": True,
        "mlp_ratio": max(1, _side(shapes, "blocks.0.mlp.0.weight", 0) // d),
        "dropout": told.get("dropout") or 0.0,
        "time_conditioning": bool(told.get("time_conditioning", False)),
        "n_classes": _classes(shapes),
    }  # fmt: skip


def _dimamba(shapes: Mapping[str, tuple[int, ...]], told: Mapping[str, Any]) -> dict[str, Any]:
    stem = next(stem for stem in _STEMS if stem + _WORDS in shapes)
    d, width = _side(shapes, stem + _WORDS, 1), _side(shapes, f"{stem}norm_f.weight", 0)
    n_layer, first = _count(shapes, f"{stem}layers."), f"{stem}layers.0.mixer.mamba_fwd."
    d_cond = _side(shapes, "sigma_map.mlp.0.weight", 0)
    conditioning = _conditioning(shapes, told, stem, width > d, d_cond == d)
    for key, found in (("hidden_size", d), ("n_blocks", n_layer)):
        _agree(key, told.get(key), found)
    e, state = _side(shapes, f"{first}A_log", 0), _side(shapes, f"{first}A_log", 1)
    rank = _side(shapes, f"{first}dt_proj.weight", 1)
    back = f"{stem}layers.0.mixer.mamba_rev."
    tied = bool(told.get("bidirectional_weight_tie", True))
    head = "model.lm_head.weight"
    tie_head = bool(told.get("tie_word_embeddings", head not in shapes)) or stem == _STEMS[1]
    return {
        "kind": "dimamba", "d_model": d, "n_layer": n_layer, "conditioning": conditioning,
        "n_classes": _classes(shapes),
        "d_cond": width - d if conditioning == "concat" else d_cond,
        "residual": conditioning == "adaln",
        "time_conditioning": conditioning != "none" and bool(told.get("time_conditioning", False)),
        "dropout": _HARD_CODED_DROPOUT if conditioning == "adaln" else 0.0,
        "d_state": state, "d_conv": _side(shapes, f"{first}conv1d.weight", -1), "expand": max(1,
        e // width),
        "dt_rank": "auto" if rank == -(-width // 16) else rank,
        "bidirectional": f"{back}A_log" in shapes,
        "bidirectional_strategy": told.get("bidirectional_strategy") or "add",
        "tie_directions": tied,
        "norm": "layer" if f"{stem}norm_f.bias" in shapes else "rms",
        "conv_bias": f"{first}conv1d.bias" in shapes,
        "proj_bias": f"{first}in_proj.bias" in shapes, "tie_head": tie_head,
        "spare_rows": width - d if conditioning == "concat" else 0,
    }  # fmt: skip


def _conditioning(
    shapes: Mapping[str, tuple[int, ...]],
    told: Mapping[str, Any],
    stem: str,
    wider: bool,
    as_wide: bool,
) -> str:
    if f"{stem}adaLN_modulation_final.weight" in shapes:
        found = "adaln"
    elif wider:
        found = "concat"
    elif "temb_strategy" in told:
        found = told["temb_strategy"] or "none"
        if found not in ("add", "none"):
            raise CheckpointError(
                f"has no tensors of temb_strategy {found}, which its config names", fix=BELONG
            )
        return str(found)
    elif as_wide:
        what = "does not say whether its noise level is added or not read at all (temb_strategy)"
        raise CheckpointError(what, fix="put the published config beside the weights")
    else:
        found = "none"
    if told.get("temb_strategy") and found not in str(told["temb_strategy"]):
        raise CheckpointError(
            f"has the tensors of temb_strategy {found}, not of {told['temb_strategy']}", fix=BELONG
        )
    return found


def _rows(state: Mapping[str, Tensor], settings: MdlmSettings, prefix: str) -> int:
    """Tokens that the network knows."""
    if isinstance(settings, DiTSettings):
        return state[prefix + _DIT].shape[0]
    stem = next(stem for stem in _STEMS if prefix + stem + _WORDS in state)
    return state[prefix + stem + _WORDS].shape[0] - settings.spare_rows


def _shape(here: str, s: MdlmSettings, vocab_size: int) -> tuple[int, ...]:
    """The shape of a parameter."""
    d = s.d_model
    width, c = (d, s.d_cond) if isinstance(s, DiTSettings) else (s.width, s.width_cond)
    if isinstance(s, DiMambaSettings):
        if ".mixer." in here:
            return mixer_shape(here, s, width)
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


def _side(shapes: Mapping[str, tuple[int, ...]], name: str, axis: int) -> int:
    if name not in shapes:
        raise CheckpointError(f"lacks '{name}'", fix=BELONG)
    if len(shapes[name]) <= max(axis, 0):
        raise CheckpointError(
            f"'{name}' has the shape {shapes[name]}, which is none of such a tensor", fix=BELONG
        )
    return shapes[name][axis]


def _count(shapes: Iterable[str], stem: str) -> int:
    found = {
        int(part)
        for name in shapes
        if name.startswith(stem) and (part := name[len(stem) :].split(".")[0]).isdecimal()
    }
    return 1 + max(found, default=-1)


def _classes(shapes: Mapping[str, tuple[int, ...]]) -> int:
    table = "cond_map.embedding_table.weight"
    return _side(shapes, table, 0) - 1 if table in shapes else 0


def _agree(key: str, told: Any, found: int) -> None:
    if told is not None and told != found:
        raise CheckpointError(
            f"{key} is {told} in the config, but the tensors say {found}", fix=BELONG
        )
