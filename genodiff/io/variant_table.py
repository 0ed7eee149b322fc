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
from genodiff.io.diagnosis import find_other_format
from genodiff.io.input_file import VARIANTS, is_planning, name_input, open_input
from genodiff.io.tables import ENDINGS, ParquetTable, find_ending, find_usual
from genodiff.io.text_lines import RowReader, read_text_lines, read_whole
from genodiff.io.variants import POSITION, VariantRecord, check_alleles

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
_SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys((*_NAMES, *_MORE), pl.String()),
    "line": pl.Int64(),
}
_ROWS = 1 << 16  # held as Python's objects at a time
_MINUS = ("-", "-1", "minus")

log = logging.getLogger("genodiff")


class VariantTable:
    """The columns of a table that say what its variants are; `other` are the names of the rest."""

    def __init__(self, path: str | Path, table: pl.DataFrame | None = None) -> None:
        """Read them, or take `table`, called `path`. Raises `DataError` where one is missing."""
        self.path, self.shown, self.other = path, name_input(path), list[str]()
        self._starts = False  # whether positions are starts, which may count from 0
        self._table = self._read() if table is None else self._take(table)
        if not self._table.height:
            fix = "give a row for each variant"
            raise DataError("is empty: no variant", file=self.shown, fix=fix)
        if n := int(self._table["strand"].is_in(_MINUS).sum()):
            what = "%s: %d of %d rows have - in the column of strands, which is not used: %s"
            why = "REF and ALT are letters of the strand of the FASTA"
            log.warning(what, self.shown, n, self._table.height, why)
        self._shift = self._find_shift() if self._starts else 0
        if (n := int((self._table["ref"].str.strip_chars() == "-").sum())) and not self._starts:
            what = "%s: %s written with - as REF: %s; VEP has them before it"
            how = "read as behind POS, as ANNOVAR and MAF have it"
            log.warning(what, self.shown, format_count(n, "insertion"), how)

    def records(self) -> Iterator[VariantRecord]:
        """Its rows, in order. `line` counts the rows of a parquet file or a frame from 2."""
        for *values, line in self._table.drop("strand").iter_rows():
            chrom, pos, ref, alt, name, end = ("" if v is None else v.strip() for v in values)
            reader = RowReader(self.shown, line)
            reader.check_given(chrom, "contig's name")
            reader.check_contig(chrom)
            reader.check_name(name, "ID")
            at = self._shift + reader.read_whole(pos, POSITION)
            check_alleles(ref, alt, reader, no_base="-")
            if ref == "-" and end != "." and (last := read_whole(end)) is not None:
                at = min(at, last)
            if alt == "" or alt == ref == "-":
                fix = "write a deletion as -, or with the base before it, and no ALT as ."
                raise reader.fault(f"ALT '{alt}' is no base", fix)
            alts = () if alt == "." else tuple(alt.split(","))
            yield VariantRecord(line, chrom, at, name or ".", ref, alts)

    def _find_shift(self) -> int:
        """What a start lacks to be a position: 0, or 1 of BED. Raises `DataError`."""
        shifts: dict[int, int] = {}  # each, and the first line that has it
        for _, start, ref, _, _, end, line in self._table.drop("strand").iter_rows():
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
        raise DataError(what, file=self.shown, line=line, fix=fix)

    def _read(self) -> pl.DataFrame:
        with open_input(self.path) as source:
            head = next(source.blocks(), b"")
        if head.startswith(b"PAR1"):
            return self._take(ParquetTable(self.path).collect(VARIANTS + 1))
        if head.lstrip(b"\xef\xbb\xbf \r\n").startswith(b"{"):
            known = None if b'"pos' in head.lower() else find_other_format(head, "variants")
            if known and known[0] != "JSON":
                what = f"no table of variants: this is {known[0]}"
                raise DataError(what, file=self.shown, fix=known[1])
            return _gather(self._read_json())
        table = read_delimited(self.path, ENDINGS.get(find_ending(self.path), ","))
        columns = self._find_columns(table.names, table.line)
        at = [-1 if name is None else table.names.index(name) for name in columns]
        rows = ((*("." if i < 0 else row[i] for i in at), line) for line, row in table.rows)
        return _gather(rows)

    def _read_json(self) -> Iterator[tuple[Any, ...]]:
        columns: list[str | None] = []
        names: list[str] | None = None
        for line, text in read_text_lines(self.path, "JSON lines"):
            if not text.strip():
                continue
            try:
                row = json.loads(text, parse_float=str)  # a position keeps its spelling
            except ValueError:
                row = None
            if not isinstance(row, dict):
                fix = "give JSON lines: an object for each variant"
                raise DataError("no JSON object", file=self.shown, line=line, fix=fix)
            if names != list(row):
                names = list(row)
                columns = self._find_columns(names, line)
            values = ["." if name is None else row.get(name) for name in columns]
            yield *(None if value is None else str(value) for value in values), line

    def _take(self, table: pl.DataFrame) -> pl.DataFrame:
        columns = zip((*_NAMES, *_MORE), self._find_columns(table.columns, 1), strict=True)
        chosen = (
            (pl.lit(".") if name is None else pl.col(name).cast(pl.String)).alias(wanted)
            for wanted, name in columns
        )
        rows = table.select(chosen).with_row_index("line", 2)
        return rows.select(*_SCHEMA).cast({"line": pl.Int64})

    def _find_columns(self, names: list[str], line: int) -> list[str | None]:
        """The columns of `_NAMES` and, where there are such, `_MORE`; the rest is `other`."""
        found = [find_usual(names, usual, self.shown, line) for usual in (_NAMES | _MORE).values()]
        plain = {name: name.removeprefix("#").strip().lower() for name in names}
        for wanted, column in zip(_NAMES, found, strict=False):
            if column is None:
                near = did_you_mean(wanted, list(plain.values()))
                fix = f"a table of variants has chrom, pos, ref and alt; {near}"
                raise DataError(f"no column '{wanted}'", file=self.shown, line=line, fix=fix)
        self._starts |= plain[found[1] or ""] in _STARTS
        self.other += [one for one in names if one.strip() and one not in (*found, *self.other)]
        return found


def _gather(rows: Iterable[tuple[Any, ...]]) -> pl.DataFrame:
    parts, ahead = [pl.DataFrame(schema=_SCHEMA)], iter(rows)
    if is_planning():
        ahead = islice(ahead, VARIANTS + 1)
    while some := list(islice(ahead, _ROWS)):
        parts.append(pl.DataFrame(some, schema=_SCHEMA, orient="row"))
    return pl.concat(parts)


def has_variants(names: Iterable[str]) -> bool:
    """Whether columns of these names have contig, position, REF and ALT."""
    known = {name.removeprefix("#").strip().lower() for name in names}
    return all(known.intersection(usual) for usual in _NAMES.values())
