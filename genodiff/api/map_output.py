"""What `genodiff ism` and `genodiff dependencies` share: the request, its rows, and its files."""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genodiff.errors import UsageError
from genodiff.io.target import check_target, describe_file, is_own_file, is_stream
from genodiff.scoring.map_format import DRAWN, PICTURES
from genodiff.version import __version__

if TYPE_CHECKING:
    from genodiff.api.model import Model
    from genodiff.io.genes import Gene
    from genodiff.runs.own_loci import OwnLoci
    from genodiff.scoring.map_regions import MapRegion
    from genodiff.scoring.variant_windows import Contigs

UNITS = ("nats", "bits")
MOST_DRAWN, MOST_PAINTED = 20_000, 5_000
"""Bases of all regions of one page, and of a picture of pixels."""
_log = logging.getLogger("genodiff")


@dataclass(frozen=True)
class MapTarget:
    """Where a map goes, and what may be replaced there."""

    path: str
    ending: str
    fresh: bool
    force: bool

    @property
    def journal(self) -> Path:
        """Where its rows are kept until it is there."""
        return Path(f"{self.path}.partial")

    def check(self, inputs: Iterable[str | Path | None]) -> None:
        """Raises `UsageError` for a foreign file or an input, `MachineError` for no place."""
        from genodiff.scoring.row_journal import RowJournal

        given = list(inputs)

        def ours(_: Path) -> bool:
            return RowJournal.read_request(self.journal) is not None or is_own_file(self.path)

        check_target(self.path, force=self.force, inputs=given, known=ours)
        if not is_stream(self.path):
            check_target(f"{self.path}.json", force=self.force, inputs=given)


def check_map_options(unit: str, context: int | None, batch_size: int) -> None:
    """Raises `UsageError` for options that cannot be meant, without importing torch."""
    if unit not in UNITS:
        raise UsageError(f"--unit {unit} is none of {', '.join(UNITS)}", fix="give one of these")
    if context is not None and context < 2:
        raise UsageError(f"--context {context} is no length", fix="give bases, 2 or more")
    if batch_size < 1:
        raise UsageError(f"--batch-size {batch_size} is below 1", fix="give 1 or more")


def check_picture(ending: str, regions: Sequence[MapRegion]) -> None:
    """Raises `UsageError` for regions that one picture cannot hold."""
    bases = sum(len(region.letters) for region in regions)
    if ending in PICTURES and len(regions) > 1:
        what = f"a {ending} is of one region, and there are {len(regions):,}"
        raise UsageError(what, fix="give one region, or --out x.html for all on one page")
    most = MOST_PAINTED if ending == ".png" else MOST_DRAWN
    if ending in DRAWN and bases > most:
        what = f"{bases:,} bases are more than the {most:,} that a {ending} holds"
        other = ".svg" if bases <= MOST_DRAWN else ".npz, .parquet or .tsv"
        raise UsageError(what, fix=f"give fewer regions, or a {other}")


def check_gene_file(file: str | Path | None, drawn: bool, where: str) -> None:
    """Raises `UsageError` for genes where nothing is drawn; `where` says what would be."""
    if file is not None and not drawn:
        raise UsageError("--genes are drawn below a picture", fix=f"leave it out, or {where}")


def list_genes(
    file: str | Path | None, genome: Contigs, places: Iterable[Sequence[Any]]
) -> list[list[Gene]]:
    """The genes of each place (contig, start, end, ...), from a file; none without one.

    A place without genes is told. Raises `DataError` for a faulty file.
    """
    from genodiff.io.genes import pick_genes, read_genes

    if file is None:
        return [[] for _ in places]
    wanted = list(places)
    genes = read_genes(file, genome.contigs, {one[0] for one in wanted})
    picked = [pick_genes(genes, *one[:3]) for one in wanted]
    if not any(picked):
        _log.warning("%s: no gene is in what is drawn", file)
    return picked


def write_drawn(
    target: MapTarget,
    maps: Sequence[Any],
    told: Mapping[str, Any],
    genes: Sequence[Sequence[Gene]],
    *,
    picture: Callable[..., Any],
    page: Callable[..., str],
) -> None:
    """Write maps as one `picture` (of shapes, with a title) or as a `page`, by the ending."""
    from genodiff.io import atomic
    from genodiff.reports.paint import write_picture

    if target.ending in PICTURES:
        write_picture(target.path, target.ending, *picture(maps, told, genes))
    else:
        atomic.write_text(target.path, page(maps, told, genes))


