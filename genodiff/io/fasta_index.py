"""The index of a FASTA: where each contig's letters stand, kept in the cache and never trusted.

It is used only while the file is provably the one that it was built from: same size, times and
inode, same bytes at sampled places, and the same sha256 whenever the file is so young that its
times prove nothing. Building it reads the whole file with the judgement of `read_fasta`.

What cannot be read at random as it stands (gzip, bgzip, GenBank, lines of uneven length) gets a
plain copy in the cache.
"""

import hashlib
import json
import logging
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from genodiff.errors import DataError, MachineError
from genodiff.io import atomic
from genodiff.io.fasta import Header, RecordLines, scan_fasta, scan_records
from genodiff.io.file_kinds import find_readable, sha256_json
from genodiff.io.input_file import STDIN, is_planning, open_input
from genodiff.io.target import cache_dir, lock_folder

log = logging.getLogger("genodiff")

FORMAT = 3
# ns: a file changed within this time of being read may change again under the same times
_YOUNG = 2_000_000_000
_SAMPLES, _SAMPLE = 64, 4096
_ZIPPED = (".gz", ".bgz", ".bz2", ".zip")  # pyfaidx goes by the name


class ContigPlace(NamedTuple):
    """Where a contig stands, as in a .fai."""

    length: int
    offset: int  # of the first letter, in bytes
    letters: int  # of a line
    bytes: int  # of a line with its end


class FastaIndex(NamedTuple):
    """What it takes to read contigs out of `file`, which is the user's or our copy."""

    file: str
    stamp: tuple[int, ...]
    places: dict[str, ContigPlace]
    sha256: str
    """Of the user's file."""
    descriptions: dict[str, str]
    """What each header says after the name, where it says anything."""


@contextmanager
def open_index(path: str, kept: ExitStack) -> Iterator[FastaIndex]:
    """The index of the file at `path`, built where need be; `kept` holds a temporary copy.

    While the block runs, no other process removes the copy. Raises `DataError` for bad FASTA.
    """
    if path == STDIN:
        raise DataError("stdin cannot be read at random", fix="give a file")
    file, home = _find_home(path)
    with ExitStack() as held:
        locked = not is_planning()
        try:
            if locked:
                held.enter_context(lock_folder(home, "indexes the same FASTA"))
        except MachineError:
            locked = False  # all still works, since every write is atomic
        index = _read_index(home, path) or _build_index(path, home, locked, kept)
        yield FastaIndex(
            str(index["copy"] or file),
            tuple(index["copy_stamp"] or index["stamp"]),
            {name: ContigPlace(*numbers) for name, *numbers in index["places"]},
            index["sha256"],
            index["descriptions"],
        )


def has_index(path: str) -> bool:
    """Whether the file at `path` was indexed as it is now."""
    return path != STDIN and _read_index(_find_home(path)[1], path) is not None


