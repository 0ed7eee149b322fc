"""Scored variants as files: VCF, a table in CADD's order of columns, parquet, or JSON lines.

    .vcf .vcf.gz    the input's records with INFO and FILTER added; .gz is BGZF with OUT.tbi
    .tsv .tsv.gz    #Chrom Pos Ref Alt RawScore ..., a row for each ALT; .gz as above
    .parquet .jsonl a row for each ALT, as `describe_alts` gives it

An index needs records sorted by contig and position; where they are not, there is none, and the
output keeps the input's order.
"""

import json
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import IO, Any

import polars as pl
from Bio import bgzf
from polars.io.plugins import register_io_source

from genodiff.errors import MachineError
from genodiff.io.atomic import open_atomic
from genodiff.io.faidx import Genome
from genodiff.io.fasta_writer import StaysOpen
from genodiff.io.file_kinds import encode_text
from genodiff.io.target import is_stream
from genodiff.io.variant_source import VcfHeader
from genodiff.variants.scored_variants import (
    CONSEQUENCE_SCHEMA,
    HAPLOTYPE_SCHEMA,
    HAPLOTYPES,
    RELATED,
    SCHEMA,
    ScoredRecord,
    ScoreForm,
    describe_alts,
    format_number,
)
from genodiff.variants.vcf_lines import format_records, make_header

_log = logging.getLogger("genodiff")

TSV = {
    "chrom": "#Chrom", "pos": "Pos", "ref": "Ref", "alt": "Alt", "score": "RawScore",
    "phred": "PHRED", "se": "SE", "method": "Method", "n_evaluations": "Evaluations",
    "kind": "Kind", "flags": "Flags", "id": "ID", "normal": "Normal", "percentile": "Percentile",
    "z": "Z", "background": "Background", "n_background": "BackgroundN", "votes": "Votes",
    "ancestral": "AA", "p_ancestral": "AAP", "rs": "RS", "gene": "Gene",
    "consequence": "Consequence", "protein": "Protein", "transcripts": "Transcripts",
    HAPLOTYPES: "Haplotypes",
}  # fmt: skip
"""The columns of a TSV, in their order, by those of the rows."""
_ROWS = 1 << 16  # of a group in parquet
_HELD_ROWS = 1 << 12  # that are made at a time
_LARGEST_TBI = 1 << 29  # bases that a .tbi can hold


def format_lines(
    scored: Iterable[ScoredRecord], ending: str, header: VcfHeader | None, form: ScoreForm
) -> Iterator[str]:
    """The lines of a text output, without their ends; `header` is the input's."""
    kind = ending.removesuffix(".gz")
    if kind == ".vcf":
        yield from make_header(header, form)
        yield from format_records(scored, header, form)
        return
    if kind == ".tsv":
        said = ", ".join(f"{key} {value}" for key, value in form.about.items())
        yield f"## genodiff score: {said}"
        yield "\t".join(name for key, name in TSV.items() if key in _find_schema(form))
    for one in scored:
        for row in describe_alts(one, form):
            cells = (_format_value(row[key], ";") for key in TSV if key in row)
            yield json.dumps(row) if kind == ".jsonl" else "\t".join(cells)


def make_frame(scored: Iterable[ScoredRecord], form: ScoreForm) -> pl.DataFrame:
    """A row for each ALT, columns as `SCHEMA`; votes, consequences and samples add theirs."""
    empty = pl.DataFrame(schema=_find_schema(form))
    return pl.concat([empty, *_make_frames(scored, form)], rechunk=True)


def scan_frame(scored: Iterable[ScoredRecord], form: ScoreForm) -> pl.LazyFrame:
    """As `make_frame`, but the rows are made while they are written, and can be read once."""
    parts = _make_frames(scored, form)
    return register_io_source(lambda *_: parts, schema=_find_schema(form))


def _make_frames(scored: Iterable[ScoredRecord], form: ScoreForm) -> Iterator[pl.DataFrame]:
    rows = (row for one in scored for row in describe_alts(one, form))
    while some := list(islice(rows, _HELD_ROWS)):
        yield pl.DataFrame(some, schema=_find_schema(form))


def _find_schema(form: ScoreForm) -> dict[str, Any]:
    schema = SCHEMA | (RELATED if form.votes else {})
    schema |= {} if form.consequences is None else CONSEQUENCE_SCHEMA
    if form.samples is None:
        return schema
    return {**schema, HAPLOTYPES: pl.List(pl.Struct(HAPLOTYPE_SCHEMA))}


