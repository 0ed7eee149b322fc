"""Tracks of a genome, base by base: `genodiff.tracks`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from genodiff.api.machine import choose_device
from genodiff.api.map_output import (
    check_map_options,
    identify_genome,
    list_genes,
    name_memory,
    plan_time,
)
from genodiff.api.run_paths import check_run
from genodiff.api.track_output import (
    NothingReadError,
    TrackForm,
    check_folder_target,
    check_shard_target,
    fill_tracks,
    pick_common,
    refuse_stream,
    write_folder,
)
from genodiff.errors import UsageError
from genodiff.kernels.defaults import own_defaults
from genodiff.scoring.track_format import (
    HOLDS,
    NO_EMAIL,
    check_formats,
    check_hub_options,
    check_track_output,
    choose_formats,
)
from genodiff.scoring.track_format import list_formats as list_formats
from genodiff.scoring.variant_request import parse_shard
from genodiff.version import __version__

if TYPE_CHECKING:
    from genodiff.api.model import Model
    from genodiff.runs.own_loci import OwnLoci
    from genodiff.scoring.row_journal import RowJournal
    from genodiff.scoring.track_run import TrackRun
    from genodiff.scoring.track_values import BaseTracks


@own_defaults()
def tracks(
    run: str | Path,
    sequences: Any,
    *,
    out: str | Path,
    bed: str | Path | None = None,
    region: Sequence[str] = (),
    formats: Sequence[str] | None = None,
    every: int | None = None,
    context: int | None = None,
    genome: str | None = None,
    email: str = NO_EMAIL,
    memory: Literal["on", "off"] | None = None,
    genes: str | Path | None = None,
    batch_size: int = 8,
    shard: str | None = None,
    device: str = "auto",
    plan: bool = False,
    fresh: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Write what a model says of each base of a genome to the folder `out`; what its sidecar says.

    Tracks are p(A), p(C), p(G) and p(T) given all other bases, the heights of a logo, entropy,
    information and the surprisal of the reference, in bits. `sequences` is a FASTA file, or strings
    and records. `region` (chr1:1,000-2,000, 1-based and inclusive) or `bed` say which part; without
    them all is read. Each base is read once, wherever regions overlap. Tracks run along the genome:
    the strand of a row is not used.

    `formats` are bigwig (with a track hub), bedgraph, bedgraph.gz, npz, parquet, html, and svg, png
    and pdf of one region; by default bigwig, and html up to 100,000 bases. `genes` (GFF3, GTF, BED
    or GenBank) are drawn on the page and the pictures. A hub is for UCSC's
    `genome`, such as hg38, whose names its contigs then have, or without it brings its own
    sequence; `email` stands in it.

    Each base is masked by itself, or with `every=m` each m-th base of a tile at once, which is
    quicker; how far the two differ is measured and told. `context` is in bases (default: the
    trained length). `memory` "on" mixes in what the training genome holds, but for each window's
    own locus. With `shard`, "i/n", `out` is a .npy file of the i-th of n parts, and
    `genodiff.merge` makes the folder of them. What is read is kept in OUT.partial until `out` is
    there, and the same call goes on after it; `fresh` starts anew. With `plan` nothing is computed.
    `force` renames a folder that genodiff did not write. Raises `UsageError`, `DataError`,
    `CheckpointError`, `MachineError`.
    """
    part = None if shard is None else parse_shard(shard)
    check_track_options(every, context, batch_size)
    check_hub_options(genome, email)
    check_track_output(out, shard=part is not None)
    check_formats(formats or ())
    journal_path = Path(f"{str(out).rstrip('/')}.partial")
    if part is None:
        check_folder_target(out, force=force)
    else:
        check_shard_target(str(out), journal_path, (bed, sequences, genes), force=force)
    if not plan:
        check_run(run)
    device = choose_device(device)
    from genodiff.scoring.map_regions import open_contigs
    from genodiff.scoring.track_run import TrackRun, list_intervals

    began = time.monotonic()
    with ExitStack() as stack:
        contigs = stack.enter_context(open_contigs(sequences))
        path = getattr(contigs, "path", None)
        wanted = list_intervals(contigs, region, bed)
        length, model = context, None
        from genodiff.api.load import load
        from genodiff.runs.own_loci import open_loci
        from genodiff.scoring.track_reader import TrackRequest
        from genodiff.scoring.variant_scores import check_model

        model = load(run, device=device)
        check_model(model.trained)
        request = TrackRequest(length or model.config.data.seq_len, every)
        request.check()
        work = TrackRun.make(contigs, wanted, request.context, part)
        chosen = choose_formats(formats, work.bases, len(work.intervals))
        form = TrackForm(chosen, genome, email, None if genes is None else str(genes))
        form.check()
        drawn = list_genes(genes, contigs, work.intervals)
        if plan:
            told = _describe_plan(work, request, form, str(out), path, part is not None)
            files = told.pop("files")
            places = ((one.contig, one.start) for one in work.pieces())
            return {
                **told,
                **plan_time(
                    model, contigs, places, told["evaluations"], context=request.context,
                    memory=memory, batch_size=batch_size, every=every,
                ),
                "files": files,
            }  # fmt: skip
        loci = open_loci(model.trained, contigs, memory, longest=request.context)
        kept = name_memory(loci)
        about = {
            "checkpoint": model.digest, "context": request.context, "every": every,
            "genome": identify_genome(contigs), "intervals": work.intervals, **kept,
        }  # fmt: skip
        journal = _open_journal(journal_path, about, work, fresh=fresh, force=force)
        stack.callback(journal.close)
        company = _read_all(model, work, request, journal, batch_size, loci)
        told = {
            "model": str(run), "checkpoint": model.digest, "context": request.context,
            "every": every, "company": company, "memory": kept.get("memory"),
            "fasta": {"path": path, "sha256": about["genome"]},
            "bed": None if bed is None else str(bed), "region": list(region), "device": device,
            "seconds": round(time.monotonic() - began, 3),
        }  # fmt: skip
        if part is not None:
            refuse_stream(path)
            return _write_shard(str(out), work, journal, form, {**told, "shard": list(part)})
        about = {**told, "shard": None}
        try:
            summary = write_folder(
                out, work, lambda: work.blocks(journal.rows()), form, about, drawn
            )
        except NothingReadError:
            journal.remove()
            raise
        journal.remove()
        return summary


