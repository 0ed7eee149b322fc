"""The folder of `genodiff tracks`: where it goes, its files, its sidecar; and a shard's file."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genodiff.api.map_output import check_gene_file, list_genes
from genodiff.errors import DataError, UsageError
from genodiff.io.target import (
    check_new_folder,
    check_target,
    describe_file,
    is_own_file,
    read_json_object,
)
from genodiff.scoring.track_format import FORMATS, SIDECAR, check_hub_options
from genodiff.version import __version__

if TYPE_CHECKING:
    from genodiff.io.genes import Gene
    from genodiff.scoring.masked_reader import MaskedReader
    from genodiff.scoring.row_journal import RowJournal
    from genodiff.scoring.track_reader import TrackRequest
    from genodiff.scoring.track_run import TrackRun
    from genodiff.scoring.track_values import BaseTracks
    from genodiff.scoring.variant_merge import ScoreShard


@dataclass(frozen=True)
class TrackForm:
    """How tracks are written: formats, what a hub is called, and a file of genes to draw."""

    formats: tuple[str, ...]
    genome: str | None
    email: str
    genes: str | None = None

    def check(self) -> None:
        """Raises `UsageError` for names that a hub cannot hold, `MachineError` for no pyBigWig."""
        check_hub_options(self.genome, self.email)
        forms = [FORMATS[one]() for one in self.formats]
        check_gene_file(self.genes, any(one.is_drawn for one in forms), "give --format html")
        for one in forms:
            one.check()

    def describe(self) -> dict[str, Any]:
        """As a sidecar has it."""
        return {
            "formats": list(self.formats), "genome": self.genome, "email": self.email,
            "genes": self.genes,
        }  # fmt: skip

    def list_files(self, assembly: str) -> list[str]:
        """The names of all files, the sidecar included."""
        found = {SIDECAR}
        for one in self.formats:
            found |= set(FORMATS[one]().list_files())
        if "bigwig" in self.formats:
            found |= {"hub.txt", "genomes.txt", "trackDb.txt", "description.html"}
            found |= set() if self.genome else {f"{assembly}.2bit"}
        return sorted(found)


class NothingReadError(DataError):
    """All bases of a request are N."""


def check_folder_target(out: str | Path, *, force: bool) -> None:
    """Raises `UsageError` where `out` is there and genodiff did not write it as it stands.

    `MachineError` where it cannot be made.
    """
    check_new_folder(out, force=force or is_own_folder(out))


def check_shard_target(out: str, journal: Path, inputs: Iterable[Any], *, force: bool) -> None:
    """The same of a shard's file; what an unfinished run kept beside it is genodiff's own."""
    from genodiff.scoring.row_journal import RowJournal

    def ours(_: Path) -> bool:
        return RowJournal.read_request(journal) is not None or is_own_file(out)

    given = [one for one in inputs if isinstance(one, str | Path)]
    check_target(out, force=force, inputs=given, known=ours)
    check_target(f"{out}.json", force=force, inputs=given)


def is_own_folder(folder: str | Path) -> bool:
    """Whether a folder has the files that its sidecar tells of, unchanged, and no other."""
    told = read_json_object(Path(folder) / SIDECAR)
    files = told.get("files")
    if not isinstance(told.get("genodiff"), str) or not isinstance(files, dict):
        return False
    there = {
        os.path.relpath(os.path.join(at, name), folder)
        for at, _, names in os.walk(folder)
        for name in names
    }
    if there != {*files, SIDECAR}:
        return False
    return all(describe_file(Path(folder) / name) == said for name, said in files.items())


def fill_tracks(
    run: TrackRun, journal: RowJournal, reader: MaskedReader, alphabet: Any, request: TrackRequest
) -> None:
    """Read all pieces that the journal does not hold, with a line of progress."""
    from genodiff.io.progress import ProgressDisplay, format_duration

    total = run.count_evaluations(request)[0]
    with ProgressDisplay() as display:
        began = first = 0.0

        def tick(done: int, before: int) -> None:
            nonlocal began, first
            text = f"read {done:,} of {total:,} bases"
            now = time.monotonic()
            if not began:  # all that is read and compiled before it is over by then
                began, first = now, done
            elif now > began and done > first:
                pace = (done - first) / (now - began)
                text += f" · {pace:,.0f} bases/s · {format_duration((total - done) / pace)} to go"
            display.show(text, done, total)

        run.fill(journal, reader, alphabet, request, tick)


def write_folder(
    out: str | Path,
    run: TrackRun,
    blocks: Callable[[], Iterable[BaseTracks]],
    form: TrackForm,
    told: Mapping[str, Any],
    genes: Sequence[Sequence[Gene]],
) -> dict[str, Any]:
    """Write all files of `out`, a folder that is complete or not there; what its sidecar says.

    `genes` are those of each interval. Raises `DataError` where no base was read, `MachineError`.
    """
    from genodiff.io import atomic
    from genodiff.io.identity import stamp_time
    from genodiff.io.published_text import hide_all_folders
    from genodiff.scoring.browser_names import name_contigs, rename_blocks
    from genodiff.scoring.track_files import TrackContent, write_format
    from genodiff.scoring.track_hub import HubRequest, name_assembly, write_hub
    from genodiff.scoring.track_values import count_tracks, join_intervals

    began, contigs = time.monotonic(), dict(run.genome.contigs)
    tally = count_tracks(blocks())
    if not tally.read:
        what = f"none of {tally.bases:,} bases is A, C, G or T"
        raise NothingReadError(what, file=told["fasta"]["path"], fix="give regions that are not N")
    names = name_contigs(contigs, form.genome)
    lengths = {names[name]: length for name, length in contigs.items()}

    def renamed() -> Iterable[Any]:
        return rename_blocks(blocks, names, [one[0] for one in run.intervals])

    def draw(path: Path) -> None:
        joined = list(join_intervals(blocks(), run.intervals))
        _draw(path, joined, {**told, **form.describe()}, genes)

    plain = TrackContent(blocks, contigs, run.intervals, draw)
    named = plain._replace(blocks=renamed, contigs=lengths)
    own = is_own_folder(out)
    with atomic.atomic_directory(out, aside=not own, replace=own) as folder:
        for one in form.formats:
            write_format(folder, one, named if FORMATS[one].kind == "tracks" else plain)
        if "bigwig" in form.formats:
            assembly = name_assembly(told["fasta"]["path"])
            view = run.intervals[0]
            hub = HubRequest(form.genome, assembly, form.email, told["checkpoint"], view)
            write_hub(folder, run.genome, hub, told)
        files = sorted(one.name for one in folder.iterdir())
        summary = {
            "genodiff": __version__, "out": str(out), **form.describe(), **told,
            **tally.describe(), "intervals": [list(one) for one in run.intervals],
            "names": {old: new for old, new in names.items() if old != new},
            "argv": sys.argv, "seconds": round(told["seconds"] + time.monotonic() - began, 3),
            "created": stamp_time(),
            "files": {name: describe_file(folder / name) for name in files},
        }  # fmt: skip
        # the folder is put on a web server as it is
        atomic.write_json(folder / SIDECAR, hide_all_folders(summary))
    return summary


def _draw(
    path: Path,
    regions: Sequence[BaseTracks],
    told: Mapping[str, Any],
    genes: Sequence[Sequence[Gene]],
) -> None:
    """Write the page of all regions, or the picture of one, by the path's ending."""
    from genodiff.io import atomic
    from genodiff.reports.paint import write_picture
    from genodiff.reports.track_page import render_track_page
    from genodiff.reports.track_picture import list_track_picture

    if path.suffix == ".html":
        atomic.write_text(path, render_track_page(regions, told, genes))
    else:
        write_picture(path, path.suffix, *list_track_picture(regions[0], told, genes[0]))


