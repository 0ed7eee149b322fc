"""Tracks of a genome, base by base, in memory and as a folder: `genodiff tracks`."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from genodiff.errors import DataError, UsageError
from genodiff.io import atomic
from genodiff.io.faidx import Genome
from genodiff.io.genes import Gene
from genodiff.io.regions import hold_contigs
from genodiff.io.sequences import is_single
from genodiff.io.target import check_new_folder, describe_file, is_own_folder
from genodiff.jobs.job import EmptyOutputError, Job, Rows
from genodiff.jobs.request import find_named
from genodiff.jobs.shards import ShardFile, describe_merge
from genodiff.maps.map_job import WRITE_PICTURE, tell_time
from genodiff.maps.map_regions import identify_genome, list_genes, list_intervals, open_contigs
from genodiff.maps.request import HeldTracksRequest, TracksRequest, check_drawn
from genodiff.maps.track_files import TrackSet, list_files, name_assembly
from genodiff.maps.track_format import FORMATS, HOLDS, SIDECAR, check_track_output, choose_formats
from genodiff.maps.track_hub import HubRequest
from genodiff.maps.track_reader import (
    TrackReading,
    TrackRun,
    measure_company,
    read_chances,
    read_pieces,
    write_chances,
)
from genodiff.maps.track_values import (
    BaseTracks,
    ValueRow,
    count_tracks,
    find_genes,
    find_tracks,
    join_intervals,
    list_kinds,
    make_blocks,
    name_related,
    read_rows,
)
from genodiff.models.opening import ModelHolder, open_language, refuse_fitted
from genodiff.runs.related_model import refit_model
from genodiff.runs.relatives_plan import describe_waiting
from genodiff.runs.run_paths import reads_network
from genodiff.runs.trained_model import name_memory
from genodiff.runs.training_memory import open_loci
from genodiff.scoring.masked_reader import open_reader
from genodiff.scoring.variant_windows import count_bases, merge_intervals


class TracksJob(Job[TracksRequest]):
    """The folder of `genodiff tracks`, or a shard of it. Its entries are the chances of pieces."""

    noun = "bases"

    @property
    def needs_torch(self) -> bool:
        return reads_network(self.request.run)

    def open(self, stack: ExitStack) -> None:
        asked = self.request
        self.genome = stack.enter_context(open_contigs(asked.sequences))
        wanted = list_intervals(self.genome, asked.region, asked.bed)
        self.path = getattr(self.genome, "path", None)
        self.genome_hash = identify_genome(self.genome)
        if self.path is not None:
            self.hashes[str(self.path)] = self.genome_hash
        if asked.part is not None and self.path is None:
            what = "--shard needs a FASTA file"
            raise UsageError(what, fix="give the file, or leave out the shard")
        # All that files say is judged before a model is opened.
        intervals = merge_intervals(wanted)
        formats = choose_formats(asked.formats, count_bases(intervals), len(intervals))
        tracks = find_tracks(asked.track)
        genes = find_genes(asked.track) if asked.genes is None else str(asked.genes)
        self.form: dict[str, Any] = {
            "formats": list(formats), "genome": asked.genome, "email": asked.email, "genes": genes,
            **({"tracks": tracks} if tracks else {}),
        }  # fmt: skip
        check_form(self.form)
        self.genes = list_genes(genes, self.genome, intervals)
        self.values = read_rows(tracks, hold_contigs(self.genome.contigs), intervals)
        self.model = open_language(
            asked.run, self.device, asked.relatives, strains=asked.strains, fasta=self.path,
            plan=asked.plan,
        )  # fmt: skip
        self.model.check_fills_dna()
        self.how = TrackReading(asked.context or self.model.config.data.seq_len, asked.every)
        self.related = name_related(self.model.relatives)
        self.run_of = TrackRun.make(self.genome, wanted, self.how.context, asked.part, self.related)
        self.total, self.evaluations = self.run_of.count_evaluations(self.how)

    def list_files(self) -> list[str]:
        if self.request.part is not None:
            return super().list_files()
        assembly = None if self.request.genome else name_assembly(self.path)
        kinds = list_kinds(self.model.relatives)
        names = list_files(SIDECAR, self.form["formats"], kinds, assembly)
        return [f"{str(self.request.out).rstrip('/')}/{name}" for name in names]

    def plan(self) -> dict[str, Any]:
        asked = self.request
        places = ((one.contig, one.start) for one in self.run_of.pieces())
        return {
            "intervals": len(self.run_of.intervals), "bases": self.total,
            "evaluations": self.evaluations, "journal_bytes": 4 * self.run_of.columns * self.total,
            "formats": self.form["formats"],
            **tell_time(
                self.model, self.genome, places, self.evaluations, asked, asked.every
            ),
            **describe_waiting(self.model.relatives),
        }  # fmt: skip

    def identify(self) -> dict[str, Any]:
        self.loci = open_loci(
            self.model, self.genome, self.request.memory, longest=self.how.context
        )
        self.about = {
            "checkpoint": self.model.digest, "context": self.how.context,
            "every": self.how.every, **name_memory(self.loci),
        }  # fmt: skip
        return {**self.about, "genome": self.genome_hash}

    def entries(self, first: int) -> Iterator[bytes]:
        self.reader = open_reader(self.model, batch_size=self.request.batch_size, loci=self.loci)
        rest = islice(self.run_of.pieces(), first, None)
        alphabet = self.model.alphabet
        for _, p in read_pieces(self.reader, self.genome, alphabet, rest, self.how):
            yield p.astype("<f4").tobytes()

    def weigh(self, entry: bytes) -> int:
        return len(entry) // (4 * self.run_of.columns)

    def write(self, rows: Rows) -> dict[str, Any]:
        asked, company = self.request, None
        if self.how.every is not None:
            company = measure_company(
                self.reader, self.genome, self.model.alphabet, self.run_of.intervals, self.how
            )
        self.rows = rows
        return {
            "model": str(asked.run), **self.about, "memory": self.about.get("memory"),
            "relatives": self.model.relatives,
            "company": company,
            "fasta": {"path": self.path, "sha256": self.genome_hash},
            "shard": None if asked.part is None else list(asked.part),
        }  # fmt: skip

    def finish(self, told: dict[str, Any]) -> dict[str, Any]:
        if self.request.part is not None:
            return self._finish_shard(told)
        work, rows = self.run_of, self.rows
        return write_folder(
            self.request.out, work, lambda: work.blocks(rows()), self.form | told, self.genes,
            self.values,
        )  # fmt: skip

    def _finish_shard(self, told: dict[str, Any]) -> dict[str, Any]:
        out, work = str(self.request.out), self.run_of
        bases = sum(one.end - one.start for one in work.pieces())
        write_chances(out, (bases, work.columns), self.rows())
        told |= {
            "holds": HOLDS, "format": "npy", **self.form, "cut": list(work.cut), "bases": bases,
            "intervals": [list(one) for one in work.intervals],
            "request": self.name_request(whole=True), "file": describe_file(out),
        }  # fmt: skip
        atomic.write_json(self.request.sidecar_file, told)
        return told


def map_tracks(asked: HeldTracksRequest, holder: ModelHolder) -> Any:
    """What `genodiff.Model.tracks` gives: the tracks of a sequence or region, or a list of them."""
    model, given = refuse_fitted(holder.inner), asked.sequences
    model.check_fills_dna()
    asked = replace(asked, memory=asked.memory or holder.memory)  # type: ignore[arg-type]
    how = TrackReading(asked.context or model.config.data.seq_len, asked.every)

    def read(one: tuple[str, int, int]) -> Iterator[BaseTracks]:
        work = TrackRun.make(genome, [one], how.context, None, related)
        pieces = read_pieces(reader, genome, model.alphabet, work.pieces(), how)
        yield from join_intervals(make_blocks(genome, pieces, related), [one])

    with open_contigs(given) as genome:
        model = refit_model(model, genome)
        related = name_related(model.relatives)
        wanted = list_intervals(genome, asked.region, asked.bed)
        loci = open_loci(model, genome, asked.memory, longest=how.context)
        reader = open_reader(model, batch_size=asked.batch_size, loci=loci)
        tracks = [track for one in wanted for track in read(one)]
    alone = is_single(given) and asked.bed is None and not asked.region
    return tracks[0] if alone else tracks


def check_form(form: Mapping[str, Any]) -> None:
    """Raises `UsageError` for what no format draws, `MachineError` where a package is missing.

    `form` is how tracks are written, as a sidecar says it: `formats`, what a hub is called, a file
    of `genes` to draw, and files of values by name, drawn below, as `tracks`.
    """
    formats = [FORMATS[one]() for one in form["formats"]]
    drawn = any(one.is_drawn for one in formats)
    check_drawn("--track", form.get("tracks"), drawn, "give --format html")
    check_drawn("--genes", form["genes"], drawn, "give --format html")
    for one in formats:
        one.check()


def write_folder(
    out: str | Path,
    run: TrackRun,
    blocks: Callable[[], Iterable[BaseTracks]],
    told: Mapping[str, Any],
    genes: Sequence[Sequence[Gene]],
    rows: Sequence[ValueRow],
) -> dict[str, Any]:
    """Write all files of `out`, a folder that is complete or not there; what its sidecar says.

    `told` is that but for the figures of the tracks. `genes` are those of each interval, `rows`
    values that are drawn below. Raises `DataError` where no base was read, `MachineError`.
    """
    began = time.monotonic()
    tally = count_tracks(blocks())
    if not tally["read"]:
        what = f"none of {tally['bases']:,} bases is A, C, G or T"
        raise EmptyOutputError(what, file=told["fasta"]["path"], fix="give regions that are not N")

    def draw(path: Path) -> None:
        beside = [(one.name, one.limits) for one in rows]
        joined = [
            replace(one, related={**one.related, **{row.name: row.values[i] for row in rows}})
            for i, one in enumerate(join_intervals(blocks(), run.intervals))
        ]
        _draw(path, joined, {**told, "beside": beside}, genes)

    def describe(folder: Path, names: Mapping[str, str]) -> dict[str, Any]:
        seconds = round(told["seconds"] + time.monotonic() - began, 3)
        return {**told, **tally, "seconds": seconds}

    assembly = name_assembly(told["fasta"]["path"])
    hub = HubRequest(told["genome"], assembly, told["email"], told["checkpoint"], run.intervals[0])
    kinds, facts = list_kinds(told["relatives"]), describe_reading(told)
    tracks = TrackSet(run.genome, run.intervals, blocks, kinds, told["formats"], hub, facts, draw)
    return tracks.write(out, SIDECAR, describe)


def _draw(
    path: Path,
    regions: Sequence[BaseTracks],
    told: Mapping[str, Any],
    genes: Sequence[Sequence[Gene]],
) -> None:
    """Write the page of all regions, or the picture of one, by the path's ending."""
    if path.suffix == ".html":
        page = find_named("genodiff.reports.track_page:render_track_page")
        atomic.write_text(path, page(regions, told, genes))
    else:
        picture = find_named("genodiff.reports.track_page:list_track_picture")
        find_named(WRITE_PICTURE)(path, path.suffix, *picture(regions[0], told, genes[0]))


