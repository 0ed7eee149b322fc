"""Tables of variants: CSV, TSV, JSON lines and parquet that name contig, position, REF and ALT.

Positions count from 1, as in a VCF. Columns are known by their usual names, in any case; others are
not read. `start` and `end` stand in the place of a position: the length of REF says whether they
count from 1 (ANNOVAR, MAF, VEP) or are an interval of BED.

An insertion or deletion has its anchor base, as in a VCF, or - for no base. Then POS is the first
deleted base, or the base before an insertion, as ANNOVAR and MAF have it; an insertion whose end
lies before its start, as in VEP, stands between these two.
"""

import json
import logging
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from genodiff.errors import DataError, did_you_mean, format_count
from genodiff.io.delimited import read_delimited
from genodiff.io.diagnosis import find_page
from genodiff.io.input_file import name_input, open_input
from genodiff.io.planning import VARIANTS, is_planning
from genodiff.io.tables import ENDINGS, find_ending, find_usual
from genodiff.io.text_formats import find_other_format
from genodiff.io.text_lines import RowReader, is_missing, read_text_lines, read_whole
from genodiff.io.variants import VariantRecord
from genodiff.io.vcf import check_alleles, check_names, check_ref, parse_position

_NAMES = {
    "chrom": ("chrom", "chr", "chromosome", "contig", "seqname"),
    "pos": ("pos", "position", "pos(1-based)", "pos(1-coor)", "start", "start_position"),
    "ref": ("ref", "reference", "ref_allele", "reference_allele"),
    "alt": (
        "alt", "alternate", "alternative", "alt_allele", "alternate_allele", "tumor_seq_allele2",
    ),
}  # fmt: skip
_STARTS = ("start", "start_position")
_MORE = {
    "id": ("id", "rsid", "name", "variant_id"),
    "strand": ("strand",),
    "end": ("end", "end_position", "stop"),
}
"""Columns that a table may lack."""
_LINE = "line"
_SCHEMA = {
    **dict.fromkeys((*_NAMES, *_MORE), pl.String()), "by_start": pl.Boolean(), _LINE: pl.Int64(),
}  # fmt: skip
_ROWS = 1 << 16  # held as Python's objects at a time
_MINUS = ("-", "-1", "minus")

log = logging.getLogger("genodiff")


class VariantTable:
    """The columns of a table that say what its variants are; `other` are the names of the rest."""

    def __init__(self, path: str | Path, table: pl.DataFrame | None = None) -> None:
        """Read them, or take `table`, whose name is then `path`.

        Raises `DataError` for no table, and for one without the columns.
        """
        self.path, self.other = path, list[str]()
        if table is None:
            self._table = _read_table(path, self.other)
        else:
            self._table = _take_columns(table, path, self.other)
        if not self._table.height:
            fix = "give a row for each variant"
            raise DataError("is empty: no variant", file=name_input(path), fix=fix)
        if n := int(self._table["strand"].is_in(_MINUS).sum()):
            what = "%s: %d of %d rows have - in the column of strands, which is not used: %s"
            why = "REF and ALT are letters of the strand of the FASTA"
            log.warning(what, name_input(path), n, len(self), why)
        starts = self._table["by_start"].any()
        self._shift = self._find_shift() if starts else 0
        if (n := int((self._table["ref"].str.strip_chars() == "-").sum())) and not starts:
            what = "%s: %s written with - as REF: %s; VEP has them before it"
            how = "read as behind POS, as ANNOVAR and MAF have it"
            log.warning(what, name_input(path), format_count(n, "insertion"), how)

    def __len__(self) -> int:
        return self._table.height

    def records(self) -> Iterator[VariantRecord]:
        """Its rows, in order. `line` counts the rows of a parquet file or a frame from 2."""
        shown = name_input(self.path)
        for *values, line in self._table.drop("strand", "by_start").iter_rows():
            chrom, pos, ref, alt, name, end = ("" if v is None else v.strip() for v in values)
            fault = RowReader(shown, line).fault
            if is_missing(chrom) or chrom != "".join(chrom.split()):
                raise fault(f"'{chrom}' is not the name of a contig", "remove blanks, or give it")
            check_names(chrom, name, fault)
            at = read_whole(pos)
            at = self._shift + (parse_position(pos, fault) if at is None else at)
            check_alleles(ref, alt, fault)
            if ref != "-":
                check_ref(ref, fault)
            elif end != "." and (last := read_whole(end)) is not None:
                at = min(at, last)
            if alt == "" or alt == ref == "-":
                fix = "write a deletion as -, or with the base before it, and no ALT as ."
                raise fault(f"ALT '{alt}' is no base", fix)
            alts = () if alt == "." else tuple(alt.split(","))
            yield VariantRecord(line, chrom, at, name or ".", ref, alts)

    def _find_shift(self) -> int:
        """What a start lacks to be a position: 0, or 1 of BED. Raises `DataError`."""
        shifts: dict[int, int] = {}  # each, and the first line that has it
        for _, start, ref, _, _, end, line in self._table.drop("strand", "by_start").iter_rows():
            first, last = (read_whole((text or "").strip()) for text in (start, end))
            bases = (ref or "").strip()
            if first is not None and last is not None and bases != "-":
                shifts.setdefault(len(bases) - (last - first), line)
        if set(shifts) == {0}:
            return 1
        if set(shifts) <= {1} and self._table["end"].ne_missing(".").all():
            return 0
        line = next((line for shift, line in shifts.items() if shift not in (0, 1)), None)
        line = max(shifts.values(), default=1) if line is None else line
        none = "a column of starts without ends that say how they count"
        what = "start, end and the length of REF disagree" if shifts else none
        fix = "give a column pos that counts from 1"
        raise DataError(what, file=name_input(self.path), line=line, fix=fix)


