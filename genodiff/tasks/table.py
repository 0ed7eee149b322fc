"""A table of text: the rows of a CSV, TSV, parquet or FASTA file, plain or gzip.

A FASTA file becomes a table with the columns name, sequence and label. Its label is `label=X` in
the header, or what follows the last `|` of the name.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from genodiff.errors import DataError, UsageError, did_you_mean
from genodiff.io.delimited import read_delimited
from genodiff.io.fasta import read_fasta
from genodiff.io.file_kinds import find_plain_path
from genodiff.io.input_file import check_parquet, open_input
from genodiff.io.planning import ROWS, is_planning, note_cut

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t", ".tab": "\t"}
"""What the ending of a file promises; the file itself decides (`genodiff.io.delimited`)."""
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
                raise UsageError(
                    f"{self.file}: no column '{wanted}'; {did_you_mean(wanted, names)}"
                )
            return wanted
        found = find_usual(names, usual)
        if found is None:
            fix = f"name it: --{what} COLUMN (columns: {', '.join(names)})"
            raise DataError(
                f"has no column of {what}s ({' or '.join(usual[:3])})",
                file=self.file,
                line=1,
                fix=fix,
            )
        return found


def find_usual(names: Sequence[str], usual: Sequence[str]) -> str | None:
    """The column with a usual name, in any case; the first of `usual` wins, in whatever order.

    So two tables with the same columns in another order agree. Raises `DataError` where two columns
    have it, in other capitals.
    """
    known: dict[str, list[str]] = {}
    for name in names:
        known.setdefault(name.strip().lower(), []).append(name)
    found = next((known[name] for name in usual if name in known), [])
    if len(found) > 1:
        what = f"the columns {' and '.join(map(repr, found))} differ in capitals only"
        raise DataError(what, fix="rename the one that is not meant")
    return found[0] if found else None


def read_table(path: str | Path) -> TextTable:
    """A whole CSV, TSV, parquet or FASTA file as text.

    Raises `DataError` with the line of the fault.
    """
    path = Path(path)
    ending = find_ending(path)
    if ending == ".parquet":
        return _parquet(path)
    if ending in _FASTA:
        return _fasta(path)
    if ending not in SEPARATORS:
        with open_input(path):
            pass
        what = f"is no table that is known ('{ending}')"
        raise DataError(what, file=path, fix="give .csv, .tsv, .parquet, .fa, plain or .gz")
    return _delimited(path, SEPARATORS[ending])


def find_ending(path: Path) -> str:
    """The ending of a file's name, in lower case, without that of its compression."""
    return Path(path.name.lower().removesuffix(".gz").removesuffix(".bgz")).suffix


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


def _delimited(path: Path, separator: str) -> TextTable:
    table = read_delimited(path, separator)
    numbered = list(table.rows)
    rows = [fields for _, fields in numbered]
    columns = zip(*rows, strict=True) if rows else ([] for _ in table.names)
    cells = {name: list(column) for name, column in zip(table.names, columns, strict=True)}
    return TextTable(table.shown, cells, [number for number, _ in numbered], table.separator)


def _parquet(path: Path) -> TextTable:
    check_parquet(path)
    try:
        lazy = pl.scan_parquet(find_plain_path(path))
        n = lazy.select(pl.len()).collect().item()
        cut = is_planning() and n > ROWS
        if cut:
            note_cut(str(path), ROWS / n, f"its first {ROWS:,} rows")
        frame = (lazy.head(ROWS) if cut else lazy).collect()
    except (pl.exceptions.PolarsError, OSError) as fault:
        what = f"is no whole parquet file ({str(fault).splitlines()[0][:120]})"
        raise DataError(what, file=path, fix="write it again") from None
    check_columns(path, frame.schema)
    text = frame.select(pl.all().cast(pl.String).fill_null("").str.strip_chars())
    cells = {name: text[name].to_list() for name in text.columns}
    return TextTable(str(path), cells, list(range(1, frame.height + 1)))


def check_columns(path: Path, schema: pl.Schema) -> None:
    """Raises `DataError` for a column of a parquet file that holds neither text nor numbers."""
    nested = [name for name, kind in schema.items() if kind.is_nested() or kind == pl.Binary]
    if nested:
        what = f"column '{nested[0]}' holds {schema[nested[0]]}, not text or numbers"
        raise DataError(what, file=path, fix="flatten it")


def _fasta(path: Path) -> TextTable:
    cells: dict[str, list[str]] = {"name": [], "sequence": [], "label": []}
    numbers: list[int] = []
    for name, label, sequence, line in _labelled(path):
        cells["name"].append(name)
        cells["label"].append(label)
        cells["sequence"].append(sequence.decode("ascii"))
        numbers.append(line)
    return TextTable(str(path), cells, numbers)


def _labelled(path: Path) -> Iterator[tuple[str, str, bytes, int]]:
    for record in read_fasta(path):
        words = [word for word in record.description.split() if word.lower().startswith("label=")]
        name, bar, last = record.name.rpartition("|")
        label = words[0].partition("=")[2] if words else last if bar else ""
        if not label:
            what = "the header gives no label"
            fix = "write '>name label=X' or '>name|X'"
            raise DataError(what, file=path, line=record.line, record=record.name, fix=fix)
        yield (record.name if words else name), label, record.sequence, record.line
