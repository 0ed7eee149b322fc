"""Labelled sequences in one file: CSV, TSV, parquet or FASTA, plain or gzip.

A table needs a column of sequences and one of labels. They are found by their usual names, or the
user names them. Columns of names and of coordinates are read if they exist.
"""

import logging
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import DataError
from genodiff.io.containers import NAME, SEQUENCE
from genodiff.io.planning import find_share
from genodiff.io.text_lines import explain_whole, find_spoilt_name, is_missing, read_whole
from genodiff.tasks.examples import Coordinates, Examples, check_sequence
from genodiff.tasks.labels import MARKS, Kind, choose_label_columns, find_unlabelled, read_labels
from genodiff.tasks.table import TextTable, find_usual, read_table, select_rows

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
        raise DataError(
            "has no rows", file=table.file, fix="give at least one sequence with its label"
        )
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
        what = f"the sequence '{cell.strip()}' says that a value is missing"
        fix = "give it, or remove the row"
        raise DataError(what, file=file, line=line, record=record, fix=fix)
    return check_sequence("".join(cell.split()).encode(), file, line=line, record=record)


def check_name(name: str, file: str, line: int) -> None:
    """Raises `DataError` for a name that a spreadsheet or a web page spoilt."""
    spoilt = find_spoilt_name(name)
    if spoilt:
        raise DataError(f"the name '{name[:60]}' {spoilt[0]}", file=file, line=line, fix=spoilt[1])


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
            check_name(name, table.file, line)
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
    places = _place_columns(table)
    if not places:
        return None
    for contig, line in zip(table.cells[places["contig"]], table.line, strict=True):
        if is_missing(contig):
            what = f"the contig '{contig}' says that a value is missing"
            fix = "give it, or remove the row"
            raise DataError(what, file=table.file, line=line, fix=fix)
        check_name(contig, table.file, line)
    ends: list[NDArray[np.int64]] = []
    for which in ("start", "end"):
        values = [read_whole(cell) for cell in table.cells[places[which]]]
        for value, cell, line in zip(values, table.cells[places[which]], table.line, strict=True):
            if value is None:
                why, fix = explain_whole(cell)
                what = f"{which} '{cell[:40]}' is no position: it {why}"
                fix = f"give 0-based positions: {fix}"
                raise DataError(what, file=table.file, line=line, fix=fix)
        ends.append(np.array(values, np.int64))
    wrong = np.flatnonzero(ends[0] >= ends[1])
    if len(wrong):
        what = "start is not before end"
        raise DataError(what, file=table.file, line=table.line[wrong[0]], fix="give start < end")
    by_name = {name.strip().lower(): name for name in table.cells}
    strand = table.cells.get(by_name.get("strand", ""), [""] * len(table.line))
    return Coordinates(
        np.array(table.cells[places["contig"]], np.str_), ends[0], ends[1],
        np.array(strand, np.str_),
    )  # fmt: skip
