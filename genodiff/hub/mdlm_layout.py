"""Which network of the MDLM family a state dict holds, from its names, shapes and config; and back.

Names and shapes give the network and all its sizes. A config adds what shapes cannot say: heads
where there is no rotary table, time conditioning, how the condition is used. It must not
contradict the shapes. Configs come in three forms: flat (Hugging Face: hidden_dim, n_blocks),
nested (`model: {hidden_size, ...}`, as trained), and none (a Lightning checkpoint by itself).
"""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from genodiff.backbones.dimamba import DiMambaSettings
from genodiff.backbones.dit import DiTSettings
from genodiff.errors import CheckpointError
from genodiff.hub.tensor_names import (
    BELONG,
    DIMAMBA,
    DIT,
    DIT_EMBEDDING,
    TABLE,
    WORDS,
    judge_depth,
    reshape_as_published,
    take_tensors,
    translate_names,
)

STEMS = ("model.bimamba.backbone.", "model.backbone.")  # a language model, a classifier

_HARD_CODED_DROPOUT = 0.1  # of DiMamba with adaLN, whatever its config says

_SIZES = (
    ("hidden_dim", "d_model"), ("hidden_size", "d_model"), ("n_blocks", "n_layer"),
    ("cond_dim", "d_cond"),
)  # fmt: skip
"""Keys of a config, and the settings that must agree with them."""

MdlmSettings = DiTSettings | DiMambaSettings


def find_prefix(names: Iterable[str]) -> str | None:
    """What stands before the names of a published DiT or DiMamba; None where it is neither."""
    for name in names:
        if name.endswith(DIT_EMBEDDING):
            return name[: -len(DIT_EMBEDDING)]
        if name.endswith(WORDS):
            stem = name[: -len(WORDS)]
            return next((stem[: -len(end)] for end in STEMS if stem.endswith(end)), None)
    return None


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
    unread: tuple[str, ...] = (TABLE,)
    if isinstance(settings, DiMambaSettings) and settings.conditioning == "none":
        unread += tuple(name for name in state if name.startswith(f"{prefix}sigma_map."))
    taken = {name: x for name, x in state.items() if not name.endswith(unread)}
    rows = len(state[names["embedding"]]) - getattr(settings, "spare_rows", 0)
    return settings, take_tensors(taken, names, settings, rows)


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
    rows = DIT if isinstance(settings, DiTSettings) else DIMAMBA
    return translate_names(settings, rows, prefix=prefix, stem=STEMS[classifier])


def make_rotary_table(settings: DiTSettings) -> Tensor:
    """The frequencies that a published DiT of this shape carries, float32."""
    width = settings.d_model // settings.n_head
    return 1.0 / (10_000.0 ** (torch.arange(0, width, 2, dtype=torch.float32) / width))


def find_mdlm_settings(
    state: Mapping[str, Tensor], config: Mapping[str, Any] | None = None
) -> MdlmSettings:
    """The settings of the network whose tensors these are.

    Raises `CheckpointError` for what does not fit together.
    """
    prefix = find_prefix(state)
    if prefix is None:
        what = "holds neither a DiT nor a DiMamba of the MDLM family"
        raise CheckpointError(what, fix="give the state dict of such a network")
    shapes = {name.removeprefix(prefix): tuple(x.shape) for name, x in state.items()}
    told = dict(config or {})
    told |= dict(told.get("model") or told.get("classifier_model") or {})
    found = _dit(shapes, told) if DIT_EMBEDDING in shapes else _dimamba(shapes, told)
    for key, ours in _SIZES:
        if key != "cond_dim" or found["kind"] == "dit":
            _agree(key, told.get(key), found[ours])
    kind: type[MdlmSettings] = DiTSettings if found["kind"] == "dit" else DiMambaSettings
    return kind.parse(found, error=CheckpointError)


