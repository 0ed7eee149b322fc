"""A published network as one value, judged by its `config.json` and by what it answers to a probe.

No path or code that a config names is followed.

The probe is the consensus of the human repeat AluY, which a model of the human genome knows by
heart and any model of DNA should not pay much more than 2 bits a base for. Weights that are random,
wrongly tied or read with permuted ids pay far more.
"""

import hashlib
import logging
import os
from collections.abc import Callable, Collection, Mapping
from math import log
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from genodiff.alphabet import Alphabet
from genodiff.backbones.backbone import Backbone, BackboneSettings
from genodiff.errors import CheckpointError, GenodiffError, format_count
from genodiff.hub.tensor_names import BELONG, order_rows
from genodiff.hub.vocabulary import PublishedVocabulary
from genodiff.hub.weight_files import Weights, read_json_file

CONFIG, TOKENIZER = "config.json", "tokenizer.json"

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
ALU_Y = (
    "GGCCGGGCGCGGTGGCTCACGCCTGTAATCCCAGCACTTTGGGAGGCCGAGGCGGGCGGATCACGAGGTCAGGAGATCGAGACCATCCCGGCTAAAACGGTGAAACCCCGTCTCTACTAAAAATACAAAA"
    "AATTAGCCGGGCGTGGTGGCGGGCGCCTGTAGTCCCAGCTACTCGGGAGGCTGAGGCAGGAGAATGGCGTGAACCCGGGAGGCGGAGCTTGCAGTGAGCCGAGATCGCGCCACTGCACTCCAGCCTGGGC"
    "GACAGAGCGAGACTCCGTCTC"
)
_EVERY = 7  # one base in seven is masked, about the share under which such networks were trained
_TOLERANCE = 1e-4
SANE_BITS = 2.5


class PublishedNetwork(NamedTuple):
    """A published network, read and judged."""

    layout: str  # "caduceus" or "mdlm"
    settings: BackboneSettings
    tensors: dict[str, Tensor]  # under our names, float32, rows in the order of our ids
    vocabulary: PublishedVocabulary
    config: dict[str, Any]  # as published, without what names code
    score: Tensor | None  # (classes, D): the classifier of a sequence-classification network
    files: list[dict[str, Any]]  # name, bytes, sha256
    path: Path
    seq_len: int | None = None  # where the source says what length it was trained at
    weights: str = "as published"  # "averaged" or "raw" where a file holds both
    tokenizer: dict[str, bytes] = {}  # noqa: RUF012
    unused: tuple[str, ...] = ()  # tensors of the files that are no part of the network

    @property
    def digest(self) -> str:
        """sha256 (hex) over the hashes of the files that were read."""
        return hashlib.sha256("".join(file["sha256"] for file in self.files).encode()).hexdigest()

    def record(self) -> dict[str, Any]:
        """What a run remembers of its source, as plain values."""
        return {
            "layout": self.layout,
            "path": os.path.abspath(self.path),
            "digest": self.digest,
            "files": self.files,
            "config": self.config,
            "vocabulary": self.vocabulary.name,
            "rows": self.vocabulary.size,
            "weights": self.weights,
            **({"unused": list(self.unused)} if self.unused else {}),
        }


def take_inwards(
    tensors: Mapping[str, Tensor], vocabulary: PublishedVocabulary
) -> dict[str, Tensor]:
    """The tensors with their rows in our order, float32."""
    moved = order_rows(tensors, vocabulary.inwards)
    return {name: x.float().contiguous() for name, x in moved.items()}


def make_stand_ins(weights: Weights, names: list[str]) -> dict[str, Tensor]:
    """Tensors of the right shapes that hold one number each.

    Names and shapes are judged by them before anything is read.
    """
    return {name: torch.zeros(()).expand(weights.entries[name].shape) for name in names}


def blame_file(file: Path, work: Callable[[], Any], more: str = "") -> Any:
    """`work()`, with `file` in the message of its error."""
    try:
        return work()
    except CheckpointError as fault:
        fix = fault.fix
        raise CheckpointError(f"{fault.what}{more}", file=fault.file or file, fix=fix) from None
    except GenodiffError as fault:
        raise CheckpointError(fault.what, file=file, fix=fault.fix) from None


def find_culprit(weights: Weights, config_file: Path) -> Path:
    """The file to name where a tensor does not fit."""
    return weights.files[0] if len(weights.files) == 1 else config_file.parent


def read_listed_tokens(folder: Path) -> list[str] | None:
    """The tokens of the folder's `tokenizer.json`, by id; None where there are none."""
    if not os.path.lexists(folder / TOKENIZER):
        return None
    tokenizer = read_json_file(folder / TOKENIZER)
    model = tokenizer.get("model")
    table = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(table, dict) or not all(type(i) is int for i in table.values()):
        return None
    ids = {i: token for token, i in table.items()}
    for added in tokenizer.get("added_tokens") or ():
        place = added.get("id") if isinstance(added, dict) else None
        if type(place) is int and isinstance(added.get("content"), str):
            ids.setdefault(place, added["content"])
    return [ids[i] for i in sorted(ids)] if sorted(ids) == list(range(len(ids))) else None


