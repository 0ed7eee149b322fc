"""Scored variants as files: VCF, a table in CADD's order of columns, parquet, or JSON lines.

    .vcf .vcf.gz    the input's records with INFO and FILTER added; .gz is BGZF with OUT.tbi
    .tsv .tsv.gz    #Chrom Pos Ref Alt RawScore ..., a row for each ALT; .gz as above
    .parquet .jsonl a row for each ALT, as `describe_alts` gives it

An index needs records sorted by contig and position; where they are not, there is none, and the
output keeps the input's order.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from Bio import bgzf
from polars.io.plugins import register_io_source

from genodiff.errors import MachineError, UsageError
from genodiff.io.atomic import open_atomic
from genodiff.io.digest_writer import DigestWriter
from genodiff.io.faidx import Genome
from genodiff.io.fasta_writer import StaysOpen
from genodiff.io.file_names import encode_text
from genodiff.io.variants import VariantRecord
from genodiff.io.vcf import VcfHeader
from genodiff.scoring.methods import AUTO
from genodiff.variants.consequences import Consequences
from genodiff.variants.haplotype_vcf import (
    add_haplotype_fields,
    has_our_fields,
    list_format_lines,
    remove_our_fields,
)
from genodiff.variants.scored_variants import AltScore, FindRank, describe_alts
from genodiff.variants.vcf_lines import (
    format_line,
    format_number,
    list_consequence_lines,
    make_header,
)

ENDINGS = (".vcf", ".vcf.gz", ".tsv", ".tsv.gz", ".parquet", ".jsonl")
SCHEMA: dict[str, Any] = {
    "chrom": pl.String, "pos": pl.Int64, "id": pl.String, "ref": pl.String, "alt": pl.String,
    "kind": pl.String, "method": pl.String, "score": pl.Float64, "se": pl.Float64,
    "n_evaluations": pl.Int64, "flags": pl.List(pl.String), "normal": pl.String,
    "percentile": pl.Float64, "z": pl.Float64, "phred": pl.Float64, "background": pl.String,
    "n_background": pl.Int64,
}  # fmt: skip
"""Columns of the frame; `pos` counts from 1, and `score` is null where `flags` says why."""
HAPLOTYPES = "haplotypes"
HAPLOTYPE_SCHEMA: dict[str, Any] = {
    "sample": pl.String, "copy": pl.Int64, "phase_set": pl.String, "first": pl.Int64,
    "last": pl.Int64, "variants": pl.Int64, "method": pl.String, "score": pl.Float64,
    "se": pl.Float64, "n_evaluations": pl.Int64, "flags": pl.List(pl.String),
}  # fmt: skip
"""Fields of the column `haplotypes`: a row for each copy that carries the ALT, copies from 1."""
TSV_COLUMNS = (
    "#Chrom", "Pos", "Ref", "Alt", "RawScore", "PHRED", "SE", "Method", "Evaluations", "Kind",
    "Flags", "ID", "Normal", "Percentile", "Z", "Background", "BackgroundN",
)  # fmt: skip
TSV_KEYS = (
    "chrom", "pos", "ref", "alt", "score", "phred", "se", "method", "n_evaluations", "kind",
    "flags", "id", "normal", "percentile", "z", "background", "n_background",
)  # fmt: skip
CONSEQUENCE_SCHEMA: dict[str, Any] = {
    "gene": pl.String, "consequence": pl.String, "protein": pl.String,
    "transcripts": pl.List(pl.String),
}  # fmt: skip
"""Columns that an annotation adds."""
CONSEQUENCE_COLUMNS = ("Gene", "Consequence", "Protein", "Transcripts")
_ROWS = 1 << 16  # of a group in parquet
_HELD_ROWS = 1 << 12  # that are made at a time
_LARGEST_TBI = 1 << 29  # bases that a .tbi can hold

Scored = tuple[VariantRecord, tuple[AltScore, ...]]


class OutputForm(NamedTuple):
    """What is written: one of `ENDINGS`, in nats or bits, and what it comes from.

    `find_rank` ranks scores among those of random variants, None without a background. `samples`
    are the names of those whose haplotypes are written, None without haplotypes. `consequences`
    are those of an annotation, None without one.
    """

    ending: str
    unit: str
    about: Mapping[str, object]
    find_rank: FindRank | None = None
    samples: Sequence[str] | None = None
    consequences: Consequences | None = None


def find_output_form(out: str | Path, source: str) -> str:
    """The ending that says what `out` is; "-" is VCF for a VCF or BCF, else a TSV.

    Raises `UsageError` for another, and `MachineError` for an index without pysam.
    """
    if str(out) == "-":
        return ".tsv" if source == "table" else ".vcf"
    name = str(out).lower()
    for ending in sorted(ENDINGS, key=len, reverse=True):
        if name.endswith(ending):
            if ending.endswith(".gz"):
                _import_pysam(out)
            return ending
    what = "has none of the endings " + ", ".join(ENDINGS)
    raise UsageError(what, file=out, fix="give one of them, or - for stdout")


def format_lines(
    scored: Iterable[Scored], header: VcfHeader | None, genome: Genome, form: OutputForm
) -> Iterator[str]:
    """The lines of a text output, without their ends."""
    kind = form.ending.removesuffix(".gz")
    if kind == ".vcf":
        asked = str(form.about.get("method", AUTO))
        more = [] if form.samples is None else list_format_lines(form.unit, asked)
        more += [] if form.consequences is None else list_consequence_lines()
        yield from make_header(
            header, genome, form.about, form.unit, ranked=form.find_rank is not None, more=more
        )
        again = has_our_fields(header)
        for record, scores in scored:
            record = remove_our_fields(record) if again else record
            record = add_haplotype_fields(record, scores, form.unit)
            yield format_line(record, scores, genome, form.unit, form.find_rank, form.consequences)
        return
    if kind == ".tsv":
        said = ", ".join(f"{key} {value}" for key, value in form.about.items())
        yield f"## genodiff score: {said}"
        names = TSV_COLUMNS if form.consequences is None else (*TSV_COLUMNS, *CONSEQUENCE_COLUMNS)
        names = names if form.samples is None else (*names, "Haplotypes")
        yield "\t".join(names)
    for record, scores in scored:
        for row in describe_alts(
            record, scores, genome, form.unit, form.find_rank, form.samples, form.consequences
        ):
            yield json.dumps(row) if kind == ".jsonl" else _format_row(row)


def make_frame(
    scored: Iterable[Scored],
    genome: Genome,
    unit: str,
    find_rank: FindRank | None = None,
    samples: Sequence[str] | None = None,
    consequences: Consequences | None = None,
) -> pl.DataFrame:
    """A row for each ALT, columns as `SCHEMA`; `samples` and `consequences` add theirs."""
    parts = _make_frames(scored, genome, unit, find_rank, samples, consequences)
    empty = pl.DataFrame(schema=_find_schema(samples, consequences))
    return pl.concat([empty, *parts], rechunk=True)


def scan_frame(
    scored: Iterable[Scored],
    genome: Genome,
    unit: str,
    find_rank: FindRank | None = None,
    samples: Sequence[str] | None = None,
    consequences: Consequences | None = None,
) -> pl.LazyFrame:
    """As `make_frame`, but the rows are made while they are written, and can be read once."""
    parts = _make_frames(scored, genome, unit, find_rank, samples, consequences)
    return register_io_source(lambda *_: parts, schema=_find_schema(samples, consequences))


def _make_frames(
    scored: Iterable[Scored],
    genome: Genome,
    unit: str,
    find_rank: FindRank | None,
    samples: Sequence[str] | None,
    consequences: Consequences | None,
) -> Iterator[pl.DataFrame]:
    rows = (
        row
        for record, scores in scored
        for row in describe_alts(record, scores, genome, unit, find_rank, samples, consequences)
    )
    schema = _find_schema(samples, consequences)
    while some := list(islice(rows, _HELD_ROWS)):
        yield pl.DataFrame(some, schema=schema)


def _find_schema(
    samples: Sequence[str] | None, consequences: Consequences | None
) -> dict[str, Any]:
    schema = SCHEMA if consequences is None else SCHEMA | CONSEQUENCE_SCHEMA
    if samples is None:
        return schema
    return {**schema, HAPLOTYPES: pl.List(pl.Struct(HAPLOTYPE_SCHEMA))}


def write_lines(out: str | Path, lines: Iterable[str], ending: str) -> dict[str, Any] | None:
    """Write text lines, atomically where `out` is a file; what its sidecar says of it.

    Raises `MachineError` where it cannot be written.
    """
    with ExitStack() as stack:
        file: Any = sys.stdout.buffer
        if str(out) != "-":
            file = stack.enter_context(open_atomic(out))
        digest = DigestWriter(file)
        sink: Any = digest
        if ending.endswith(".gz"):
            sink = bgzf.BgzfWriter(fileobj=StaysOpen(digest))
        rows = iter(lines)
        while some := list(islice(rows, 256)):
            sink.write(encode_text("\n".join([*some, ""])))
        if sink is not digest:
            sink.close()
        file.flush()
    return None if str(out) == "-" else digest.describe()


def write_frame(out: str | Path, frame: pl.LazyFrame) -> dict[str, Any]:
    """Write parquet atomically, a group of rows at a time; what its sidecar says of it.

    Raises `MachineError` where it cannot be written.
    """
    with open_atomic(out) as file:
        digest = _FaultKeeper(file)
        try:
            frame.sink_parquet(digest, row_group_size=_ROWS, maintain_order=True)  # type: ignore[call-overload]
        except pl.exceptions.PolarsError:
            if digest.fault is None:
                raise
            raise digest.fault from None
    return digest.describe()


class _FaultKeeper(DigestWriter):
    """Keeps the fault of a write, which polars would tell in words of its own."""

    fault: MachineError | None = None

    def write(self, data: bytes) -> int:
        try:
            return super().write(data)
        except MachineError as fault:
            self.fault = fault
            raise


class SortedWatch:
    """Passes records on and remembers whether they are sorted, each contig in one stretch."""

    def __init__(self) -> None:
        self.sorted, self._seen, self._last = True, set[str](), ("", 0)

    def watch(self, scored: Iterable[Scored]) -> Iterator[Scored]:
        """The records as they come."""
        for one in scored:
            self.note(one[0].chrom, one[0].pos)
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


def index_name(out: str | Path, longest: int) -> str | None:
    """The index of an output, None where it has none; `longest` is the longest contig's length."""
    if not str(out).lower().endswith(".gz"):
        return None
    return f"{out}.csi" if longest > _LARGEST_TBI else f"{out}.tbi"