def make_mdlm_config(settings: MdlmSettings, vocab_size: int, length: int) -> dict[str, Any]:
    """The config of a published folder: flat for a DiT, nested for a DiMamba.

    Raises `CheckpointError` for what has no published form.
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
            what = "has skip connections, which published DiMambas without adaLN lack"
            raise CheckpointError(what, fix="export it as safetensors")
        return {
            "backbone": "dimamba",
            "time_conditioning": s.time_conditioning,
            "vocab_size": vocab_size,
            "model": model,
        }
    usual = s.adaln and s.rotary and s.norm == "layer" and s.mlp_ratio == 4
    if not usual or s.tie_head or s.causal or s.qk_bias:
        fix = "export it as safetensors"
        raise CheckpointError("is a DiT of a form that has never been published", fix=fix)
    classes = {"cfg": True, "cfg_num_classes": s.n_classes} if s.n_classes else {}
    return {
        "architectures": ["UDLM" if s.n_classes else "MDLM"],
        "model_type": "udlm" if s.n_classes else "mdlm", **classes,
        "cond_dim": s.d_cond, "dropout": s.dropout, "hidden_dim": s.d_model,
        "model_length": length, "n_blocks": s.n_layer,
        "n_heads": s.n_head, "time_conditioning": s.time_conditioning, "torch_dtype": "float32",
        "vocab_size": vocab_size,
    }  # fmt: skip


def _dit(shapes: Mapping[str, tuple[int, ...]], told: Mapping[str, Any]) -> dict[str, Any]:
    d = _side(shapes, DIT_EMBEDDING, 1)
    heads = told.get("n_heads")
    if TABLE in shapes:
        found = d // (2 * shapes[TABLE][0])
        _agree("n_heads", heads, found)
        heads = found
    if heads is None:
        fix = "put the published config beside the weights"
        raise CheckpointError("does not state its number of heads", fix=fix)
    _agree("vocab_size", told.get("vocab_size"), shapes[DIT_EMBEDDING][0])
    return {
        "kind": "dit", "d_model": d, "n_layer": _count(shapes, "blocks."), "n_head": heads,
        "d_cond": _side(shapes, "sigma_map.mlp.0.weight", 0), "norm": "layer", "adaln": True,
        "mlp_ratio": max(1, _side(shapes, "blocks.0.mlp.0.weight", 0) // d),
        "dropout": told.get("dropout") or 0.0, "n_classes": _classes(shapes),
        "time_conditioning": bool(told.get("time_conditioning", False)),
    }  # fmt: skip


def _dimamba(shapes: Mapping[str, tuple[int, ...]], told: Mapping[str, Any]) -> dict[str, Any]:
    stem = next(stem for stem in STEMS if stem + WORDS in shapes)
    d, width = _side(shapes, stem + WORDS, 1), _side(shapes, f"{stem}norm_f.weight", 0)
    n_layer, first = _count(shapes, f"{stem}layers."), f"{stem}layers.0.mixer.mamba_fwd."
    d_cond = _side(shapes, "sigma_map.mlp.0.weight", 0)
    conditioning = _conditioning(shapes, told, stem, width > d, d_cond == d)
    rank = _side(shapes, f"{first}dt_proj.weight", 1)
    headless = told.get("tie_word_embeddings", "model.lm_head.weight" not in shapes)
    return {
        "kind": "dimamba", "d_model": d, "n_layer": n_layer, "conditioning": conditioning,
        "n_classes": _classes(shapes),
        "d_cond": width - d if conditioning == "concat" else d_cond,
        "residual": conditioning == "adaln",
        "time_conditioning": conditioning != "none" and bool(told.get("time_conditioning", False)),
        "dropout": _HARD_CODED_DROPOUT if conditioning == "adaln" else 0.0,
        "d_state": _side(shapes, f"{first}A_log", 1),
        "d_conv": _side(shapes, f"{first}conv1d.weight", -1),
        "expand": max(1, _side(shapes, f"{first}A_log", 0) // width),
        "dt_rank": "auto" if rank == -(-width // 16) else rank,
        "bidirectional": f"{stem}layers.0.mixer.mamba_rev.A_log" in shapes,
        "bidirectional_strategy": told.get("bidirectional_strategy") or "add",
        "tie_directions": bool(told.get("bidirectional_weight_tie", True)),
        "norm": "layer" if f"{stem}norm_f.bias" in shapes else "rms",
        "conv_bias": f"{first}conv1d.bias" in shapes,
        "proj_bias": f"{first}in_proj.bias" in shapes,
        "tie_head": bool(headless) or stem == STEMS[1],
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
            what = f"has no tensors of temb_strategy {found}, which its config names"
            raise CheckpointError(what, fix=BELONG)
        return str(found)
    elif as_wide:
        what = "does not say whether its noise level is added or not read at all (temb_strategy)"
        raise CheckpointError(what, fix="put the published config beside the weights")
    else:
        found = "none"
    if told.get("temb_strategy") and found not in str(told["temb_strategy"]):
        what = f"has the tensors of temb_strategy {found}, not of {told['temb_strategy']}"
        raise CheckpointError(what, fix=BELONG)
    return found


def _side(shapes: Mapping[str, tuple[int, ...]], name: str, axis: int) -> int:
    if len(shapes.get(name, ())) <= max(axis, 0):
        fault = f"has an invalid '{name}' {shapes[name]}" if name in shapes else f"lacks '{name}'"
        raise CheckpointError(fault, fix=BELONG)
    return shapes[name][axis]


def _count(shapes: Mapping[str, tuple[int, ...]], stem: str) -> int:
    parts = {name[len(stem) :].split(".")[0] for name in shapes if name.startswith(stem)}
    found = 1 + max((int(n) for n in parts if n.isdecimal() and len(n) < 99), default=-1)
    judge_depth(found, shapes)
    return found


def _classes(shapes: Mapping[str, tuple[int, ...]]) -> int:
    table = "cond_map.embedding_table.weight"
    return _side(shapes, table, 0) - 1 if table in shapes else 0


def _agree(key: str, told: Any, found: int) -> None:
    if told is not None and told != found:
        what = f"{key} is {told} in the config, but the tensors say {found}"
        raise CheckpointError(what, fix=BELONG)
