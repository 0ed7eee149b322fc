"""What a caller gave as sequences, and results in the same form."""

import copy
from collections.abc import Mapping
from typing import Any

from Bio.Seq import MutableSeq, Seq
from Bio.SeqRecord import SeqRecord

from genodiff.io import sequences as io
from genodiff.io.containers import read_columns
from genodiff.io.fasta import Record


def read_records(given: Any, *, extra: bytes = b"", goes_round: bool = False) -> list[Record]:
    """The sequences in `given` (see `read_sequences`), each judged; `extra` bytes are letters too.

    Raises `DataError`, `UsageError`.
    """
    return list(io.read_sequences(given, extra=extra, goes_round=goes_round))


def is_single(given: Any, extra: bytes = b"") -> bool:
    """Whether `given` is one sequence: a string, bytes, `Seq`, a record or one row."""
    return not io.is_file(given, extra) and io.is_single(given)


def restore_form(given: Any, results: list[str], extra: bytes = b"") -> Any:
    """`results`, one string for each sequence, in the form of `given`.

    A string gives a string, a `SeqRecord` a copy with the new sequence, a list a list, a mapping
    a mapping; a file, a frame, columns and rows a list of strings.
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
