"""The folder of `genodiff constraint`, or a shard of it. Its entries are the values of pieces."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from genodiff.conservation.base_classes import BaseClasses
from genodiff.conservation.folder import ConstraintForm, write_constraint
from genodiff.conservation.reader import (
    COLUMNS,
    CONTEXT,
    TILE,
    ConstraintRun,
    Sites,
    estimate_neutral_rate,
    read_constraint,
)
from genodiff.conservation.request import HOLDS, SIDECAR, ConstraintRequest, GenomeRequest
from genodiff.errors import DataError, UsageError, format_count
from genodiff.io import atomic
from genodiff.io.faidx import Genome
from genodiff.io.places import list_places
from genodiff.io.target import check_new_folder, is_own_folder
from genodiff.jobs.job import Job, Rows
from genodiff.jobs.shards import ShardFile, describe_merge
from genodiff.maps.map_regions import list_intervals, open_contigs
from genodiff.maps.track_files import name_assembly
from genodiff.maps.track_format import check_track_output
from genodiff.memory.column_rates import NeutralRate
from genodiff.memory.tree import format_newick
from genodiff.runs.related_genome import RelatedGenomes, relate_genome
from genodiff.runs.relative_lists import list_genomes
from genodiff.runs.relatives_plan import count_waiting
from genodiff.scoring.variant_windows import cut_pieces

_BASES_A_SECOND = 150_000
"""Of one related genome, about, measured on one core."""
_LEAST_SITES = 100
_log = logging.getLogger("genodiff")
_SAME = ("context", "tile", "relatives_digest", "relatives", "fasta", "device")
"""What the sidecar of a shard says of the whole output, too."""
Asked = TypeVar("Asked", bound=GenomeRequest)


class GenomeJob(Job[Asked]):
    """The job of a `GenomeRequest`; `verb` is its name."""

    noun = "bases"
    needs_torch = False
    verb: ClassVar[str]

    def open(self, stack: ExitStack) -> None:
        asked = self.request
        self.genome = open_target(stack, asked.genome, self.verb)
        self.hashes[str(asked.genome)] = self.genome.sha256
        wanted = list_intervals(self.genome, asked.region, asked.bed)
        self.run_of = ConstraintRun.make(self.genome, wanted, asked.part)
        self.listed = list_genomes(asked.relatives)
        self.about: dict[str, Any] = {}
        self.total = sum(one.end - one.start for one in self.run_of.pieces())

    def plan(self) -> dict[str, Any]:
        """What reading `total` bases would take; no genome is opened."""
        waiting = count_waiting(self.listed, fits=True) or {}
        rows = self.listed.rows
        read = self.total * len(rows) / _BASES_A_SECOND
        return {
            "intervals": len(self.run_of.intervals), "bases": self.total,
            "relatives": [row.name for row in rows], "to_index": waiting["waiting"],
            **self.describe_plan(), "fit_seconds": waiting["seconds"],
            "seconds": round(read + waiting["seconds"], 1), "device": "cpu",
        }  # fmt: skip

    def describe_plan(self) -> dict[str, Any]:
        """What a plan says of the output."""
        return {}

    def identify(self) -> dict[str, Any]:
        if not self.about:
            self.related: RelatedGenomes = relate_genome(
                self.genome, self.request.relatives, strains=self.request.strains
            )
            self.about = {"context": CONTEXT, "tile": TILE, "relatives_digest": self.related.digest}
        return self.about

    def describe(self) -> dict[str, Any]:
        """What every sidecar says."""
        part = self.request.part
        return {
            **self.about, "relatives": self.related.told,
            "fasta": {"path": self.genome.path, "sha256": self.genome.sha256},
            "shard": None if part is None else list(part),
        }  # fmt: skip

    def write_shard(self, rows: Rows, kind: str, **told: Any) -> dict[str, Any]:
        """Write the entries of a shard as a row of numbers; what its sidecar says."""
        size = sum(map(len, rows())) // np.dtype(kind).itemsize
        with atomic.open_atomic(self.request.out) as file:
            head = {"descr": kind, "fortran_order": False, "shape": (size,)}
            np.lib.format.write_array_header_1_0(file, head)
            for row in rows():
                file.write(row)
        return told | {
            "format": "npy", "request": self.name_request(whole=True), "bases": self.total,
            "cut": list(self.run_of.cut), "intervals": [list(one) for one in self.run_of.intervals],
        }  # fmt: skip


class ConstraintJob(GenomeJob[ConstraintRequest]):
    """The job of `ConstraintRequest`."""

    verb = "constraint"

    def open(self, stack: ExitStack) -> None:
        super().open(stack)
        self.form = ConstraintForm.of(self.request)
        genes = self.request.genes
        self.classes = None if genes is None else BaseClasses(genes, self.genome)

    def list_files(self) -> list[str]:
        if self.request.part is not None:
            return super().list_files()
        names = self.form.list_files(name_assembly(self.genome.path))
        return [f"{str(self.request.out).rstrip('/')}/{name}" for name in names]

    def describe_plan(self) -> dict[str, Any]:
        width = 4 * COLUMNS + len(self.listed.rows)
        return {"formats": list(self.form.formats), "journal_bytes": self.total * width}

    def identify(self) -> dict[str, Any]:
        if not self.about:
            sites = self._find_sites()
            super().identify()
            self.neutral = self._estimate_neutral(*sites)
            self.about["neutral"] = self.neutral._asdict()
        return self.about

    def _estimate_neutral(self, sites: Sites | None, source: str) -> NeutralRate:
        asked, contigs = self.request, dict(self.genome.contigs)
        pieces = list(cut_pieces(list_intervals(self.genome), contigs, CONTEXT, TILE))
        found = estimate_neutral_rate(self.genome, self.related.relatives, pieces, sites, source)
        file = asked.neutral or asked.genes
        if found.sites < _LEAST_SITES:
            n = format_count(int(found.sites), "neutral site")
            what = f"related genomes align to {n}: rate 1 cannot be estimated"
            other = "neutral sites (--neutral BED)" if file is None else "other sites"
            fix = f"give more closely related genomes, or {other}"
            raise DataError(what, file=file or self.genome.path, fix=fix)
        _log.info("rate 1 is that of %s (%s positions)", found.source, f"{found.sites:,.0f}")
        return found

    def _find_sites(self) -> tuple[Sites | None, str]:
        """The neutral sites of each contig and what they are called; None: the fitted classes."""
        asked = self.request
        if asked.neutral is not None:
            spans: dict[str, list[Any]] = {}
            for one in list_places(dict(self.genome.contigs), (), asked.neutral):
                spans.setdefault(one.contig, []).append(np.arange(one.start, one.end))
            sites = {name: np.unique(np.concatenate(some)) for name, some in spans.items()}
            return sites, f"the sites of {Path(asked.neutral).name}"
        if self.classes is None:
            return None, ""
        fourfold = self.classes.find_fourfold()
        n = sum(map(len, fourfold.values()))
        if n < _LEAST_SITES:
            what = f"has {format_count(n, 'fourfold site')}: rate 1 cannot be estimated"
            fix = "give --neutral BED, or an annotation with coding sequences"
            raise DataError(what, file=asked.genes, fix=fix)
        return fourfold, f"fourfold sites of {Path(str(asked.genes)).name}"

    def entries(self, first: int) -> Iterator[bytes]:
        rest = islice(self.run_of.pieces(), first, None)
        for one in read_constraint(self.genome, self.related.relatives, self.neutral, rest):
            yield one.pack()

    def weigh(self, entry: bytes) -> int:
        return len(entry) // (4 * COLUMNS + len(self.related.relatives.genomes))

    def write(self, rows: Rows) -> dict[str, Any]:
        self.rows = rows
        columns, told = self.related.relatives.columns, self.describe()
        assert columns is not None
        genomes = told["relatives"]["genomes"]
        names = [name_assembly(self.genome.path), *(one["name"] for one in genomes)]
        told["tree"] = format_newick(columns.tree, names, self.neutral.rate)
        told["columns"] = columns.model_dump(mode="json")
        if self.request.part is None:
            return told
        return told | self.write_shard(rows, "|u1", holds=HOLDS, form=asdict(self.form))

    def finish(self, told: dict[str, Any]) -> dict[str, Any]:
        if self.request.part is not None:
            return super().finish(told)
        out = str(self.request.out)
        return write_constraint(out, self.run_of, self.rows, self.form, told, self.classes)


def open_target(stack: ExitStack, given: Any, verb: str, sha256: str | None = None) -> Genome:
    """The genome of a FASTA file, and of shards, whose sidecar has its sha256.

    Raises `UsageError` for sequences in memory, `DataError` where it is not that of the shards.
    """
    genome = stack.enter_context(open_contigs(given))
    if not isinstance(genome, Genome):
        what = f"{verb} needs the FASTA file of the target genome"
        raise UsageError(what, fix="write the sequences to a file")
    if sha256 not in (None, genome.sha256):
        fix = "merge with the genome that was read"
        raise DataError("is not the genome of the shards", file=genome.path, fix=fix)
    return genome


def open_whole(stack: ExitStack, told: Mapping[str, Any]) -> tuple[Genome, ConstraintRun]:
    """The genome and the run of all shards, as the sidecar of one says. Raises as `open_target`."""
    genome = open_target(stack, told["fasta"]["path"], "merge", told["fasta"]["sha256"])
    intervals = [(str(one[0]), int(one[1]), int(one[2])) for one in told["intervals"]]
    return genome, ConstraintRun.make(genome, intervals, None)


def read_shards(
    parts: list[ShardFile], measure: Callable[[NDArray[Any], int], int]
) -> Iterator[bytes]:
    """The entries of all shards; `measure` says how many numbers the one that begins there has."""
    for part in parts:
        data, at = np.load(part.path, mmap_mode="r", allow_pickle=False), 0
        while at < len(data):
            end = at + measure(data, at)
            yield data[at:end].tobytes()
            at = end


def describe_whole(parts: list[ShardFile], out: str, *more: str) -> dict[str, Any]:
    """What the sidecar of the whole output says as that of a shard does, with the keys `more`."""
    return {key: parts[0].told[key] for key in (*_SAME, *more)} | describe_merge(parts, out)


def merge_constraint(parts: list[ShardFile], out: str, *, force: bool) -> dict[str, Any]:
    """Write the folder that one run writes, from all shards.

    Raises `DataError` where the genome is not the one that was read; `UsageError`, `MachineError`.
    """
    check_track_output(out, shard=False)
    check_new_folder(out, force=force or is_own_folder(out, SIDECAR))
    told = parts[0].told
    form = ConstraintForm(**{**told["form"], "formats": tuple(told["form"]["formats"])})
    with ExitStack() as stack:
        genome, run = open_whole(stack, told)
        width = 4 * COLUMNS + len(told["relatives"]["genomes"])

        def rows() -> Iterator[bytes]:
            sizes = (width * (one.end - one.start) for one in run.pieces())
            return read_shards(parts, lambda data, at: next(sizes))

        same = describe_whole(parts, out, "neutral", "tree", "columns")
        classes = None if form.genes is None else BaseClasses(form.genes, genome)
        return write_constraint(out, run, rows, form, same, classes)
