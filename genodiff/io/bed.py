"""BED intervals (0-based, half-open), read strictly: a row that is not exact is an error.

Accepted besides rows of 3 or more tab-separated columns: `#`, `track` and `browser` lines, blank
lines, CRLF, blanks in place of tabs, blanks around values, blanks and tabs at line ends, whole
numbers as pandas and R write them (`100.0`, `1e+05`), UTF-16 with its mark, gzip and BGZF. An
interval of no bases is legal BED; it is dropped and counted. GTF, GFF3 and SAF are known by their
rows, and are an error that says how to make BED of them.
"""

import logging
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import polars as pl

from genodiff.errors import DataError, did_you_mean
from genodiff.io.annotation_rows import find_annotation
from genodiff.io.input_file import name_input
from genodiff.io.text_lines import RowReader, is_bed_comment, read_text_lines, read_whole

log = logging.getLogger("genodiff")

SCHEMA = {
    "contig": pl.String, "start": pl.Int64, "end": pl.Int64, "name": pl.String,
    "score": pl.String, "strand": pl.String, "line": pl.Int64,
}  # fmt: skip
"""Columns of the table. `name`, `score` and `strand` may be null; `line` counts from 1."""

_SPLITS = {
    "train": "train", "valid": "valid", "val": "valid", "validation": "valid", "test": "test",
}  # fmt: skip
_STRANDS = ("+", "-")
_Row = tuple[str, int, int, str | None, str | None, str | None, int]


def read_bed(path: str | Path, contigs: dict[str, int] | None = None) -> pl.DataFrame:
    """The intervals of a BED file, in its order, as columns `SCHEMA`; further columns are not read.

    With `contigs` (name → length), every interval must lie within one. Empty ones are dropped and
    counted in the log. Raises `DataError` naming the line; also where no interval is left.
    """
    found = [row for row, _ in parse_bed_lines(path, read_text_lines(path, "BED"), contigs)]
    rows = [row for row in found if row[1] < row[2]]
    empty = len(found) - len(rows)
    if not rows:
        some = f"holds no interval with any base ({empty} empty)"
        what = some if empty else "is empty: no interval"
        fix = "give rows of CONTIG, START and END, separated by tabs"
        raise DataError(what, file=name_input(path), fix=fix)
    table = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    again = table.height - table.n_unique(subset=["contig", "start", "end", "name", "strand"])
    if empty:
        log.warning("%s: %d intervals of length 0 dropped", path, empty)
    if again:
        log.warning("%s: %d rows stand more than once", path, again)
    return table


def parse_bed_lines(
    path: str | Path, lines: Iterator[tuple[int, str]], contigs: dict[str, int] | None = None
) -> Iterator[tuple[_Row, list[str]]]:
    """Each row of numbered lines as `SCHEMA` has it, and all its fields; raises as `read_bed`."""
    columns, shown = 0, name_input(path)
    for number, text in lines:
        line = text.rstrip(" \t")
        if is_bed_comment(line):
            continue
        fields = _split(line)
        try:
            row = _row(shown, number, fields, contigs, first=not columns)
        except DataError as fault:
            if not columns:  # no row was BED so far
                fault = _name_annotation(path, number, line, lines) or fault
            raise fault from None
        if columns and len(fields) != columns:
            what = f"has {len(fields)} columns where the rows before have {columns}"
            fix = "give every row the same columns ('.' for an unknown value)"
            raise RowReader(shown, number).fault(what, fix)
        columns = len(fields)
        yield row, fields


def _split(line: str) -> list[str]:
    """The columns of a row, by tabs, or by blanks as in UCSC's and htslib's reading of BED."""
    fields = [field.strip() for field in line.split("\t")]
    words = line.split() if len(fields) < 3 else []
    if len(words) > 2 and None not in map(read_whole, words[1:3]):
        return words
    return fields


