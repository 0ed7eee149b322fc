"""The two files that make a model: `model.safetensors` (weights) and `model.json` (what they are
weights of).

Nothing in them is trusted: no pickle, no link, no path and no code is followed from here; the
description is judged in full, and its sizes compared with the tensors' headers, before anything is
allocated. safetensors guards the container; the vocabulary's fingerprint, the hashes and the finite
check guard what it cannot see.
"""

import hashlib
import json
import stat
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from genodiff import __version__
from genodiff.alphabet import ALPHABETS, Alphabet, Vocabulary
from genodiff.backbones.backbone import Backbone
from genodiff.errors import CheckpointError, GenodiffError
from genodiff.io.identity import sha256_json
from genodiff.runs.config import RunConfig

FORMAT_VERSION = 1
WEIGHTS, CARD = "model.safetensors", "model.json"

_KEYS = {
    "format_version", "genodiff", "step", "domain", "alphabet", "alphabet_sha256", "config",
    "weights_sha256",
    "data", "seal",
}  # fmt: skip
_LARGEST_JSON = 16 << 20
_AGAIN = "use an undamaged checkpoint"


class Card(NamedTuple):
    """A judged `model.json`."""

    step: int
    alphabet: Alphabet
    config: RunConfig
    weights_sha256: str
    data: dict[str, Any]


def read_bytes(path: Path, largest: int | None = None) -> bytes:
    """The content of a regular file, not through a link. Raises `CheckpointError` naming the file."""
    try:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            raise CheckpointError(
                "is a symlink: it may lead outside", file=path, fix="put the file itself there"
            )
        if not stat.S_ISREG(found.st_mode):
            raise CheckpointError("is not a regular file", file=path, fix=_AGAIN)
        if largest is not None and found.st_size > largest:
            raise CheckpointError(
                f"is {found.st_size} bytes large, more than {largest}", file=path, fix=_AGAIN
            )
        return path.read_bytes()
    except FileNotFoundError:
        raise CheckpointError(
            "is missing (not found)", file=path, fix="give a complete run folder or checkpoint"
        ) from None
    except OSError as fault:
        raise CheckpointError(
            f"cannot be read ({fault.strerror})",
            file=path,
            fix="check the path and its permissions",
        ) from None


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises `CheckpointError`."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise ValueError("a key stands twice")
        return dict(pairs)

    def no_constant(name: str) -> None:
        raise ValueError(f"{name} is no JSON number")

    raw = read_bytes(path, _LARGEST_JSON)
    try:
        found = json.loads(
            raw.decode("utf-8"), object_pairs_hook=unique, parse_constant=no_constant
        )
    except (ValueError, RecursionError) as fault:
        kind = (
            "is empty, truncated" if not raw.strip() else "is not valid JSON: truncated or corrupt"
        )
        raise CheckpointError(f"{kind} ({str(fault)[:80]})", file=path, fix=_AGAIN) from None
    if not isinstance(found, dict):
        raise CheckpointError("is not a JSON object: corrupt or invalid", file=path, fix=_AGAIN)
    return found


def seal(values: dict[str, Any]) -> dict[str, Any]:
    """`values` with the sha256 of their canonical JSON under `seal`."""
    body = {k: v for k, v in values.items() if k != "seal"}
    return body | {"seal": sha256_json(body)}


def plain(value: Any) -> Any:
    """`value` with names that this locale could not decode (a path in a "C" locale) as the UTF-8
    that they are.
    """
    if isinstance(value, dict):
        return {key: plain(below) for key, below in value.items()}
    if isinstance(value, list | tuple):
        return [plain(below) for below in value]
    return (
        value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        if isinstance(value, str)
        else value
    )


def check_version(values: dict[str, Any], path: Path) -> None:
    """Raises `CheckpointError` unless this build reads the file's `format_version`."""
    version = values.get("format_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise CheckpointError(
            f"has no valid format_version (found {version!r})", file=path, fix=_AGAIN
        )
    if version > FORMAT_VERSION:
        raise CheckpointError(
            f"format_version {version} is newer than {FORMAT_VERSION}, which this genodiff reads",
            file=path,
            fix="upgrade genodiff",
        )


