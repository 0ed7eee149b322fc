"""What a file is called, and what a file or a folder is by its head or names.

`find_other_format` is asked by every reader of text with the name of what it reads, and knows the
formats of text that begin like nothing else. Those that are told by their first bytes stand in
`diagnosis.py`.
"""

import atexit
import json
import os
import re
import shutil
import stat
import tempfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from genodiff.errors import MachineError
from genodiff.io.diagnosis import (
    Diagnosis,
    find_binary_format,
    find_page,
    find_stand_in,
    is_pickle,
)

ERRORS = "backslashreplace"
"""How a text file of ours encodes what is not UTF-8."""
_ELSEWHERE = (
    (re.compile(r"file:/", re.I), "a file:// address", "give the plain path"),
    (
        re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/"),
        "an address",
        "give a file on this machine, and copy it there or back by another tool",
    ),
    (
        re.compile(r"[\w.-]+@[\w.-]+:"),
        "a file on another machine",
        "give a file on this machine, and copy it there or back with scp",
    ),
    (
        re.compile(r"~[\w-]*(/|$)"),
        "a home folder that no shell filled in",
        "write $HOME in its place",
    ),
    (re.compile(r"\$(\w+|\{\w+\})/"), "a variable that no shell filled in", "write its value"),
    (re.compile(r"[A-Za-z]:[\\/]|\\\\"), "a path of Windows", "give a path of this machine"),
)
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

    It is `path` itself, or else a link in a temporary folder, which this process removes at its
    end. The file may be one that is yet to be written.
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


HEAD = 1 << 14
"""Bytes that tell what a file is."""
_BASES = re.compile(r"[ACGTNUacgtnu*.-]+|[A-Za-z*.-]{20,}")


class TextFormat(NamedTuple):
    """A format: the words by which readers name it, how a file of it begins, what it is, a remedy.

    A reader whose own name holds one of the `words` reads it.
    """

    words: tuple[str, ...]
    begins: Callable[[list[str]], object]
    what: str
    fix: str


def _first(pattern: str) -> Callable[[list[str]], object]:
    compiled = re.compile(pattern)
    return lambda lines: compiled.match(lines[0])


def _is_wiggle(lines: list[str]) -> bool:
    first = next((one for one in lines if not one.startswith(("track", "browser", "#"))), "")
    return first.startswith(("fixedStep", "variableStep"))


def _is_fasta(lines: list[str]) -> object:
    plain = "\t" not in lines[0] and len(lines) > 1
    return lines[0].startswith(">") and plain and _BASES.fullmatch(lines[1].strip())


def _is_fastq(lines: list[str]) -> bool:
    return len(lines) > 2 and lines[0].startswith("@") and lines[2].startswith("+")


def _is_index(lines: list[str]) -> bool:
    rows = [line.split("\t") for line in lines[:4]]
    numbers = all(len(row) in (5, 6) and all(map(str.isdecimal, row[1:])) for row in rows)
    return numbers and all(
        int(row[1]) > 0 and int(row[2]) > len(row[0]) and int(row[4]) - int(row[3]) in (1, 2)
        for row in rows
    )


_ERROR = re.compile(
    r"(http\S* )?(error )?[45]0\d(:? (bad request|unauthorized|forbidden|not found|internal server "
    r"error|bad gateway|service unavailable))?|access denied|(file |page )?not found",
    re.IGNORECASE,
)


def _is_error(lines: list[str]) -> bool:
    return len(lines) < 4 and _ERROR.fullmatch(lines[0].strip()) is not None


def _is_yaml(lines: list[str]) -> bool:
    key = re.compile(r"[A-Za-z_][\w.-]*:( [^\t,;]*)?")
    shown = [one for one in lines if not one.startswith(("#", " ", "- "))][:4]
    return len(shown) > 1 and (shown[0] == "---" or all(map(key.fullmatch, shown)))


def _is_newick(lines: list[str]) -> bool:
    text = lines[0].strip()
    return text.startswith("(") and text.endswith(";") and text.count("(") == text.count(")")


_HERE = "give the file itself"
_ALIGNED = "an alignment: relatives and genomes are given as unaligned FASTA"
_FORMATS = (
    TextFormat(
        ("wiggle",), _is_wiggle, "a wiggle file (values)",
        "give it as --track, or make bedGraph of it: wigToBigWig, then bigWigToBedGraph",
    ),
    TextFormat(("FASTA",), _is_fasta, "FASTA (sequences)", ""),
    TextFormat(("FASTQ",), _is_fastq, "FASTQ (reads)", "seqtk seq -A makes FASTA of it"),
    TextFormat(
        ("SAM",), _first(r"@(HD|SQ|RG|PG|CO)\t"), "SAM, or a .dict of Picard (alignments)",
        "samtools fasta makes FASTA of it",
    ),
    TextFormat(("VCF", "table"), _first("##fileformat=VCF"), "VCF (variants)", ""),
    TextFormat(
        ("GFF3", "BED", "annotation"), _first("##(gff|gvf|gtf)-version"), "GFF (annotation)", "",
    ),
    TextFormat(("GenBank",), _first("LOCUS {3}"), "GenBank (an annotated genome)", ""),
    TextFormat(("EMBL", "GenBank", "TRANSFAC"), _first("ID {3}[^\t]*;"), "EMBL (a genome)", ""),
    TextFormat(("alignment",), _first("##maf "), "MAF", _ALIGNED),
    TextFormat(("alignment",), _first(r"chain \d+ \S+ \d+ [+-]"), "a chain file of UCSC",
               _ALIGNED),
    TextFormat((), _first("psLayout"), "PSL", _ALIGNED),
    TextFormat((), _first("#NEXUS"), "NEXUS", _ALIGNED),
    TextFormat((), _first("# STOCKHOLM"), "Stockholm", _ALIGNED),
    TextFormat((), _first("CLUSTAL"), "Clustal", _ALIGNED),
    TextFormat((), _is_newick, "a tree in Newick's format", _HERE),
    TextFormat((), _is_index, "a FASTA index (.fai)", "give the FASTA itself"),
    TextFormat(
        (), _first(r"[0-9a-f]{32}([0-9a-f]{8,96})?  ?\*?\S+$"), "a list of checksums (md5, sha)",
        _HERE,
    ),
    TextFormat(
        (), _is_error,
        "a server's error, saved in place of the file", "download the file again",
    ),
    TextFormat((), _first("<{7} "), "a file with an open conflict of git", "resolve it"),
    TextFormat((), _first("#!/|#!\\s*/usr"), "a script", _HERE),
    TextFormat((), _first(r"\{\\rtf"), "a rich-text document", "save it as plain text"),
    TextFormat(("MEME",), _first(r"(<\?xml|<!DOCTYPE|<[A-Za-z])"), "XML", "give another format"),
    TextFormat(
        ("codon", "JSON"), _first(r"\[[A-Za-z][\w. -]*\]\s*$"), "INI or TOML: a configuration",
        _HERE,
    ),
    TextFormat(
        ("configuration",), _is_yaml, "YAML: a configuration, as of Snakemake or genodiff", _HERE
    ),
)  # fmt: skip


