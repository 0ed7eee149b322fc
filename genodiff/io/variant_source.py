"""A file of variants: VCF, BCF, CSV, TSV, JSON lines or parquet, also from stdin.

The format is told by the first bytes. A VCF is read strictly line by line: a row that is not exact
is an error with its line. Only CHROM, POS, ID, REF and ALT are taken apart. Everything else passes
through as it stands, byte by byte, which a reader that parses and writes INFO and samples anew does
not give. BCF is turned into the same lines by pysam.
"""

import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from genodiff.errors import DataError, MachineError
from genodiff.io.containers import is_column, is_missing, name_fields, read_columns, read_rows
from genodiff.io.file_kinds import find_plain_path
from genodiff.io.input_file import STDIN, count_lines, name_input, open_input
from genodiff.io.regions import find_contig
from genodiff.io.text_lines import Line, RowReader, as_utf8, read_text_lines
from genodiff.io.variant_table import VariantTable
from genodiff.io.variants import POSITION, VariantRecord, check_alleles

COLUMNS = ("#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO")
_BCF = b"BCF"
_FIELDS = ("chrom", "pos", "ref", "alt")
_PARQUET = b"PAR1"
_TABLES = (".csv", ".tsv", ".txt", ".tab", ".jsonl", ".ndjson", ".parquet")
_ZIPPED = (".gz", ".bgz")
_BOM = b"\xef\xbb\xbf"
_HEAD = 1 << 16
_HELD, _OWN = 1 << 24, 500  # bytes of records that are held, and of each beside its letters


class VcfHeader:
    """The lines before the records: `meta` (## lines), `samples`, and the line of column names."""

    def __init__(self, meta: list[str], columns: str) -> None:
        self.meta, self.columns = meta, columns
        self.samples = columns.split("\t")[len(COLUMNS) + 1 :]
        self.width = columns.count("\t") + 1


@dataclass(eq=False)
class VariantSource:
    """Records of a file, which can be read as often as needed.

    `path` is the file on disk, `shown` its name for messages, `header` that of VCF and BCF. Records
    of a small file are parsed once and held.
    """

    path: Path
    shown: str
    format: Literal["vcf", "bcf", "table"]
    header: VcfHeader | None
    read: Callable[[], Iterator[VariantRecord]]
    other: Sequence[str] = ()
    """The columns of a table that say nothing of its variants."""
    _held: list[VariantRecord] | None = None

    def records(self, contigs: Mapping[str, int] | None = None) -> Iterator[VariantRecord]:
        """The records in order, with a genome's names of `contigs`. Raises `DataError`."""
        with _show_as(self.shown, self.path):
            for record in self._parse():
                named = find_contig(record.chrom, contigs or {}, self.shown)
                yield replace(record, chrom=named) if named not in (None, record.chrom) else record

    def _parse(self) -> Iterator[VariantRecord]:
        """The records as the file has them; of a small file, they are held after a whole pass."""
        if self._held is not None:
            yield from self._held
            return
        held: list[VariantRecord] = []
        size = 0
        for record in self.read():
            if size <= _HELD:
                size += _OWN + sum(map(len, (record.ref, *record.alts, *record.rest)))
                held.append(record)
            yield record
        if size <= _HELD:
            self._held = held

    def forecast(self, first: int, last: int) -> int:
        """About how many records there are, of which those at lines `first` to `last` were read."""
        with open_input(self.path) as source:
            head = next(source.blocks(), b"")[:4]
            size = source.stat.st_size
        if head == _PARQUET:
            return int(pl.scan_parquet(self.path).select(pl.len()).collect().item())
        if head.startswith(_BCF):
            lines = list(islice(_convert_bcf(self.path, self.shown), first - 1, last))
            taken = len(zlib.compress("\n".join(text for _, text in lines).encode()))
            return round(len(lines) * size / max(1, taken))
        return count_lines(self.path) - first + 1


@contextmanager
def _show_as(shown: str, path: Path) -> Iterator[None]:
    """Let errors of the block call the file at `path` as `shown`."""
    try:
        yield
    except DataError as fault:
        fault.file = shown if str(fault.file) == str(path) else fault.file
        raise


@contextmanager
def open_variants(path: str | Path) -> Iterator[VariantSource]:
    """The variants of a file; "-" is stdin. Raises `DataError`, `MachineError` without pysam."""
    if str(path) != STDIN:
        yield _open(Path(path), name_input(path))
        return
    with tempfile.NamedTemporaryFile(prefix="genodiff-", suffix=".variants") as kept:
        with open_input(STDIN) as source:
            for block in source.blocks():
                kept.write(block)
        kept.flush()
        yield _open(Path(kept.name), name_input(path))


