"""What a file is called, what a file or a folder is by its head or names (formats stand in
`diagnosis.py`), and what a sidecar or a page says of it: its digest, and no private folder names.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
import zlib
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from genodiff.errors import DataError, MachineError
from genodiff.io.diagnosis import (
    HEAD,
    Diagnosis,
    find_binary_format,
    find_other_format,
    find_page,
    find_stand_in,
    is_pickle,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

ERRORS = "backslashreplace"
"""How a text file of ours encodes what is not UTF-8."""
_ELSEWHERE = (
    (re.compile("file:", re.I), "a file:// address", "give the plain path"),
    (re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/"), "an address",
     "give a file on this machine, and copy it there or back by another tool"),
    (re.compile(r"[\w.-]+@[\w.-]+:"), "a file on another machine",
     "give a file on this machine, and copy it there or back with scp"),
    (re.compile(r"[A-Za-z][\w.-]*:(?!\d)[^/\\]*/"),
     "a file on another machine, or of a remote of rclone",
     "give a file on this machine; for a folder of that name write ./ before it"),
    (re.compile(r"%\w+%"), "a variable of Windows", "write its value"),
    (re.compile(r"~[\w-]*(/|$)"), "a home folder that no shell filled in",
     "write $HOME in its place"),
    (re.compile(r"(\$\w+|\$\{\w+\}|\$\([^)]*\)|`[^`]*`|\{\w*\}|<\w+>)/|\$[A-Za-z_]\w*$"),
     "a variable or a command that no shell filled in", "write its value"),
    (re.compile(r"[A-Za-z]:[\\/]|\\\\"), "a path of Windows", "give a path of this machine"),
)  # fmt: skip
_DESCRIPTOR = re.compile(r"/(?:dev/(?:stdin|fd/\d+)|proc/self/fd/\d+)")
_kept: dict[tuple[int, int, int], str] = {}


def find_elsewhere(path: str | Path) -> tuple[str, str] | None:
    """What a name means that is no file of this machine, and the remedy; None for a plain path.

    `./` before a name makes it plain. `Path` has only one of the two strokes of a URL left.

    >>> find_elsewhere("s3://bucket/scores.vcf")[0], find_elsewhere("./s3://scores.vcf")
    ('an address', None)
    """
    for pattern, what, fix in _ELSEWHERE[: -1 if os.name == "nt" else None]:
        if pattern.match(str(path)):
            return what, fix
    return None


def encode_text(text: str) -> bytes:
    """`text` as UTF-8, with the names of files in it escaped where they are not.

    >>> encode_text('{"fasta": "g\\udce9.fa"}')
    b'{"fasta": "g\\\\udce9.fa"}'
    """
    return text.encode("utf-8", ERRORS)


def find_plain_path(path: str | Path) -> str:
    """A path to the same file or folder for libraries that take UTF-8 only, and crash otherwise.

    It is `path` itself, or else a link, which this process removes at its end; also of a new file.
    """
    path = find_readable(path)
    try:
        path.encode()
    except UnicodeEncodeError:
        return _link(os.path.abspath(path))
    return path


@cache
def _link(path: str) -> str:
    folder = tempfile.mkdtemp(prefix="genodiff-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    ending = Path(path).suffix
    link = os.path.join(folder, f"file{ending if ending.isascii() else ''}")
    os.symlink(path, link)
    return link


def is_descriptor(path: str | Path) -> bool:
    """Whether `path` names an open file of a process, as `<(command)` and /dev/stdin do."""
    return _DESCRIPTOR.fullmatch(str(path)) is not None


def find_readable(path: str | Path) -> str:
    """A file with the bytes of `path` that can be read again and again: of most paths itself.

    Of `<(command)` it is a copy, made at the first call, which reads until the command ends.
    Raises `MachineError` where there is no room, `OSError` as opening does.
    """
    if not is_descriptor(path):
        return str(path)
    status = os.stat(path)
    if not (stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode)):
        return str(path)
    key = (os.getpid(), status.st_dev, status.st_ino)
    if key not in _kept:
        _kept[key] = _keep(str(path))
    return _kept[key]


def _keep(path: str) -> str:
    name = path.rpartition("/")[2]
    source = os.dup(0 if name == "stdin" else int(name))
    folder = tempfile.mkdtemp(prefix="genodiff-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    kept = os.path.join(folder, "pipe")
    with open(source, "rb") as pipe, open(kept, "wb") as file:
        try:
            shutil.copyfileobj(pipe, file, 1 << 20)
        except OSError as fault:
            what = f"what comes through it cannot be kept: {fault.strerror}"
            raise MachineError(what, file=path, fix="give a file, or set TMPDIR") from None
    return kept


def find_raw_format(head: bytes, wanted: str) -> Diagnosis | None:
    """As `find_format`, of the bytes of a file as they stand: within gzip, what is in it."""
    if not head.startswith(b"\x1f\x8b"):
        return find_format(head, wanted)
    with suppress(zlib.error):
        if known := find_format(zlib.decompressobj(31).decompress(head, HEAD), wanted):
            return f"{known[0]}, compressed", known[1]
    return "gzip data", "decompress it: gunzip"


def name_archive(head: bytes) -> Diagnosis | None:
    """What a zip is that no `torch.save` wrote, where its head tells."""
    known = find_binary_format(head) if head.startswith(b"PK\x03\x04") else None
    return None if known is None or known[0] in _UNKNOWN_ZIPS else known


def find_format(head: bytes, wanted: str) -> Diagnosis | None:
    """What a file that begins with `head` is, text or not, if it is not the `wanted` format."""
    page = None if wanted == "text" else find_page(head)
    return find_binary_format(head) or page or find_other_format(head, wanted)


_FOLDERS: tuple[tuple[str, str, str], ...] = (
    ("ncbi_dataset", "a folder of NCBI datasets", "give ncbi_dataset/data/ACCESSION/*.fna"),
    ("saved_model.pb", "a SavedModel of TensorFlow", "give weights of torch as safetensors"),
    ("flax_model.msgpack", "a model of Flax", "give weights of torch as safetensors"),
    ("tf_model.h5", "a model of TensorFlow", "give weights of torch as safetensors"),
    ("dataset_info.json", "a data set of Hugging Face", "give a model, or the data as a file"),
    ("zero_to_fp32.py", "a checkpoint of DeepSpeed", "python zero_to_fp32.py makes weights of it"),
    (".gguf", "a model as GGUF", "give weights of torch as safetensors"),
    (".onnx", "a model as ONNX", "give weights of torch as safetensors"),
    (".mlmodel", "a model as Core ML", "give weights of torch as safetensors"),
    (".tflite", "a model as TFLite", "give weights of torch as safetensors"),
    (".metadata", "a sharded checkpoint (torch.distributed)", "save it as safetensors"),
    ("snapshots", "a folder of a hub's cache", "give the folder in snapshots/ that is meant"),
    (".zarray", "a Zarr array", "give a file"),
    (".zgroup", "a Zarr group", "give a file"),
    ("wandb-metadata.json", "a run of Weights & Biases", "give the run's own folder"),
    ("tokenizer.json", "a tokenizer without a model", "give the whole published folder"),
    ("tokenizer_config.json", "a tokenizer without a model", "give the whole published folder"),
)
_UNKNOWN_ZIPS = ("a ZIP archive", "a checkpoint of PyTorch")
_WEIGHTS = (".safetensors", ".bin", ".ckpt", ".index.json")
_ADAPTER = "adapter_config.json"


def find_folder_kind(folder: str | Path) -> Diagnosis | None:
    """What a folder is that holds neither a model nor data of ours, by the names in it."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return None
    if any(name.endswith(_WEIGHTS) and not name.startswith("adapter_") for name in names):
        return None
    if _ADAPTER in names:
        said = ""
        with suppress(OSError, ValueError, AttributeError):
            config = json.loads((Path(folder) / _ADAPTER).read_text(encoding="utf-8"))
            said = config.get("base_model_name_or_path")
        return name_adapter(said[:80] if isinstance(said, str) and said.isprintable() else "")
    for known, what, fix in _FOLDERS:
        if known in names or (known[0] == "." and any(name.endswith(known) for name in names)):
            return what, fix
    return None