def find_other_format(head: bytes, wanted: str) -> Diagnosis | None:
    """What text that begins with `head` is, where that is for certain not the `wanted` format.

    >>> find_other_format(b"fixedStep chrom=chr1 start=1\\n1\\n", "BED")[0]
    'a wiggle file (values)'
    """
    lines = [line.rstrip() for line in head[:HEAD].decode("utf-8", "replace").splitlines()]
    lines = [line for line in lines if line.strip()]
    wanted = wanted.lower()
    if not lines or wanted == "text":
        return None
    if lines[0].lstrip().startswith(("{", "[")) and not re.match(r"\s*\[[\w. -]+\]$", lines[0]):
        known = _name_json(head)
        return None if known is None or "json" in wanted or "codon" in wanted else known
    for one in _FORMATS:
        if one.begins(lines):
            return (
                None if any(word.lower() in wanted for word in one.words) else (one.what, one.fix)
            )
    return None


def _name_json(head: bytes) -> Diagnosis | None:
    text = head[:HEAD].decode("utf-8", "replace").lstrip()
    keys = set(re.findall(r'"(\w+)"\s*:', text))
    if not keys:
        return ("JSON", _HERE) if re.match(r"\[\s*[\[\"\d\]]|\{\s*\}", text) else None
    for some, what in (
        ({"peft_type"}, "the configuration of an adapter (PEFT)"),
        ({"weight_map"}, "the index of a model's shards"),
        ({"nbformat"}, "a Jupyter notebook"),
        ({"model_type"}, "a model's configuration"), ({"architectures"}, "a model's configuration"),
        ({"genodiff"}, "what genodiff says of a file beside it"),
        ({"message", "status"}, "a server's answer, saved in place of the file"),
        ({"error"}, "a server's answer, saved in place of the file"),
    ):  # fmt: skip
        if some <= keys:
            return f"JSON: {what}", _HERE
    return "JSON", _HERE


def find_raw_format(head: bytes, wanted: str) -> Diagnosis | None:
    """As `find_format`, of the bytes of a file as they stand: within gzip, what is in it."""
    if not head.startswith(b"\x1f\x8b"):
        return find_format(head, wanted)
    try:
        known = find_format(zlib.decompressobj(31).decompress(head, HEAD), wanted)
    except zlib.error:
        known = None
    return (
        (f"{known[0]}, compressed", known[1]) if known else ("gzip data", "decompress it: gunzip")
    )


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
    (".metadata", "a sharded checkpoint (torch.distributed)", "save it as safetensors"),
    ("snapshots", "a folder of a hub's cache", "give the folder in snapshots/ that is meant"),
    (".zarray", "a Zarr array", "give a file"),
    (".zgroup", "a Zarr group", "give a file"),
    ("wandb-metadata.json", "a run of Weights & Biases", "give the run's own folder"),
    ("tokenizer.json", "a tokenizer without a model", "give the whole published folder"),
    ("tokenizer_config.json", "a tokenizer without a model", "give the whole published folder"),
)
_OTHERS = ((".gguf", "GGUF"), (".onnx", "ONNX"), (".mlmodel", "Core ML"), (".tflite", "TFLite"))
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
        return name_adapter(_read_base(Path(folder) / _ADAPTER))
    for name, what, fix in _FOLDERS:
        if name in names:
            return what, fix
    for ending, what in _OTHERS:
        if any(name.endswith(ending) for name in names):
            return f"a model as {what}", "give weights of torch as safetensors"
    return None


def name_adapter(base: str = "") -> Diagnosis:
    """What an adapter of PEFT is; `base` is the name of the model that it belongs to."""
    of = f" for {base}" if base else ""
    fix = "load the base and the adapter with peft, merge_and_unload(), and save the whole model"
    return f"an adapter of PEFT{of}, not a model", fix


def _read_base(config: Path) -> str:
    try:
        with open(config, encoding="utf-8") as file:
            said = json.load(file).get("base_model_name_or_path")
    except (OSError, ValueError, AttributeError):
        return ""
    return said[:80] if isinstance(said, str) and said.isprintable() else ""


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
