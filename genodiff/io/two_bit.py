"""A genome as .2bit, which UCSC's assembly hubs are made of: four bases a byte.

Integers are of 32 bits, little-endian:

    file      0x1A412743, version 0, number of sequences, 0
    index     for each: bytes of the name (8 bits), the name, where its record begins
    record    bases; blocks of N (count, starts, sizes); blocks of lower case (the same); 0; bases,
              T C A G as 0 1 2 3, the first in the high bits

Source: UCSC's file format FAQ. A letter other than A, C, G and T is an N.
"""

import re
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from genodiff.errors import DataError, UsageError
from genodiff.io.atomic import open_atomic

Fetch = Callable[[str, int, int], bytes]
"""The letters of contig, start, end."""

_SIGNATURE = 0x1A412743
_STEP = 1 << 20  # bases read at a time; a multiple of 4
_UNKNOWN, _LOWER = re.compile(rb"[^ACGTacgt]+"), re.compile(rb"[a-z]+")
_CODES = np.zeros(256, np.uint8)
for _letter, _code in zip(b"TCAGtcag", (0, 1, 2, 3) * 2, strict=True):
    _CODES[_letter] = _code

_Block = tuple[int, int]


class _Record(NamedTuple):
    """A sequence's blocks of N and of lower case, each (start, size)."""

    name: bytes
    bases: int
    unknown: list[_Block]
    lower: list[_Block]

    @property
    def size(self) -> int:
        return 16 + 8 * (len(self.unknown) + len(self.lower)) + -(-self.bases // 4)


def write_two_bit(path: str | Path, contigs: Mapping[str, int], fetch: Fetch) -> None:
    """Write all contigs atomically; memory holds their blocks and a stretch of letters.

    Raises `DataError` for a name of more than 255 bytes, `UsageError` for more than 4 GB.
    """
    records = [_survey(name, length, fetch) for name, length in contigs.items()]
    at = 16 + sum(5 + len(one.name) for one in records)
    if at + sum(one.size for one in records) >= 1 << 32:
        what = "the genome is too large for a .2bit"
        raise UsageError(what, fix="give --genome with UCSC's name of it")
    with open_atomic(path) as file:
        file.write(struct.pack("<4I", _SIGNATURE, 0, len(records), 0))
        for one in records:
            file.write(struct.pack("<B", len(one.name)) + one.name + struct.pack("<I", at))
            at += one.size
        for name, one in zip(contigs, records, strict=True):
            file.write(struct.pack("<I", one.bases))
            for blocks in (one.unknown, one.lower):
                flat = np.array(blocks, "<u4").reshape(-1, 2)
                file.write(struct.pack("<I", len(flat)) + flat.T.tobytes())
            file.write(struct.pack("<I", 0))
            for _, letters in _read(name, one.bases, fetch):
                codes = _CODES[np.frombuffer(letters, np.uint8)]
                codes = np.pad(codes, (0, -len(codes) % 4)).reshape(-1, 4)
                file.write((codes << [6, 4, 2, 0]).sum(1).astype(np.uint8).tobytes())


def _survey(name: str, length: int, fetch: Fetch) -> _Record:
    if len(name.encode()) > 255:
        what = "the name has more than 255 bytes, which a .2bit cannot hold"
        raise DataError(what, record=name, fix="give --genome with UCSC's name of the genome")
    record = _Record(name.encode(), length, [], [])
    for start, letters in _read(name, length, fetch):
        for pattern, blocks in ((_UNKNOWN, record.unknown), (_LOWER, record.lower)):
            for found in pattern.finditer(letters):
                first, size = start + found.start(), found.end() - found.start()
                if blocks and sum(blocks[-1]) == first:
                    blocks[-1] = (blocks[-1][0], blocks[-1][1] + size)
                else:
                    blocks.append((first, size))
    return record


def _read(name: str, length: int, fetch: Fetch) -> Iterator[tuple[int, bytes]]:
    for start in range(0, length, _STEP):
        yield start, fetch(name, start, min(start + _STEP, length))