def name_adapter(base: str = "") -> Diagnosis:
    """What an adapter of PEFT is; `base` is the name of the model that it belongs to."""
    of = f" for {base}" if base else ""
    fix = "load the base and the adapter with peft, merge_and_unload(), and save the whole model"
    return f"an adapter of PEFT{of}, not a model", fix


def is_adapter(tensor: str) -> bool:
    """Whether a tensor's name is one that PEFT gives beside or around those of a model."""
    return any(mark in tensor for mark in (".base_layer.", ".lora_", "lora_embedding_"))


def find_stranger(path: str | Path) -> Diagnosis | None:
    """What a path is that is given as a model and is none: a folder or a file of something else."""
    if os.path.isdir(path):
        return find_folder_kind(path)
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD)
    except OSError:
        return None
    if head.startswith(b"PK\x03\x04"):
        return name_archive(head)
    if head[8:9] == b"{":  # weights, good or bad
        return None
    if is_pickle(head):
        old = "a bare pickle or an archive of an old format, which may run code: refused"
        return old, "save the weights as safetensors, or with torch.save of 1.6 or newer"
    return find_stand_in(head) or find_raw_format(head, "JSON model configuration")


_MOTIFS = {
    ".meme": "MEME", ".jaspar": "JASPAR", ".pfm": "JASPAR", ".transfac": "TRANSFAC",
    ".tf": "TRANSFAC",
}  # fmt: skip


