"""Weight files of others: names, shapes and types are judged before numbers are read.

`Weights` looks the same over one safetensors file, over shards with an index, and over an archive
of torch.save.
"""

import os
import stat
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from genodiff.errors import CheckpointError
from genodiff.hub.archive import DAMAGED, Archive, Stored
from genodiff.io.file_kinds import HEAD, find_plain_path, find_raw_format, name_archive, sha256_file
from genodiff.runs.sealed_files import explain_fault, read_json, refuse_stand_in

SAFETENSORS, BIN = "model.safetensors", "pytorch_model.bin"
_INDEX = ".index.json"
_KINDS = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "U8": torch.uint8, "BOOL": torch.bool,
}  # fmt: skip


class Entry(NamedTuple):
    """A tensor before it is read."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    file: Path
    stored: Stored | None = None


class Weights(NamedTuple):
    """The named tensors of one or several files, and what else an archive holds."""

    entries: dict[str, Entry]
    files: list[Path]
    archives: dict[Path, Archive]

    @property
    def extra(self) -> dict[str, Any]:
        """What a single archive holds on its top level; empty for safetensors and shards."""
        content = self.archives[self.files[0]].content if len(self.archives) == 1 else {}
        return content if isinstance(content, dict) else {}

    def read(self, names: list[str]) -> dict[str, Tensor]:
        """The tensors of these names, finite. Raises `CheckpointError` naming file and tensor."""
        found: dict[str, Tensor] = {}
        by_file: dict[Path, list[str]] = {}
        for name in names:
            by_file.setdefault(self.entries[name].file, []).append(name)
        for path, here in by_file.items():
            if path in self.archives:
                stored = ((name, self.entries[name].stored) for name in here)
                found |= {name: self.archives[path].tensor(one) for name, one in stored if one}
                continue
            try:
                with safe_open(find_plain_path(resolve_file(path)), framework="pt") as file:
                    found |= {name: file.get_tensor(name) for name in here}
            except (SafetensorError, ValueError, RuntimeError, OSError) as fault:
                what = f"is no valid safetensors file: corrupt ({fault})"
                raise CheckpointError(what, file=path, fix=DAMAGED) from None
        for name, tensor in found.items():
            if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
                what = f"tensor '{name}' has values that are not finite (NaN or infinity)"
                raise CheckpointError(what, file=self.entries[name].file, fix=DAMAGED)
        return found

    def stored(self, tensors: list[Stored]) -> list[Tensor]:
        """Tensors of the single archive that are not in its state dict."""
        return [self.archives[self.files[0]].tensor(tensor) for tensor in tensors]


def resolve_file(path: Path) -> Path:
    """The regular file behind `path`.

    A link may lead within its folder or into the blobs of a hub cache, and nowhere else. Raises
    `CheckpointError` also where there is no file.
    """
    try:
        found = Path(os.path.realpath(path, strict=True))
        mode = found.stat().st_mode
    except OSError as fault:
        raise explain_fault(path, fault, "a complete published folder") from None
    if path.is_symlink():
        home = path.parent.resolve()
        homes = [home, home.parent.parent / "blobs"] if home.parent.name == "snapshots" else [home]
        if not any(found.is_relative_to(folder) for folder in homes):
            what = "is a symlink that leads outside of its folder: refused"
            raise CheckpointError(what, file=path, fix="put the file itself there")
    if not stat.S_ISREG(mode):
        raise CheckpointError("is not a regular file", file=path, fix=DAMAGED)
    return found


def read_json_file(path: Path) -> dict[str, Any]:
    """The JSON object in `path`, or behind it. Raises `CheckpointError`."""
    try:
        return read_json(resolve_file(path))
    except CheckpointError as fault:
        raise CheckpointError(fault.what, file=path, fix=fault.fix) from None


def find_weight_files(folder: Path, *, indices: bool = False) -> list[Path]:
    """The files of a folder's weights that are read; none where there are none.

    Safetensors go before pickles, one file before the shards of an index, which is among the files
    with `indices`.
    """
    for name in (SAFETENSORS, BIN):
        if os.path.lexists(folder / name):
            return [folder / name]
        index = folder / f"{name}{_INDEX}"
        if os.path.lexists(index):
            return [*_shards(index), *([index] if indices else [])]
    found = sorted(p for p in folder.iterdir() if p.suffix in (".safetensors", ".ckpt"))
    if len(found) > 1:
        what = f"holds several weight files ({found[0].name}, {found[1].name}) and no index"
        raise CheckpointError(what, file=folder, fix="give one of the files")
    return found


def list_parts(file: Path) -> list[Path]:
    """The weight files that one file stands for: those of an index, else itself."""
    return _shards(file) if file.name.endswith(_INDEX) else [file]


def _shards(index: Path) -> list[Path]:
    table = read_json_file(index).get("weight_map")
    names = list(table.values()) if isinstance(table, dict) else []
    if not names or not all(isinstance(name, str) for name in names):
        what = "has no weight_map from tensors to files: corrupt"
        raise CheckpointError(what, file=index, fix=DAMAGED)
    for name in names:
        if Path(name).name != name or not name.endswith((".safetensors", ".bin")):
            what = f"names '{name}', a path outside the folder or no weight file: not allowed"
            raise CheckpointError(what, file=index, fix=DAMAGED)
    return [index.parent / name for name in sorted(set(names))]


def open_weights(files: list[Path]) -> Weights:
    """The tensors of the files, judged by their headers. Raises `CheckpointError`."""
    entries: dict[str, Entry] = {}
    archives: dict[Path, Archive] = {}
    for path in files:
        if _is_zip(path):
            archives[path] = Archive(path, resolve_file(path))
            found = _state_dict(archives[path])
        else:
            found = _header(path)
        twice = entries.keys() & found.keys()
        if twice:
            what = f"holds '{min(twice)}', which another shard has too"
            raise CheckpointError(what, file=path, fix=DAMAGED)
        entries |= found
    return Weights(entries, files, archives)


def _is_zip(path: Path) -> bool:
    with resolve_file(path).open("rb") as file:
        head = file.read(HEAD)
    refuse_stand_in(path, head)
    if known := name_archive(head):
        raise CheckpointError(f"is {known[0]}", file=path, fix="give weights")
    return head.startswith(b"PK\x03\x04")


def _header(path: Path) -> dict[str, Entry]:
    try:
        with safe_open(find_plain_path(resolve_file(path)), framework="pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            kinds = {name: str(part.get_dtype()) for name, part in slices.items()}
            shapes = {name: tuple(part.get_shape()) for name, part in slices.items()}
    except (SafetensorError, ValueError, OSError, OverflowError) as fault:
        with resolve_file(path).open("rb") as file:
            head = file.read(512)
        is_pickle = head[:1] == b"\x80" or head[257:262] == b"ustar"
        if is_pickle or path.suffix in (".pt", ".pth", ".pkl", ".bin", ".ckpt"):
            what = "is a bare pickle or an archive of an old format, which may run code: "
            what += "refused, no valid safetensors header"
            fix = "save the weights as safetensors, or with torch.save of 1.6 or newer"
            raise CheckpointError(what, file=path, fix=fix) from None
        what = "is no valid safetensors file: header or buffer truncated, invalid or "
        what += f"corrupt ({fault})"
        if head[8:9] != b"{" and (known := find_raw_format(head, "safetensors")):
            what = f"is no valid safetensors file: this is {known[0]}"
        raise CheckpointError(what, file=path, fix=DAMAGED) from None
    for name, kind in kinds.items():
        if kind not in _KINDS:
            what = f"tensor '{name}' has dtype {kind}, which is not read here"
            raise CheckpointError(what, file=path, fix="save it as F32")
    return {name: Entry(shape, _KINDS[kinds[name]], path) for name, shape in shapes.items()}


def _state_dict(archive: Archive) -> dict[str, Entry]:
    content = archive.content
    state = content.get("state_dict", content) if isinstance(content, dict) else None
    pairs = list(state.items()) if isinstance(state, dict) else []
    if not pairs or not all(isinstance(k, str) and isinstance(v, Stored) for k, v in pairs):
        what = "is a pickle that holds no state dict of tensors: refused"
        raise CheckpointError(what, file=archive.path, fix="give weights as safetensors")
    return {name: Entry(one.shape, one.dtype, archive.path, one) for name, one in pairs}


def stamp_file(path: Path) -> dict[str, Any]:
    """Name, size and sha256 of a file, for the provenance."""
    file = resolve_file(path)
    return {"name": path.name, "bytes": file.stat().st_size, "sha256": sha256_file(file)}
