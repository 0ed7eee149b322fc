"""Model predictions for each base of a genome given the others: p(A), p(C), p(G), p(T).

    leave-one-out   each base masked alone: p(x_i | the rest of its window), one evaluation a base
    every m         every m-th base of a tile masked together: m evaluations a tile. They do not see
                    one another, so this is near to leave-one-out and not equal; `measure_company`
                    says how near.

A network that reads one strand is asked about both, and their logarithms are averaged; the result
is made to sum to 1 again. So log p(alt) − log p(ref) of a base is what `genodiff score` gives for a
substitution in the same window. The naive form is in `naive_maps.py`.

The bases of one request for tracks, read into a journal or taken from shards.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import Alphabet
from genodiff.counter import Purpose, uniforms
from genodiff.errors import DataError
from genodiff.io.atomic import open_atomic
from genodiff.io.regions import hold_contigs
from genodiff.jobs.shards import Shard
from genodiff.maps.map_regions import Interval
from genodiff.maps.track_values import BaseTracks, Chances, find_information, make_blocks
from genodiff.scoring.masked_reader import Logs, MaskedReader, leave_relatives_out
from genodiff.scoring.spelling_pair import Ids
from genodiff.scoring.variant_windows import (
    Contigs,
    TrackPiece,
    count_bases,
    cut_pieces,
    find_tile,
    place_tile,
    plan_pieces,
)

SITES = 64
"""Bases at which `measure_company` compares the two."""
_TRIES = 20  # places for each, before a genome of N is given up
_SEED = 1


class TrackReading(NamedTuple):
    """How bases are read: the context in bases, and every which base of a tile is masked at once
    (None: each alone).
    """

    context: int
    every: int | None = None

    def step(self, piece: TrackPiece) -> int:
        """The distance of two bases of this tile that are masked together."""
        width = piece.last - piece.first
        return width if self.every is None else min(self.every, width)


def read_pieces(
    reader: MaskedReader,
    genome: Contigs,
    alphabet: Alphabet,
    pieces: Iterable[TrackPiece],
    request: TrackReading,
) -> Iterator[tuple[TrackPiece, Chances]]:
    """Each piece with the chances of its bases, in order.

    A piece is read by itself: windows in one batch may move one another's last bit. So a piece has
    the same bits whatever was read before it, also after a break. Memory holds the windows of one
    piece. What relatives say of it comes from one pass over its window without masks
    (`related_sites.py`). Raises `DataError` for a letter that is no DNA.
    """
    related, network = reader.related, leave_relatives_out(reader)
    for piece in pieces:
        start, end = place_tile(piece, request.context, genome.contigs[piece.contig])
        ids = encode_window(genome, alphabet, piece.contig, start, end)
        chances = _read_piece(network, ids, piece, start, request.step(piece))
        if related is not None:
            said = related.read_columns(ids, slice(piece.start - start, piece.end - start))
            if network is not reader:
                chances = _normalise(np.log(chances) + np.log(said.factors)).astype(np.float32)
            information = find_information(said.p)[:, None]
            chances = np.concatenate([chances, information, said.columns], 1).astype(np.float32)
            chances[np.isnan(chances[:, 0])] = np.nan
        yield piece, chances


def encode_window(genome: Contigs, alphabet: Alphabet, contig: str, start: int, end: int) -> Ids:
    """The ids of contig[start:end]. Raises `DataError` for a letter that is no DNA."""
    letters = genome.fetch(contig, start, end)
    try:
        return alphabet.encode(letters)
    except DataError as fault:
        what = f"between {start + 1:,} and {end:,}: {fault.what}"
        file = getattr(genome, "path", None)
        raise DataError(what, file=file, record=contig, fix=fault.fix) from None


def _read_piece(
    reader: MaskedReader, ids: Ids, piece: TrackPiece, start: int, step: int
) -> Chances:
    """The chances of the bases of a piece; `ids` are those of its window, which begins at `start`,
    and every `step`-th base of its tile is masked at once.
    """
    known, windows, masks = reader.are_targets(ids), list[Ids](), list[NDArray[np.int64]]()
    for phase in range(step):
        masked = np.arange(piece.first + phase, piece.last, step)
        masked = masked[known[masked - start]]
        if ((piece.start <= masked) & (masked < piece.end)).any():
            windows.append(ids.copy())
            windows[-1][masked - start] = reader.mask_id
            masks.append(masked)
    chances = np.full((piece.end - piece.start, 4), np.nan, np.float32)
    place = (piece.contig, start, start + len(ids))
    for found, masked in zip(reader.read(windows, [place] * len(windows)), masks, strict=True):
        wanted = (piece.start <= masked) & (masked < piece.end)
        chances[masked[wanted] - piece.start] = _normalise(found[wanted])
    return chances


def _normalise(logs: Logs) -> Logs:
    """Probabilities of the average of two strands' logarithms."""
    p: Logs = np.exp(logs - logs.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    return p


def measure_company(
    reader: MaskedReader,
    genome: Contigs,
    alphabet: Alphabet,
    intervals: Sequence[tuple[str, int, int]],
    request: TrackReading,
) -> dict[str, Any] | None:
    """How far `request` is from leave-one-out, at random bases of the intervals.

    Of `sites` bases, drawn with a fixed seed, median and worst: `nats` of the largest change of a
    log-ratio of two letters, and `bits` of the change of information. None where there is no base.
    """
    pieces = list(_draw_sites(reader, genome, alphabet, intervals, request.context))
    if not pieces:
        return None
    alone, together = (
        np.concatenate([p[:, :4] for _, p in read_pieces(reader, genome, alphabet, pieces, one)])
        for one in (request._replace(every=None), request)
    )
    change = np.log(alone.astype(np.float64)) - np.log(together.astype(np.float64))
    nats = np.ptp(change, axis=-1)
    bits = np.abs(find_information(alone) - find_information(together))
    both = {"nats": nats, "bits": bits}
    return {
        "sites": len(pieces),
        **{name: (float(np.median(x)), float(x.max())) for name, x in both.items()},
    }


def _draw_sites(
    reader: MaskedReader, genome: Contigs, alphabet: Alphabet,
    intervals: Sequence[tuple[str, int, int]], context: int,
) -> Iterator[TrackPiece]:  # fmt: skip
    ends = np.cumsum([end - start for _, start, end in intervals])
    for number in range(min(SITES, int(ends[-1])) if len(ends) else 0):
        for u in uniforms(_SEED, Purpose.TRACK_SITE, number, _TRIES):
            place = int(u * ends[-1])
            which = int(np.searchsorted(ends, place, side="right"))
            contig, start, _ = intervals[which]
            site = start + place - int(ends[which - 1] if which else 0)
            ids = encode_window(genome, alphabet, contig, site, site + 1)
            if reader.are_targets(ids)[0]:
                first, last = find_tile(genome.contigs[contig], context, site)
                yield TrackPiece(contig, first, last, site, site + 1)
                break


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

    def blocks(self, rows: Iterable[bytes]) -> Iterator[BaseTracks]:
        """The tracks of its pieces; `rows` are the bytes of each piece's chances."""
        pairs = zip(self.pieces(), rows, strict=True)
        values = (
            (piece, np.frombuffer(row, "<f4").reshape(-1, self.columns).astype(np.float32))
            for piece, row in pairs
        )
        return make_blocks(self.genome, values, self.related)


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
        raise DataError("contains no probabilities of bases", file=path, fix="make it again")
    return found
