"""A table of text: the rows of a CSV, TSV, parquet or FASTA file, plain or gzip.

A FASTA file becomes a table with the columns name, sequence and label. Its label is `label=X` in
the header, or what follows the last `|` of the name.
"""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl

from genodiff.errors import DataError, UsageError, did_you_mean
from genodiff.io.fasta import read_fasta
from genodiff.io.file_names import find_plain_path
from genodiff.io.input_file import open_input
from genodiff.io.text_lines import read_text_lines

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t", ".tab": "\t"}
_FASTA = (".fa", ".fasta", ".fna")


class TextTable(NamedTuple):
    """A file's rows as text: `cells` are columns by name.

    `line` has the line number of each row, or the number of its record.
    """

    file: str
    cells: dict[str, list[str]]
    line: list[int]

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
        found = [name for name in names if name.strip().lower() in usual]
        if not found:
            fix = f"name it: --{what} COLUMN (columns: {', '.join(names)})"
            raise DataError(
                f"has no column of {what}s ({' or '.join(usual[:3])})",
                file=self.file,
                line=1,
                fix=fix,
            )
        return found[0]


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
        raise DataError(
            f"is no table that is known ('{ending}')",
            file=path,
            fix="give .csv, .tsv, .parquet, .fa, plain or .gz",
        )
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
            raise DataError(
                f"no row has '{value}' in column '{name}'; {did_you_mean(value, known)}",
                file=table.file,
            )
        table = TextTable(
            table.file,
            {c: [cells[i] for i in keep] for c, cells in table.cells.items()},
            [table.line[i] for i in keep],
        )
    return table


def _delimited(path: Path, separator: str) -> TextTable:
    header, found = read_rows(path, separator)
    rows: list[list[str]] = []
    numbers: list[int] = []
    for number, fields in found:
        rows.append(fields)
        numbers.append(number)
    columns = zip(*rows, strict=True) if rows else ([] for _ in header)
    return TextTable(
        str(path), {name: list(cells) for name, cells in zip(header, columns, strict=True)}, numbers
    )


def read_rows(
    path: Path, separator: str, *, quoted: bool = True
) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The header of a delimited file, and the line and fields of each row, as a stream.

    Without `quoted`, a quotation mark is a letter like any other. Raises `DataError` with the line.
    """
    lines = read_text_lines(path, "a table")
    first = next(((number, line) for number, line in lines if line.strip()), None)
    if first is None:
        raise DataError(
            "is empty: no header line", file=path, fix="give a header line and one row per sequence"
        )
    header = [name.strip() for name in _fields(path, *first, separator)]
    if len(header) > len(set(header)):
        raise DataError("a column's name stands twice", file=path, line=first[0], fix="rename it")
    if any(len(name) > 15 and not name.upper().strip("ACGTN") for name in header):
        raise DataError(
            "no header line: this one holds a sequence",
            file=path,
            line=first[0],
            fix="add a line: sequence,label",
        )
    if len(header) == 1 and {",", "\t"} & set(first[1]):
        found = "tab" if "\t" in first[1] else "comma"
        raise DataError(
            f"separated by {found}s, unlike its name says",
            file=path,
            line=first[0],
            fix="name it .csv (comma) or .tsv (tab)",
        )
    return header, _rows(path, lines, len(header), separator, quoted)


def _rows(
    path: Path, lines: Iterator[tuple[int, str]], width: int, separator: str, quoted: bool
) -> Iterator[tuple[int, list[str]]]:
    for number, line in lines:
        if not line.strip():
            continue
        plain = not quoted or '"' not in line
        fields = line.split(separator) if plain else _fields(path, number, line, separator)
        if len(fields) != width:
            what = f"{len(fields)} field{'s' * (len(fields) != 1)}, but the header has {width}"
            raise DataError(
                what,
                file=path,
                line=number,
                fix="correct the row (a quote or a separator too many or too few?)",
            )
        yield number, fields


def _fields(path: Path, number: int, line: str, separator: str) -> list[str]:
    try:
        found = list(csv.reader(io.StringIO(line), delimiter=separator, strict=True))
    except csv.Error as fault:
        raise DataError(
            f"not {'CSV' if separator == ',' else 'TSV'}: {fault}",
            file=path,
            line=number,
            fix="correct the quotes",
        ) from None
    return found[0] if found else []


def _parquet(path: Path) -> TextTable:
    with open_input(path):
        pass
    try:
        frame = pl.read_parquet(find_plain_path(path))
    except (pl.exceptions.PolarsError, OSError) as fault:
        what = f"is no whole parquet file ({str(fault).splitlines()[0][:120]})"
        raise DataError(what, file=path, fix="write it again") from None
    check_columns(path, frame.schema)
    cells = {name: frame[name].cast(pl.String).fill_null("").to_list() for name in frame.columns}
    return TextTable(str(path), cells, list(range(1, frame.height + 1)))


def check_columns(path: Path, schema: pl.Schema) -> None:
    """Raises `DataError` for a column of a parquet file that holds neither text nor numbers."""
    nested = [name for name, kind in schema.items() if kind.is_nested() or kind == pl.Binary]
    if nested:
        raise DataError(
            f"column '{nested[0]}' holds {schema[nested[0]]}, not text or numbers",
            file=path,
            fix="flatten it",
        )


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
            raise DataError(
                "the header gives no label",
                file=path,
                line=record.line,
                record=record.name,
                fix="write '>name label=X' or '>name|X'",
            )
        yield (record.name if words else name), label, record.sequence, record.line