@contextmanager
def open_held_variants(held: Any) -> Iterator[VariantSource]:
    """The variants that a program holds: a frame, columns or rows of chrom, pos, ref and alt.

    A row is a tuple of these four, has named fields, or is a record of pysam or cyvcf2. One row
    may stand alone. Raises `DataError` for rows of anything else, and where a column is missing.
    """
    shown = "<variants>"
    alone = _find_fields(held)
    columns = None if alone is not None else read_columns(held)
    if columns is None:
        several = isinstance(held, Iterable) and alone is None
        rows = [_name_variant(row) for row in (held if several else [held])]
        columns = read_rows(rows) if rows else {}
    columns = {"alt" if name == "alts" else name: cells for name, cells in columns.items()}
    table = pl.DataFrame(
        {name: [_spell(one) for one in column] for name, column in columns.items()},
        schema=dict.fromkeys(columns or _FIELDS, pl.String),
    )
    yield VariantSource(Path(shown), shown, "table", None, VariantTable(shown, table).records)


def _find_fields(row: Any) -> dict[str, Any] | None:
    """A variant by the names of its columns; None of what is none, or several."""
    fields = name_fields(row)
    if fields is not None:
        words = (one for name, one in fields.items() if name.lower() not in ("alt", "alts"))
        return None if any(map(is_column, words)) and "alts" not in fields else fields
    for names in (("id", "chrom", "pos", "ref", "alts"), ("ID", "CHROM", "POS", "REF", "ALT")):
        if all(hasattr(row, name) for name in names):  # of pysam, of cyvcf2
            return {
                key: getattr(row, name) for key, name in zip(("id", *_FIELDS), names, strict=True)
            }
    if not isinstance(row, tuple | list | np.ndarray) or len(row) != len(_FIELDS):
        return None
    one = isinstance(row[0], str) and str(row[1]).isdecimal()
    return dict(zip(_FIELDS, row, strict=True)) if one else None


def _name_variant(row: Any) -> dict[str, Any]:
    """A row by the names of its columns. Raises `DataError` for what is none."""
    if isinstance(row, tuple | list | np.ndarray) and len(row) == len(_FIELDS):
        return _find_fields(row) or dict(zip(_FIELDS, row, strict=True))
    fields = _find_fields(row)
    if fields is None:
        what = f"a variant is no row of chrom, pos, ref and alt, but a {type(row).__name__}"
        raise DataError(what, fix="give rows of four, a frame, or a file")
    return fields


def _spell(cell: Any) -> str | None:
    if isinstance(cell, tuple | list):
        return ",".join(str(one) for one in cell)
    return None if is_missing(cell) else str(cell)


def _open(path: Path, shown: str) -> VariantSource:
    with open_input(path) as source:
        head = next(as_utf8(source.blocks(), shown), b"")[:_HEAD].removeprefix(_BOM)
    with _show_as(shown, path):
        if head.startswith(_BCF):
            return _open_bcf(path, shown)
        if _is_table(path, head):
            table = VariantTable(path)
            return VariantSource(path, shown, "table", None, table.records, table.other)
        header, _ = read_vcf(path)
    return VariantSource(path, shown, "vcf", header, lambda: read_vcf(path)[1])


def _is_table(path: Path, head: bytes) -> bool:
    if head.startswith(_PARQUET):
        return True
    if head.startswith(b"##fileformat=VCF"):
        return False
    lines = head.lower().splitlines()
    first = next((line for line in lines if line.strip() and not line.startswith(b"##")), b"")
    if first.startswith(b"#chrom\tpos\tid\tref\talt\tqual"):
        return False
    name = path.name.lower()
    for ending in _ZIPPED:
        name = name.removesuffix(ending)
    return name.endswith(_TABLES) or all(word in first for word in (b"pos", b"ref", b"alt"))


def _open_bcf(path: Path, shown: str) -> VariantSource:
    def parse() -> tuple[VcfHeader, Iterator[VariantRecord]]:
        return parse_vcf(_convert_bcf(path, shown), shown)

    with open_input(path) as source:
        for _ in source.blocks():  # damage is found here, and said as of any other file
            pass
    return VariantSource(path, shown, "bcf", parse()[0], lambda: parse()[1])


