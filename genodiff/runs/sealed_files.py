"""Files that are judged before they are believed: JSON under a seal, and safetensors.

No pickle, link, path or code is followed from here. Sizes and types are read from headers before
anything is allocated. Every fault is a `CheckpointError` that names the file.
"""

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any, TypeVar

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from genodiff.alphabet import Alphabet
from genodiff.domain import TEXT
from genodiff.errors import CheckpointError, GenodiffError
from genodiff.io.diagnosis import find_page, find_stand_in
from genodiff.io.file_kinds import HEAD, find_plain_path, find_raw_format, sha256_json
from genodiff.settings import Settings
from genodiff.vocabulary import Vocabulary

Sealed = TypeVar("Sealed", bound=Settings)

FORMAT_VERSION = 1
AGAIN = "use an undamaged checkpoint"
FLOAT, HALF = "F32", "F16"  # how weights are kept; computed with is float32 alone
PICKLES = {
    ".pt", ".pth", ".pkl", ".pickle", ".bin", ".ckpt", ".npz", ".npy", ".joblib", ".dill", ".tar",
}  # fmt: skip

_LARGEST_JSON = 16 << 20


def refuse_file(path: Path, what: str) -> CheckpointError:
    """The error of a file that is damaged, whose remedy is another checkpoint."""
    return CheckpointError(what, file=path, fix=AGAIN)