def check_track_options(every: int | None, context: int | None, batch_size: int) -> None:
    """Raises `UsageError` for options that cannot be meant, without importing torch."""
    check_map_options("bits", context, batch_size)
    if every is not None and every < 2:
        raise UsageError(f"--every {every} is below 2", fix="give 2 or more; larger is more exact")


def _open_journal(
    path: Path, about: dict[str, Any], work: TrackRun, *, fresh: bool, force: bool
) -> RowJournal:
    from genodiff.io.identity import sha256_json
    from genodiff.scoring.row_journal import RowJournal

    key = {"tracks": about, "cut": list(work.cut), "version": __version__}
    journal = RowJournal(path, sha256_json(key))
    journal.check(fresh=fresh, force=force)
    if fresh:
        journal.start_anew()
    return journal


def _read_all(
    model: Model,
    work: TrackRun,
    request: Any,
    journal: RowJournal,
    batch_size: int,
    loci: OwnLoci | None,
) -> dict[str, Any] | None:
    """Fill the journal; what masking several bases at once changes, None where none are."""
    import logging

    from genodiff.kernels.allocator import keep_freed_memory
    from genodiff.scoring.masked_reader import open_reader
    from genodiff.scoring.track_reader import measure_company

    keep_freed_memory()
    reader = open_reader(model.trained, batch_size=batch_size, loci=loci)
    if journal.kept:
        log = logging.getLogger("genodiff")
        log.info("%s: goes on after %s pieces", journal.path, f"{journal.kept:,}")
    fill_tracks(work, journal, reader, model.alphabet, request)
    if request.every is None:
        return None
    found = measure_company(reader, work.genome, model.alphabet, work.intervals, request)
    return found and found._asdict()


def _write_shard(
    out: str, work: TrackRun, journal: RowJournal, form: TrackForm, told: dict[str, Any]
) -> dict[str, Any]:
    from genodiff.io import atomic
    from genodiff.io.identity import sha256_json, stamp_time
    from genodiff.io.target import describe_file
    from genodiff.scoring.track_run import write_chances

    bases = sum(one.end - one.start for one in work.pieces())
    write_chances(out, bases, journal.rows())
    keys = ("checkpoint", "context", "every", "fasta", "memory")
    about = {key: told[key] for key in keys} | {"intervals": work.intervals, **form.describe()}
    summary = {
        "genodiff": __version__, "holds": HOLDS, "out": out, "format": "npy", **pick_common(told),
        **form.describe(), "shard": told["shard"], "cut": list(work.cut), "bases": bases,
        "intervals": [list(one) for one in work.intervals],
        "request": sha256_json({**about, "version": __version__}), "argv": sys.argv,
        "seconds": told["seconds"], "created": stamp_time(), "file": describe_file(out),
    }  # fmt: skip
    atomic.write_json(f"{out}.json", summary)
    journal.remove()
    return summary


def _describe_plan(
    work: TrackRun, request: Any, form: TrackForm, out: str, path: str | None, is_shard: bool
) -> dict[str, Any]:
    from genodiff.scoring.track_hub import name_assembly

    bases, evaluations = work.count_evaluations(request)
    names = form.list_files(name_assembly(path))
    return {
        "intervals": len(work.intervals), "bases": bases, "evaluations": evaluations,
        "journal_bytes": 16 * bases, "formats": list(form.formats),
        "files": [out, f"{out}.json"] if is_shard else [str(Path(out) / name) for name in names],
    }  # fmt: skip


def map_tracks(
    model: Model,
    sequences: Any,
    *,
    bed: str | Path | None,
    region: Sequence[str],
    every: int | None,
    context: int | None,
    memory: str | None,
    batch_size: int,
) -> list[BaseTracks]:
    """What `genodiff.Model.tracks` gives, for each region in its order."""
    check_track_options(every, context, batch_size)
    from genodiff.runs.own_loci import open_loci
    from genodiff.scoring.map_regions import open_contigs
    from genodiff.scoring.masked_reader import open_reader
    from genodiff.scoring.track_reader import TrackRequest, read_pieces
    from genodiff.scoring.track_run import TrackRun, list_intervals
    from genodiff.scoring.track_values import join_intervals, make_blocks
    from genodiff.scoring.variant_scores import check_model

    check_model(model.trained)
    request = TrackRequest(context or model.config.data.seq_len, every)
    request.check()

    def read(one: tuple[str, int, int]) -> Iterator[BaseTracks]:
        work = TrackRun.make(contigs, [one], request.context, None)
        found = read_pieces(reader, contigs, model.alphabet, work.pieces(), request)
        yield from join_intervals(make_blocks(contigs, found), [one])

    with open_contigs(sequences) as contigs:
        wanted = list_intervals(contigs, region, bed)
        loci = open_loci(model.trained, contigs, memory, longest=request.context)
        reader = open_reader(model.trained, batch_size=batch_size, loci=loci)
        return [found for one in wanted for found in read(one)]