def describe(
    config: RunConfig, alphabet: Alphabet, step: int, weights_sha256: str, data: dict[str, Any]
) -> dict[str, Any]:
    """The content of `model.json`."""
    return seal(
        {
            "format_version": FORMAT_VERSION,
            "genodiff": __version__,
            "step": step,
            "domain": alphabet.domain,
            "alphabet": json.loads(json.dumps(alphabet.to_json())),
            "alphabet_sha256": alphabet.fingerprint(),
            "config": plain(config.model_dump(mode="json")),
            "weights_sha256": weights_sha256,
            "data": plain(data),
        }
    )


def read_card(folder: Path) -> Card:
    """`model.json` of `folder`, judged. Raises `CheckpointError`, naming the file and the value at
    fault.
    """
    path = folder / CARD
    values = read_json(path)
    check_version(values, path)
    unknown = sorted(values.keys() - _KEYS)
    if unknown:
        raise CheckpointError(
            f"unknown key '{unknown[0]}'; no outside path and no remote code is followed from here",
            file=path,
            fix="remove it",
        )
    for key in sorted(_KEYS - values.keys()):
        raise CheckpointError(f"the key '{key}' is missing", file=path, fix=_AGAIN)
    alphabet = _alphabet(values, path)
    if not isinstance(values["config"], dict):
        raise CheckpointError("config is not an object: invalid", file=path, fix=_AGAIN)
    config = RunConfig.parse(values["config"], file=path, error=CheckpointError)
    if config.domain != alphabet.domain:
        raise CheckpointError(
            f"config is of domain {config.domain}, the vocabulary of {alphabet.domain}",
            file=path,
            fix=_AGAIN,
        )
    step, digest, data = values["step"], values["weights_sha256"], values["data"]
    if (
        type(step) is not int
        or step < 0
        or not isinstance(digest, str)
        or not isinstance(data, dict)
    ):
        raise CheckpointError(
            "step, weights_sha256 or data has an invalid value", file=path, fix=_AGAIN
        )
    if seal(values) != values:
        raise CheckpointError(
            "was changed after it was written (checksum differs)", file=path, fix=_AGAIN
        )
    return Card(step, alphabet, config, digest, data)


def _alphabet(values: dict[str, Any], path: Path) -> Alphabet:
    if not isinstance(values["alphabet"], dict):
        raise CheckpointError("the vocabulary is not an object: invalid", file=path, fix=_AGAIN)
    is_text = values["alphabet"].get("domain") == "text"
    try:
        alphabet = (Vocabulary if is_text else Alphabet).from_json(values["alphabet"])
    except GenodiffError as fault:
        raise CheckpointError(f"the vocabulary {fault.what}", file=path, fix=_AGAIN) from None
    if values["domain"] != alphabet.domain or (not is_text and alphabet.name not in ALPHABETS):
        raise CheckpointError(
            f"domain '{values['domain']}' with vocabulary '{alphabet.name}' is none that this "
            f"genodiff knows",
            file=path,
            fix=_AGAIN,
        )
    known = (alphabet if is_text else ALPHABETS[alphabet.name]).fingerprint()
    if alphabet.fingerprint() != known or values["alphabet_sha256"] != known:
        raise CheckpointError(
            f"the vocabulary or its complement differs from '{alphabet.name}' (fingerprint "
            f"{known[:12]})",
            file=path,
            fix=_AGAIN,
        )
    return alphabet


def own_tensors(module: nn.Module) -> dict[str, Tensor]:
    """The module's state, each storage once: of parameters that are tied the first name stands for
    all.
    """
    seen: set[int] = set()
    out = {}
    for name, tensor in module.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            out[name] = tensor.detach()
    return out


def to_bytes(tensors: dict[str, Tensor]) -> bytes:
    """The tensors as safetensors, the same bytes for the same values."""
    return safetensors.torch.save(
        {name: tensors[name].detach().cpu().contiguous() for name in sorted(tensors)}
    )


def sha256_of(tensors: dict[str, Tensor]) -> str:
    """sha256 (hex) of the tensors as `to_bytes` writes them."""
    return hashlib.sha256(to_bytes(tensors)).hexdigest()


