"""Sequences of a Python program: strings, records, pairs, files; results in the same form."""

import copy
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any

import numpy as np
from Bio.Seq import MutableSeq, Seq, UndefinedSequenceError
from Bio.SeqRecord import SeqRecord

from genodiff.errors import DataError, UsageError
from genodiff.io.composition import IUPAC
from genodiff.io.containers import (
    LETTERS,
    NAME,
    SEQUENCE,
    Columns,
    choose_column,
    choose_names,
    is_missing,
    is_record,
    is_row,
    name_fields,
    read_columns,
    read_rows,
)
from genodiff.io.fasta import Record, check_letters, read_fasta
from genodiff.io.input_file import is_file
from genodiff.io.regions import mark_circular, say_linear

Sequences = Any
"""What `read_sequences` accepts."""


def read_sequences(
    given: Sequences, *, extra: bytes = b"", goes_round: bool = False
) -> Iterator[Record]:
    """Read the named sequences in `given`, checked like those of a file, preserving case.

    `given` is a file (see `is_file`), a string, bytes, `Bio.Seq.Seq`, `Bio.SeqRecord.SeqRecord` or
    `Record`, a mapping from names to such, or an iterable of these. It may also be a frame, columns
    by name or rows with named fields (see `genodiff.io.containers`): the column of sequences is
    called sequence, seq or dna, or is the only text column, and one called name or id names them.
    Unnamed sequences are called seq1, seq2 and so on by position. `extra` bytes count as letters
    too (a template's `?`). Unless the caller sets `goes_round`, the first circular record is
    reported on stderr. Raises `DataError`; `UsageError` for another type and for ambiguous columns.
    """
    shown = str(given) if is_file(given, extra) else None
    for record in _judge_records(given, extra):
        if not goes_round and record.is_circular:
            say_linear(shown, [record.name])
            goes_round = True  # once for all
        yield record


def _judge_records(given: Sequences, extra: bytes) -> Iterator[Record]:
    if is_file(given, extra):
        _refuse_no_file(given, extra)
        yield from read_fasta(given, extra=extra)
        return
    seen: set[str] = set()
    for record in _records(given, extra):
        if record.name in seen:
            fix = "give each sequence its own name"
            raise DataError("duplicate name: it stands more than once", record=record.name, fix=fix)
        seen.add(record.name)
        if not record.sequence:
            raise DataError("has no base", record=record.name, fix="give at least one base")
        as_n = bytes.maketrans(extra, b"N" * len(extra))
        check_letters(record.sequence.translate(as_n), record.name)
        yield record
    if not seen:
        raise DataError("no sequence", fix="give at least one")


def _refuse_no_file(given: str | Path, extra: bytes) -> None:
    """Raise `DataError` for a string that is neither a file nor DNA, but looks like DNA."""
    if isinstance(given, Path) or given == "-" or os.path.lexists(given):
        return
    if not given:
        raise DataError("an empty string is no sequence", fix="give at least one base")
    if {".", os.sep, os.altsep} & set(given):
        return  # the name of a file that is not there, which its reader says
    letters = (IUPAC + extra).decode()
    at = next(i for i, letter in enumerate(given) if letter not in letters)
    what = f"{given[at]!r} at position {at + 1} is no letter of DNA, and no file has this name"
    raise DataError(what, fix="give A, C, G, T, N or IUPAC codes, or the path of a file")


def read_texts(given: Any) -> list[str]:
    """Read the texts in a string, an iterable or a frame's column text. Raises `UsageError`."""
    given, texts = _bare(given), ("text", "sentence")
    columns = read_columns(given)
    if columns is not None:
        given = columns[choose_column(columns, texts, "text")]
    found = [given] if isinstance(given, str) else list(_each(given))
    for one in found:
        if not isinstance(one, str):
            raise UsageError(f"a {type(one).__name__} is no text", fix="give strings")
    return found


def _bare(given: Any) -> Any:
    """Unwrap a scalar of numpy or Arrow."""
    if isinstance(given, np.ndarray) and given.ndim == 0 and given.dtype.names is None:
        return given.item()
    return given.as_py() if hasattr(given, "as_py") else given


def _each(given: Any) -> Iterator[Any]:
    """Iterate over the members in order. Raises `UsageError` if they cannot be sequences."""
    if isinstance(given, np.ndarray) and (given.ndim != 1 or given.dtype.kind in "biufc"):
        what = f"an array of {given.dtype} with the shape {given.shape} is no list of sequences"
        raise UsageError(what, fix="give an array of strings in one dimension")
    if isinstance(given, set | frozenset):
        raise UsageError(f"a {type(given).__name__} has no order", fix="give sorted(...)")
    if hasattr(given, "read"):
        raise UsageError("an open file is no sequence", fix="give its path")
    if not isinstance(given, Iterable):
        raise _foreign(given)
    return iter(given.to_pylist() if hasattr(given, "to_pylist") else given)


