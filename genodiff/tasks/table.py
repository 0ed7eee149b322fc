"""A table of text: the rows of a CSV, TSV, parquet or FASTA file, plain or gzip.

A FASTA file becomes a table with the columns name, sequence and label. Its label is `label=X` in
the header, or what follows the last `|` of the name.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from genodiff.errors import DataError, UsageError, did_you_mean
from genodiff.io.delimited import OpenTable
from genodiff.io.fasta import read_fasta
from genodiff.io.input_file import open_input
from genodiff.io.tables import (
    ENDINGS,
    PARQUET,
    ParquetTable,
    find_ending,
    find_usual,
    open_table,
)

_FASTA = (".fa", ".fasta", ".fna")


class TextTable(NamedTuple):
    """A file's rows as text: `cells` are columns by name.

    `line` has the line number of each row, or the number of its record.
    """

    file: str
    cells: dict[str, list[str]]
    line: list[int]
    separator: str = ""
    """Of a text table."""

    def take(self, rows: list[int]) -> "TextTable":
        """The table of these rows."""
        cells = {name: [column[i] for i in rows] for name, column in self.cells.items()}
        return self._replace(cells=cells, line=[self.line[i] for i in rows])

    def column(self, wanted: str | None, usual: tuple[str, ...], what: str) -> str:
        """The name of a column: the one that the user wants, or the one with a usual name.

        Raises `UsageError` or `DataError` where there is none.
        """
        names = list(self.cells)
        if wanted is not None:
            if wanted not in self.cells:
                what = f"{self.file}: no column '{wanted}'; {did_you_mean(wanted, names)}"
                raise UsageError(what)
            return wanted
        found = find_usual(names, usual)
        if found is None:
            fix = f"name it: --{what} COLUMN (columns: {', '.join(names)})"
            what = f"has no column of {what}s ({' or '.join(usual[:3])})"
            raise DataError(what, file=self.file, line=1, fix=fix)
        return found


def read_table(path: str | Path) -> TextTable:
    """Read a whole CSV, TSV, parquet or FASTA file as text.

    Raises `DataError` with the line of the fault.
    """
    path = Path(path)
    ending = find_ending(path)
    if ending in _FASTA:
        table = OpenTable(str(path), ["name", "sequence", "label"], 1, "", _labelled(path))
    elif ending == PARQUET:
        cells = ParquetTable(path).read_columns()
        n = len(next(iter(cells.values()), []))
        return TextTable(str(path), cells, list(range(1, n + 1)))
    elif ending in ENDINGS:
        table = open_table(path)
    else:
        with open_input(path):
            pass
        what = f"is no table that is known ('{ending}')"
        raise DataError(what, file=path, fix="give .csv, .tsv, .parquet, .fa, plain or .gz")
    rows = list(table.rows)
    columns = zip(*(cells for _, cells in rows), strict=True) if rows else ([] for _ in table.names)
    cells = dict(zip(table.names, map(list, columns), strict=True))
    return TextTable(table.shown, cells, [line for line, _ in rows], table.separator)


def select_rows(table: TextTable, wanted: tuple[tuple[str, str], ...]) -> TextTable:
    """The rows whose columns have the `wanted` values. Raises `DataError` where none has."""
    for column, value in wanted:
        name = table.column(column, (), column)
        keep = [i for i, cell in enumerate(table.cells[name]) if cell == value]
        if not keep:
            known = sorted(set(table.cells[name]))
            what = f"no row has '{value}' in column '{name}'; {did_you_mean(value, known)}"
            raise DataError(what, file=table.file)
        table = table.take(keep)
    return table


def _labelled(path: Path) -> Iterator[tuple[int, list[str]]]:
    for record in read_fasta(path):
        words = [word for word in record.description.split() if word.lower().startswith("label=")]
        name, bar, last = record.name.rpartition("|")
        label = words[0].partition("=")[2] if words else last if bar else ""
        if not label:
            what = "the header gives no label"
            fix = "write '>name label=X' or '>name|X'"
            raise DataError(what, file=path, line=record.line, record=record.name, fix=fix)
        name = record.name if words else name
        yield record.line, [name, record.sequence.decode("ascii"), label]
