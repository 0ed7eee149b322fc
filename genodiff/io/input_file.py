"""The bytes of a user's input file: opened without hanging, decompressed, checked to their end.

A path is examined before it is opened, so that a pipe without a writer, a directory or a device is
an error and does not block. Compression is told by the first bytes and never by the name. gzip and
BGZF (bgzip) are read to the last byte: checksums, a missing BGZF end block and trailing bytes are
errors. Every fault is one `DataError` that names the file.

A plan reads the beginning of a large file, from which the rest is forecast by its size. While a
block of `planning` runs, nothing is written for later: a genome without an index is held in memory
as far as `GenomeHead` goes, of variants the first `VARIANTS` are read, of annotation, intervals and
tables the first `TEXT_BYTES`, and of a folder of files the first `FILES`. Classes that stand
further down in a table of labels are not known to its plan.
"""

import errno
import hashlib
import logging
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Any

from genodiff.errors import DataError
from genodiff.io.composition import IUPAC
from genodiff.io.diagnosis import find_stand_in
from genodiff.io.file_kinds import (
    HEAD,
    find_elsewhere,
    find_folder_kind,
    find_raw_format,
    find_readable,
    is_descriptor,
)

BLOCK = 1 << 22
"""Bytes read and handed on at a time."""

STDIN = "-"
_GZIP, _BLOCKED = b"\x1f\x8b", b"\x1f\x8b\x08\x04"
_STEP = 1 << 16
_AGAIN = "copy or download the file again (`gzip -t FILE` tests it)"
_REASONS = {
    "incorrect data check": "CRC checksum mismatch",
    "incorrect length check": "wrong length",
}


class InputFile:
    """One opened input; `blocks()` gives its decompressed bytes, once.

    `compression` is known after the first block. With `digest=True`, `sha256` covers
    the bytes on disk once `blocks()` is exhausted.
    """

    def __init__(self, descriptor: int, shown: str, *, digest: bool = False) -> None:
        self.descriptor, self.shown = descriptor, shown
        self.stat = os.fstat(descriptor)
        self.compression = "none"
        self.format = ""  # GenBank or EMBL where a reader found that it is
        self.size = 0
        self.sha256 = hashlib.sha256() if digest else None

    def blocks(self) -> Iterator[bytes]:
        """Decompressed bytes in any pieces. Raises `DataError` for corrupt or changing data."""
        raw = self._raw()
        head = next(raw, b"")
        if not head.startswith(_GZIP):
            yield head
            yield from raw
        else:
            extra = head[12 : 12 + int.from_bytes(head[10:12], "little")]
            is_bgzf = head.startswith(_BLOCKED) and b"BC\x02\0" in extra
            self.compression = "bgzf" if is_bgzf else "gzip"
            yield from _joined(self._gunzip(head, raw))
        now = os.fstat(self.descriptor)
        before = self.stat.st_size, self.stat.st_mtime_ns
        if (now.st_size, now.st_mtime_ns) != before and stat.S_ISREG(now.st_mode):
            fix = "wait until it is complete"
            raise DataError("changed while it was being read", file=self.shown, fix=fix)

    def _raw(self) -> Iterator[bytes]:
        while True:
            block = b""
            while len(block) < BLOCK // 4:  # a pipe gives 64 KiB at a time
                try:
                    piece = os.read(self.descriptor, BLOCK)
                except OSError as fault:
                    what = f"cannot be read after byte {self.size:,}: {fault.strerror}"
                    fix = "check the disk or the network mount"
                    raise DataError(what, file=self.shown, fix=fix) from None
                if not piece:
                    break
                block += piece
                self.size += len(piece)
            if not block:
                return
            if self.sha256 is not None:
                self.sha256.update(block)
            yield block

    def _gunzip(self, head: bytes, raw: Iterator[bytes]) -> Iterator[bytes]:
        """What the members hold; of BGZF (SAM specification 4.1) the last block must be empty."""
        member, started, blocked, empty = zlib.decompressobj(31), False, False, False
        for block in chain([head], raw):
            # Small steps: zlib copies what it does not use, and there may be thousands of members
            for at in range(0, len(block), _STEP):
                piece = block[at : at + _STEP]
                while piece:
                    if not started:
                        if not _GZIP.startswith(piece[:2]):
                            raise self._trailing()
                        started, blocked, empty = True, piece.startswith(_BLOCKED), True
                    try:
                        data = member.decompress(piece, BLOCK)
                    except zlib.error as fault:
                        raise self._corrupt(fault) from None
                    if data:
                        empty = False
                        yield data
                    if member.eof:
                        piece, member, started = member.unused_data, zlib.decompressobj(31), False
                    else:
                        piece = member.unconsumed_tail
        if started:
            yield member.flush()
            if not member.eof:
                raise self._truncated("the compressed data stop in the middle")
        if self.compression == "bgzf" and blocked and not empty:
            raise self._truncated("the BGZF end-of-file block is missing")

    def _corrupt(self, fault: Exception) -> DataError:
        reason = re.sub(r"^Error -?\d+ while decompressing data: ", "", str(fault))
        what = f"the {self.compression} data are corrupt ({_REASONS.get(reason, reason)})"
        return DataError(what, file=self.shown, fix=_AGAIN)

    def _truncated(self, why: str) -> DataError:
        return DataError(f"truncated {self.compression} file: {why}", file=self.shown, fix=_AGAIN)

    def _trailing(self) -> DataError:
        why = "the file is corrupt or two files were joined"
        what = f"trailing garbage after the {self.compression} data: {why}"
        return DataError(what, file=self.shown, fix=_AGAIN)