def judge_rows(config: Mapping[str, Any], config_file: Path, rows: int, name: str) -> None:
    """Raises `CheckpointError` where the config and the embedding `name` differ in tokens."""
    size, multiple = config.get("vocab_size", rows), config.get("pad_vocab_size_multiple") or 1
    if rows not in (size, -(-size // multiple) * multiple):
        what = f"vocab_size is {size}, but '{name}' has {rows} rows"
        raise CheckpointError(what, file=config_file, fix=BELONG)


def find_unused(weights: Weights, names: Collection[str]) -> tuple[str, ...]:
    """Return and log the tensors of a file that are not among `names`, which are read."""
    if left := sorted(weights.entries.keys() - set(names)):
        what = "%s: %s that are no part of the network are not read (%s%s)"
        more = ", ..." if len(left) > 3 else ""
        tensors = format_count(len(left), "tensor")
        _log.warning(what, weights.files[0], tensors, ", ".join(left[:3]), more)
    return tuple(left)


def log_dtypes(weights: Weights) -> None:
    """A word in the log where weights are not float32."""
    dtypes = {entry.dtype for entry in weights.entries.values()} - {torch.float32}
    for dtype in sorted(str(one) for one in dtypes if one.is_floating_point):
        label = dtype.removeprefix("torch.").replace("bfloat", "BF").replace("float", "F")
        _log.warning("%s: weights of dtype %s are read as float32", weights.files[0], label)


def judge_config(values: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The config without what could lead outside.

    Raises `CheckpointError` naming the file and the key. Remote code is named in a warning, and
    never followed.
    """
    version = values.get("format_version", 1)
    if not isinstance(version, int) or version > 1:
        what = f"format_version {version!r} is newer than what this genodiff reads"
        raise CheckpointError(what, file=path, fix="upgrade genodiff")
    code = [key for key in _CODE if key in values]
    if code:
        what = "%s: names remote code (%s): ignored, no code is imported from there"
        _log.warning(what, path, ", ".join(code))
    kept = {key: value for key, value in values.items() if key not in code}
    if not isinstance(kept.get("ssm_cfg") or {}, Mapping):
        raise CheckpointError("ssm_cfg is no object: invalid", file=path, fix=BELONG)
    for key, value in _flat(kept):
        is_count = type(value) is int and value >= 1
        if key in _COUNTS and value is not None and not (is_count and value <= _LARGEST):
            what = "is too large" if is_count else "must be a whole number of at least 1"
            raise CheckpointError(f"{key} is {value!r}: {what}", file=path, fix=BELONG)
        if key in _SWITCHES and type(value) is not bool:
            what = f"{key} is {value!r}: must be true or false"
            raise CheckpointError(what, file=path, fix=BELONG)
        name = value if isinstance(value, str) and key not in _FREE_TEXT else ""
        if name.startswith(("/", "~", "\\")) or ".." in name.split("/"):
            what = f"{key} names '{value}', a path outside the folder: not allowed"
            raise CheckpointError(what, file=path, fix="remove it")
    return kept


def _flat(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    out: list[tuple[str, Any]] = []
    for key, value in values.items():
        is_map = isinstance(value, Mapping) and key != "complement_map"
        out += _flat(value) if is_map else [(str(key), value)]
    return out


def make_probe_sequence(alphabet: Alphabet) -> Tensor:
    """The probe's ids: the repeat for DNA, for text tokens from all over the vocabulary."""
    if alphabet.domain == "dna":
        return torch.from_numpy(alphabet.encode(ALU_Y)).long()
    return torch.tensor(alphabet.targets)[torch.arange(64) * 7919 % len(alphabet.targets)]


def compute_probe_logits(backbone: nn.Module, alphabet: Alphabet) -> Tensor:
    """The network's answer to the probe with its bases masked in turn: (7, L, V)."""
    x0 = make_probe_sequence(alphabet)
    rows = x0.repeat(_EVERY, 1)
    for i in range(_EVERY):
        rows[i, i::_EVERY] = alphabet.mask_id
    with torch.no_grad():
        found: Tensor = backbone(rows, torch.full((_EVERY,), -log(1 - 1 / _EVERY)))
    return found


def probe_network(backbone: Backbone, alphabet: Alphabet) -> dict[str, Any]:
    """The probe's figures: `bits_per_base`, and of a network of both strands `strands_differ`.

    That is the largest difference of logits(x) and the turned logits(rc x), relative. Raises
    `CheckpointError` for logits that are not finite, or strands that disagree.
    """
    logits = compute_probe_logits(backbone, alphabet)
    if not bool(torch.isfinite(logits).all()):
        fix = "use undamaged weights"
        raise CheckpointError("the network's logits are not finite on a probe sequence", fix=fix)
    x0 = make_probe_sequence(alphabet)
    logp = F.log_softmax(logits[..., list(alphabet.targets)].double(), -1)
    place = torch.searchsorted(torch.tensor(alphabet.targets), x0)
    own = logp.gather(-1, place.repeat(_EVERY, 1)[..., None])[..., 0]
    at = torch.arange(len(x0))
    bits = float(-own[at % _EVERY, at].mean() / log(2))
    differ = None
    if backbone.paired:
        complement, sigma = torch.tensor(alphabet.complement), torch.full((1,), 0.1)
        with torch.no_grad():
            given = backbone(x0[None], sigma)
            turned = backbone(complement[x0].flip(0)[None], sigma).flip(1)[..., complement]
        differ = float((given - turned).abs().max() / given.abs().max().clamp(min=1.0))
        if differ > _TOLERANCE:
            what = f"the two strands disagree by {differ:.1e}, though the network must treat them "
            fix = "check complement_map and the order of the vocabulary"
            raise CheckpointError(f"{what}alike", fix=fix)
    sequence = "AluY consensus" if alphabet.domain == "dna" else "tokens of the vocabulary"
    return {"bits_per_base": round(bits, 4), "strands_differ": differ, "sequence": sequence}
