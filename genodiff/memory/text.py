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
MOST_TEXT = (1 << 32) - 1 - PAD
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
        high, low, base = (
            np.unpackbits(p, bitorder="little", count=self.size + 2 * PAD) for p in self.planes
        )
        return np.where(base == 1, 2 * high + low, NONE).astype(np.uint8)

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

    def find_interval(self, contig: str, start: int, end: int) -> tuple[int, int]:
        """The places of the text that hold bases of `contig` from `start` to `end`.

        (0, 0) where there are none.
        """
        rows = self._by_contig.get(contig, np.zeros((0, 3), np.int64))
        first, last, at = rows[(rows[:, 0] < end) & (start < rows[:, 1])].T
        if not len(at):
            return 0, 0
        found = np.maximum(start, first), np.minimum(end, last)
        return int((at + found[0] - first).min()), int((at + found[1] - first).max())

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


def join_stretches(stretches: Iterable[tuple[str, int, Any]]) -> MemoryText:
    """The text of stretches, each its contig, its start there and its codes (read piece by piece).

    Raises `DataError` where they hold no base, or more than 32 bits can count.
    """
    sources, parts = [], []
    for contig, start, codes in stretches:
        sources.append(TextStretch(contig, start, len(codes)))
        parts += [np.asarray(codes[0 : len(codes)], np.uint8), np.array([NONE], np.uint8)]
    size = sum(map(len, parts))
    if size > MOST_TEXT:
        fix = "remember fewer contigs"
        raise DataError(f"a memory holds at most {MOST_TEXT:,} bases, not {size:,}", fix=fix)
    joined = np.full(count_plane_bytes(size) * 8, NONE, np.uint8)
    at = PAD
    for part in parts:
        joined[at : at + len(part)] = np.minimum(part, NONE)
        at += len(part)
    base = joined < NONE
    planes = np.stack(
        [
            np.packbits(plane, bitorder="little")
            for plane in ((joined & base * np.uint8(2)) > 0, (joined & base) > 0, base)
        ]
    )
    return MemoryText(planes, size, tuple(sources))


def turn_codes(codes: Codes) -> Codes:
    """The reverse complement along the last axis."""
    return np.asarray(_TURNED[codes[..., ::-1]])
