"""FASTA, written to an open file, plain or as BGZF."""

from collections.abc import Iterable
from typing import Any

from Bio import bgzf

from genodiff.errors import UsageError
from genodiff.io.fasta import Record

_LINES = 512  # that are written at a time


def write_fasta(
    file: Any, records: Iterable[Record], *, line_width: int = 60, zipped: bool = False
) -> None:
    """Write records to an open file. Raises `UsageError` for a name that FASTA cannot hold."""
    made = ((_format_header(one), (one.sequence,)) for one in records)
    write_long_records(file, made, line_width=line_width, zipped=zipped)


def write_long_records(
    file: Any,
    records: Iterable[tuple[str, Iterable[bytes]]],
    *,
    line_width: int = 60,
    zipped: bool = False,
) -> None:
    """Write FASTA to an open file from (header, sequence in pieces of any size), in lines.

    Memory is bounded by the largest piece. `line_width` 0 writes one line.
    """
    sink = bgzf.BgzfWriter(fileobj=StaysOpen(file)) if zipped else file
    for header, pieces in records:
        sink.write(f">{header}\n".encode("utf-8", "surrogateescape"))
        rest = b""
        for piece in pieces:
            if not line_width:
                sink.write(piece)
                continue
            rest += piece
            whole = len(rest) // line_width * line_width
            for at in range(0, whole, _LINES * line_width):
                some = rest[at : min(whole, at + _LINES * line_width)]
                lines = (some[i : i + line_width] for i in range(0, len(some), line_width))
                sink.write(b"\n".join([*lines, b""]))
            rest = rest[whole:]
        if rest or not line_width:
            sink.write(rest + b"\n")
    if zipped:
        sink.close()
    file.flush()


def _format_header(record: Record) -> str:
    name, description = record.name, record.description
    is_word = name.isprintable() and len(name.split()) == 1
    if not is_word or {"\n", "\r"} & set(description):
        fix = "give one printable word"
        raise UsageError(f"{name!r} cannot be the name of a FASTA record", fix=fix)
    return f"{name} {description}".rstrip()


class StaysOpen:
    """A file for Bio's writer, which would close it before it is synced and renamed."""

    mode = "wb"

    def __init__(self, file: Any) -> None:
        self.write = file.write

    def flush(self) -> None: ...

    def close(self) -> None: ...