def read_tensors(
    path: Path, wanted: dict[str, tuple[int, ...]] | None = None, sha256: str | None = None
) -> dict[str, Tensor]:
    """All tensors of a safetensors file, finite, in float32 or int64; with `wanted`, of those names
    and shapes exactly.

    Names, shapes and types come from the header, before any tensor is made. Raises
    `CheckpointError`.
    """
    raw = read_bytes(path)
    if sha256 is None or hashlib.sha256(raw).hexdigest() != sha256:
        _judge_header(path, raw, wanted)
        if sha256 is not None:
            raise CheckpointError(
                "does not match its recorded hash: corrupt (sha256 checksum differs)",
                file=path,
                fix=_AGAIN,
            )
    elif wanted is not None:
        _judge_header(path, raw, wanted)
    try:
        tensors = safetensors.torch.load(raw)
    except (SafetensorError, ValueError, RuntimeError) as fault:
        raise CheckpointError(
            f"is no valid safetensors file: corrupt ({fault})", file=path, fix=_AGAIN
        ) from None
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise CheckpointError(
                f"tensor {name} has values that are not finite", file=path, fix=_AGAIN
            )
    return tensors


def _judge_header(path: Path, raw: bytes, wanted: dict[str, tuple[int, ...]] | None) -> None:
    try:
        with safe_open(path, framework="pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            found = {
                name: (tuple(part.get_shape()), str(part.get_dtype()))
                for name, part in slices.items()
            }
    except (SafetensorError, ValueError, OSError) as fault:
        what = (
            f"is no valid safetensors file: header or buffer truncated, invalid or "
            f"corrupt ({fault})"
        )
        if raw[:2] == b"PK" or raw[:1] == b"\x80" or raw[257:262] == b"ustar":
            what = "is a pickle or an archive, not safetensors: refused (corrupt or invalid header)"
        raise CheckpointError(what, file=path, fix="give weights as safetensors") from None
    if wanted is None:
        return
    for name in sorted(wanted.keys() ^ found.keys()):
        where = "is missing" if name in wanted else "does not belong there"
        raise CheckpointError(f"tensor {name} {where}", file=path, fix=_AGAIN)
    for name, (shape, kind) in found.items():
        if shape != wanted[name]:
            raise CheckpointError(
                f"tensor {name} has shape {list(shape)}, not {list(wanted[name])}",
                file=path,
                fix=_AGAIN,
            )
        if kind != "F32":
            raise CheckpointError(f"tensor {name} has dtype {kind}, not F32", file=path, fix=_AGAIN)


def build(config: RunConfig, alphabet: Alphabet) -> Backbone:
    """The network of a configuration, with fresh weights."""
    return config.backbone.build(alphabet.padded_size, alphabet.complement)


def check_size(folder: Path, config: RunConfig, alphabet: Alphabet) -> None:
    """Raises `CheckpointError` where the configuration asks for more parameters than the weight
    file can hold.
    """
    try:
        there = (folder / WEIGHTS).stat().st_size
    except OSError:
        there = 0
    asked = config.backbone.n_parameters(alphabet.padded_size)
    if 4 * asked > there + 4 * alphabet.padded_size * config.backbone.d_model:
        raise CheckpointError(
            f"d_model {config.backbone.d_model} and n_layer {config.backbone.n_layer} ask for "
            f"{asked} parameters "
            f"({4 * asked} bytes of memory), but {WEIGHTS} is only {there} bytes large",
            file=folder / CARD,
            fix=_AGAIN,
        )


def read_backbone(folder: Path, card: Card, device: str = "cpu") -> Backbone:
    """The network in `folder` with its weights, in evaluation mode. Raises `CheckpointError`."""
    read_bytes(folder / WEIGHTS, largest=0) if not (folder / WEIGHTS).is_file() else None
    check_size(folder, card.config, card.alphabet)
    with torch.device("meta"):
        wanted = {
            name: tuple(t.shape)
            for name, t in own_tensors(build(card.config, card.alphabet)).items()
        }
    tensors = read_tensors(folder / WEIGHTS, wanted, card.weights_sha256)
    backbone = build(card.config, card.alphabet)
    fill(backbone, tensors)
    return backbone.to(device).eval()


def fill(module: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Copy `tensors` (names as `own_tensors` gives them) into the module, bit for bit."""
    mine = own_tensors(module)
    if mine.keys() != tensors.keys():
        raise CheckpointError(
            f"tensors {sorted(mine.keys() ^ tensors.keys())[:3]} do not belong together", fix=_AGAIN
        )
    with torch.no_grad():
        for name, tensor in mine.items():
            tensor.copy_(tensors[name])
