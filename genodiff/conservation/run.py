"""The bases of one request for constraint, as pieces, and what their entries hold."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import DNA
from genodiff.conservation.elements import ColumnStretch
from genodiff.conservation.reader import CONTEXT, TILE, VALUES, ConstraintPiece
from genodiff.data.stretches import encode_bases
from genodiff.io.regions import hold_contigs
from genodiff.jobs.shards import Shard
from genodiff.maps.map_regions import Interval
from genodiff.maps.track_values import BaseTracks, read_letters
from genodiff.memory.column_rates import Columns, list_unique
from genodiff.memory.text import NONE
from genodiff.scoring.variant_windows import Contigs, TrackPiece, cut_pieces, plan_pieces

_BLOCK = 1 << 14


@dataclass(frozen=True)
class ConstraintTracks(BaseTracks):
    """The tracks of constraint of contig[start:end], in `related`; `p` has no columns."""

    @property
    def known(self) -> NDArray[np.bool_]:
        """(L,): where there are values."""
        return ~np.isnan(self.related[VALUES[0]])


class ConstraintRun(NamedTuple):
    """The intervals of a request, disjoint and in order, and the pieces [cut) of them to read."""

    genome: Contigs
    intervals: list[Interval]
    cut: tuple[int, int]

    @classmethod
    def make(
        cls, genome: Contigs, wanted: Iterable[Interval], shard: Shard | None
    ) -> "ConstraintRun":
        """Raises `UsageError` for a shard that has nothing."""
        contigs = hold_contigs(genome.contigs)
        return cls(genome, *plan_pieces(contigs, wanted, CONTEXT, shard, TILE))

    def pieces(self) -> Iterator[TrackPiece]:
        """Its pieces, in order."""
        every = cut_pieces(self.intervals, hold_contigs(self.genome.contigs), CONTEXT, TILE)
        return islice(every, *self.cut)

    def read(self, rows: Iterable[bytes]) -> Iterator[tuple[TrackPiece, ConstraintPiece]]:
        """Each piece with what its entry holds."""
        for piece, row in zip(self.pieces(), rows, strict=True):
            yield piece, ConstraintPiece.unpack(row, piece.end - piece.start)

    def blocks(self, rows: Iterable[bytes]) -> Iterator[ConstraintTracks]:
        """The tracks of pieces that follow one another, about `_BLOCK` bases at a time."""
        held: list[tuple[TrackPiece, ConstraintPiece]] = []
        for piece, one in self.read(rows):
            if held:
                first, last = held[0][0], held[-1][0]
                apart = last.contig != piece.contig or last.end != piece.start
                if apart or last.end - first.start >= _BLOCK:
                    yield self._join(held)
                    held = []
            held.append((piece, one))
        if held:
            yield self._join(held)

    def _join(self, held: list[tuple[TrackPiece, ConstraintPiece]]) -> ConstraintTracks:
        first, last = held[0][0], held[-1][0]
        letters = read_letters(self.genome, first.contig, first.start, last.end)
        values = np.concatenate([one.values for _, one in held])
        related = dict(zip(VALUES, values.T, strict=False))
        nothing = np.zeros((len(letters), 0), np.float32)
        return ConstraintTracks(first.contig, first.start, letters, nothing, related)

    def stretches(self, rows: Iterable[bytes]) -> tuple[list[ColumnStretch], Columns]:
        """Which column each base has, a stretch for each interval, and the distinct columns."""
        number: dict[bytes, int] = {}
        parts: list[NDArray[np.int32]] = []
        for piece, one in self.read(rows):
            codes = encode_bases(
                DNA.encode(self.genome.fetch(piece.contig, piece.start, piece.end))
            )
            columns = np.concatenate([np.minimum(codes, NONE)[:, None], one.bases], 1)
            unique, inverse = list_unique(columns.astype(np.uint8))
            known = [number.setdefault(row.tobytes(), len(number)) for row in unique]
            parts.append(np.array(known, np.int32)[inverse])
        every, out, at = np.concatenate(parts), [], 0
        for contig, start, end in self.intervals:
            out.append(ColumnStretch(contig, start, every[at : (at := at + end - start)]))
        table = np.frombuffer(b"".join(number), np.uint8).reshape(len(number), -1)
        return out, table