@contextmanager
def _open_seekable(path: Path) -> Iterator[str]:
    """A file that htslib reads: of BCF in plain gzip, which it cannot seek in, a copy without."""
    with open_input(path) as source, tempfile.NamedTemporaryFile(suffix=".bcf") as copy:
        blocks = source.blocks()
        first = next(blocks, b"")
        if source.compression != "gzip":
            yield find_plain_path(path)
            return
        copy.writelines((first, *blocks))
        copy.flush()
        yield copy.name


def _convert_bcf(path: Path, shown: str) -> Iterator[tuple[int, str]]:
    try:
        import pysam
    except ImportError:
        what = f"{shown}: reading BCF needs the package pysam"
        fix = "pip install 'genodiff[variants]', or convert it: bcftools view"
        raise MachineError(what, fix=fix) from None
    before = pysam.set_verbosity(0)
    number = 0
    try:
        with _open_seekable(path) as readable, pysam.VariantFile(readable) as file:
            for line in chain(str(file.header).splitlines(), file):
                number += 1
                yield number, str(line).rstrip("\n")
    except (OSError, ValueError, NotImplementedError) as fault:
        what = f"the BCF data (binary variants) are corrupt after record line {number}: {fault}"
        fix = "copy the file again (bcftools view tests it)"
        raise DataError(what, file=shown, fix=fix) from None
    finally:
        pysam.set_verbosity(before)


def read_vcf(path: str | Path) -> tuple[VcfHeader, Iterator[VariantRecord]]:
    """The header of a VCF file and its records, in its order. Raises `DataError`, with the line."""
    return parse_vcf(read_text_lines(path, "VCF"), path)


def parse_vcf(lines: Iterable[Line], path: str | Path) -> tuple[VcfHeader, Iterator[VariantRecord]]:
    """As `read_vcf`, of numbered lines; `path` is for messages."""
    rows, shown = iter(lines), name_input(path)
    header = _read_header(rows, shown)
    # an empty line is no record: some writers end a file with one
    return header, (_parse_record(line, number, header, shown) for number, line in rows if line)


def _read_header(rows: Iterator[Line], shown: str) -> VcfHeader:
    meta: list[str] = []
    for number, line in rows:
        fault = RowReader(shown, number).fault
        if line.startswith("##"):
            if number == 1 and not line.startswith("##fileformat=VCF"):
                fix = "a VCF begins with ##fileformat=VCFv4.2 or the like"
                raise fault("no VCF: another header", fix)
            meta.append(line)
            continue
        if line.startswith("#CHROM"):
            line = line.rstrip("\t ")  # htslib reads it so
            names = line.split("\t")
            if tuple(names[: len(COLUMNS)]) != COLUMNS or (len(names) > 8 and names[8] != "FORMAT"):
                what = "the line of column names is not as in a VCF"
                raise fault(what, "separate these by tabs: " + " ".join(COLUMNS))
            if len(set(names[9:])) < len(names) - 9:
                raise fault("duplicate sample", "give each its own name")
            return VcfHeader(meta, line)
        if line:
            what = "no VCF header: the line of column names (#CHROM POS ID REF ALT ...) is missing"
            raise fault(what, "give a VCF with its header, or a table with column names")
    what = "ends before any record: no VCF header" if meta else "is empty: no VCF header"
    raise DataError(what, file=shown, fix="give a VCF with its header")


def _parse_record(line: str, number: int, header: VcfHeader, shown: str) -> VariantRecord:
    fields, reader = line.split("\t"), RowReader(shown, number)
    if len(fields) > header.width and not any(fields[header.width :]):
        fields = fields[: header.width]  # tabs at the end of a row
    if len(fields) != header.width:
        few = len(fields) < header.width
        what = f"has {len(fields)} columns, {'fewer' if few else 'more'} than {header.width}"
        blanks = few and len(line.split()) >= header.width
        fix = "separate columns by tabs" if blanks else "give every row the header's columns"
        raise reader.fault(what, fix)
    chrom, position, name, ref, alt = fields[:5]
    blank = next((text for text in (name, ref, alt) if " " in text), None)
    if blank is not None:
        raise reader.fault(f"'{blank}' has a blank", "remove it")
    reader.check_contig(chrom)
    reader.check_name(name, "ID")
    if not (position.isascii() and position.isdecimal() and len(position) < 13):
        raise reader.refuse_whole(position, POSITION)
    check_alleles(ref, alt, reader)
    alts = () if alt == "." else tuple(alt.split(","))
    if not all(alts) or alt == "":
        raise reader.fault("an ALT allele is empty", "write . where there is no ALT")
    return VariantRecord(number, chrom, int(position), name, ref, alts, tuple(fields[5:]))