def write_scores(
    out: str | Path,
    scored: Iterable[ScoredRecord],
    ending: str,
    header: VcfHeader | None,
    form: ScoreForm,
) -> bool:
    """Write the scores, atomically where `out` is a file; whether there is an index.

    Raises `MachineError` where they cannot be written.
    """
    if ending == ".parquet":
        write_frame(out, scan_frame(scored, form))
        return False
    watch = SortedWatch()
    write_lines(out, format_lines(watch.watch(scored), ending, header, form), ending)
    return watch.index(out, ending, form.genome)


def write_lines(out: str | Path, lines: Iterable[str], ending: str) -> None:
    """Write text lines, atomically where `out` is a file. Raises `MachineError`."""
    with ExitStack() as stack:
        is_file = str(out) != "-"
        file: Any = stack.enter_context(open_atomic(out)) if is_file else sys.stdout.buffer
        sink: Any = bgzf.BgzfWriter(fileobj=StaysOpen(file)) if ending.endswith(".gz") else file
        rows = iter(lines)
        while some := list(islice(rows, 256)):
            sink.write(encode_text("\n".join([*some, ""])))
        if sink is not file:
            sink.close()
        file.flush()


def write_frame(out: str | Path, frame: pl.LazyFrame) -> None:
    """Write parquet atomically, a group of rows at a time. Raises `MachineError`."""
    with open_atomic(out) as file:
        keeper = _FaultKeeper(file)
        try:
            frame.sink_parquet(keeper, row_group_size=_ROWS, maintain_order=True)  # type: ignore[call-overload]
        except pl.exceptions.PolarsError:
            if keeper.fault is None:
                raise
            raise keeper.fault from None


class _FaultKeeper:
    """Passes on what is written, and keeps the fault of it, which polars would tell in words of
    its own.
    """

    fault: MachineError | None = None

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, data: bytes) -> int:
        try:
            return self._file.write(data)
        except MachineError as fault:
            self.fault = fault
            raise

    def flush(self) -> None:
        self._file.flush()


class SortedWatch:
    """Passes records on and remembers whether they are sorted, each contig in one stretch."""

    def __init__(self) -> None:
        self.sorted, self._seen, self._last = True, set[str](), ("", 0)

    def watch(self, scored: Iterable[ScoredRecord]) -> Iterator[ScoredRecord]:
        """The records as they come."""
        for one in scored:
            self.note(one.record.chrom, one.record.pos)
            yield one

    def note(self, chrom: str, pos: int) -> None:
        """See one more record."""
        last, at = self._last
        if chrom == last:
            self.sorted &= pos >= at
        else:
            self.sorted &= chrom not in self._seen
            self._seen.add(chrom)
        self._last = (chrom, pos)

    def index(self, out: str | Path, ending: str, genome: Genome) -> bool:
        """Write the index of a compressed file whose records are sorted; whether there is one."""
        if not ending.endswith(".gz") or is_stream(out):
            return False
        if not self.sorted:
            _log.warning("%s: no index, since the records are not sorted", out)
            return False
        write_index(out, max(genome.contigs.values()))
        return True


def write_index(out: str | Path, longest: int) -> None:
    """Write the index of a sorted .vcf.gz or .tsv.gz beside it: OUT.tbi, of a contig that is too
    long for that OUT.csi. Raises `MachineError`.
    """
    pysam = import_pysam(out)
    name = f"{out}.csi" if longest > _LARGEST_TBI else f"{out}.tbi"
    columns: dict[str, Any] = {"preset": "vcf"}
    if not str(out).lower().endswith(".vcf.gz"):
        columns = {"seq_col": 0, "start_col": 1, "end_col": 1, "meta_char": "#"}
    partly = f"{name}{os.getpid()}.tmp"
    try:
        pysam.tabix_index(
            str(out), force=True, keep_original=True, csi=name.endswith(".csi"), index=partly,
            **columns,
        )  # fmt: skip
        os.replace(partly, name)
    except OSError as fault:
        Path(partly).unlink(missing_ok=True)
        fix = "the scores are complete; make the index with tabix"
        raise MachineError(f"cannot be indexed: {fault}", file=out, fix=fix) from None


def _format_value(value: object, join: str) -> str:
    if isinstance(value, dict):  # of a haplotype
        return "|".join(_format_value(one, "&") for one in value.values())
    if value is None or value in ("", []):
        return "."
    if isinstance(value, float):
        return format_number(value)
    if isinstance(value, list):
        return join.join(one if isinstance(one, str) else _format_value(one, "") for one in value)
    return str(value)


def import_pysam(out: str | Path) -> Any:
    """The library that makes an index of `out`. Raises `MachineError` where it is not there."""
    try:
        import pysam
    except ImportError:
        fix = "pip install 'genodiff[variants]', or write .vcf, .tsv or .parquet"
        raise MachineError("an index needs the package pysam", file=out, fix=fix) from None
    return pysam
