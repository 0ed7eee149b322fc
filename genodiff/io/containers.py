"""What Python programs keep rows in: frames, columns by name, rows with named fields.

A frame is a DataFrame or LazyFrame of polars, one of pandas, whatever hands out Arrow columns, or a
structured array of numpy. Columns are also a mapping from names to lists. A row with named fields
is a mapping, a named tuple, a dataclass or a row of a database. Nothing is iterated before it is
known what an iteration gives: that of a frame gives names of columns.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from Bio.Seq import MutableSeq, Seq

from genodiff.errors import DataError, UsageError, printable

SEQUENCE = ("sequence", "seq", "dna")
NAME = ("name", "id")
"""The usual names of the columns of sequences and of their names, in lower case."""

Columns = dict[str, list[Any]]
LETTERS = (str, bytes, bytearray, Seq, MutableSeq)
"""What holds one sequence, without a name."""


def read_columns(held: Any) -> Columns | None:
    """The columns of a frame, a mapping of columns or a list of rows; None for anything else.

    Raises `UsageError` for columns of several lengths.

    >>> read_columns([{"id": "a", "dna": "ACGT"}, {"id": "b", "dna": "TT"}])
    {'id': ['a', 'b'], 'dna': ['ACGT', 'TT']}
    """
    columns = _frame_columns(held)
    if columns is None and isinstance(held, Mapping) and any(map(is_column, held.values())):
        columns = {str(name): list(one) if is_column(one) else [one] for name, one in held.items()}
    elif columns is None and isinstance(held, list | tuple) and held and not name_fields(held):
        return read_rows(held) if name_fields(held[0]) else None
    sizes = {name: len(one) for name, one in (columns or {}).items()}
    if len(set(sizes.values())) > 1:
        shown = ", ".join(f"{printable(name)}: {size:,}" for name, size in sizes.items())
        fix = "give columns of one length, or one string for each name"
        raise UsageError(f"the columns have several lengths ({shown})", fix=fix)
    return columns


def _frame_columns(held: Any) -> Columns | None:
    if isinstance(held, pl.Series):
        return None
    if isinstance(held, pl.LazyFrame):
        held = held.collect()
    if isinstance(held, np.ndarray) and held.dtype.names is not None:
        return {name: held[name].tolist() for name in held.dtype.names}
    if hasattr(held, "iterrows") and hasattr(held, "items"):  # pandas, and what looks like it
        columns = {str(name): list(column) for name, column in held.items()}
        labels = _labels(held)
        known = {name.strip().lower() for name in columns}
        return columns if labels is None or known & {*NAME} else {"name": labels, **columns}
    if hasattr(held, "dtype") and hasattr(held, "items"):  # a Series of pandas
        labels = _labels(held)
        named = labels is not None and not is_row(dict(zip(labels, held, strict=True)))
        return {"name": labels or [], "sequence": list(held)} if named else None
    if hasattr(held, "to_pylist") and hasattr(held, "to_pydict"):
        return {str(name): column for name, column in held.to_pydict().items()}
    if hasattr(held, "__arrow_c_stream__") and not hasattr(held, "to_pylist"):
        held = pl.DataFrame(held)
    return held.to_dict(as_series=False) if isinstance(held, pl.DataFrame) else None


def _labels(held: Any) -> list[str] | None:
    labels = list(held.index)
    return labels if _are_words(labels) else None


def _are_words(labels: list[Any]) -> bool:
    return bool(labels) and all(isinstance(one, str) for one in labels)


def is_column(one: Any) -> bool:
    """Whether an object holds several cells, and is no sequence itself."""
    scalar = isinstance(one, (*LETTERS, Mapping)) or is_record(one)
    return isinstance(one, Iterable) and not scalar


def is_record(one: Any) -> bool:
    """Whether an object carries one sequence as an attribute: of Biopython, pysam, pyfaidx."""
    return isinstance(getattr(one, "seq", getattr(one, "sequence", None)), LETTERS)


def name_fields(row: Any) -> dict[str, Any] | None:
    """The fields of one row by name; None for what is no row with names."""
    if isinstance(row, Mapping):
        return {str(name): value for name, value in row.items()}
    if isinstance(row, tuple) and hasattr(row, "_fields"):
        return dict(zip(row._fields, row, strict=True))
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    if isinstance(row, np.void) and row.dtype.names is not None:
        return {name: row[name].item() for name in row.dtype.names}
    if callable(getattr(row, "keys", None)) and hasattr(row, "__getitem__"):
        # A row of a database, or of pandas.
        names = list(row.keys())
        return {name: row[name] for name in names} if _are_words(names) else None
    return None


def is_row(fields: Mapping[str, Any]) -> bool:
    """Whether a mapping is one row that has a sequence, and not sequences by their names."""
    known = {str(name).strip().lower() for name in fields}
    others = [one for name, one in fields.items() if str(name).strip().lower() not in SEQUENCE]
    named = bool(known & {*NAME}) or not all(isinstance(one, LETTERS) for one in others)
    return bool(known & {*SEQUENCE}) and named and not any(map(is_column, fields.values()))


def read_rows(rows: Sequence[Any]) -> Columns:
    """Rows with named fields as columns, None where a row lacks one. Raises `UsageError`."""
    columns: Columns = {}
    for number, row in enumerate(rows, 1):
        fields = name_fields(row)
        if fields is None:
            what = f"row {number:,} is a {type(row).__name__}, and the first one has named fields"
            raise UsageError(what, fix="give rows of one kind")
        for name in fields:
            columns.setdefault(name, [None] * (number - 1))
        for name, column in columns.items():
            column.append(fields.get(name))
    return columns


def is_missing(value: Any) -> bool:
    """Whether a cell is empty: None, NaN, or the NA of pandas."""
    number = isinstance(value, float | np.floating) and bool(np.isnan(value))
    return value is None or number or type(value).__name__ in ("NAType", "NaTType")


def choose_column(columns: Columns, usual: tuple[str, ...], what: str) -> str:
    """The column that holds `what` ("sequence"). It has a usual name, or is the only one of words
    beside the names of rows. Raises `UsageError`, which lists the columns to choose from.
    """
    named = [name for name in columns if name.strip().lower() in usual]
    words = [
        name
        for name, column in columns.items()
        if name.strip().lower() not in NAME
        and any(isinstance(one, LETTERS) for one in column)
        and all(isinstance(one, LETTERS) or is_missing(one) for one in column)
    ]
    fitting = named or words
    if len(fitting) == 1:
        return fitting[0]
    shown = ", ".join(printable(name) for name in fitting or columns)
    fix = f"give that column alone, or call it '{usual[0]}'"
    if not fitting:
        raise UsageError(f"no column holds {what}s (columns: {shown or 'none'})", fix=fix)
    raise UsageError(f"which column holds the {what}s: {shown}?", fix=fix)


def choose_names(columns: Columns) -> list[str] | None:
    """The names of the rows, where a column has them. Raises `DataError` for an empty one."""
    column = next((name for name in columns if name.strip().lower() in NAME), None)
    if column is None:
        return None
    for number, one in enumerate(columns[column], 1):
        if is_missing(one) or not str(one).strip():
            fix = "give it, or leave the column out"
            raise DataError(f"row {number:,} has no name in column '{printable(column)}'", fix=fix)
    return [str(one) for one in columns[column]]