def refuse_pickles(folder: Path) -> None:
    """Raises `CheckpointError` where a folder holds a file that could be a pickle."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.suffix.lower() in PICKLES:
            what = "is a pickle or an archive, which may run code: refused; only safetensors "
            what += "and JSON are read"
            raise CheckpointError(what, file=path, fix="remove it")


def read_bytes(path: Path, largest: int | None = None) -> bytes:
    """The content of a regular file that is no link. Raises `CheckpointError`."""
    try:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            fix = "put the file itself there"
            raise CheckpointError("is a symlink: it may lead outside", file=path, fix=fix)
        if not stat.S_ISREG(found.st_mode):
            raise refuse_file(path, "is not a regular file")
        if largest is not None and found.st_size > largest:
            raise refuse_file(path, f"is {found.st_size} bytes large, more than {largest}")
        raw = path.read_bytes()
    except OSError as fault:
        raise explain_fault(path, fault, "a complete run folder or checkpoint") from None
    refuse_stand_in(path, raw)
    return raw


def refuse_stand_in(path: Path, head: bytes) -> None:
    """Raises `CheckpointError` where `head` is no file but what was saved in its place."""
    known = find_stand_in(head) or find_page(head)
    if known is not None:
        raise CheckpointError(f"is {known[0]}", file=path, fix=known[1])
    if not head:
        fix = "download or copy it again"
        raise CheckpointError("is empty: truncated to 0 bytes", file=path, fix=fix)


def explain_fault(path: Path, fault: OSError, wanted: str) -> CheckpointError:
    """The error of a file that is missing or cannot be read; `wanted` is what to give instead."""
    if isinstance(fault, FileNotFoundError) and path.is_symlink():
        what = f"is a broken link to {os.readlink(path)}"
        fix = "git annex get FILE" if "annex/objects/" in what else "put the file itself there"
        return CheckpointError(what, file=path, fix=fix)
    if isinstance(fault, FileNotFoundError):
        return CheckpointError("is missing (not found)", file=path, fix=f"give {wanted}")
    what, fix = f"cannot be read ({fault.strerror})", "check the path and its permissions"
    return CheckpointError(what, file=path, fix=fix)


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises `CheckpointError`."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise ValueError("duplicate key")
        return dict(pairs)

    def no_constant(name: str) -> None:
        raise ValueError(f"{name} is no JSON number")

    raw = read_bytes(path, _LARGEST_JSON)
    try:
        text = raw.decode("utf-8")
        found = json.loads(text, object_pairs_hook=unique, parse_constant=no_constant)
    except (ValueError, RecursionError) as fault:
        kind = "is not valid JSON: truncated or corrupt" if raw.strip() else "is empty, truncated"
        raise refuse_file(path, f"{kind} ({str(fault)[:80]})") from None
    if not isinstance(found, dict):
        raise refuse_file(path, "is not a JSON object: corrupt or invalid")
    return found


def seal(values: dict[str, Any]) -> dict[str, Any]:
    """`values` with the sha256 of their canonical JSON under `seal`."""
    body = {k: v for k, v in values.items() if k != "seal"}
    return body | {"seal": sha256_json(body)}


def check_seal(values: dict[str, Any], path: Path, fix: str = AGAIN) -> None:
    """Raises `CheckpointError` for values that are not as they were sealed."""
    if seal(values) != values:
        what = "was changed after it was written (checksum differs)"
        raise CheckpointError(what, file=path, fix=fix)


def read_sealed(path: Path, kind: type[Sealed]) -> Sealed:
    """The settings in a sealed file, after every check. Raises `CheckpointError`."""
    refuse_pickles(path.parent)
    values = read_json(path)
    check_version(values, path)
    check_seal(values, path)
    beside = ("format_version", "genodiff", "seal", "files")
    own = {key: value for key, value in values.items() if key not in beside}
    try:
        return kind.parse(own, file=path, error=CheckpointError)
    except GenodiffError as fault:
        raise refuse_file(path, fault.what) from None


def check_version(values: dict[str, Any], path: Path) -> None:
    """Raises `CheckpointError` unless this build reads the file's `format_version`."""
    version = values.get("format_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise refuse_file(path, f"has no valid format_version (found {version!r})")
    if version > FORMAT_VERSION:
        what = f"format_version {version} is newer than {FORMAT_VERSION}, which this genodiff reads"
        raise CheckpointError(what, file=path, fix="upgrade genodiff")


def to_utf8(value: Any) -> Any:
    """`value` with the names that a "C" locale could not decode as the UTF-8 that they are."""
    if isinstance(value, dict):
        return {key: to_utf8(below) for key, below in value.items()}
    if isinstance(value, list | tuple):
        return [to_utf8(below) for below in value]
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    return value


def encode_tensors(tensors: dict[str, Tensor]) -> bytes:
    """The tensors as safetensors, the same bytes for the same values."""
    return safetensors.torch.save(
        {name: tensors[name].detach().cpu().contiguous() for name in sorted(tensors)}
    )


def sha256_tensors(tensors: dict[str, Tensor]) -> str:
    """sha256 (hex) of the tensors as `encode_tensors` writes them."""
    return hashlib.sha256(encode_tensors(tensors)).hexdigest()


def read_tensors(
    path: Path,
    wanted: dict[str, tuple[int, ...]] | None = None,
    sha256: str | None = None,
    dtype: str = FLOAT,
) -> dict[str, Tensor]:
    """All tensors of a safetensors file: finite, in float32 or int64.

    With `wanted`, the file must have exactly these names and shapes, kept as `dtype`. Names, shapes
    and types come from the header, before any tensor is made. Raises `CheckpointError`.
    """
    raw = read_bytes(path)
    is_other = sha256 is not None and hashlib.sha256(raw).hexdigest() != sha256
    if is_other or sha256 is None or wanted is not None:
        _judge_header(path, raw, wanted, dtype)
    if is_other:
        what = "does not match its recorded hash: corrupt (sha256 checksum differs)"
        raise refuse_file(path, what)
    try:
        tensors = safetensors.torch.load(raw)
    except (SafetensorError, ValueError, RuntimeError) as fault:
        what = f"is no valid safetensors file: corrupt ({fault})"
        raise refuse_file(path, what) from None
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise refuse_file(path, f"tensor {name} has values that are not finite")
    return {name: x.float() if x.dtype == torch.float16 else x for name, x in tensors.items()}


def _judge_header(
    path: Path, raw: bytes, wanted: dict[str, tuple[int, ...]] | None, dtype: str
) -> None:
    try:
        with safe_open(find_plain_path(path), framework="pt") as file:
            slices = [(name, file.get_slice(name)) for name in file.keys()]  # noqa: SIM118
            found = {n: (tuple(x.get_shape()), str(x.get_dtype())) for n, x in slices}
    except (SafetensorError, ValueError, OSError) as fault:
        what = "is no valid safetensors file: header or buffer truncated, invalid or corrupt "
        what += f"({fault})"
        known = None if raw[8:9] == b"{" else find_raw_format(raw[:HEAD], "safetensors")
        if known:
            what = f"is no valid safetensors file: this is {known[0]}"
        if raw[:2] == b"PK" or raw[:1] == b"\x80" or raw[257:262] == b"ustar":
            what = "is a pickle or an archive, not safetensors: refused (corrupt or invalid header)"
            what += f": this is {known[0]}" if known else ""
        raise CheckpointError(what, file=path, fix="give weights as safetensors") from None
    if wanted is None:
        return
    for name in sorted(wanted.keys() ^ found.keys()):
        where = "is missing" if name in wanted else "does not belong there"
        raise refuse_file(path, f"tensor {name} {where}")
    for name, (shape, kind) in found.items():
        if shape != wanted[name]:
            what = f"tensor {name} has shape {list(shape)}, not {list(wanted[name])}"
            raise refuse_file(path, what)
        if kind != dtype:
            raise refuse_file(path, f"tensor {name} has dtype {kind}, not {dtype}")


def read_alphabet(values: dict[str, Any]) -> Alphabet:
    """The alphabet or vocabulary that `to_json` wrote. Raises `CheckpointError`."""
    kind = Vocabulary if values.get("domain") == TEXT.name else Alphabet
    return kind.from_json(values)
