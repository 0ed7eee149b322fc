"""The PAF of `genodiff align`, or a shard of it. Its entries are the runs of pieces."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from typing import Any

import numpy as np

from genodiff.conservation.alignment import RUN, Runs, format_paf, join_runs, read_runs
from genodiff.conservation.job import GenomeJob, describe_whole, open_whole, read_shards
from genodiff.conservation.request import ALIGNED, AlignRequest
from genodiff.conservation.run import ConstraintRun
from genodiff.errors import UsageError, format_count
from genodiff.io import atomic
from genodiff.io.target import check_target, describe_file
from genodiff.jobs.job import Rows
from genodiff.jobs.shards import ShardFile


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
