"""Which base of a related genome lies over each base of a genome: runs of bases, PAF, and MAF.

A run is a row of `RUN` columns: bases of the genome that follow one another, over bases of one
contig of the related genome that do so, too, on one strand.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.conservation.reader import ConstraintPiece, batch_pieces, keep_fewer
from genodiff.kernels.library import map_in_order
from genodiff.memory.alignment import align_windows
from genodiff.memory.relatives import UNLIKE, RelativeGenome, Relatives
from genodiff.memory.text import NONE, Codes, MemoryText
from genodiff.scoring.variant_windows import Contigs, TrackPiece

RUN = ("start", "contig", "position", "strand", "length", "equal")
"""Start in the genome's contig; contig of the related genome, by its number, and the base over the
first one, on the forward strand; 1 for the reverse strand; bases, and how many are equal."""
APART = 200
"""Runs with fewer bases than that between them, in both genomes, are one record."""
Runs = NDArray[np.int64]


def read_runs(
    genome: Contigs,
    related: RelativeGenome,
    contigs: Mapping[str, int],
    pieces: Iterable[TrackPiece],
) -> Iterator[Runs]:
    """The runs (n, 6) of each piece, in order; `contigs`: the numbers of the related genome's."""
    (related,) = keep_fewer(Relatives((related,), None)).genomes
    text, numbers = related.memory.text, related.numbers
    alike = np.array(numbers.divergence) <= UNLIKE
    of_stretch = np.array([contigs[one.contig] for one in text.sources], np.int64)
    begins = np.array([one.start for one in text.sources], np.int64)

    def read(batch: Any) -> Iterator[Runs]:
        found: dict[Any, Runs] = {}
        for some, windows in batch[1]:
            prepared, diagonals = related.search(windows)
            places, _ = align_windows(text, prepared, diagonals, numbers, alike, places=True)
            for b, one in enumerate(some):
                runs = find_runs(places[b, one.cut], windows[b, one.cut], text)
                runs[:, 0] += one.piece.start
                stretch = np.searchsorted(text.starts, runs[:, 2], "right") - 1
                runs[:, 1] = of_stretch[stretch]
                runs[:, 2] += begins[stretch] - text.starts[stretch]
                found[one] = runs
        return (found[one] for one in batch[0])

    for done in map_in_order(read, batch_pieces(genome, pieces)):
        yield from done


def find_runs(places: NDArray[np.int64], codes: Codes, text: MemoryText) -> Runs:
    """The runs (n, 6) of places (L,) that `place_window` tells; positions are places of the text,
    contigs are 0.
    """
    step = np.where(places & 1, -2, 2)
    goes_on = (places[1:] == places[:-1] + step[:-1]) & (places[1:] >= 0)
    first = np.flatnonzero(np.concatenate([places[:1] >= 0, ~goes_on & (places[1:] >= 0)]))
    last = np.flatnonzero(np.concatenate([~goes_on & (places[:-1] >= 0), places[-1:] >= 0]))
    runs = np.zeros((len(first), len(RUN)), np.int64)
    runs[:, 0], runs[:, 2], runs[:, 3] = first, places[first] >> 1, places[first] & 1
    runs[:, 4] = last - first + 1
    equal = np.zeros(len(codes), bool)
    for start, _, at, strand, n, _ in runs.tolist():
        over = text.read_codes(at - n + 1, at + 1)[::-1] if strand else text.read_codes(at, at + n)
        over = np.where(over < NONE, 3 - over, NONE) if strand else over
        equal[start : start + n] = over == codes[start : start + n]
    _part(runs, equal)
    for row in runs:
        row[5] = equal[row[0] : row[0] + row[4]].sum()
    return runs


def _part(runs: Runs, equal: NDArray[np.bool_]) -> None:
    """Where a run ends on bases on which the next begins, leave them to the one or the other.

    The chain copies a base twice where the related genome lacks some: of a line of PAF it may not.
    """
    for one, other in pairwise(runs):
        more = -int(_measure_gaps(np.stack([one, other]))[1][0])
        if not 0 < more < min(one[4], other[4], APART) or one[3] != other[3]:
            continue
        tail, head = equal[one[0] + one[4] - more :][:more], equal[other[0] :][:more]
        left = int((np.append(0, tail.cumsum()) + np.append(head[::-1].cumsum()[::-1], 0)).argmax())
        one[4] -= more - left
        other[[0, 4]] += (left, -left)
        other[2] += -left if other[3] else left


