"""Entries of an unfinished job, kept beside the output: OUT.partial.

Each is the number of its bytes, their CRC-32, and the bytes. So is a part of an entry that takes
long, whose number of bytes has the highest bit; once the entry is there it is of no use. A seal
after the last entry says that all are there, and that the output is about to be written: it may
then lack its sidecar.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from genodiff.io.partial_output import SUFFIX as SUFFIX
from genodiff.io.partial_output import PartialOutput

_HEAD = struct.Struct("<II")
_SEAL = b"\xff" * _HEAD.size
_PART = 1 << 31


class Journal(PartialOutput[bytes]):
    """The entries of one request so far, `kept` of them, and `parts` of others."""

    holds = "entries of a job that is not done"
    noun = "entries"

    def __init__(self, path: str | Path, request: str) -> None:
        super().__init__(path, request)
        if self.read_request(self.path) == request:
            for end in (end for _, is_part, end in self._blocks() if is_part):
                self.parts, self._end = self.parts + 1, max(self._end, end)

    def append(self, row: bytes) -> None:
        """Keep the next row. Raises `MachineError` for a full disk."""
        self._append(_HEAD.pack(len(row), zlib.crc32(row)) + row, flush=True)
        self.kept += 1

    def append_part(self, part: bytes) -> None:
        """Keep part of a row that follows. Raises `MachineError` for a full disk."""
        self._append(_HEAD.pack(len(part) | _PART, zlib.crc32(part)) + part, flush=True)
        self.parts += 1

    def seal(self) -> None:
        """Note that all rows are there, and that the output will be written."""
        self._append(_SEAL, flush=True)

    @classmethod
    def is_sealed(cls, path: str | Path) -> bool:
        """Whether a file of this kind ends in a seal."""
        if cls.read_request(path) is None:
            return False
        with open(path, "rb") as file:
            file.seek(-_HEAD.size, os.SEEK_END)
            return file.read() == _SEAL

    def rows(self) -> Iterator[bytes]:
        """All that is kept, in order."""
        return self._read_kept()

    def list_parts(self) -> Iterator[bytes]:
        """All parts that an earlier call has kept, in order."""
        if self.parts:
            yield from (row for row, is_part, _ in self._blocks() if is_part)

    def _read_entries(self, file: IO[bytes]) -> Iterator[tuple[bytes, int]]:
        size = 0  # with that of the parts before
        for row, is_part, own in _read_blocks(file):
            size += own
            if not is_part:
                yield row, size
                size = 0

    def _blocks(self) -> Iterator[tuple[bytes, bool, int]]:
        """Each whole row or part, whether it is a part, and where it ends."""
        with open(self.path, "rb") as file:
            end = len(file.readline())
            for row, is_part, size in _read_blocks(file):
                end += size
                yield row, is_part, end


def _read_blocks(file: IO[bytes]) -> Iterator[tuple[bytes, bool, int]]:
    """Each whole row or part, whether it is a part, and how many bytes it has."""
    while len(head := file.read(_HEAD.size)) == _HEAD.size and head != _SEAL:
        size, check = _HEAD.unpack(head)
        is_part, size = size >= _PART, size & (_PART - 1)
        row = file.read(size)
        if len(row) < size or zlib.crc32(row) != check:
            return
        yield row, is_part, len(head) + size
