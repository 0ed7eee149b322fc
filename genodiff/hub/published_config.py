"""A published `config.json`, judged: types, sizes, and no path or code that is followed."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from genodiff.errors import CheckpointError

_log = logging.getLogger("genodiff")

_CODE = ("auto_map", "trust_remote_code", "custom_pipelines")
_COUNTS = {
    "d_model", "n_layer", "vocab_size", "pad_vocab_size_multiple", "hidden_dim", "hidden_size",
    "cond_dim", "n_blocks", "n_heads",
    "model_length", "cfg_num_classes", "num_labels", "d_state", "d_conv", "expand", "seq_len",
    "length",
}  # fmt: skip
_SWITCHES = {
    "rcps", "bidirectional", "bidirectional_weight_tie", "rms_norm", "fused_add_norm",
    "residual_in_fp32", "tie_word_embeddings",
    "conv_bias", "bias", "use_fast_path", "cfg", "time_conditioning",
}  # fmt: skip
_FREE_TEXT = {"_name_or_path", "transformers_version", "torch_dtype", "dtype"}
_LARGEST = 1 << 31
_BELONG = "check that config and weights belong together"


def judge_config(values: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The config without what could lead outside.

    Raises `CheckpointError` naming the file and the key. Remote code is named in a warning, and
    never followed.
    """
    version = values.get("format_version", 1)
    if not isinstance(version, int) or version > 1:
        raise CheckpointError(
            f"format_version {version!r} is newer than what this genodiff reads",
            file=path,
            fix="upgrade genodiff",
        )
    code = [key for key in _CODE if key in values]
    if code:
        _log.warning(
            "%s: names remote code (%s): ignored, no code is imported from there",
            path,
            ", ".join(code),
        )
    kept = {key: value for key, value in values.items() if key not in code}
    if not isinstance(kept.get("ssm_cfg") or {}, Mapping):
        raise CheckpointError("ssm_cfg is no object: invalid", file=path, fix=_BELONG)
    for key, value in _flat(kept):
        if (
            key in _COUNTS
            and value is not None
            and (type(value) is not int or not 1 <= value <= _LARGEST)
        ):
            what = (
                "is too large"
                if type(value) is int and value > 1
                else "must be a whole number of at least 1"
            )
            raise CheckpointError(f"{key} is {value!r}: {what}", file=path, fix=_BELONG)
        if key in _SWITCHES and type(value) is not bool:
            raise CheckpointError(
                f"{key} is {value!r}: must be true or false", file=path, fix=_BELONG
            )
        if (
            isinstance(value, str)
            and key not in _FREE_TEXT
            and (value.startswith(("/", "~", "\\")) or ".." in value.split("/"))
        ):
            raise CheckpointError(
                f"{key} names '{value}', a path outside the folder: not allowed",
                file=path,
                fix="remove it",
            )
    return kept


def _flat(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    out: list[tuple[str, Any]] = []
    for key, value in values.items():
        out += (
            _flat(value)
            if isinstance(value, Mapping) and key != "complement_map"
            else [(str(key), value)]
        )
    return out


def read_complement(values: Mapping[str, Any], path: Path) -> dict[int, int] | None:
    """`complement_map` with its keys as numbers, in any order.

    Raises `CheckpointError`.
    """
    found = values.get("complement_map")
    if not found:
        return None
    try:
        return {int(key): int(value) for key, value in found.items()}
    except (AttributeError, TypeError, ValueError):
        raise CheckpointError(
            "complement_map is no map from ids to ids: invalid", file=path, fix=_BELONG
        ) from None


def read_letters(values: Mapping[str, Any], path: Path) -> list[str] | None:
    """Tokens by id where the config lists them (`vocab`).

    Raises `CheckpointError` where the value is no list.
    """
    found = values.get("vocab")
    if found is None:
        return None
    if not isinstance(found, list) or not all(isinstance(token, str) for token in found):
        raise CheckpointError("vocab is no list of tokens: invalid", file=path, fix=_BELONG)
    return found
