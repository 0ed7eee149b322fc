"""FASTA, written atomically, plain or as BGZF."""

import sys
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from Bio import bgzf

from genodiff.errors import UsageError
from genodiff.io.atomic import open_atomic
from genodiff.io.fasta import Record
from genodiff.io.input_file import STDIN

_STEP = 1 << 15
_LINES = 512  # that are written at a time


def write_fasta(
    target: str | Path | IO[bytes],
    records: Iterable[Record],
    *,
    line_width: int = 60,
    zipped: bool = False,
) -> None:
    """Write records as FASTA to an open file, or atomically to a path.

    A path that ends in .gz is written as BGZF, and so is an open file with `zipped`; "-" is stdout.
    Raises `MachineError` where the path cannot be written, `UsageError` for a name that FASTA
    cannot hold.
    """
    with ExitStack() as stack:
        if not isinstance(target, str | Path):
            out: Any = target
        elif str(target) == STDIN:
            out = sys.stdout.buffer
        else:
            out = stack.enter_context(open_atomic(target))
        zipped = zipped or (isinstance(target, str | Path) and str(target).lower().endswith(".gz"))
        sink = bgzf.BgzfWriter(fileobj=StaysOpen(out)) if zipped else out
        for record in records:
            text = format_fasta(record, line_width)
            for at in range(0, len(text), _STEP):  # Bio's writer copies it all once per 64 KiB
                sink.write(text[at : at + _STEP])
        if zipped:
            sink.close()
        out.flush()


def write_long_records(
    file: Any,
    records: Iterable[tuple[str, Iterable[bytes]]],
    *,
    line_width: int = 60,
    zipped: bool = False,
) -> None:
    """Write FASTA to an open file from (header, sequence in pieces of any size), in lines.

    Memory is bounded by the largest piece. `line_width` 0 writes one line. Of a header the first
    word is the name.
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


def format_fasta(record: Record, line_width: int = 60) -> bytes:
    """One record as FASTA bytes. Raises `UsageError` for a name or description that breaks it."""
    name, description, sequence = record.name, record.description, record.sequence
    is_word = name.isprintable() and len(name.split()) == 1
    if not is_word or {"\n", "\r"} & set(description):
        fix = "give one printable word"
        raise UsageError(f"{name!r} cannot be the name of a FASTA record", fix=fix)
    header = f">{name} {description}".rstrip().encode("utf-8", "surrogateescape")
    lines = (sequence[at : at + line_width] for at in range(0, len(sequence), line_width))
    return b"\n".join([header, *lines, b""])


class StaysOpen:
    """A file for Bio's writer, which would close it before it is synced and renamed."""

    mode = "wb"

    def __init__(self, file: Any) -> None:
        self.write = file.write

    def flush(self) -> None: ...

    def close(self) -> None: ...
