"""Labelled sequences in one file: CSV, TSV, parquet or FASTA, plain or gzip.

A table needs a column of sequences and one of labels, found by their usual names or named by the
user; columns for a name and for coordinates are taken along where they are there. In FASTA the
label stands as `label=X` in the header, or after the last `|` of the name.

What the labels are (two classes, several, values) is told by the train part's labels unless it is
said, and is always reported, since `0, 1, 2` may be classes or counts.
"""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from genodiff.errors import DataError, UsageError
from genodiff.io.fasta import read_fasta
from genodiff.io.lines import text_lines
from genodiff.io.source import open_source
from genodiff.settings import did_you_mean
from genodiff.tasks.examples import Examples, Places, checked_sequence

Kind = Literal["binary", "multiclass", "multilabel", "regression"]

SEQUENCE = ("sequence", "seq", "dna")
LABEL = ("label", "labels", "target", "class", "y")
NAME = ("name", "id")
CONTIG = ("contig", "chrom", "chr", "chromosome", "region")

_ENDINGS = {".csv": ",", ".tsv": "\t", ".txt": "\t", ".tab": "\t"}
_FASTA = (".fa", ".fasta", ".fna")
_MOST_CLASSES = 50
_SEPARATOR = ";"


class Table(NamedTuple):
    """A file's rows as text. `line` is the number of a row's line (or of its record); `cells` are
    columns by name.
    """

    file: str
    cells: dict[str, list[str]]
    line: list[int]

    def column(self, wanted: str | None, usual: tuple[str, ...], what: str) -> str:
        """The name of a column: the one that the user wants, or the one with a usual name. Raises
        `UsageError`.
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


class Layout(NamedTuple):
    """Which columns hold what; None takes the usual names. Several `labels` make a multi-label
    task.
    """

    sequence: str | None = None
    labels: tuple[str, ...] = ()
    where: tuple[tuple[str, str], ...] = ()
    """Only rows in which these columns have these values."""


def read_rows(path: str | Path) -> Table:
    """A whole CSV, TSV, parquet or FASTA file as text. Raises `DataError` with the line of the
    fault.
    """
    path = Path(path)
    stem = path.name.lower().removesuffix(".gz").removesuffix(".bgz")
    ending = Path(stem).suffix
    if ending == ".parquet":
        return _parquet(path)
    if ending in _FASTA:
        return _fasta(path)
    if ending not in _ENDINGS:
        with open_source(path):
            pass
        raise DataError(
            f"is no table that is known ('{ending}')",
            file=path,
            fix="give .csv, .tsv, .parquet, .fa, plain or .gz",
        )
    return _delimited(path, _ENDINGS[ending])


def read_table(
    path: str | Path,
    layout: Layout = Layout(),
    *,
    kind: Kind | None = None,
    classes: tuple[str, ...] | None = None,
) -> tuple[Examples, Kind, tuple[str, ...]]:
    """(examples, kind, classes) of one file. `classes` gives the labels their numbers: a label is a
    class's name or number.

    Without `kind` and `classes` they are told by the labels: numeric labels in numeric order,
    others alphabetically. Raises `DataError` for an empty or foreign sequence, a missing label, or
    a label that `classes` lack.
    """
    table = _where(read_rows(path), layout.where)
    if not table.line:
        raise DataError(
            "has no rows", file=table.file, fix="give at least one sequence with its label"
        )
    column = table.column(layout.sequence, SEQUENCE, "sequence")
    names = _names(table)
    sequences = [
        checked_sequence(cell.encode("latin-1", "replace"), table.file, line=line, record=name)
        for cell, line, name in zip(table.cells[column], table.line, names, strict=True)
    ]
    labels, kind, classes = _labels(table, layout.labels, kind, classes)
    return Examples(sequences, labels, names, _places(table)), kind, classes


def _labels(
    table: Table, columns: tuple[str, ...], kind: Kind | None, classes: tuple[str, ...] | None
) -> tuple[NDArray[np.generic], Kind, tuple[str, ...]]:
    chosen = [table.column(name, LABEL, "label") for name in columns] or [
        table.column(None, LABEL, "label")
    ]
    for name in chosen:
        for cell, line in zip(table.cells[name], table.line, strict=True):
            if not cell.strip() and kind != "multilabel":
                raise DataError(
                    f"no label in column '{name}'",
                    file=table.file,
                    line=line,
                    fix="give it, or remove the row",
                )
    if len(chosen) > 1:
        if kind not in (None, "multilabel"):
            raise UsageError(f"{len(chosen)} label columns make a multilabel task, not {kind}")
        return _answers(table, chosen), "multilabel", tuple(chosen)
    cells = [cell.strip() for cell in table.cells[chosen[0]]]
    if kind == "multilabel":
        sets = [[part.strip() for part in cell.split(_SEPARATOR) if part.strip()] for cell in cells]
        classes = classes or tuple(sorted({name for row in sets for name in row}))
        if not classes:
            raise DataError(
                f"column '{chosen[0]}' has no label at all",
                file=table.file,
                fix="write class names, separated by ;",
            )
        yes = np.zeros((len(sets), len(classes)), np.uint8)
        for i, row in enumerate(sets):
            for name in row:
                yes[i, _class(table, name, classes, table.line[i])] = 1
        return yes, "multilabel", classes
    if classes is None:
        kind, classes = told_by(cells, kind)
    kind = kind or ("binary" if len(classes) == 2 else "multiclass")
    if kind == "regression":
        return _values(table, cells), kind, ()
    if len(classes) < 2 or (kind == "binary") != (len(classes) == 2):
        what = (
            f"{len(classes)} different label{'s' * (len(classes) != 1)} "
            f"({', '.join(classes[:5])}) do not make a {kind} task"
        )
        raise DataError(
            what,
            file=table.file,
            fix="give two classes (binary), more (multiclass), or --kind regression",
        )
    number = {name: i for i, name in enumerate(classes)}
    labels = [
        number[c] if c in number else _class(table, c, classes, line)
        for c, line in zip(cells, table.line, strict=True)
    ]
    return np.array(labels, np.int64), kind, classes


def told_by(cells: list[str], kind: Kind | None = None) -> tuple[Kind, tuple[str, ...]]:
    """What labels like these mean: values where one is no whole number or where there are many,
    else classes, in order.
    """
    different = set(cells)
    numbers = {cell: value for cell in different if (value := _number(cell)) is not None}
    numeric = len(numbers) == len(different)
    if kind == "regression":
        return "regression", ()
    if (
        kind is None
        and numeric
        and (any(v != int(v) for v in numbers.values()) or len(different) > _MOST_CLASSES)
    ):
        return "regression", ()
    order = (
        sorted(different, key=lambda cell: (numbers[cell], cell)) if numeric else sorted(different)
    )
    return kind or ("binary" if len(order) == 2 else "multiclass"), tuple(order)


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _class(table: Table, cell: str, classes: tuple[str, ...], line: int) -> int:
    if cell in classes:
        return classes.index(cell)
    if (
        cell.isascii()
        and cell.isdigit()
        and int(cell) < len(classes)
        and not any(name.isdigit() for name in classes)
    ):
        return int(cell)
    what = (
        f"unknown label '{cell[:60]}': the classes are "
        f"{', '.join(classes[:8])}{', ...' * (len(classes) > 8)}"
    )
    raise DataError(
        what, file=table.file, line=line, fix="correct the label, or give train rows of that class"
    )


def _values(table: Table, cells: list[str]) -> NDArray[np.float64]:
    for cell, line in zip(cells, table.line, strict=True):
        if _number(cell) is None:
            raise DataError(
                f"the label '{cell[:60]}' is not a finite number",
                file=table.file,
                line=line,
                fix="correct it",
            )
    return np.array([float(cell) for cell in cells])


def _answers(table: Table, columns: list[str]) -> NDArray[np.uint8]:
    yes = np.zeros((len(table.line), len(columns)), np.uint8)
    meaning = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}
    for j, name in enumerate(columns):
        for i, cell in enumerate(table.cells[name]):
            answer = meaning.get(cell.strip().lower())
            if answer is None:
                what = f"'{cell[:60]}' in column '{name}' is neither 0 nor 1"
                raise DataError(
                    what, file=table.file, line=table.line[i], fix="multi-label columns hold 0 or 1"
                )
            yes[i, j] = answer
    return yes


def _names(table: Table) -> list[str]:
    column = next((name for name in table.cells if name.strip().lower() in NAME), None)
    return (
        list(table.cells[column]) if column else [f"row{i}" for i in range(1, len(table.line) + 1)]
    )


def _places(table: Table) -> Places | None:
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
    return Places(
        np.array(table.cells[contig], np.str_), ends[0], ends[1], np.array(strand, np.str_)
    )


def _where(table: Table, wanted: tuple[tuple[str, str], ...]) -> Table:
    for column, value in wanted:
        name = table.column(column, (), column)
        keep = [i for i, cell in enumerate(table.cells[name]) if cell == value]
        if not keep:
            known = sorted(set(table.cells[name]))
            raise DataError(
                f"no row has '{value}' in column '{name}'; {did_you_mean(value, known)}",
                file=table.file,
            )
        table = Table(
            table.file,
            {c: [cells[i] for i in keep] for c, cells in table.cells.items()},
            [table.line[i] for i in keep],
        )
    return table


def _delimited(path: Path, separator: str) -> Table:
    lines = text_lines(path, "a table")
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
    rows: list[list[str]] = []
    numbers: list[int] = []
    for number, line in lines:
        if not line.strip():
            continue
        fields = (
            line.split(separator) if '"' not in line else _fields(path, number, line, separator)
        )
        if len(fields) != len(header):
            what = (
                f"{len(fields)} field{'s' * (len(fields) != 1)}, but the header has {len(header)}"
            )
            raise DataError(
                what,
                file=path,
                line=number,
                fix="correct the row (a quote or a separator too many or too few?)",
            )
        rows.append(fields)
        numbers.append(number)
    columns = zip(*rows, strict=True) if rows else ([] for _ in header)
    return Table(
        str(path), {name: list(cells) for name, cells in zip(header, columns, strict=True)}, numbers
    )


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


def _parquet(path: Path) -> Table:
    with open_source(path):
        pass
    try:
        frame = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as fault:
        what = f"is no whole parquet file ({str(fault).splitlines()[0][:120]})"
        raise DataError(what, file=path, fix="write it again") from None
    nested = [name for name, kind in frame.schema.items() if kind.is_nested() or kind == pl.Binary]
    if nested:
        raise DataError(
            f"column '{nested[0]}' holds {frame.schema[nested[0]]}, not text or numbers",
            file=path,
            fix="flatten it",
        )
    cells = {name: frame[name].cast(pl.String).fill_null("").to_list() for name in frame.columns}
    return Table(str(path), cells, list(range(1, frame.height + 1)))


def _fasta(path: Path) -> Table:
    cells: dict[str, list[str]] = {"name": [], "sequence": [], "label": []}
    numbers: list[int] = []
    for name, label, sequence, line in _labelled(path):
        cells["name"].append(name)
        cells["label"].append(label)
        cells["sequence"].append(sequence.decode("ascii"))
        numbers.append(line)
    return Table(str(path), cells, numbers)


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