def write_index(out: str | Path, longest: int) -> None:
    """Write the index of a sorted .vcf.gz or .tsv.gz beside it. Raises `MachineError`."""
    pysam = _import_pysam(out)
    name = index_name(out, longest)
    assert name is not None
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
        fix = "the scores are whole; make the index with tabix"
        raise MachineError(f"cannot be indexed: {fault}", file=out, fix=fix) from None


def _format_row(row: Mapping[str, Any]) -> str:
    fields = []
    for key in (*TSV_KEYS, *(key for key in CONSEQUENCE_SCHEMA if key in row)):
        fields.append(_format_value(row[key], ";"))
    if HAPLOTYPES in row:
        told = ["|".join(_format_value(one[key], "&") for key in HAPLOTYPE_SCHEMA)
                for one in row[HAPLOTYPES]]  # fmt: skip
        fields.append(";".join(told) or ".")
    return "\t".join(fields)


def _format_value(value: object, join: str) -> str:
    if value is None or value in ("", []):
        return "."
    if isinstance(value, float):
        return format_number(value)
    return join.join(value) if isinstance(value, list) else str(value)


def _import_pysam(out: str | Path) -> Any:
    try:
        import pysam
    except ImportError:
        raise MachineError(
            "an index needs the package pysam",
            file=out,
            fix="pip install 'genodiff[variants]', or write .vcf, .tsv or .parquet",
        ) from None
    return pysam