def _records(given: Sequences, extra: bytes) -> Iterator[Record]:
    given = _bare(given)
    columns = read_columns(given)
    if columns is not None:
        yield from _column_records(columns)
    elif is_single(given, extra):
        yield _record(given, 1)
    elif isinstance(given, Mapping):
        for name, sequence in given.items():
            yield _record(sequence, 1, str(name))
    else:
        members = _each(given)
        first = list(islice(members, 1))
        if first and not is_record(first[0]) and name_fields(first[0]) is not None:
            yield from _column_records(read_rows([*first, *members]))
            return
        for number, one in enumerate(chain(first, members), 1):
            yield _record(one, number)


def _column_records(columns: Columns) -> Iterator[Record]:
    column = choose_column(columns, SEQUENCE, "sequence")
    named = zip(columns[column], choose_names(columns) or repeat(None), strict=False)
    for number, (one, name) in enumerate(named, 1):
        yield _record(one, number, name)


def _record(given: Any, number: int, name: str | None = None) -> Record:
    """Make a record of one sequence; `name` takes precedence over its own."""
    about, shown = "", name or f"seq{number}"
    if isinstance(given, Record):
        return given if name is None else given._replace(name=name)
    if is_missing(given):
        raise DataError("has no sequence: the value is missing", record=shown, fix="leave it out")
    fields = None if isinstance(given, LETTERS) or is_record(given) else name_fields(given)
    if fields is not None and is_row(fields):
        by_name = {key.strip().lower(): value for key, value in fields.items()}
        own = next((by_name[key] for key in NAME if key in by_name), None)
        given = next(by_name[key] for key in SEQUENCE if key in by_name)
        shown = shown if name is not None or is_missing(own) else str(own)
    elif is_record(given):
        own = getattr(given, "id", getattr(given, "name", None))
        shown = shown if name or not own or own == "<unknown id>" else str(own)
        about = mark_circular(given)
        given = getattr(given, "seq", getattr(given, "sequence", None))
    if not isinstance(given, LETTERS):
        raise _foreign(given)
    try:
        letters = given.encode() if isinstance(given, str) else bytes(given)
        return Record(shown, about, letters, number)
    except UndefinedSequenceError:
        raise DataError("has no sequence", record=shown, fix="give records with DNA") from None


def _foreign(given: Any) -> UsageError:
    fix = "give strings of DNA, Bio.SeqRecord objects, a frame, or a pathlib.Path to a file"
    if isinstance(given, tuple):
        fix = "give a mapping from names to sequences: dict(...)"
    return UsageError(f"a {type(given).__name__} is no sequence", fix=fix)


def read_records(given: Any, *, extra: bytes = b"", goes_round: bool = False) -> list[Record]:
    """Read the sequences in `given`, as `read_sequences` does, into a list."""
    return list(read_sequences(given, extra=extra, goes_round=goes_round))


def is_single(given: Any, extra: bytes = b"") -> bool:
    """Whether `given` is one sequence in memory: a string, bytes, `Seq`, a record or one row."""
    given = _bare(given)
    if is_file(given, extra) or read_columns(given) is not None:
        return False
    return isinstance(given, LETTERS) or is_record(given) or is_row(name_fields(given) or {})


def restore_form(given: Any, results: list[str], extra: bytes = b"") -> Any:
    """Return `results`, one string for each sequence, in the form of `given`.

    A string gives a string, a `SeqRecord` a copy with the new sequence, a list a list, a mapping a
    mapping; a file, a frame, columns and rows a list of strings.
    """
    if is_single(given, extra):
        return _convert(given, results[0])
    if read_columns(given) is not None:
        return results
    if isinstance(given, Mapping):
        pairs = zip(given.items(), results, strict=True)
        return {name: _convert(one, result) for (name, one), result in pairs}
    if isinstance(given, list | tuple):
        return [_convert(one, result) for one, result in zip(given, results, strict=True)]
    return results


def _convert(given: Any, result: str) -> Any:
    if isinstance(given, bytes):
        return result.encode("ascii")
    if isinstance(given, Seq | MutableSeq):
        return type(given)(result)
    if isinstance(given, Record):
        return given._replace(sequence=result.encode("ascii"))
    if isinstance(given, SeqRecord):
        other = copy.copy(given)
        other.seq = Seq(result)
        return other
    return result
