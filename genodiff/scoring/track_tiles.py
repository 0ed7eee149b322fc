"""Where tracks read a contig: tiles, each in the middle of one window.

A contig that fits into one window is one tile. A longer one is cut into tiles of at most half a
context. Their number is odd, and their ends are rounded as those of their mirror images are, so the
tiles of the other strand are the same tiles. Each has a window of one context; at the ends of a
contig the window lies as near to the tile's middle as it can. So every base has at least a quarter
of the context on either side, except where the contig ends.

The tiles depend on the contig and the context alone. What a base is given is then the same whatever
regions were asked for.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from genodiff.errors import UsageError
from genodiff.jobs.shards import Shard
from genodiff.scoring.variant_windows import place_window


class TrackPiece(NamedTuple):
    """The bases [start, end) of a contig, 0-based, which stand in the tile [first, last)."""

    contig: str
    first: int
    last: int
    start: int
    end: int


def count_tiles(length: int, context: int) -> int:
    """Into how many tiles a contig is cut."""
    if length <= context:
        return 1
    return -(-length // (context // 2)) | 1


def find_bound(length: int, tiles: int, number: int) -> int:
    """Where tile `number` begins; that of `tiles` is the contig's end."""
    before, rest = divmod(length * number, tiles)
    return before + (rest > 0 and 2 * number < tiles)


def find_tile(length: int, context: int, base: int) -> tuple[int, int]:
    """The tile [first, last) that a base stands in."""
    tiles = count_tiles(length, context)
    number = min(base * tiles // length, tiles - 1)
    while find_bound(length, tiles, number) > base:
        number -= 1
    while find_bound(length, tiles, number + 1) <= base:
        number += 1
    return find_bound(length, tiles, number), find_bound(length, tiles, number + 1)


def cut_pieces(
    intervals: Iterable[tuple[str, int, int]], contigs: dict[str, int], context: int
) -> Iterator[TrackPiece]:
    """The intervals, each cut at the ends of tiles."""
    for contig, start, end in intervals:
        at = start
        while at < end:
            first, last = find_tile(contigs[contig], context, at)
            yield TrackPiece(contig, first, last, at, min(last, end))
            at = last


def count_pieces(interval: tuple[str, int, int], contigs: dict[str, int], context: int) -> int:
    """How many pieces an interval has, without cutting it."""
    contig, start, end = interval
    length = contigs[contig]
    tiles = count_tiles(length, context)

    def number_of(base: int) -> int:
        first, _ = find_tile(length, context, base)
        number = first * tiles // length
        while find_bound(length, tiles, number) < first:
            number += 1
        return number

    return number_of(end - 1) - number_of(start) + 1


def place_tile(piece: TrackPiece, context: int, length: int) -> tuple[int, int]:
    """The window [start, end) of the piece's tile."""
    width = piece.last - piece.first
    return place_window(piece.first, piece.last, width, context, length)


def merge_intervals(intervals: Iterable[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """The bases of all intervals, each once, by the contig's name and the start."""
    merged: list[tuple[str, int, int]] = []
    for contig, start, end in sorted(intervals, key=_order):
        if start == end:
            continue
        if merged and merged[-1][0] == contig and start <= merged[-1][2]:
            merged[-1] = (contig, merged[-1][1], max(end, merged[-1][2]))
        else:
            merged.append((contig, start, end))
    return merged


def plan_pieces(
    contigs: dict[str, int],
    wanted: Iterable[tuple[str, int, int]],
    context: int,
    shard: Shard | None,
) -> tuple[list[tuple[str, int, int]], tuple[int, int]]:
    """The disjoint intervals of a request, and which of their pieces [first, last) are a shard's.

    Raises `UsageError` for a shard that has nothing.
    """
    intervals = merge_intervals(wanted)
    total = sum(count_pieces(one, contigs, context) for one in intervals)
    cut = (0, total) if shard is None else shard.cut(total)
    if shard is not None and cut[0] == cut[1]:
        what = f"--shard {shard.number}/{shard.of} has none of {total:,} pieces"
        raise UsageError(what, fix="give fewer shards")
    return intervals, cut


def count_bases(intervals: Sequence[tuple[str, int, int]]) -> int:
    """How many bases disjoint intervals have."""
    return sum(end - start for _, start, end in intervals)


def _order(interval: tuple[str, int, int]) -> tuple[bytes, int, int]:
    # by the bytes of the name, as the index of a bigWig has it
    return interval[0].encode(), interval[1], interval[2]