def find_motif_format(path: str | Path, head: bytes) -> str | None:
    """`MEME`, `JASPAR` or `TRANSFAC` by a file's first bytes or its suffix, or None."""
    text = head.decode("utf-8", "replace").removeprefix("\ufeff").lstrip()
    if text.startswith(">"):
        if re.match(r">[^\n]*\n\s*A[ \t]*(\[|[ \t][ \t]*[0-9])", text):
            return "JASPAR"
    elif re.search(r"^MEME version|^<MEME\b", text, re.MULTILINE):
        return "MEME"
    elif re.search(r"^P[0O]\s+A\s+C\s+G\s+[TU]\b", text, re.MULTILINE):
        return "TRANSFAC"
    return _MOTIFS.get(Path(Path(path).name.lower().removesuffix(".gz")).suffix)


def canonical_json(values: Any, *, compact: bool = False) -> str:
    """ASCII JSON with sorted keys; `compact` leaves out the blanks between its parts."""
    return json.dumps(values, sort_keys=True, separators=(",", ":") if compact else None)


def sha256_json(values: Any, *, compact: bool = False) -> str:
    """sha256 (hex) of the canonical JSON of `values`."""
    return hashlib.sha256(canonical_json(values, compact=compact).encode()).hexdigest()


def sha256_array(values: NDArray[Any]) -> str:
    """sha256 (hex) of an array's bytes, row by row."""
    return hashlib.sha256(values.tobytes()).hexdigest()


def sha256_file(path: str | Path) -> str:
    """sha256 (hex) of a file's bytes. Raises `DataError` where it cannot be read."""
    try:
        with open(find_readable(path), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as fault:
        fix = "check its permissions"
        raise DataError(f"cannot be read ({fault.strerror})", file=path, fix=fix) from None


def stamp_time(precision: Literal["seconds", "milliseconds"] = "seconds") -> str:
    """The time now in UTC, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec=precision)


_FROM = r"(?:~[\w.-]*|\.\.)?/(?!/)"
_QUOTED = re.compile(rf"(['\"`]){_FROM}([^'\"`\n]*)\1")
_BARE = re.compile(rf"(?<![^\s'\"`=(\[,:]){_FROM}((?:[^\s'\"`,;()\[\]<>|]+/)[^\s'\"`,;()\[\]<>|]*)")
_HOME = re.compile(r"(?<![^\s'\"`=(\[,:])(?:~[\w.-]*|\.\.)/([^\s'\"`,;()\[\]<>|/]+)")


def hide_folders(text: str) -> str:
    """The text with such paths cut down to their last names.

    >>> hide_folders("genodiff eval /home/me/runs/yeast --out='../a b/x.json'")
    "genodiff eval yeast --out='x.json'"
    """
    text = _QUOTED.sub(lambda hit: f"{hit[1]}{_take_last(hit[2])}{hit[1]}", text)
    text = _BARE.sub(lambda hit: _take_last(hit[1]), text)
    return _HOME.sub(lambda hit: hit[1], text)


def hide_all_folders(value: Any) -> Any:
    """The same of all texts in lists and objects; keys stay."""
    if isinstance(value, str):
        return hide_folders(value)
    if isinstance(value, dict):
        return {key: hide_all_folders(inner) for key, inner in value.items()}
    return [hide_all_folders(inner) for inner in value] if isinstance(value, list) else value


def _take_last(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]
