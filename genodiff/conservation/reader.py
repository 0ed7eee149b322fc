"""Read a genome in tiles: what each related genome has over every base, and the rates of columns.

A tile is the middle of one window (`scoring/variant_windows.py`). Its values depend on that window
alone, so they are the same for any regions, batch, shard and number of threads. `ConstraintRun` has
the pieces of one request, and reads what their entries hold.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import DNA, encode_bases
from genodiff.conservation.elements import ColumnStretch
from genodiff.io.regions import hold_contigs
from genodiff.jobs.shards import Shard
from genodiff.kernels.library import map_in_order
from genodiff.maps.map_regions import Interval
from genodiff.maps.track_values import BaseTracks, Track, TrackKind, TrackKinds, read_letters
from genodiff.memory.column_rates import (
    THIRD,
    Columns,
    ColumnTest,
    NeutralRate,
    call_columns,
    estimate_neutral,
    find_fast,
    list_unique,
)
from genodiff.memory.columns import infer_rates, read_context
from genodiff.memory.relatives import Relatives
from genodiff.memory.tables import Floats
from genodiff.memory.text import NONE, Codes
from genodiff.scoring.variant_windows import (
    Contigs,
    TrackPiece,
    cut_pieces,
    place_tile,
    plan_pieces,
)

VALUES = ("rs", "phylop", "conserved", "rate", "coverage", "length")
"""The tracks, in the order of an entry's columns."""
COLUMNS = len(VALUES)
FEW_VALUES = 24
"""Of `rs`: a base that few genomes cover has no more, and a reader is told."""

_KINDS = {
    "rs": ("Rejected substitutions (GERP's scale)", (-1, 1), "180,83,11"),
    "phylop": ("phyloP's scale: -log10 p, positive where conserved", (-3, 2), "11,99,176"),
    "conserved": ("Probability of conservation (phastCons' scale)", (0, 1), "26,127,55"),
    "rate": ("Posterior mean of the substitution rate; 1 is neutral", (0, 3), "92,102,112"),
    "coverage": ("Related genomes present at the base", (0, 5), "64,110,60"),
    "length": ("Tree length of those present, substitutions per neutral site", (0, 2), "64,110,60"),
}


def _take(name: str, one: BaseTracks) -> Track:
    return one.related[name]


def list_constraint_kinds(genomes: int = 5) -> TrackKinds:
    """All tracks by name; `coverage` is drawn from 0 to `genomes`, the related ones.

    >>> list(list_constraint_kinds())
    ['rs', 'phylop', 'conserved', 'rate', 'coverage', 'length']
    """
    return {
        name: TrackKind(
            label, (0, genomes) if name == "coverage" else limits, colour, partial(_take, name)
        )
        for name, (label, limits, colour) in _KINDS.items()
    }


class ConstraintPiece(NamedTuple):
    """What is read of the bases of a piece: `values` (n, COLUMNS), float32, NaN where there is
    none, and `bases` (n, G), codes of the related genomes, 4 where one is absent.
    """

    values: NDArray[np.float32]
    bases: NDArray[np.uint8]

    def pack(self) -> bytes:
        """As bytes: `values`, then `bases`."""
        return self.values.astype("<f4").tobytes() + self.bases.tobytes()

    @classmethod
    def unpack(cls, row: bytes, n: int) -> "ConstraintPiece":
        """Read `pack` of n bases."""
        cut = 4 * COLUMNS * n
        values = np.frombuffer(row, "<f4", COLUMNS * n).reshape(n, COLUMNS)
        return cls(values, np.frombuffer(row, np.uint8, offset=cut).reshape(n, -1))


Sites = Mapping[str, NDArray[np.int64]]
"""Positions of each contig, ascending."""
CONTEXT, TILE = 1280, 1024
"""Bases of a window, and the most of a tile."""
_KEPT = 64
"""Diagonals of a strand that are weighed: the values agree with those of windows of 4,096 as well
as with 2,048 diagonals, at four fifths of the time."""
_BATCH = 32
_NEUTRAL_TILES = 128
_BLOCK = 1 << 14


def read_constraint(
    genome: Contigs, relatives: Relatives, neutral: NeutralRate, pieces: Iterable[TrackPiece]
) -> Iterator[ConstraintPiece]:
    """Read the constraint of each piece, in order."""
    numbers, relatives = relatives.columns, keep_fewer(relatives)
    assert numbers is not None
    test = ColumnTest(numbers, neutral)
    rate = np.array(numbers.rate) / neutral.rate

    def read(batch: _Batch) -> Iterator[ConstraintPiece]:
        found: dict[_Placed, ConstraintPiece] = {}
        for alike, windows in batch[1]:
            over, homologous = relatives.align_homologs(windows)
            posterior = infer_rates(over, windows, numbers)
            called = [
                call_columns(homologous[:, b, one.cut], windows[b, one.cut])
                for b, one in enumerate(alike)
            ]
            scores, at = test.score(np.concatenate(called)), 0
            for b, (one, columns) in enumerate(zip(alike, called, strict=True)):
                rs, phylop, length, present = (x[at : at + len(columns)] for x in scores)
                at += len(columns)
                conserved = (posterior.states[b, one.cut] * test.slow[one.places]).sum(1)
                mean = (posterior.rates[b, one.cut] * rate).sum(1)
                values = np.stack((rs, phylop, conserved, mean, present, length), 1)
                values[np.isnan(rs)] = np.nan
                found[one] = ConstraintPiece(values.astype(np.float32), columns[:, 1:])
        return (found[one] for one in batch[0])

    for done in map_in_order(read, batch_pieces(genome, pieces)):
        yield from done


