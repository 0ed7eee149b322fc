"""Entries of an unfinished job, kept beside the output: OUT.partial.

Each is the number of its bytes, their CRC-32, and the bytes. A seal after the last says that
all are there, and that the output is about to be written: it may then lack its sidecar.
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


class Journal(PartialOutput[bytes]):
    """The entries of one request so far; `kept` is how many."""

    holds = "entries of a job that is not done"
    noun = "entries"

    def append(self, row: bytes) -> None:
        """Keep the next row. Raises `MachineError` for a full disk."""
        self._append(_HEAD.pack(len(row), zlib.crc32(row)) + row, flush=True)

    def seal(self) -> None:
        """Note that all rows are there, and that the output will be written."""
        self._append(_SEAL, flush=True)
        self.kept -= 1

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

    def _read_entries(self, file: IO[bytes]) -> Iterator[tuple[bytes, int]]:
        while len(head := file.read(_HEAD.size)) == _HEAD.size and head != _SEAL:
            size, check = _HEAD.unpack(head)
            row = file.read(size)
            if len(row) < size or zlib.crc32(row) != check:
                return
            yield row, len(head) + size