class AlignedRecord(NamedTuple):
    """Runs (n, 6) of one contig over one contig and strand, in order."""

    contig: str
    runs: Runs


def join_runs(parts: Iterable[tuple[str, Runs]]) -> Iterator[AlignedRecord]:
    """The records of runs, given piece by piece along the genome, each with its contig."""
    contig, held = "", list[Runs]()
    for name, runs in parts:
        for some in np.split(runs, np.flatnonzero(~_are_near(runs)) + 1) if len(runs) else ():
            if held and (
                name != contig or not _are_near(np.concatenate([held[-1][-1:], some[:1]]))[0]
            ):
                yield AlignedRecord(contig, np.concatenate(held))
                held = []
            contig = name
            held.append(some)
    if held:
        yield AlignedRecord(contig, np.concatenate(held))


def _are_near(runs: Runs) -> NDArray[np.bool_]:
    """(n - 1,): whether each run (n, 6) of one contig belongs to the record of the one before."""
    gaps, over = _measure_gaps(runs)
    same = (runs[1:, 1] == runs[:-1, 1]) & (runs[1:, 3] == runs[:-1, 3])
    return np.asarray(same & (gaps < APART) & (over >= 0) & (over < APART))


def _measure_gaps(runs: Runs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(n - 1,): bases between runs (n, 6), in the genome and in the related genome."""
    sign = 1 - 2 * runs[1:, 3]
    gaps = runs[1:, 0] - runs[:-1, 0] - runs[:-1, 4]
    return gaps, sign * (runs[1:, 2] - runs[:-1, 2]) - runs[:-1, 4]


def format_paf(
    record: AlignedRecord, lengths: Mapping[str, int], related: Sequence[tuple[str, int]]
) -> str:
    """A line of PAF: the query is the related genome, whose contigs `related` names with their
    lengths, as `lengths` those of the genome.
    """
    runs = record.runs
    start, contig, position, strand, _, _ = runs[0].tolist()
    last, end = runs[-1], int(runs[-1, 0] + runs[-1, 4])
    name, length = related[contig]
    if strand:
        query = int(last[2] - last[4] + 1), position + 1
    else:
        query = position, int(last[2] + last[4])
    steps = [f"{runs[0, 4]}M"]
    for before, one in pairwise(runs):
        gap = int(one[0] - before[0] - before[4])
        over = abs(int(one[2] - before[2])) - int(before[4])
        steps += [f"{over}I"] * (over > 0) + [f"{gap}D"] * (gap > 0) + [f"{one[4]}M"]
    columns = int(runs[:, 4].sum())
    gaps = (end - start - columns) + (query[1] - query[0] - columns)
    fields = (
        name, length, *query, "+-"[strand], record.contig, lengths[record.contig], start, end,
        int(runs[:, 5].sum()), columns + gaps, 255, f"cg:Z:{''.join(steps)}",
    )  # fmt: skip
    return "\t".join(map(str, fields)) + "\n"


_LETTERS = np.frombuffer(b"ACGT-", np.uint8)


def format_blocks(
    target: str,
    names: Sequence[str],
    contigs: Mapping[str, int],
    pieces: Iterable[tuple[str, int, str, ConstraintPiece]],
) -> Iterator[str]:
    """The lines of a MAF, a block for each tile; `pieces` are contig, start, letters of the
    reference, and the piece. `target` and `names` are species, `contigs` the target's lengths.

    Rows are the columns that were tested (`memory/column_rates.py`): the target, then each genome
    that is present in the tile, with `-` where it is not. Insertions in a related genome are not
    shown, and its rows have no coordinates of its own, since a tile may be covered from several
    places of it: each is a contig of its own, by the number of the block.
    """
    yield "##maf version=1 scoring=none program=genodiff\n"
    for number, (contig, start, letters, piece) in enumerate(pieces):
        rows = [_row(f"{target}.{contig}", start, len(letters), contigs[contig], letters)]
        for g, name in enumerate(names):
            bases = piece.bases[:, g]
            n = int((bases < NONE).sum())
            if n:
                text = _LETTERS[np.minimum(bases, NONE)].tobytes().decode()
                rows.append(_row(f"{name}.aligned_{number}", 0, n, n, text))
        if len(rows) > 1:
            yield "a score=0\n" + "".join(rows) + "\n"


def _row(source: str, start: int, size: int, of: int, text: str) -> str:
    return f"s {source} {start} {size} + {of} {text}\n"
