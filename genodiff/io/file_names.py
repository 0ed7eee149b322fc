"""Names of files as they are given: pipes, which are kept, and names that are not UTF-8.

A pipe such as `<(command)` of a shell gives its bytes once, and verbs read their inputs several
times: to judge, to hash, to use them. So what comes through one is kept in a temporary file, which
this process removes at its end.

To Python a name is text in which an undecodable byte is a lone surrogate: "g\\udce9nome.fa". Texts
hold it as the escape `\\udce9`, which JSON and YAML read back as the same name.
"""

import atexit
import os
import re
import shutil
import stat
import tempfile
from functools import cache
from pathlib import Path

from genodiff.errors import MachineError

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


def is_genbank(path: str | Path) -> bool:
    """Whether a file of that name is written as GenBank.

    >>> is_genbank("designs.gb"), is_genbank("designs.fa.gz")
    (True, False)
    """
    return str(path).lower().endswith((".gb", ".gbk", ".genbank"))