def merge_tracks(parts: list[ScoreShard], out: str, *, force: bool) -> dict[str, Any]:
    """Write the folder that one run writes, from the chances of all shards.

    Raises `DataError` where the genome is not the one that was read; `UsageError`, `MachineError`.
    """
    from genodiff.io.faidx import Genome
    from genodiff.scoring.track_format import check_track_output
    from genodiff.scoring.track_run import TrackRun, read_chances

    check_track_output(out, shard=False)
    check_folder_target(out, force=force)
    told = parts[0].told
    form = TrackForm(tuple(told["formats"]), told["genome"], told["email"], told["genes"])
    form.check()
    with ExitStack() as stack:
        genome = stack.enter_context(Genome(told["fasta"]["path"]))
        if genome.sha256 != told["fasta"]["sha256"]:
            fix = "merge with the genome that was read"
            raise DataError("is not the genome of the shards", file=genome.path, fix=fix)
        intervals = [(str(one[0]), int(one[1]), int(one[2])) for one in told["intervals"]]
        run = TrackRun.make(genome, intervals, told["context"], None)
        genes = list_genes(form.genes, genome, run.intervals)
        paths = [one.path for one in parts]

        def blocks() -> Iterable[Any]:
            return run.blocks(read_chances(paths, run.pieces(), run.bases))

        return write_folder(out, run, blocks, form, {
            **pick_common(told), "shard": None, "shards": paths,
            "seconds": round(sum(one.told["seconds"] for one in parts), 3),
        }, genes)  # fmt: skip


_COMMON = (
    "model",
    "checkpoint",
    "context",
    "every",
    "company",
    "memory",
    "fasta",
    "bed",
    "region",
    "device",
)


def pick_common(told: Mapping[str, Any]) -> dict[str, Any]:
    """What a shard and the whole say alike."""
    return {key: told[key] for key in _COMMON}


def refuse_stream(path: str | None) -> str:
    """The path of a FASTA file. Raises `UsageError` for sequences in memory."""
    if path is None:
        raise UsageError("--shard needs a FASTA file", fix="give the file, or leave out the shard")
    return path
