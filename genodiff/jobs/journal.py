"""Entries of an unfinished job, kept beside the output: OUT.partial.

The first line names the request by a digest. An entry is a function of the request and of its
number. So the same request goes on after the last whole entry and gives the bytes of a run without
a break.

Each entry is the number of its bytes, their CRC-32, and the bytes. So is a part of an entry that
takes long, whose number of bytes has the highest bit; once the entry is there it is of no use. A
seal after the last entry says that all are there, and that the output is about to be written: it
may then lack its sidecar.
"""

import json
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from genodiff.errors import UsageError
from genodiff.io.target import write_error
from genodiff.version import __version__

SUFFIX = ".partial"
HOLDS = "entries of a job that is not done"
_HEAD = struct.Struct("<II")
_SEAL = b"\xff" * _HEAD.size
_PART = 1 << 31


class Journal:
    """The entries of one request so far, `kept` of them, and `parts` of others."""

    def __init__(self, path: str | Path, request: str) -> None:
        """Find what an earlier call of the same `request` (a digest) has kept at `path`."""
        self.path, self.request = Path(path), request
        self.kept, self.parts, self._end = 0, 0, 0
        self._file: IO[bytes] | None = None
        if self.read_request(self.path) == request:
            for _, is_part, end in self._blocks():
                self.kept, self.parts = self.kept + (not is_part), self.parts + is_part
                self._end = end

    @classmethod
    def read_request(cls, path: str | Path) -> str | None:
        """The request whose entries a file holds; None where it is no journal."""
        try:
            with open(path, "rb") as file:
                line = file.readline(4096)
            head = json.loads(line) if line.endswith(b"\n") else None  # a whole line
        except (OSError, ValueError):
            return None
        if not isinstance(head, dict) or head.get("holds") != HOLDS:
            return None
        return str(head.get("request"))

    @classmethod
    def is_sealed(cls, path: str | Path) -> bool:
        """Whether a journal ends in a seal."""
        if cls.read_request(path) is None:
            return False
        with open(path, "rb") as file:
            file.seek(-_HEAD.size, os.SEEK_END)
            return file.read() == _SEAL

    def check(self, *, fresh: bool, force: bool) -> None:
        """Raises `UsageError` where the file is foreign, or holds entries of another request."""
        if not self.path.exists() or force or self.has_begun:
            return
        found = self.read_request(self.path)
        if found is None:
            what = "is there already, and genodiff did not write it"
            fix = "give another name, or --force to replace it"
            raise UsageError(what, file=self.path, fix=fix)
        if found != self.request and not fresh:
            fix = "give that command again to go on, --fresh to start anew, or another name"
            raise UsageError("holds entries of another request", file=self.path, fix=fix)

    @property
    def has_begun(self) -> bool:
        """Whether anything is kept."""
        return self.kept + self.parts > 0

    def start_anew(self) -> None:
        """Forget what is kept."""
        self.kept = self.parts = self._end = 0

    def append(self, entry: bytes) -> None:
        """Keep the next entry. Raises `MachineError` for a full disk."""
        self._append(_HEAD.pack(len(entry), zlib.crc32(entry)) + entry)
        self.kept += 1

    def append_part(self, part: bytes) -> None:
        """Keep part of an entry that follows. Raises `MachineError` for a full disk."""
        self._append(_HEAD.pack(len(part) | _PART, zlib.crc32(part)) + part)
        self.parts += 1

    def seal(self) -> None:
        """Note that all entries are there, and that the output will be written."""
        self._append(_SEAL)

    def rows(self) -> Iterator[bytes]:
        """All entries that are kept, in order."""
        entries = (block for block, is_part, _ in self._blocks() if not is_part)
        for number, entry in enumerate(entries):
            if number == self.kept:
                return
            yield entry

    def list_parts(self) -> Iterator[bytes]:
        """All parts that an earlier call has kept, in order."""
        if self.parts:
            yield from (block for block, is_part, _ in self._blocks() if is_part)

    def close(self) -> None:
        """Close the file, which stays if it holds an entry or a part."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if not self.has_begun and self.read_request(self.path) == self.request:
            self.path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the file: the output is there."""
        self.close()
        self.path.unlink(missing_ok=True)

    def _append(self, data: bytes) -> None:
        file = self._open()
        try:
            file.write(data)
            file.flush()
        except OSError as fault:
            raise write_error(self.path, fault) from None

    def _open(self) -> IO[bytes]:
        if self._file is not None:
            return self._file
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "r+b" if self.has_begun else "wb")  # noqa: SIM115
            self._file.truncate(self._end)
            self._file.seek(self._end)
            if not self.has_begun:
                head = {"genodiff": __version__, "holds": HOLDS, "request": self.request}
                self._file.write(json.dumps(head).encode() + b"\n")
        except OSError as fault:
            raise write_error(self.path, fault) from None
        return self._file

    def _blocks(self) -> Iterator[tuple[bytes, bool, int]]:
        """Each whole entry or part, whether it is a part, and where it ends."""
        if not self.path.exists():
            return
        with open(self.path, "rb") as file:
            end = len(file.readline())
            while len(head := file.read(_HEAD.size)) == _HEAD.size and head != _SEAL:
                size, check = _HEAD.unpack(head)
                is_part, size = size >= _PART, size & (_PART - 1)
                block = file.read(size)
                if len(block) < size or zlib.crc32(block) != check:
                    return
                end += len(head) + size
                yield block, is_part, end
