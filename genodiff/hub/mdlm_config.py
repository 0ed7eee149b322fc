"""Which network of the MDLM family a state dict holds, from its names, shapes and config; and back.

Names and shapes give the network and all its sizes. A config adds what shapes cannot say: heads
where there is no rotary table, time conditioning, how the condition is used. It must not
contradict the shapes. Configs come in three forms: flat (Hugging Face: hidden_dim, n_blocks),
nested (`model: {hidden_size, ...}`, as trained), and none (a Lightning checkpoint by itself).

Source: https://github.com/kuleshov-group/mdlm and discrete-diffusion-guidance (Apache-2.0), by
their tensors; our own code.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor

from genodiff.backbones.dimamba import DiMambaSettings
from genodiff.backbones.dit import DiTSettings
from genodiff.errors import CheckpointError
from genodiff.hub.mixer_names import BELONG

TABLE = "rotary_emb.inv_freq"
"""A buffer of published DiTs: the frequencies of their rotary positions, 10000^(−2m/h)."""

DIT_EMBEDDING, WORDS = "vocab_embed.embedding", "embeddings.word_embeddings.weight"
STEMS = ("model.bimamba.backbone.", "model.backbone.")  # a language model, a classifier

_HARD_CODED_DROPOUT = 0.1  # of DiMamba with adaLN, whatever its config says

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


def find_mdlm_settings(
    state: Mapping[str, Tensor], config: Mapping[str, Any] | None = None
) -> MdlmSettings:
    """The settings of the network whose tensors these are.

    Raises `CheckpointError` for what does not fit together.
    """
    prefix = find_prefix(state)
    if prefix is None:
        raise CheckpointError(
            "holds neither a DiT nor a DiMamba of the MDLM family",
            fix="give the state dict of such a network",
        )
    shapes = {name.removeprefix(prefix): tuple(x.shape) for name, x in state.items()}
    told = dict(config or {})
    told |= dict(told.get("model") or told.get("classifier_model") or {})
    found = _dit(shapes, told) if DIT_EMBEDDING in shapes else _dimamba(shapes, told)
    return (DiTSettings if found["kind"] == "dit" else DiMambaSettings).parse(
        found, error=CheckpointError
    )


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


def _dit(shapes: Mapping[str, tuple[int, ...]], told: Mapping[str, Any]) -> dict[str, Any]:
    d = _side(shapes, DIT_EMBEDDING, 1)
    heads = told.get("n_heads")
    if TABLE in shapes:
        found = d // (2 * shapes[TABLE][0])
        _agree("n_heads", heads, found)
        heads = found
    if heads is None:
        raise CheckpointError(
            "does not state its number of heads", fix="put the published config beside the weights"
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
    _agree("vocab_size", told.get("vocab_size"), shapes[DIT_EMBEDDING][0])
    return {
        "kind": "dit", "d_model": d, "n_layer": n_layer, "n_head": heads, "d_cond": d_cond,
        "norm": "layer", "adaln": True,
        "mlp_ratio": max(1, _side(shapes, "blocks.0.mlp.0.weight", 0) // d),
        "dropout": told.get("dropout") or 0.0,
        "time_conditioning": bool(told.get("time_conditioning", False)),
        "n_classes": _classes(shapes),
    }  # fmt: skip


def _dimamba(shapes: Mapping[str, tuple[int, ...]], told: Mapping[str, Any]) -> dict[str, Any]:
    stem = next(stem for stem in STEMS if stem + WORDS in shapes)
    d, width = _side(shapes, stem + WORDS, 1), _side(shapes, f"{stem}norm_f.weight", 0)
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
    tie_head = bool(told.get("tie_word_embeddings", head not in shapes)) or stem == STEMS[1]
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


def _side(shapes: Mapping[str, tuple[int, ...]], name: str, axis: int) -> int:
    if name not in shapes:
        raise CheckpointError(f"lacks '{name}'", fix=BELONG)
    if len(shapes[name]) <= max(axis, 0):
        raise CheckpointError(
            f"'{name}' has the shape {shapes[name]}, which is invalid for this tensor", fix=BELONG
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
