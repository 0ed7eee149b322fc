"""Entries of an unfinished job, kept beside the output: OUT.partial.

Each is the number of its bytes, their CRC-32, and the bytes.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import IO

from genodiff.io.partial_output import SUFFIX as SUFFIX
from genodiff.io.partial_output import PartialOutput

_HEAD = struct.Struct("<II")


class Journal(PartialOutput[bytes]):
    """The entries of one request so far; `kept` is how many."""

    holds = "entries of a job that is not done"
    noun = "entries"

    def append(self, row: bytes) -> None:
        """Keep the next row. Raises `MachineError` for a full disk."""
        self._append(_HEAD.pack(len(row), zlib.crc32(row)) + row, flush=True)

    def rows(self) -> Iterator[bytes]:
        """All that is kept, in order."""
        return self._read_kept()

    def _read_entries(self, file: IO[bytes]) -> Iterator[tuple[bytes, int]]:
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            size, check = _HEAD.unpack(head)
            row = file.read(size)
            if len(row) < size or zlib.crc32(row) != check:
                return
            yield row, len(head) + size