def _joined(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of a quarter BLOCK or more, also from tiny gzip members."""
    held: list[bytes] = []
    size = 0
    try:
        for piece in pieces:
            held.append(piece)
            size += len(piece)
            if size >= BLOCK // 4:
                yield b"".join(held)
                held, size = [], 0
    except DataError:
        yield b"".join(held)  # a fault in the text before the damage comes first
        raise
    yield b"".join(held)


def name_input(path: str | Path) -> str:
    """`path` as messages name it."""
    return "<stdin>" if str(path) == STDIN else str(path) or "''"


@contextmanager
def open_input(path: str | Path, *, digest: bool = False) -> Iterator[InputFile]:
    """Open `path` for reading; "-" is stdin. Raises `DataError` for no readable regular file.

    Named pipes are refused, since without a writer they block for ever; stdin and `/dev/fd/N` may
    be pipes. All but "-" can be opened again.
    """
    shown = name_input(path)
    descriptor = _open(path, shown)
    try:
        yield InputFile(descriptor, shown, digest=digest)
    finally:
        os.close(descriptor)


def check_parquet(path: str | Path) -> None:
    """Raises `DataError` for what is no readable file, and for another format than parquet."""
    with open_input(path) as source:
        head = os.read(source.descriptor, HEAD)
        if not head.startswith(b"PAR1"):
            known = find_raw_format(head, "parquet")
            what = "is no parquet file" + (f": this is {known[0]}" if known else "")
            raise DataError(what, file=source.shown, fix=(known and known[1]) or "export it again")


def _open(path: str | Path, shown: str) -> int:
    try:
        path = find_readable(path)
        if path == STDIN or is_descriptor(path):
            descriptor = os.dup(0) if path == STDIN else os.open(path, os.O_RDONLY)
            if os.isatty(descriptor):
                os.close(descriptor)
                fix = "give a file, or pipe one in"
                raise DataError("is a terminal, not data", file=shown, fix=fix)
            return descriptor
        _regular(os.stat(path), shown)
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(path, flags)
        try:
            _regular(os.fstat(descriptor), shown)  # it may have been swapped since
            if known := find_stand_in(os.pread(descriptor, 256, 0)):
                raise DataError(f"is {known[0]}", file=shown, line=1, fix=known[1])
        except DataError:
            os.close(descriptor)
            raise
        return descriptor
    except OSError as fault:
        raise _absent(path, shown, fault) from None
    except UnicodeEncodeError:
        what = "cannot be named in this locale, whose encoding is not UTF-8"
        raise DataError(what, file=shown, fix="set LC_ALL=C.UTF-8") from None
    except ValueError:
        fix = "give the path of a file"
        raise DataError("is not a possible file name (NUL byte)", file=shown, fix=fix) from None


def _regular(status: os.stat_result, shown: str) -> None:
    mode = status.st_mode
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        known = find_folder_kind(shown)
        of, fix = (f": {known[0]}", known[1]) if known else ("", "give the file inside it")
        raise DataError(f"is a directory, not a file{of}", file=shown, fix=fix)
    if stat.S_ISFIFO(mode):
        what = "is a named pipe (FIFO), not a regular file"
        raise DataError(what, file=shown, fix="give - as the file and redirect: < PIPE")
    kind = "device" if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else "socket"
    fix = "give a regular file, or - for stdin"
    raise DataError(f"is a {kind}, not a regular file", file=shown, fix=fix)


def _absent(path: str | Path, shown: str, fault: OSError) -> DataError:
    fix: Any = "check the path"
    if fault.errno == errno.ENOENT and os.path.islink(path):
        aim = os.readlink(path)
        what = f"is a broken link to {aim} (no such file)"
        fix = "point the link to an existing file"
        if "annex/objects/" in aim:
            fix = "git annex get FILE"
    elif fault.errno == errno.ENOENT:
        what = "no such file"
        with suppress(OSError):
            names = os.listdir(Path(path).parent)[:10_000]
            for near in get_close_matches(Path(path).name, names, n=1, cutoff=0.7):
                fix = f"did you mean '{near}'?"
        if elsewhere := find_elsewhere(path):
            what = f"is {elsewhere[0]}: inputs are files of this machine"
            fix = "download it first, or pipe it in: COMMAND | genodiff ... -"
    elif fault.errno == errno.ELOOP:
        what, fix = "is a loop of symbolic links", "point the link to an existing file"
    elif fault.errno in (errno.EACCES, errno.EPERM):
        what, fix = "permission denied", "make it readable (chmod +r) or ask its owner"
    elif fault.errno == errno.EBADF:
        what, fix = "is closed", "give a file, or pipe one in"
    else:
        what = f"cannot be opened: {fault.strerror or fault}"
    return DataError(what, file=shown, fix=fix)


def is_file(given: Any, extra: bytes = b"") -> bool:
    """Whether `given` names a file.

    A `Path` does. So does a string, unless it consists of DNA letters (or of `extra` bytes) alone:
    "genome.fa" is a file, "GATTACA" a sequence. Give `Path("CAT")` for a file of such a name.
    """
    if isinstance(given, str):
        return not given or bool(given.encode("utf-8", "replace").translate(None, IUPAC + extra))
    return isinstance(given, Path)


GENOME_BYTES = 1 << 25
"""Read of a genome that has no index or store, as it lies on the disk."""
VARIANTS = 5_000
"""Records."""
TEXT_BYTES = 1 << 23
FILES = 200
ROWS = 10_000
"""Of parquet."""
_LONG = ("a table", "BED", "GFF3", "GenBank", "EMBL", "alignment")
_planning: ContextVar[dict[str, float] | None] = ContextVar("planning", default=None)
_log = logging.getLogger("genodiff")


@contextmanager
def planning(plan: bool = True) -> Iterator[None]:
    """Read as a plan does while the block runs, if this is a `plan`."""
    token = _planning.set({} if plan else _planning.get())
    try:
        yield
    finally:
        _planning.reset(token)


def is_planning() -> bool:
    """Whether a plan is being made."""
    return _planning.get() is not None


def is_cut(source: InputFile) -> bool:
    """Whether a plan has read enough of a genome that goes on."""
    return is_planning() and GENOME_BYTES <= source.size < source.stat.st_size


def cut_text(size: int, kind: str, shown: str, source: InputFile | None = None) -> bool:
    """Whether a plan that has read `size` bytes of a text goes no further, which it says once.

    `source` tells the share of the file that it is. Variants are counted by their reader, and
    GenBank and EMBL are genomes, too.
    """
    cut = _planning.get()
    most = GENOME_BYTES if kind in ("GenBank", "EMBL") else TEXT_BYTES
    if cut is None or size < most or not any(name in kind for name in _LONG):
        return False
    if source is not None and source.size >= source.stat.st_size:
        return False  # this was its last block
    share = 0.0 if source is None else source.size / source.stat.st_size
    return note_cut(shown, share, f"its first {size / 1e6:.0f} MB")


def cut_records(source: InputFile, offset: int) -> bool:
    """Whether a plan goes no further than the record that is next, at byte `offset` of the text."""
    if not is_cut(source):
        return False
    read = source.size if source.compression != "none" else offset
    return note_cut(source.shown, read / source.stat.st_size, f"its first {read / 1e6:.0f} MB")


def note_cut(shown: str, share: float, what: str) -> bool:
    """Keep, and say once, that a plan reads a `share` of a text: `what`. False of no plan."""
    cut = _planning.get()
    if cut is None:
        return False
    if shown not in cut:
        _log.warning("%s: the plan reads %s", shown, what)
    cut[shown] = share
    return True


def was_cut(shown: str = "") -> bool:
    """Whether a plan has read the beginning of a text alone; without a name, of any."""
    cut = _planning.get() or {}
    return shown in cut if shown else bool(cut)


def find_share(shown: str) -> float:
    """The share of a text that has been read: below 1 where a plan has cut it."""
    return (_planning.get() or {}).get(shown) or 1.0


def count_letters(path: str | Path) -> int:
    """About how many bytes a file has, decompressed, by its beginning and its size."""
    return _extrapolate(path, len)


def count_lines(path: str | Path) -> int:
    """About how many lines a text file has, by its beginning and its size."""
    return _extrapolate(path, lambda block: block.count(b"\n"))


def _extrapolate(path: str | Path, count: Callable[[bytes], int]) -> int:
    """What `count` tells of the bytes that the first read of a file gives, for all of the file."""
    with open_input(path) as source:
        found, taken = 0, 0
        for block in source.blocks():
            taken = taken or source.size
            if source.size > taken:
                break
            found += count(block)
        return round(found * source.stat.st_size / max(1, taken))