COMMON = (
    "formats", "genome", "email", "genes", "tracks", "model", "checkpoint", "context", "every",
    "company", "memory", "relatives", "fasta", "device",
)  # fmt: skip
"""What the sidecars of a shard and of the whole say alike."""


def merge_tracks(parts: list[ShardFile], out: str, *, force: bool) -> dict[str, Any]:
    """Write the folder that one run writes, from the chances of all shards.

    Raises `DataError` where the genome is not the one that was read; `UsageError`, `MachineError`.
    """
    check_track_output(out, shard=False)
    check_new_folder(out, force=force or is_own_folder(out, SIDECAR))
    told = parts[0].told
    check_form(told)
    with Genome(told["fasta"]["path"]) as genome:
        if genome.sha256 != told["fasta"]["sha256"]:
            fix = "merge with the genome that was read"
            raise DataError("is not the genome of the shards", file=genome.path, fix=fix)
        intervals = [(str(one[0]), int(one[1]), int(one[2])) for one in told["intervals"]]
        related = name_related(told["relatives"])
        run = TrackRun.make(genome, intervals, told["context"], None, related)
        genes = list_genes(told["genes"], genome, run.intervals)
        rows = read_rows(told.get("tracks", {}), hold_contigs(genome.contigs), run.intervals)
        paths = [one.path for one in parts]

        def blocks() -> Iterable[Any]:
            return run.blocks(read_chances(paths, run.pieces(), run.bases, run.columns))

        common = {key: told[key] for key in COMMON if key in told}
        return write_folder(out, run, blocks, common | describe_merge(parts, out), genes, rows)


def describe_reading(told: Mapping[str, Any]) -> dict[str, str]:
    """The facts of a hub of a model's tracks; `told` is what the sidecar says."""
    every = told.get("every")
    return {
        "model": f"{Path(told['model']).name} ({told['checkpoint']})",
        "masked": f"every {every} bases masked together" if every else "each base masked by itself",
        "bases of a window": f"{told['context']:,}",
    }
