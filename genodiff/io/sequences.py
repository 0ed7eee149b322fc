"""Sequences as a Python program holds them: strings, Biopython's records, pairs, files."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from Bio.Seq import MutableSeq, Seq, UndefinedSequenceError

from genodiff.errors import DataError, UsageError
from genodiff.io.fasta import IUPAC, Record, check_letters, read_fasta
from genodiff.io.topology import mark_circular, say_linear

Sequences = Any
"""What `read_sequences` accepts."""


def is_file(given: Sequences, extra: bytes = b"") -> bool:
    """Whether `given` names a file.

    A `Path` does. So does a string, unless it consists of DNA letters (or of `extra` bytes) alone:
    "genome.fa" is a file, "GATTACA" a sequence. Give `Path("CAT")` for a file of such a name.
    """
    if isinstance(given, str):
        return not given or bool(given.encode("utf-8", "replace").translate(None, IUPAC + extra))
    return isinstance(given, Path)


def read_sequences(
    given: Sequences, *, extra: bytes = b"", goes_round: bool = False
) -> Iterator[Record]:
    """The named sequences in `given`, judged like those of a file, case kept.

    `given` is a file (see `is_file`), a string, bytes, `Bio.Seq.Seq`, `Bio.SeqRecord.SeqRecord` or
    `Record`, a mapping from names to such, or several of these in an iterable. What has no name is
    called seq1, seq2 and so on by its place. `extra` bytes count as letters too (a template's `?`).
    Of a caller that does not say `goes_round`, the first circular record is told on stderr.
    Raises `DataError`; `UsageError` for another type.
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
    for record in _records(given):
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
    """Raises `DataError` where a string is neither a file nor DNA, and looks like DNA."""
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


def _records(given: Sequences) -> Iterator[Record]:
    if isinstance(given, Mapping):
        for name, sequence in given.items():
            yield _record(sequence, 1)._replace(name=str(name))
    elif isinstance(given, str | bytes | Seq | MutableSeq | Record) or hasattr(given, "seq"):
        yield _record(given, 1)
    elif isinstance(given, Iterable):
        for number, one in enumerate(given, 1):
            yield _record(one, number)
    else:
        raise _foreign(given)


def _record(given: Any, number: int) -> Record:
    if isinstance(given, Record):
        return given
    if isinstance(given, str):
        return Record(f"seq{number}", "", given.encode(), number)
    if isinstance(given, bytes | Seq | MutableSeq):
        return Record(f"seq{number}", "", bytes(given), number)
    if hasattr(given, "seq") and hasattr(given, "id"):
        name = given.id if given.id and given.id != "<unknown id>" else f"seq{number}"
        about = mark_circular(given)
        try:
            return Record(name, about, bytes(given.seq), number)
        except UndefinedSequenceError:
            raise DataError("has no sequence", record=name, fix="give records with DNA") from None
    raise _foreign(given)


def _foreign(given: Any) -> UsageError:
    return UsageError(
        f"a {type(given).__name__} is no sequence",
        fix="give strings of DNA, Bio.SeqRecord objects, or a pathlib.Path to a file",
    )
