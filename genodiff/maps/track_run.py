"""The bases of one request for tracks, read into a journal or taken from shards."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from genodiff.alphabet import Alphabet
from genodiff.errors import DataError
from genodiff.io.atomic import open_atomic
from genodiff.io.regions import hold_contigs
from genodiff.jobs.journal import Journal
from genodiff.jobs.shards import Shard
from genodiff.maps.map_regions import Interval
from genodiff.maps.track_reader import Chances, TrackReading, read_pieces
from genodiff.maps.track_values import BaseTracks, make_blocks
from genodiff.scoring.masked_reader import MaskedReader
from genodiff.scoring.track_tiles import TrackPiece, count_bases, cut_pieces, plan_pieces
from genodiff.scoring.variant_windows import Contigs


class TrackRun(NamedTuple):
    """The intervals of a request, disjoint and in order, and the pieces [cut) of them to be read.

    What a piece is given does not depend on the others, so the same pieces are the same bytes.
    """

    genome: Contigs
    intervals: list[Interval]
    context: int
    cut: tuple[int, int]
    related: tuple[str, ...] = ()
    """Columns beside the four chances: `related_tracks.name_related`."""

    @classmethod
    def make(
        cls, genome: Contigs, wanted: Iterable[Interval], context: int, shard: Shard | None,
        related: tuple[str, ...] = (),
    ) -> "TrackRun":  # fmt: skip
        """Raises `UsageError` for a shard that has nothing."""
        intervals, cut = plan_pieces(hold_contigs(genome.contigs), wanted, context, shard)
        return cls(genome, intervals, context, cut, related)

    @property
    def columns(self) -> int:
        """Numbers of a base."""
        return 4 + len(self.related)

    @property
    def bases(self) -> int:
        """Bases of all intervals, of all shards together."""
        return count_bases(self.intervals)

    def pieces(self) -> Iterator[TrackPiece]:
        """Its pieces, in order."""
        contigs = hold_contigs(self.genome.contigs)
        return islice(cut_pieces(self.intervals, contigs, self.context), *self.cut)

    def count_evaluations(self, request: TrackReading) -> tuple[int, int]:
        """Its bases, and how many windows are read for them at most: N is not looked for."""
        bases = windows = 0
        for piece in self.pieces():
            n = piece.end - piece.start
            bases, windows = bases + n, windows + min(n, request.step(piece))
        return bases, windows

    def fill(
        self,
        journal: Journal,
        reader: MaskedReader,
        alphabet: Alphabet,
        request: TrackReading,
        tick: Callable[[int, int], None],
    ) -> None:
        """Read what the journal does not hold yet; `tick` is told the bases that it holds, and of
        them those that were there before.
        """
        before = sum(one.end - one.start for one in islice(self.pieces(), journal.kept))
        done = before
        rest = islice(self.pieces(), journal.kept, None)
        for piece, p in read_pieces(reader, self.genome, alphabet, rest, request):
            journal.append(p.astype("<f4").tobytes())
            done += piece.end - piece.start
            tick(done, before)

    def blocks(self, rows: Iterable[bytes]) -> Iterator[BaseTracks]:
        """The tracks of its pieces; `rows` are the bytes of each piece's chances."""
        pairs = zip(self.pieces(), rows, strict=True)
        values = ((piece, _read_row(row, self.columns)) for piece, row in pairs)
        return make_blocks(self.genome, values, self.related)


def _read_row(row: bytes, columns: int) -> Chances:
    found: Chances = np.frombuffer(row, "<f4").reshape(-1, columns).astype(np.float32)
    return found


def write_chances(path: str | Path, shape: tuple[int, int], rows: Iterable[bytes]) -> None:
    """Write the chances of a shard as .npy (bases, columns), atomically."""
    with open_atomic(path) as file:
        head = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, head)
        for row in rows:
            file.write(row)


def read_chances(
    paths: Sequence[str | Path], pieces: Iterable[TrackPiece], bases: int, columns: int = 4
) -> Iterator[bytes]:
    """The bytes of each piece's chances, from the files of all shards in their order.

    Raises `DataError` for a file that is none, and where they hold more or fewer than `bases`.
    """
    arrays = [_open_chances(path, columns) for path in paths]
    if sum(map(len, arrays)) != bases:
        what = "the shards hold more or fewer bases than their request"
        raise DataError(what, file=paths[0], fix="make them again")
    number = at = 0
    for piece in pieces:
        wanted, parts = piece.end - piece.start, []
        while wanted:
            if at == len(arrays[number]):
                number, at = number + 1, 0
            some = arrays[number][at : at + wanted]
            parts.append(some.tobytes())
            wanted, at = wanted - len(some), at + len(some)
        yield b"".join(parts)


def _open_chances(path: str | Path, columns: int) -> Any:
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as fault:
        raise DataError(f"holds no tracks: {fault}", file=path, fix="make it again") from None
    if found.ndim != 2 or found.shape[1] != columns or found.dtype != np.dtype("<f4"):
        raise DataError("holds no chances of bases", file=path, fix="make it again")
    return found
