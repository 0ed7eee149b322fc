"""Read a genome in tiles: what each related genome has over every base, and the rates of columns.

A tile is the middle of one window (`scoring/variant_windows.py`). Its values depend on that window
alone, so they are the same for any regions, batch, shard and number of threads.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import DNA
from genodiff.conservation.values import ConstraintPiece
from genodiff.data.stretches import encode_bases
from genodiff.kernels.library import map_in_order
from genodiff.memory.column_rates import (
    THIRD,
    Columns,
    ColumnTest,
    NeutralRate,
    call_columns,
    estimate_neutral,
    find_fast,
)
from genodiff.memory.columns import infer_rates, read_context
from genodiff.memory.evidence import Floats
from genodiff.memory.relatives import Relatives
from genodiff.memory.text import Codes
from genodiff.scoring.variant_windows import Contigs, TrackPiece, place_tile

Sites = Mapping[str, NDArray[np.int64]]
"""Positions of each contig, ascending."""
CONTEXT = 1024
"""Bases of a window; a tile is at most half of it."""
_BATCH = 32
_NEUTRAL_TILES = 256


def read_constraint(
    genome: Contigs, relatives: Relatives, neutral: NeutralRate, pieces: Iterable[TrackPiece]
) -> Iterator[ConstraintPiece]:
    """Read the constraint of each piece, in order."""
    numbers = relatives.columns
    assert numbers is not None
    test = ColumnTest(numbers, neutral)
    rate = np.array(numbers.rate) / neutral.rate

    def read(batch: _Batch) -> list[ConstraintPiece]:
        placed, windows = batch
        over, homologous = relatives.align_homologs(windows)
        posterior = infer_rates(over, windows, numbers)
        called = [
            call_columns(homologous[:, b, one.cut], windows[b, one.cut])
            for b, one in enumerate(placed)
        ]
        found, at, pieces = test.score(np.concatenate(called)), 0, []
        for b, (one, columns) in enumerate(zip(placed, called, strict=True)):
            rs, phylop, length, present = (x[at : at + len(columns)] for x in found)
            at += len(columns)
            conserved = (posterior.states[b, one.cut] * test.slow[one.places]).sum(1)
            mean = (posterior.rates[b, one.cut] * rate).sum(1)
            values = np.stack((rs, phylop, conserved, mean, present, length), 1)
            values[np.isnan(rs)] = np.nan
            pieces.append(ConstraintPiece(values.astype(np.float32), columns[:, 1:]))
        return pieces

    for done in map_in_order(read, _batch_pieces(genome, pieces)):
        yield from done


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
    numbers = relatives.columns
    assert numbers is not None
    if sites is not None:
        tiles = [one for one in tiles if len(_cut_sites(sites, one))]
    chosen = np.unique(np.linspace(0, len(tiles) - 1, min(len(tiles), _NEUTRAL_TILES)).astype(int))
    fast, described = find_fast(numbers)
    columns: list[Columns] = []
    weights: list[Floats] = []

    def align(batch: _Batch) -> tuple[_Batch, tuple[Floats, Floats]]:
        return batch, relatives.align_homologs(batch[1])

    batches = _batch_pieces(genome, (tiles[i] for i in chosen.tolist()))
    for (some, windows), (over, homologous) in map_in_order(align, batches):
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


_Batch = tuple[list[_Placed], Codes]
"""Pieces whose windows (B, L) have one length."""


def _batch_pieces(genome: Contigs, pieces: Iterable[TrackPiece]) -> Iterator[_Batch]:
    """Pieces in order, with their windows."""
    placed = (_Placed(one, *place_tile(one, CONTEXT, genome.contigs[one.contig])) for one in pieces)
    for _, alike in groupby(placed, lambda one: one.end - one.start):
        while batch := list(islice(alike, _BATCH)):
            letters = (genome.fetch(one.piece.contig, one.start, one.end) for one in batch)
            yield batch, np.stack([np.array(encode_bases(DNA.encode(one))) for one in letters])
