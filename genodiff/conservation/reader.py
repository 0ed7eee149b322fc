"""Read a genome in tiles: what each related genome has over every base, and the rates of columns.

A tile is the middle of one window (`scoring/variant_windows.py`). Its values depend on that window
alone, so they are the same for any regions, batch, shard and number of threads.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby, islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import DNA
from genodiff.conservation.values import ConstraintPiece
from genodiff.data.stretches import encode_bases
from genodiff.kernels.library import count_threads
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
    for batch, (windows, over, homologous) in _align_ahead(genome, relatives, pieces):
        posterior = infer_rates(over, windows, numbers)
        for b, one in enumerate(batch):
            columns = call_columns(homologous[:, b, one.cut], windows[b, one.cut])
            found = test.score(columns)
            conserved = (posterior.states[b, one.cut] * test.slow[one.places]).sum(1)
            mean = (posterior.rates[b, one.cut] * rate).sum(1)
            rows = (found.rs, found.phylop, conserved, mean, found.present, found.length)
            values = np.stack(rows, 1)
            values[np.isnan(found.rs)] = np.nan
            yield ConstraintPiece(values.astype(np.float32), columns[:, 1:])


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
    wanted = (tiles[i] for i in chosen.tolist())
    for some, (windows, over, homologous) in _align_ahead(genome, relatives, wanted):
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


def _batch_pieces(genome: Contigs, pieces: Iterable[TrackPiece]) -> Iterator[list[_Placed]]:
    """Pieces in order, those in one batch with windows of one length."""
    placed = (_Placed(one, *place_tile(one, CONTEXT, genome.contigs[one.contig])) for one in pieces)
    for _, alike in groupby(placed, lambda one: one.end - one.start):
        while batch := list(islice(alike, _BATCH)):
            yield batch


def _align_ahead(
    genome: Contigs, relatives: Relatives, pieces: Iterable[TrackPiece]
) -> Iterator[tuple[list[_Placed], tuple[Codes, Floats, Floats]]]:
    """Each batch of pieces, aligned; the next ones are aligned meanwhile, on threads of their own.

    The kernels divide a batch over threads, but not what lies between them.
    """
    with ThreadPoolExecutor(count_threads()) as pool:
        waiting: deque[tuple[list[_Placed], Future[tuple[Codes, Floats, Floats]]]] = deque()
        for batch in _batch_pieces(genome, pieces):
            waiting.append((batch, pool.submit(_align, relatives, _cut(genome, batch))))
            if len(waiting) > count_threads():
                before, found = waiting.popleft()
                yield before, found.result()
        while waiting:
            before, found = waiting.popleft()
            yield before, found.result()


def _cut(genome: Contigs, batch: Sequence[_Placed]) -> Codes:
    """The windows (B, L) of a batch."""
    letters = (genome.fetch(one.piece.contig, one.start, one.end) for one in batch)
    return np.stack([np.array(encode_bases(DNA.encode(one))) for one in letters])


def _align(relatives: Relatives, windows: Codes) -> tuple[Codes, Floats, Floats]:
    return windows, *relatives.align_homologs(windows)