def keep_fewer(relatives: Relatives) -> Relatives:
    fewer = [
        one._replace(memory=one.memory.with_effort(replace(one.memory.effort, most=_KEPT)))
        for one in relatives.genomes
    ]
    return relatives._replace(genomes=tuple(fewer))


def estimate_neutral_rate(
    genome: Contigs,
    relatives: Relatives,
    tiles: Sequence[TrackPiece],
    sites: Sites | None = None,
    source: str = "",
) -> NeutralRate:
    """Estimate the neutral rate on at most `_NEUTRAL_TILES` of `tiles`, evenly spread.

    `sites`: the neutral positions of each contig, ascending, called `source`. Without them, every
    base counts with the probability that it is a third codon position (where coding classes have at
    least a fifth of the genome, else that it is of the fastest class), given the columns around it,
    never its own. Of third codon positions it is the rate of those free to change to any base.
    """
    numbers, relatives = relatives.columns, keep_fewer(relatives)
    assert numbers is not None
    if sites is not None:
        tiles = [one for one in tiles if len(_cut_sites(sites, one))]
    chosen = np.unique(np.linspace(0, len(tiles) - 1, min(len(tiles), _NEUTRAL_TILES)).astype(int))
    fast, described = find_fast(numbers)
    columns: list[Columns] = []
    weights: list[Floats] = []

    def align(group: _Group) -> tuple[_Group, tuple[Floats, Floats]]:
        return group, relatives.align_homologs(group[1])

    batches = batch_pieces(genome, (tiles[i] for i in chosen.tolist()))
    groups = (group for _, some in batches for group in some)
    for (some, windows), (over, homologous) in map_in_order(align, groups):
        told = None if sites is not None else read_context(over, windows, numbers)
        for b, one in enumerate(some):
            at = one.cut
            called = call_columns(homologous[:, b, at], windows[b, at])
            if told is not None:
                weight = (told[b, at] * fast[one.places]).sum(1)
            else:
                weight = np.zeros(len(called))
                weight[_cut_sites(sites or {}, one.piece) - one.piece.start] = 1
            columns.append(called[weight > 0])
            weights.append(weight[weight > 0])
    if not columns:
        return NeutralRate(1.0, 1.0, source, 0.0)
    return estimate_neutral(
        np.concatenate(columns), np.concatenate(weights), numbers, source or described,
        kinds=2 if sites is None and described == THIRD else 1,
    )  # fmt: skip


def _cut_sites(sites: Sites, piece: TrackPiece) -> NDArray[np.int64]:
    at = sites.get(piece.contig, np.zeros(0, np.int64))
    first, last = np.searchsorted(at, [piece.start, piece.end])
    return at[first:last]


class _Placed(NamedTuple):
    """A piece and the window [start, end) that it is read in."""

    piece: TrackPiece
    start: int
    end: int

    @property
    def cut(self) -> slice:
        """Where the piece lies in its window."""
        return slice(self.piece.start - self.start, self.piece.end - self.start)

    @property
    def places(self) -> NDArray[np.int64]:
        """(n,): the codon position of the window at each base."""
        return np.arange(self.cut.start, self.cut.stop) % 3


_Group = tuple[list[_Placed], Codes]
"""Pieces whose windows (B, L) have one length."""
_Batch = tuple[list[_Placed], list[_Group]]
"""Pieces that follow one another, and the same in groups."""


def batch_pieces(genome: Contigs, pieces: Iterable[TrackPiece]) -> Iterator[_Batch]:
    """Pieces in order, with their windows."""
    placed = (_Placed(one, *place_tile(one, CONTEXT, genome.contigs[one.contig])) for one in pieces)
    while batch := list(islice(placed, _BATCH)):
        groups: dict[int, list[_Placed]] = {}
        windows: dict[int, list[Codes]] = {}
        for one in batch:
            groups.setdefault(one.end - one.start, []).append(one)
            letters = genome.fetch(one.piece.contig, one.start, one.end)
            windows.setdefault(one.end - one.start, []).append(encode_bases(DNA.encode(letters)))
        yield batch, [(some, np.stack(windows[n])) for n, some in groups.items()]


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