def identify_genome(genome: Contigs) -> str:
    """The sha256 of a FASTA file, or of sequences in memory."""
    from genodiff.io.identity import sha256_json

    known = getattr(genome, "sha256", None)
    if isinstance(known, str):
        return known
    letters = {
        name: genome.fetch(name, 0, n).decode("latin-1") for name, n in genome.contigs.items()
    }
    return sha256_json(letters)


def name_regions(regions: Sequence[MapRegion]) -> list[Any]:
    """What a request says of its regions."""
    return [[*one[:4], one.strand] for one in regions]


def plan_time(
    model: Model,
    genome: Contigs,
    places: Iterable[tuple[str, int]],
    evaluations: int,
    *,
    context: int | None,
    memory: str | None,
    batch_size: int,
    every: int | None = None,
) -> dict[str, Any]:
    """The `seconds` of so many evaluations, and on which `device`: a second of them is measured.

    `places` are bases (contig, from 0) that are masked, with `every` those so far apart.
    """
    from genodiff.runs.own_loci import open_loci
    from genodiff.scoring.masked_reader import open_reader
    from genodiff.scoring.plan_time import time_evaluations

    trained = model.trained
    loci = open_loci(trained, genome, memory, longest=context)
    reader = open_reader(trained, batch_size=batch_size, loci=loci)
    width = context or trained.config.data.seq_len
    each = time_evaluations(reader, genome, trained.alphabet, places, width, every)
    return {"seconds": round(evaluations * each, 1), "device": str(reader.device)}


def name_memory(loci: OwnLoci | None) -> dict[str, Any]:
    """What a request and its sidecar say of the memory of a training genome; empty without one."""
    from genodiff.runs.training_memory import identify_memory

    return {} if loci is None else {"memory": identify_memory(loci.told)}


def gather_rows(
    target: MapTarget,
    request: Mapping[str, Any],
    total: int,
    rows: Callable[[int], Iterator[bytes]],
    noun: str,
) -> list[bytes]:
    """All rows, those that a broken call kept included; the kept file stays for `finish_map`.

    `rows` gives the rows after so many. Raises `UsageError` where OUT.partial is foreign.
    """
    from genodiff.io.identity import sha256_json
    from genodiff.scoring.row_journal import RowJournal

    with ExitStack() as stack:
        folder = (
            stack.enter_context(tempfile.TemporaryDirectory()) if is_stream(target.path) else ""
        )
        path = f"{folder}/rows" if folder else target.journal
        journal = RowJournal(path, sha256_json({**request, "version": __version__}))
        journal.check(fresh=target.fresh, force=target.force)
        if target.fresh:
            journal.start_anew()
        stack.callback(journal.close)
        for row in show_progress(rows(journal.kept), journal.kept, total, noun):
            journal.append(row)
        return list(journal.rows())


def show_progress(rows: Iterator[bytes], kept: int, total: int, noun: str) -> Iterator[bytes]:
    """`rows`, with a line of progress that says how long it will take."""
    from genodiff.io.progress import ProgressDisplay, format_duration

    done, first = kept, 0.0
    with ProgressDisplay() as display:
        for row in rows:
            yield row
            done += 1
            text = f"mapped {done:,} of {total:,} {noun}"
            if not first:  # all that is read and compiled before it is over by then
                first = time.monotonic()
            elif time.monotonic() > first:
                pace = (done - kept - 1) / (time.monotonic() - first)
                text += f" · {format_duration((total - done) / pace)} to go"
            display.show(text, done, total)


def finish_map(
    target: MapTarget,
    write: Callable[[], None],
    told: Mapping[str, Any],
    *,
    sequences: Any,
    genome: str,
    regions: Sequence[MapRegion],
    device: str,
    began: float,
) -> dict[str, Any]:
    """Write the file and its sidecar, which is returned; the kept rows are removed."""
    from genodiff.io import atomic
    from genodiff.io.identity import stamp_time
    from genodiff.io.sequences import is_file

    write()
    stream = is_stream(target.path)
    summary = {
        "genodiff": __version__, "out": target.path, "format": target.ending[1:],
        "file": None if stream else describe_file(target.path), **told,
        "fasta": {"path": str(sequences) if is_file(sequences) else None, "sha256": genome},
        "regions": [
            {
                "name": one.name, "contig": one.contig, "start": one.start, "end": one.end,
                "strand": one.strand,
            }
            for one in regions
        ],
        "device": device, "argv": sys.argv,
        "seconds": round(time.monotonic() - began, 3), "created": stamp_time(),
    }  # fmt: skip
    if not stream:
        atomic.write_json(f"{target.path}.json", summary)
        target.journal.unlink(missing_ok=True)
    return summary
