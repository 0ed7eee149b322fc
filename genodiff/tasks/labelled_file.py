"""Labelled sequences in one file: CSV, TSV, parquet or FASTA, plain or gzip.

A table needs a column of sequences and one of labels. They are found by their usual names, or the
user names them. Columns of names and of coordinates are read if they exist.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import DataError
from genodiff.io.containers import NAME, SEQUENCE
from genodiff.tasks.examples import Coordinates, Examples, check_sequence
from genodiff.tasks.labels import Kind, read_labels
from genodiff.tasks.table import TextTable, read_table, select_rows

CONTIG = ("contig", "chrom", "chr", "chromosome", "region")


class TableColumns(NamedTuple):
    """Which columns hold what; None takes the usual names.

    Several `labels` make a multi-label task.
    """

    sequence: str | None = None
    labels: tuple[str, ...] = ()
    where: tuple[tuple[str, str], ...] = ()
    """Only rows in which these columns have these values."""


def read_examples(
    path: str | Path,
    layout: TableColumns = TableColumns(),
    *,
    kind: Kind | None = None,
    classes: tuple[str, ...] | None = None,
) -> tuple[Examples, Kind, tuple[str, ...]]:
    """(examples, kind, classes) of one file.

    `classes` gives the labels their numbers: a label is the name or the number of a class. Without
    `kind` and `classes` the labels decide: numeric labels are classes in numeric order, others in
    alphabetical order. Raises `DataError` for an empty or foreign sequence, a missing label, or a
    label that `classes` lack.
    """
    table = select_rows(read_table(path), layout.where)
    if not table.line:
        raise DataError(
            "has no rows", file=table.file, fix="give at least one sequence with its label"
        )
    column = table.column(layout.sequence, SEQUENCE, "sequence")
    names = _names(table)
    sequences = [
        check_sequence(cell.encode("latin-1", "replace"), table.file, line=line, record=name)
        for cell, line, name in zip(table.cells[column], table.line, names, strict=True)
    ]
    labels, kind, classes = read_labels(table, layout.labels, kind, classes)
    return Examples(sequences, labels, names, _coordinates(table)), kind, classes


def _names(table: TextTable) -> list[str]:
    column = next((name for name in table.cells if name.strip().lower() in NAME), None)
    return (
        list(table.cells[column]) if column else [f"row{i}" for i in range(1, len(table.line) + 1)]
    )


def _coordinates(table: TextTable) -> Coordinates | None:
    """contig, start, end and strand where the table has the first three."""
    by_name = {name.strip().lower(): name for name in table.cells}
    contig = next((by_name[name] for name in CONTIG if name in by_name), None)
    if contig is None or not {"start", "end"} <= set(by_name):
        return None
    ends: list[NDArray[np.int64]] = []
    for which in ("start", "end"):
        for cell, line in zip(table.cells[by_name[which]], table.line, strict=True):
            if not (cell.isascii() and cell.isdigit() and len(cell) < 19):
                raise DataError(
                    f"{which} '{cell[:40]}' is no position",
                    file=table.file,
                    line=line,
                    fix="give 0-based positions",
                )
        ends.append(np.array(table.cells[by_name[which]], np.int64))
    wrong = np.flatnonzero(ends[0] >= ends[1])
    if len(wrong):
        raise DataError(
            "start is not before end",
            file=table.file,
            line=table.line[wrong[0]],
            fix="give start < end",
        )
    strand = table.cells.get(by_name.get("strand", ""), [""] * len(table.line))
    return Coordinates(
        np.array(table.cells[contig], np.str_), ends[0], ends[1], np.array(strand, np.str_)
    )
