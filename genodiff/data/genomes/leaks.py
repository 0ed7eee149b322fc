"""The last check of a split: no held-out tile has much of its sequence in train.

The sampled k-mers (homologs.py) find a tile that shares a tenth of its 24-mers four times in five.
So after them all 24-mers of what is held out are looked up in train: a tile of 1,024 bases with
more than a twentieth of its 24-mers there is left out, with its neighbours. Two neighbours that
pass have at most a tenth between them, so neither has a window that lies across both.

The held-out k-mers are in memory, `_GROUP` bases at a time; for each group train is read once, from
the stores that are built.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from genodiff.data.genomes.dealing import Contig
from genodiff.data.genomes.homologs import TILE, Rows, cut_tiles
from genodiff.data.genomes.sketches import K, Words, keep_distinct
from genodiff.data.kmers import canonical_kmers, find_streamed
from genodiff.data.stretches import Coded, encode_bases

MOST_SHARED = 0.05
_GROUP = 1 << 24  # held-out bases whose k-mers are in memory at once
_PIECE = 1 << 20
_SPAN = 1 << 32  # more tiles than a contig has


class ContigReader:
    """The stored bases of contigs, which are numbered through all genomes."""

    def __init__(self, folders: list[Path], contigs: list[Contig]) -> None:
        self._genome = [contig.genome for contig in contigs]
        self._flat = [np.memmap(folder / "genome.ids", np.uint8, "r") for folder in folders]
        self._start: list[int] = []
        ends = [0] * len(folders)
        for contig in contigs:
            self._start.append(ends[contig.genome])
            ends[contig.genome] += contig.length

    def read(self, contig: int, start: int, end: int) -> NDArray[np.uint8]:
        """The ids from `start` to `end` (0-based, half-open) of a contig; mapped, not read yet."""
        first = self._start[contig]
        return self._flat[self._genome[contig]][first + start : first + end]


def leave_leaks_out(
    rows: list[Rows], contigs: list[Contig], strict: list[bool], reader: ContigReader
) -> tuple[list[Rows], dict[str, int]]:
    """What is left of train, valid and test, and the bases that valid and test lose.

    Test is looked up in train, valid in train and in what is left of test. `strict` says of each
    genome whether its held-out sequence is judged.
    """
    kept, lost = [list(part) for part in rows], dict[str, int]()
    for name, mine, others in (("test", 2, [0]), ("valid", 1, [0, 2])):
        judged = [row for row in kept[mine] if strict[contigs[row[0]].genome]]
        drop = find_leaks(judged, [row for i in others for row in kept[i]], reader)
        before = _sum_bases(kept[mine])
        kept[mine] = cut_tiles(kept[mine], drop)
        lost[name] = before - _sum_bases(kept[mine])
    return kept, lost


def find_leaks(rows: Rows, others: Rows, reader: ContigReader) -> dict[int, list[int]]:
    """The tiles, by contig, of which more than `MOST_SHARED` of the 24-mers stand in `others`."""
    drop: dict[int, list[int]] = defaultdict(list)
    for group in _group_pieces(rows):
        words, tiles = _collect_words(group, reader)
        wanted = keep_distinct(words)
        hit = find_streamed(wanted, (Coded(reader.read(*row)) for row in others))
        found = hit[np.searchsorted(wanted, words)]
        codes, where = np.unique(tiles, return_inverse=True)
        n = np.bincount(where, minlength=len(codes))
        bad = codes[np.bincount(where, found, len(codes)) > MOST_SHARED * n]
        for contig, tile in zip((bad // _SPAN).tolist(), (bad % _SPAN).tolist(), strict=True):
            drop[contig].append(tile)
    return drop


def _collect_words(pieces: Rows, reader: ContigReader) -> tuple[Words, NDArray[np.int64]]:
    """The canonical 24-mers of some pieces, by place, and the tile in which each begins."""
    words, tiles = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
    for contig, start, end in pieces:
        kmers, whole = canonical_kmers(encode_bases(reader.read(contig, start, end)), K)
        at = np.flatnonzero(whole)
        words.append(kmers[at])
        tiles.append(contig * _SPAN + (start + at) // TILE)
    return np.concatenate(words), np.concatenate(tiles)


def _group_pieces(rows: Rows) -> Iterator[Rows]:
    """Pieces of the intervals, `_GROUP` bases together; each k-mer stands in one piece.

    Pieces end where a tile ends, so that all of a tile is in one group.
    """
    group: Rows = []
    size = 0
    for contig, start, end in rows:
        at = start
        while at < end:
            stop = min(at // _PIECE * _PIECE + _PIECE, end)
            group.append((contig, at, min(stop + K - 1, end)))
            size, at = size + stop - at, stop
            if size >= _GROUP:
                yield group
                group, size = [], 0
    if group:
        yield group


def _sum_bases(rows: Rows) -> int:
    return sum(end - start for _, start, end in rows)
