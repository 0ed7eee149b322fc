"""Labelled sequences in one file: CSV, TSV, parquet or FASTA, plain or gzip.

A table needs a column of sequences and one of labels. They are found by their usual names, or the
user names them. Columns of names and of coordinates are read if they exist.
"""

import logging
from pathlib import Path
from typing import NamedTuple

import numpy as np

from genodiff.errors import DataError
from genodiff.io.containers import NAME, SEQUENCE
from genodiff.io.input_file import find_share
from genodiff.io.tables import find_usual
from genodiff.io.text_lines import RowReader, is_missing
from genodiff.tasks.examples import Coordinates, Examples, check_sequence
from genodiff.tasks.labels import MARKS, Kind, choose_label_columns, find_unlabelled, read_labels
from genodiff.tasks.table import TextTable, read_table, select_rows

log = logging.getLogger("genodiff")

CONTIG = ("contig", "chrom", "chr", "chromosome", "region")


class TableColumns(NamedTuple):
    """Which columns hold what; None takes the usual names.

    Several `labels` make a multi-label task.
    """

    sequence: str | None = None
    labels: tuple[str, ...] = ()
    where: tuple[tuple[str, str], ...] = ()
    """Only rows in which these columns have these values."""
    own: bool = False
    """A user's own table, where a label is a name and never the number of a class."""
    drop_missing: bool = False
    """Leave out, and count, rows without a label, a sequence or a position."""


def read_examples(
    path: str | Path,
    layout: TableColumns = TableColumns(),
    *,
    kind: Kind | None = None,
    classes: tuple[str, ...] | None = None,
) -> tuple[Examples, Kind, tuple[str, ...]]:
    """(examples, kind, classes) of one file.

    `classes` gives the labels their numbers: a label is the name of a class or, unless the table is
    the user's own, its number. Without `kind` and `classes` the labels decide: numeric labels are
    classes in numeric order, others in alphabetical order. Raises `DataError` for an empty or
    foreign sequence, a missing label, or a label that `classes` lack.
    """
    table = select_rows(read_table(path), layout.where)
    if not table.line:
        fix = "give at least one sequence with its label"
        raise DataError("has no rows", file=table.file, fix=fix)
    column = table.column(layout.sequence, SEQUENCE, "sequence")
    chosen = choose_label_columns(table, layout.labels)
    if layout.drop_missing:
        table = _drop_missing(table, column, chosen, kind)
    names = _names(table, judge=layout.own)
    sequences = [
        check_cell(cell, table.file, line=line, record=name)
        for cell, line, name in zip(table.cells[column], table.line, names, strict=True)
    ]
    labels, kind, classes = read_labels(table, chosen, kind, classes, own=layout.own)
    share = find_share(table.file)
    return Examples(sequences, labels, names, _coordinates(table), share), kind, classes


def check_cell(cell: str, file: str, *, line: int, record: str) -> bytes:
    """The DNA of a table's cell, in upper case; line breaks and blanks in it are no letters.

    Raises `DataError` as `check_sequence` does, and for NA and NaN, whose letters are IUPAC codes.
    """
    if cell.strip() and is_missing(cell):
        RowReader(file, line, record).check_given(cell.strip(), "sequence")
    return check_sequence("".join(cell.split()).encode(), file, line=line, record=record)


def _drop_missing(
    table: TextTable, sequence: str, labels: list[str], kind: Kind | None
) -> TextTable:
    """The rows that have everything; how many have not is told."""
    places = {**_place_columns(table), "sequence": sequence}
    lacking = {"label": find_unlabelled(table, labels, kind)} | {
        what: {i for i, cell in enumerate(table.cells[name]) if is_missing(cell) or cell in MARKS}
        for what, name in places.items()
    }
    dropped = set[int]().union(*lacking.values())
    if not dropped:
        log.info("%s: no row lacks a value, and none is dropped", table.file)
        return table
    why = ", ".join(f"no {what}: {len(rows):,}" for what, rows in lacking.items() if rows)
    log.warning(
        "%s: %d of %d rows dropped (%s; first: line %d)",
        table.file, len(dropped), len(table.line), why, table.line[min(dropped)],
    )  # fmt: skip
    if len(dropped) == len(table.line):
        raise DataError("every row lacks a value", file=table.file, fix="give whole rows")
    return table.take([i for i in range(len(table.line)) if i not in dropped])


def _names(table: TextTable, *, judge: bool) -> list[str]:
    column = find_usual(list(table.cells), NAME)
    if column is None:
        return [f"row{i}" for i in range(1, len(table.line) + 1)]
    if judge:
        for name, line in zip(table.cells[column], table.line, strict=True):
            RowReader(table.file, line).check_name(name, "name")
    return list(table.cells[column])


def _place_columns(table: TextTable) -> dict[str, str]:
    """The columns of contig, start, end and perhaps strand; none without the first three."""
    by_name = {name.strip().lower(): name for name in table.cells}
    contig = find_usual(list(table.cells), CONTIG)
    if contig is None or not {"start", "end"} <= set(by_name):
        return {}
    return {"contig": contig, "start": by_name["start"], "end": by_name["end"]}


def _coordinates(table: TextTable) -> Coordinates | None:
    """contig, start, end and strand where the table has the first three."""
    places = [table.cells[name] for name in _place_columns(table).values()]
    if not places:
        return None
    ends = []
    for line, contig, *pair in zip(table.line, *places, strict=True):
        row = RowReader(table.file, line)
        row.check_given(contig, "contig")
        row.check_name(contig, "contig")
        named = zip(pair, ("start (0-based)", "end (0-based)"), strict=True)
        ends.append([row.read_whole(cell, name) for cell, name in named])
    start, end = np.array(ends, np.int64).reshape(-1, 2).T
    wrong = np.flatnonzero(start >= end)
    if len(wrong):
        what = "start is not before end"
        raise DataError(what, file=table.file, line=table.line[wrong[0]], fix="give start < end")
    by_name = {name.strip().lower(): name for name in table.cells}
    strand = table.cells.get(by_name.get("strand", ""), [""] * len(table.line))
    return Coordinates(np.array(places[0], np.str_), start, end, np.array(strand, np.str_))