def check_splits(table: pl.DataFrame, path: str | Path) -> None:
    """Raise `DataError` for an unknown or missing split in column 4, or for overlapping splits.

    Column 4 is taken to name splits if all its values are splits, or if one of them is `train`.
    """
    shown, names = name_input(path), {str(name).lower() for name in table["name"].unique()}
    if "train" not in names and not names <= set(_SPLITS):
        return
    for name, line in zip(table["name"].to_list(), table["line"].to_list(), strict=True):
        if str(name).lower() not in _SPLITS:
            near = did_you_mean(str(name).lower(), ("train", "valid", "test"))
            fix = f"{near} (column 4 names the split)"
            raise RowReader(shown, line).fault(f"unknown split '{name}'", fix)
    if "train" not in names:
        what = "has no interval of the split train"
        raise DataError(what, file=shown, fix="write train in some rows' 4th column")
    reach: dict[str, tuple[str, int, int]] = {}  # split → contig, furthest end, line
    for contig, start, end, name, line in (
        table.sort("contig", "start").select("contig", "start", "end", "name", "line").iter_rows()
    ):
        split = _SPLITS[name.lower()]
        for other, (where, far, theirs) in reach.items():
            if other != split and where == contig and far > start:
                there = f"overlaps a {other} interval (line {theirs})"
                what = f"the {split} interval {contig}:{start}-{end} {there}"
                raise RowReader(shown, line).fault(what, "make the splits disjoint")
        where, far, _ = reach.get(split, ("", 0, 0))
        if where != contig or end > far:
            reach[split] = (contig, end, line)


def _name_annotation(
    path: str | Path, number: int, line: str, rest: Iterator[tuple[int, str]]
) -> DataError | None:
    """What refuses GTF, GFF3 and SAF; None where the first row and the `rest` are none of them."""
    try:
        found = find_annotation(chain([(number, line)], rest))
    except DataError:  # a fault further down, which comes after that of the row
        return None
    return found and found.refuse(path, number)


def _row(
    shown: str, number: int, fields: list[str], contigs: dict[str, int] | None, *, first: bool
) -> _Row:
    reader = RowReader(shown, number)
    if len(fields) < 3:
        raise _too_few("\t".join(fields), reader)
    contig = fields[0]
    name, score, strand = (fields[i] if len(fields) > i else None for i in (3, 4, 5))
    reader.check_contig(contig)
    for noun, text in (("name", name), ("score", score)):
        reader.check_name(text or "", noun)
    is_header = first and re.fullmatch(r"[A-Za-z_ ]+", fields[1])
    fix = "start a line of column names with '#', or remove it" if is_header else ""
    start, end = (reader.read_whole(fields[i], "start" if i == 1 else "end", fix) for i in (1, 2))
    if end < start:
        raise reader.fault(f"the end {end} is before the start {start}", "exchange or correct them")
    if contigs is not None:
        contig = reader.find_contig(contig, contigs)
        length = contigs[contig]
        if end > length:
            which = f"start {start} and the end {end} are" if start >= length else f"end {end} is"
            hint = "; is the file 1-based?" if end == length + 1 and start > 0 else ""
            what = f"the {which} past the end of {contig} (length {length}){hint}"
            fix = "BED is 0-based and half-open: correct the row, or give the right FASTA"
            raise reader.fault(what, fix)
    if strand not in (None, "+", "-", "."):
        raise reader.fault(f"'{strand}' is no strand", "write +, - or . in column 6")
    if strand is None and (score in _STRANDS or name in _STRANDS):
        at, text, kind = (5, score, "score") if score in _STRANDS else (4, name, "name")
        what = f"column {at} is the {kind}, and '{text}' is a strand"
        raise reader.fault(what, "write the strand in column 6")
    return contig, start, end, name, score, strand, number


def _too_few(line: str, reader: RowReader) -> DataError:
    if line.startswith((">", "@")):
        what = "no BED: a row has fewer than 3 columns; this is "
        return reader.fault(what + ("FASTA" if line[0] == ">" else "FASTQ or SAM"), "give BED")
    for mark, name in (" ", "blanks"), (",", "commas"), (";", "semicolons"):
        if "\t" not in line and len(list(filter(None, line.split(mark)))) > 2:
            fix = f"BED needs tabs: tr {'-s ' * (mark == ' ')}'{mark}' '\\t'"
            return reader.fault(f"columns are separated by {name}, not tabs", fix)
    n = line.count("\t") + 1
    fix = "give CONTIG, START and END, separated by tabs"
    return reader.fault(f"has {n} column{'s' * (n > 1)}, fewer than 3", fix)
