"""The text that a memory remembers: the train split's stretches, and where each came from.

Codes are A 0, C 1, G 2, T 3, anything else 4. After each stretch stands one separator (4). No copy
crosses a 4, so none crosses the end of a contig. Only the forward strand is stored: the other one
is searched with the window's reverse complement.

For speed the text is three bit planes: the high and the low bit of each base, and whether there is
a base. `PAD` places without a base stand before and after the text.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import DataError

Codes = NDArray[np.uint8]

NONE = 4
"""The code of what is no base: N, a separator, a masked place."""
PAD = 8192
MOST_WINDOW = PAD - 64
"""The longest window, in bases."""
MOST_TEXT = 4 * ((1 << 32) - 1) - PAD
"""Places of the longest text: 32 bits count every fourth one (`tables.py`)."""
_PIECE = 1 << 22
_TURNED = np.array([3, 2, 1, 0, 4], np.uint8)


class TextStretch(NamedTuple):
    """A stretch of the text: `length` bases of a contig from `start` on."""

    contig: str
    start: int
    length: int


class MemoryText:
    """The planes of a text of `size` places, and the sources of its stretches in their order."""

    def __init__(
        self, planes: NDArray[np.uint8], size: int, sources: tuple[TextStretch, ...]
    ) -> None:
        """`planes`: (3, bytes), uint8, the high bits, the low bits, and where there is a base."""
        if planes.shape != (3, count_plane_bytes(size)):
            raise ValueError(f"planes of {planes.shape} do not hold {size} places")
        self.planes, self.size, self.sources = planes, size, sources
        lengths = np.array([s.length for s in sources], np.int64)
        self.starts: NDArray[np.int64] = np.concatenate(([0], np.cumsum(lengths + 1)))
        if self.starts[-1] != size:
            raise ValueError(f"the sources hold {self.starts[-1]} places, not {size}")

    @cached_property
    def codes(self) -> Codes:
        """(size + 2 PAD,): the codes, with the padding. For the paths without a C library."""
        return self.read_codes(-PAD, self.size + PAD)

    def read_codes(self, start: int, end: int) -> Codes:
        """The codes of the places from `start` to `end`, which lie within the padding."""
        first, last = (start + PAD) // 8, (end + PAD + 7) // 8
        high, low, base = (
            np.unpackbits(p[first:last], bitorder="little")[(start + PAD) % 8 :][: end - start]
            for p in self.planes
        )
        return np.where(base == 1, 2 * high + low, np.uint8(NONE))

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, part: slice) -> Codes:
        """The codes of a slice, read piece by piece: a text may be too long to be read at once."""
        start, end, _ = part.indices(self.size)
        return self.read_codes(start, max(start, end))

    @cached_property
    def n_bases(self) -> int:
        """How many bases there are, on one strand."""
        return self.count_bases(0, self.size)

    def count_bases(self, start: int, end: int) -> int:
        """How many places from `start` to `end` are bases."""
        start, end = max(start, 0), min(end, self.size)
        if start >= end:
            return 0
        first, last = (start + PAD) // 8, (end - 1 + PAD) // 8 + 1
        bits = self.planes[2, first:last]
        edge = np.unpackbits(bits[[0, -1]], bitorder="little").reshape(2, 8)
        total = int(np.bitwise_count(bits).sum(dtype=np.int64))
        before = int(edge[0, : (start + PAD) % 8].sum())
        after = int(edge[1, (end - 1 + PAD) % 8 + 1 :].sum())
        return total - before - after

    def count_loci(self, start: int, end: int) -> int:
        """How many bases there are on both strands, but those from `start` to `end`."""
        return 2 * (self.n_bases - self.count_bases(start, end))

    def find_interval(self, contig: str, start: int, end: int) -> tuple[int, int]:
        """The places of the text that hold bases of `contig` from `start` to `end`.

        (0, 0) where there are none.
        """
        rows = self.list_stretches(contig)
        first, last, at = rows[(rows[:, 0] < end) & (start < rows[:, 1])].T
        if not len(at):
            return 0, 0
        found = np.maximum(start, first), np.minimum(end, last)
        return int((at + found[0] - first).min()), int((at + found[1] - first).max())

    def list_stretches(self, contig: str) -> NDArray[np.int64]:
        """(stretches, 3) of a contig: start and end there, and place in the text."""
        return self._by_contig.get(contig, np.zeros((0, 3), np.int64))

    @cached_property
    def _by_contig(self) -> dict[str, NDArray[np.int64]]:
        """(stretches, 3) of each contig: start and end there, and place in the text."""
        rows: dict[str, list[tuple[int, int, int]]] = {}
        for s, at in zip(self.sources, self.starts.tolist(), strict=False):
            rows.setdefault(s.contig, []).append((s.start, s.start + s.length, at))
        return {contig: np.array(found, np.int64) for contig, found in rows.items()}

    def locate(self, place: int) -> tuple[str, int]:
        """The contig and the position of a place of the text. Raises `IndexError` outside."""
        if not 0 <= place < self.size:
            raise IndexError(f"place {place} is not in 0..{self.size - 1}")
        i = int(np.searchsorted(self.starts, place, side="right")) - 1
        return self.sources[i].contig, self.sources[i].start + place - int(self.starts[i])


def count_plane_bytes(size: int) -> int:
    """Bytes of one plane of a text of `size` places, in whole lines of the cache."""
    return (size + 2 * PAD + 511) // 512 * 64


class TextWriter:
    """The planes of a text in the making, from codes that come piece by piece."""

    def __init__(self) -> None:
        self._sources: list[TextStretch] = []
        self._parts = [np.zeros((3, PAD // 8), np.uint8)]
        self._tail = np.zeros(0, np.uint8)
        self.size = 0

    def begin(self, contig: str, start: int = 0) -> None:
        """The end of the stretch before, and the beginning of one of `contig`, from `start` on."""
        self._end()
        self._sources.append(TextStretch(contig, start, 0))

    def add(self, codes: Codes) -> None:
        """More of the stretch. Raises `DataError` where the text gets too long."""
        last = self._sources[-1]
        self._sources[-1] = last._replace(length=last.length + len(codes))
        self._write(codes)

    def finish(self) -> MemoryText:
        """The text."""
        self._end()
        wanted = count_plane_bytes(self.size)
        rest = wanted - sum(part.shape[1] for part in self._parts)
        self._parts.append(_pack_planes(self._tail, rest))
        planes = np.concatenate(self._parts, axis=1)
        self._parts.clear()
        return MemoryText(planes, self.size, tuple(self._sources))

    def _end(self) -> None:
        if self._sources:
            self._write(np.array([NONE], np.uint8))

    def _write(self, codes: Codes) -> None:
        self.size += len(codes)
        if self.size > MOST_TEXT:
            fix = "index fewer contigs"
            raise DataError(f"a text holds at most {MOST_TEXT:,} bases", fix=fix)
        codes = np.concatenate((self._tail, codes))
        whole = len(codes) // 8
        self._parts.append(_pack_planes(codes[: whole * 8], whole))
        self._tail = codes[whole * 8 :]


def _pack_planes(codes: Codes, n: int) -> NDArray[np.uint8]:
    """(3, n): the planes of at most 8 n codes; the places that are left have no base."""
    planes = np.zeros((3, n), np.uint8)
    base = (codes < NONE).astype(np.uint8)
    known = codes * base
    for plane, bits in zip(planes, (known & 2, known & 1, base), strict=True):
        packed = np.packbits(bits, bitorder="little")
        plane[: len(packed)] = packed
    return planes


def join_stretches(stretches: Iterable[tuple[str, int, Any]]) -> MemoryText:
    """The text of stretches, each its contig, its start there and its codes (read piece by piece).

    Raises `DataError` where the text gets too long.
    """
    writer = TextWriter()
    for contig, start, codes in stretches:
        writer.begin(contig, start)
        for first in range(0, len(codes), _PIECE):
            writer.add(np.asarray(codes[first : first + _PIECE], np.uint8))
    return writer.finish()


def turn_codes(codes: Codes) -> Codes:
    """The reverse complement along the last axis."""
    return np.asarray(_TURNED[codes[..., ::-1]])