def _read_table(path: str | Path, other: list[str]) -> pl.DataFrame:
    with open_input(path) as source:
        blocks = source.blocks()
        head = next(blocks, b"")
        if page := find_page(head[:256]):
            what = f"no table of variants: this is {page[0]}"
            raise DataError(what, file=source.shown, fix=page[1])
        if head.startswith(b"PAR1"):
            try:
                if is_planning():
                    some = pl.scan_parquet(path).head(VARIANTS + 1).collect()
                    return _take_columns(some, path, other)
                data = head + b"".join(blocks)
                return _take_columns(pl.read_parquet(data), path, other)
            except (pl.exceptions.PolarsError, OSError) as fault:
                what = f"no table of variants: {str(fault).splitlines()[0]}"
                fix = "give CSV, TSV or parquet with column names"
                raise DataError(what, file=source.shown, fix=fix) from None
    if head.lstrip(b"\xef\xbb\xbf \r\n").startswith(b"{"):
        known = None if b'"pos' in head.lower() else find_other_format(head, "variants")
        if known and known[0] != "JSON":
            what = f"no table of variants: this is {known[0]}"
            raise DataError(what, file=source.shown, fix=known[1])
        return _gather(_read_json(path, other))
    table = read_delimited(path, ENDINGS.get(find_ending(path), ","))
    columns = _find_columns(table.names, path, table.line, other)
    at = [-1 if name is None else table.names.index(name) for name in columns]
    starts = is_start(columns[1])
    return _gather(
        (*("." if i < 0 else fields[i] for i in at), starts, line) for line, fields in table.rows
    )


def _read_json(path: str | Path, other: list[str]) -> Iterator[tuple[Any, ...]]:
    columns: list[str | None] = []
    names: list[str] | None = None
    for line, text in read_text_lines(path, "JSON lines"):
        if not text.strip():
            continue
        try:
            row = json.loads(text, parse_float=str)  # a position keeps its spelling
        except ValueError:
            row = None
        if not isinstance(row, dict):
            fix = "give JSON lines: an object for each variant"
            raise DataError("no JSON object", file=name_input(path), line=line, fix=fix)
        if names != list(row):
            names = list(row)
            columns = _find_columns(names, path, line, other)
        values = ["." if name is None else row.get(name) for name in columns]
        told = (None if value is None else str(value) for value in values)
        yield *told, is_start(columns[1]), line


def _gather(rows: Iterable[tuple[Any, ...]]) -> pl.DataFrame:
    parts, ahead = [pl.DataFrame(schema=_SCHEMA)], iter(rows)
    if is_planning():
        ahead = islice(ahead, VARIANTS + 1)
    while some := list(islice(ahead, _ROWS)):
        parts.append(pl.DataFrame(some, schema=_SCHEMA, orient="row"))
    return pl.concat(parts)


def _take_columns(table: pl.DataFrame, path: str | Path, other: list[str]) -> pl.DataFrame:
    columns = _find_columns(table.columns, path, 1, other)
    chosen = [
        (pl.lit(".") if name is None else pl.col(name).cast(pl.String)).alias(wanted)
        for wanted, name in zip((*_NAMES, *_MORE), columns, strict=True)
    ]
    chosen.append(pl.lit(is_start(columns[1])).alias("by_start"))
    return table.select(chosen).with_row_index(_LINE, 2).select(*_SCHEMA).cast({_LINE: pl.Int64})


def _find_columns(
    names: list[str], path: str | Path, line: int, other: list[str]
) -> list[str | None]:
    """The columns of contig, position, REF, ALT and, where there are such, of `_MORE`.

    The names of the rest are added to `other`.
    """
    shown = name_input(path)
    found = [find_usual(names, usual, shown, line) for usual in (_NAMES | _MORE).values()]
    for wanted, column in zip(_NAMES, found, strict=False):
        if column is None:
            near = did_you_mean(wanted, [name.removeprefix("#").strip().lower() for name in names])
            fix = f"a table of variants has chrom, pos, ref and alt; {near}"
            raise DataError(f"no column '{wanted}'", file=shown, line=line, fix=fix)
    other += [name for name in names if name.strip() and name not in (*found, *other)]
    return found


def is_start(name: str | None) -> bool:
    """Whether a column of positions holds starts, which may count from 0."""
    return name is not None and name.removeprefix("#").strip().lower() in _STARTS


def has_variants(names: Iterable[str]) -> bool:
    """Whether columns of these names have contig, position, REF and ALT."""
    known = {name.removeprefix("#").strip().lower() for name in names}
    return all(known.intersection(usual) for usual in _NAMES.values())
