"""The folder of `genodiff tracks`: its files and its sidecar, from one run or from shards."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from genodiff.errors import DataError
from genodiff.io import atomic
from genodiff.io.faidx import Genome
from genodiff.io.genes import Gene
from genodiff.io.regions import hold_contigs
from genodiff.io.target import check_new_folder, is_own_folder
from genodiff.jobs.job import EmptyOutputError
from genodiff.jobs.request import find_named
from genodiff.jobs.shards import ShardFile, describe_merge
from genodiff.maps.map_job import WRITE_PICTURE, list_genes
from genodiff.maps.request import check_drawn
from genodiff.maps.track_format import (
    FORMATS,
    SIDECAR,
    check_hub_options,
    check_track_output,
)
from genodiff.maps.track_hub import HubRequest, describe_reading, name_assembly
from genodiff.maps.track_reader import TrackRun, read_chances
from genodiff.maps.track_set import TrackSet, list_files
from genodiff.maps.track_values import (
    BaseTracks,
    TrackKinds,
    ValueRow,
    add_rows,
    count_tracks,
    join_intervals,
    list_kinds,
    name_related,
    read_rows,
)


@dataclass(frozen=True)
class TrackForm:
    """How tracks are written: formats, what a hub is called, a file of genes to draw, what an
    output says of the relatives that are drawn, too, and files of values by name, drawn below.
    """

    formats: tuple[str, ...]
    genome: str | None
    email: str
    genes: str | None = None
    relatives: Mapping[str, Any] | None = None
    tracks: Mapping[str, str] = field(default_factory=dict)

    @property
    def kinds(self) -> TrackKinds:
        """The tracks."""
        return list_kinds(self.relatives)

    def check(self) -> None:
        """Raises `UsageError` for names that a hub cannot hold, `MachineError` for no pyBigWig."""

        check_hub_options(self.genome, self.email)
        forms = [FORMATS[one]() for one in self.formats]
        drawn = any(one.is_drawn for one in forms)
        check_drawn("--track", self.tracks, drawn, "give --format html")
        check_drawn("--genes", self.genes, drawn, "give --format html")
        for one in forms:
            one.check()

    def describe(self) -> dict[str, Any]:
        """As a sidecar has it."""
        return {
            "formats": list(self.formats), "genome": self.genome, "email": self.email,
            "genes": self.genes, **({"tracks": dict(self.tracks)} if self.tracks else {}),
        }  # fmt: skip

    def list_files(self, assembly: str) -> list[str]:
        """The names of all files, the sidecar included."""
        return list_files(SIDECAR, self.formats, self.kinds, None if self.genome else assembly)


def write_folder(
    out: str | Path,
    run: TrackRun,
    blocks: Callable[[], Iterable[BaseTracks]],
    form: TrackForm,
    told: Mapping[str, Any],
    genes: Sequence[Sequence[Gene]],
    rows: Sequence[ValueRow],
) -> dict[str, Any]:
    """Write all files of `out`, a folder that is complete or not there; what its sidecar says.

    `genes` are those of each interval, `rows` values that are drawn below. Raises `DataError` where
    no base was read, `MachineError`.
    """
    began = time.monotonic()
    tally = count_tracks(blocks())
    if not tally.read:
        what = f"none of {tally.bases:,} bases is A, C, G or T"
        raise EmptyOutputError(what, file=told["fasta"]["path"], fix="give regions that are not N")

    def draw(path: Path) -> None:
        joined = add_rows(list(join_intervals(blocks(), run.intervals)), rows)
        beside = [(one.name, one.limits) for one in rows]
        _draw(path, joined, {**told, **form.describe(), "beside": beside}, genes)

    def describe(folder: Path, names: Mapping[str, str]) -> dict[str, Any]:
        seconds = round(told["seconds"] + time.monotonic() - began, 3)
        return {**form.describe(), **told, **tally.describe(), "seconds": seconds}

    assembly = name_assembly(told["fasta"]["path"])
    hub = HubRequest(form.genome, assembly, form.email, told["checkpoint"], run.intervals[0])
    facts = describe_reading(told)
    tracks = TrackSet(run.genome, run.intervals, blocks, form.kinds, form.formats, hub, facts, draw)
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
        picture = find_named("genodiff.reports.track_picture:list_track_picture")
        find_named(WRITE_PICTURE)(path, path.suffix, *picture(regions[0], told, genes[0]))


COMMON = (
    "model", "checkpoint", "context", "every", "company", "memory", "relatives", "fasta", "device",
)  # fmt: skip
"""What the sidecars of a shard and of the whole say alike."""


def merge_tracks(parts: list[ShardFile], out: str, *, force: bool) -> dict[str, Any]:
    """Write the folder that one run writes, from the chances of all shards.

    Raises `DataError` where the genome is not the one that was read; `UsageError`, `MachineError`.
    """

    check_track_output(out, shard=False)
    check_new_folder(out, force=force or is_own_folder(out, SIDECAR))
    told = parts[0].told
    form = TrackForm(
        tuple(told["formats"]), told["genome"], told["email"], told["genes"], told["relatives"],
        told.get("tracks", {}),
    )  # fmt: skip
    form.check()
    with Genome(told["fasta"]["path"]) as genome:
        if genome.sha256 != told["fasta"]["sha256"]:
            fix = "merge with the genome that was read"
            raise DataError("is not the genome of the shards", file=genome.path, fix=fix)
        intervals = [(str(one[0]), int(one[1]), int(one[2])) for one in told["intervals"]]
        related = name_related(told["relatives"])
        run = TrackRun.make(genome, intervals, told["context"], None, related)
        genes = list_genes(form.genes, genome, run.intervals)
        rows = read_rows(form.tracks, hold_contigs(genome.contigs), run.intervals)
        paths = [one.path for one in parts]

        def blocks() -> Iterable[Any]:
            return run.blocks(read_chances(paths, run.pieces(), run.bases, run.columns))

        return write_folder(out, run, blocks, form, {
            **{key: told[key] for key in COMMON}, **describe_merge(parts, out),
        }, genes, rows)  # fmt: skip