def _find_home(path: str) -> tuple[str, Path]:
    """The file that is read, and the folder of its index."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:32]
    file = find_readable(path)
    return file, cache_dir() / "genomes" / name if file == path else Path(file).with_name("genome")


def _read_index(home: Path, path: str) -> dict[str, Any] | None:
    """The index kept in `home`, if it provably belongs to the file at `path` as it is now."""
    try:
        index = json.loads((home / "index.json").read_bytes())
        if index["format"] != FORMAT or index["check"] != _check_of(index):
            return None
        copy = index["copy"] and home / index["copy"]
        if copy and stamp_file(copy.stat()) != tuple(index["copy_stamp"]):
            return None
        index["copy"] = copy and str(copy)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    with open_input(path, digest=True) as source:
        young = index["read_ns"] - max(index["stamp"][1:3]) < _YOUNG
        if (
            source.stat.st_size != index["stamp"][0]
            or _sample(source.descriptor, index["stamp"][0]) != index["sample"]
        ):
            return None
        if stamp_file(source.stat) == tuple(index["stamp"]) and (not young or is_planning()):
            return index
        if is_planning():
            return None
        # Touched, moved or too young for its times to prove anything: the content decides.
        now, stamp = time.time_ns(), stamp_file(source.stat)
        if (
            _sha256_of(source.descriptor) != index["sha256"]
            or stamp_file(os.fstat(source.descriptor)) != stamp
        ):
            return None
    renewed = {**index, "stamp": list(stamp), "read_ns": now, "copy": copy and copy.name}
    with suppress(MachineError):
        _write_index(home, renewed)
    return {**index, "stamp": stamp}


def _build_index(path: str, home: Path, locked: bool, kept: ExitStack) -> dict[str, Any]:
    """Read and judge the whole file, and keep its index in `home` if that can be written."""
    now = time.time_ns()
    with open_input(path, digest=True) as source:
        if not stat.S_ISREG(source.stat.st_mode):
            raise DataError("a pipe cannot be read at random", file=path, fix="give a file")
        layouts: dict[str, LineLayout] = {}
        descriptions: dict[str, str] = {}
        layout = LineLayout(0)
        for event in scan_fasta(source):
            if isinstance(event, Header):
                layout = layouts[event.name] = LineLayout(event.offset)
                descriptions |= {event.name: event.description} if event.description else {}
            else:
                layout.add(event)
        stamp, sha = stamp_file(source.stat), source.sha256.hexdigest() if source.sha256 else ""
        plain = source.compression == "none" and not source.format
        plain = plain and not path.lower().endswith(_ZIPPED)
        sample = _sample(source.descriptor, source.stat.st_size)
    index: dict[str, Any] = {
        "format": FORMAT, "stamp": list(stamp), "read_ns": now, "sha256": sha, "sample": sample,
        "copy": None, "copy_stamp": None, "descriptions": descriptions,
        "places": [[name, *one.place()] for name, one in layouts.items()],
    }  # fmt: skip
    if not plain or not all(one.even for one in layouts.values()):
        try:
            copy = home / f"{sha[:32]}.fa"
            index["places"], index["copy_stamp"] = _write_copy(path, copy, sha)
        except MachineError as fault:
            log.warning("%s; the copy goes to a temporary folder", fault)
            folder = kept.enter_context(tempfile.TemporaryDirectory(prefix="genodiff-"))
            copy = Path(folder) / "genome.fa"
            index["places"], index["copy_stamp"] = _write_copy(path, copy, sha)
        index["copy"] = copy.name
    else:
        copy = None
    if copy is None or copy.parent == home:
        try:
            _write_index(home, index)
        except MachineError as fault:
            log.warning("%s; the index is kept in memory", fault)
    if locked:
        for old in home.glob("*.fa"):
            if copy is None or old.name != copy.name:
                with suppress(OSError):
                    old.unlink()
        atomic.clear_leftovers(home)
    return {**index, "copy": copy and str(copy)}


def _write_copy(path: str, copy: Path, sha: str) -> tuple[list[list[Any]], tuple[int, ...]]:
    """Write the file, which has the hash `sha`, as plain FASTA, a line for each contig.

    Returns places and stamp. Raises `DataError` where it has changed.
    """
    log.info("%s cannot be read at random as it is: writing a plain copy to %s", path, copy)
    places: list[list[Any]] = []
    with open_input(path, digest=True) as source, atomic.open_atomic(copy) as out:
        at = 0
        for header, letters in scan_records(source):
            at += out.write(f">{header.name}\n".encode())
            length = sum(map(out.write, letters))
            places.append([header.name, length, at, length, length + 1])
            at += length + out.write(b"\n")
        if source.sha256 is None or source.sha256.hexdigest() != sha:
            fix = "wait until it is complete"
            raise DataError("changed while it was being read", file=path, fix=fix)
    return places, stamp_file(copy.stat())


class LineLayout:
    """Whether all lines of a record but its last are equally long, as random access needs."""

    def __init__(self, offset: int) -> None:
        self.offset, self.length = offset, 0
        self.letters = self.end = 0  # of a line; 0 while the first line is open
        self.column = 0
        self.even, self.closed = True, False

    def place(self) -> ContigPlace:
        letters = self.letters or self.length
        return ContigPlace(self.length, self.offset, letters, letters + (self.end or 1))

    def add(self, piece: RecordLines) -> None:
        """Add the record's next lines. Taking even lines for uneven ones costs a copy, no more."""
        self.length += len(piece.letters())
        data = piece.data
        if not self.column and not self.letters:
            data = data.lstrip(b"\r\n")  # blank lines above the first letter
            self.offset += len(piece.data) - len(data)
        body = data.rstrip(b"\r\n")
        tail = data[len(body) :]
        if not piece.raw or (self.closed and body):
            self.even = False
        if not self.even or self.closed or not data:
            return
        if not self.letters:
            first = body.find(b"\n")
            if first < 0 and not tail:
                self.column += len(body)
                return
            line = body[:first] if first >= 0 else body
            self.end = 2 if line.endswith(b"\r") or tail.startswith(b"\r") else 1
            self.letters = self.column + len(line.removesuffix(b"\r"))
        stride = self.letters + self.end
        ends = body[stride - 1 - self.column :: stride]
        even = ends.count(b"\n") == len(ends) == body.count(b"\n")
        returns = body[stride - 2 - self.column :: stride] if self.end == 2 else b""
        even = even and returns.count(b"\r") == body.count(b"\r") == len(ends) * (self.end == 2)
        self.column = (self.column + len(body)) % stride
        if tail:
            if self.end == 2 and self.column == self.letters and not tail.startswith(b"\r\n"):
                even = False  # pyfaidx would read a byte of the next header
            full = self.column == self.letters and tail == (b"\r\n" if self.end == 2 else b"\n")
            self.closed, self.column = not full, 0
        self.even = even and self.column <= self.letters


def stamp_file(status: os.stat_result) -> tuple[int, ...]:
    """What changes when a file does: size, times, inode and device."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev


def _sample(descriptor: int, size: int) -> str:
    """sha256 of short stretches spread evenly over the file, its start and end among them."""
    digest = hashlib.sha256()
    for i in range(_SAMPLES):
        digest.update(os.pread(descriptor, _SAMPLE, max(0, size - _SAMPLE) * i // (_SAMPLES - 1)))
    return digest.hexdigest()


def _sha256_of(descriptor: int) -> str:
    with open(descriptor, "rb", closefd=False) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_of(index: dict[str, Any]) -> str:
    """A checksum over the index itself, which shows damage to its file."""
    return sha256_json({k: v for k, v in index.items() if k != "check"})


def _write_index(home: Path, index: dict[str, Any]) -> None:
    atomic.write_text(home / "index.json", json.dumps({**index, "check": _check_of(index)}))
