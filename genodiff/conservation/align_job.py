"""The PAF of `genodiff align`, or a shard of it: the base of a related genome over each base.

A run is a row of `RUN` columns: bases of the genome that follow one another, over bases of one
contig of the related genome that do so, too, on one strand. Entries are the runs of pieces.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.conservation.job import GenomeJob, describe_whole, open_whole, read_shards
from genodiff.conservation.reader import ConstraintRun, batch_pieces, keep_fewer
from genodiff.conservation.request import ALIGNED, AlignRequest
from genodiff.errors import UsageError, format_count
from genodiff.io import atomic
from genodiff.io.target import check_target, describe_file
from genodiff.jobs.job import Rows
from genodiff.jobs.shards import ShardFile
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


class AlignJob(GenomeJob[AlignRequest]):
    """The job of `AlignRequest`."""

    verb = "align"

    def open(self, stack: ExitStack) -> None:
        super().open(stack)
        self._refuse_several(len(self.listed.rows))

    def _refuse_several(self, n: int) -> None:
        if n > 1:
            what = f"--relatives names {format_count(n, 'genome')}, and an alignment is of one"
            raise UsageError(what, fix="align one after the other, each to a file of its own")

    def identify(self) -> dict[str, Any]:
        about = super().identify()
        self._refuse_several(len(self.related.opened))
        return about

    def entries(self, first: int) -> Iterator[bytes]:
        numbers = {name: i for i, name in enumerate(self.related.opened[0].contigs.lengths)}
        related = self.related.relatives.genomes[0]
        pieces, again = (islice(self.run_of.pieces(), first, None) for _ in range(2))
        found = read_runs(self.genome, related, numbers, pieces)
        for piece, runs in zip(again, found, strict=True):
            head = np.array([piece.end - piece.start, len(runs)])
            yield np.concatenate([head, runs.ravel()]).astype("<i8").tobytes()

    def weigh(self, entry: bytes) -> int:
        return int(np.frombuffer(entry, "<i8", 1)[0])

    def write(self, rows: Rows) -> dict[str, Any]:
        told = {**self.describe(), "contigs": self.related.opened[0].contigs.lengths}
        if self.request.part is None:
            return told | write_paf(self.request.out, self.run_of, rows(), told)
        aligned = sum(int(_read_entry(row)[:, 4].sum()) for row in rows())
        return told | self.write_shard(rows, "<i8", holds=ALIGNED, aligned=aligned)


def _read_entry(row: bytes) -> Runs:
    return np.frombuffer(row, "<i8", offset=16).reshape(-1, len(RUN))


def write_paf(
    out: Any, run: ConstraintRun, rows: Iterable[bytes], told: dict[str, Any]
) -> dict[str, Any]:
    """Write the records of entries, "-" to stdout; what a sidecar counts of them."""
    lengths, related = dict(run.genome.contigs), list(told["contigs"].items())
    pieces = zip(run.pieces(), rows, strict=True)
    parts = ((piece.contig, _read_entry(row)) for piece, row in pieces)
    records = aligned = equal = 0

    def lines() -> Iterator[str]:
        nonlocal records, aligned, equal
        for record in join_runs(parts):
            records += 1
            aligned += int(record.runs[:, 4].sum())
            equal += int(record.runs[:, 5].sum())
            yield format_paf(record, lengths, related)

    if str(out) == "-":
        sys.stdout.writelines(lines())
    else:
        with atomic.open_atomic(out, "w") as file:
            file.writelines(lines())
    bases = sum(one.end - one.start for one in run.pieces())
    share = round(equal / aligned, 6) if aligned else None
    return {"records": records, "bases": bases, "aligned": aligned, "identity": share}


def merge_alignment(parts: list[ShardFile], out: str, *, force: bool) -> dict[str, Any]:
    """Write the PAF that one run writes, from all shards.

    Raises `DataError` where the genome is not the one that was read; `UsageError`, `MachineError`.
    """
    for file in (out, f"{out}.json"):
        check_target(file, force=force, inputs=[one.path for one in parts])
    told = parts[0].told
    with ExitStack() as stack:
        _, run = open_whole(stack, told)
        rows = read_shards(parts, lambda data, at: 2 + len(RUN) * int(data[at + 1]))
        summary = describe_whole(parts, out, "contigs") | write_paf(out, run, rows, told)
    summary |= {"file": describe_file(out)}
    atomic.write_json(f"{out}.json", summary)
    return summary


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
