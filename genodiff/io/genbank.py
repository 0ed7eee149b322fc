"""GenBank and EMBL flat files, one record at a time, parsed by Biopython.

Biopython forgives much that loses data: a file that ends early, a sequence shorter than its first
line says, a location that it cannot read. Here each of these is a `DataError`. Letters are given in
upper case: both formats write lower case by custom, so that it says nothing of repeats.
"""

import logging
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from Bio.GenBank.Scanner import EmblScanner, GenBankScanner
from Bio.Seq import UndefinedSequenceError

from genodiff.errors import DataError
from genodiff.io.input_file import open_input, was_cut
from genodiff.io.text_lines import RowReader, split_lines

log = logging.getLogger("genodiff")

SeqRecord = Any
"""`Bio.SeqRecord.SeqRecord`; Biopython has no types."""

_RELEASE = b"Genetic Sequence Data Bank"
"""Stands above the records of the files of NCBI's releases."""
_HIDDEN = re.compile("[\xad\u200b-\u200f\u2060\ufeff]")
_LOCATION = re.compile(r"(?:FT|  )   \S+\s+(\S+)$")
_NAMED = re.compile(r"(?:FT|  )   \S+\s+(?=[^\s\"/])")
_NESTED = re.compile(r"(complement|join|order)\((.*)\)")
_AGAIN = "copy or download the file again"


class FlatFormat(NamedTuple):
    """One of the two formats: its name and how the first line of each record begins."""

    name: str
    first: str
    parser: type


FORMATS = (
    FlatFormat("GenBank", "LOCUS ", GenBankScanner),
    FlatFormat("EMBL", "ID   ", EmblScanner),
)


class FlatRecord(NamedTuple):
    """A parsed record, its name, its sequence and the line where it begins, from 1."""

    name: str
    sequence: bytes
    line: int
    parsed: SeqRecord


def find_flat_format(head: bytes) -> FlatFormat | None:
    """The format of a file that starts with `head`, or None."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    above, found, _ = start.partition(b"\nLOCUS ")
    if found and _RELEASE in above:
        return FORMATS[0]
    return next((kind for kind in FORMATS if start.startswith(kind.first.encode())), None)


def parse_flat_records(
    lines: Iterable[tuple[int, str]], kind: FlatFormat, shown: str
) -> Iterator[FlatRecord]:
    """The records in numbered lines of a file that messages call `shown`. Raises `DataError`."""
    start, held = 0, list[str]()
    above = False  # the lines of a release above its records
    for number, line in lines:
        above = (above or (not start and _RELEASE.decode() in line)) and line[:6] != "LOCUS "
        if above or (not held and not line.strip()):
            continue
        if held and line.startswith(kind.first):
            raise _cut_short(kind, shown, start)
        if not held:
            start = number
            if not line.startswith(kind.first):
                what = f"expected a {kind.name} record, which begins with '{kind.first.strip()}'"
                fix = "remove the line, or give one format in one file"
                raise DataError(f"{what}, found '{line[:40]}'", file=shown, line=number, fix=fix)
        if hidden := _HIDDEN.search(line):
            what = f"an invisible character {hidden[0]!a} in a {kind.name} file"
            raise DataError(what, file=shown, line=number, fix="remove it")
        held.append(line)
        if line.rstrip() == "//":
            yield _parse(held, kind, shown, start)
            held = []
    if held and not was_cut(shown):
        raise _cut_short(kind, shown, start)


class RecordsOrLines(NamedTuple):
    """A text file whose head is read: the format of its records and these; "" for other lines."""

    flat: str
    records: Iterator[FlatRecord]
    lines: Iterator[tuple[int, str]]
    shown: str


@contextmanager
def open_text(path: str | Path, kind: str) -> Iterator[RecordsOrLines]:
    """Open a file of GenBank, EMBL, or else lines of the `kind`. Raises `DataError`."""
    with open_input(path) as source:
        blocks = source.blocks()
        head, shown = next(blocks, b""), source.shown
        flat = find_flat_format(head)
        lines = split_lines(chain([head], blocks), kind if flat is None else flat.name, shown)
        records = iter(()) if flat is None else parse_flat_records(lines, flat, shown)
        yield RecordsOrLines("" if flat is None else flat.name, records, lines, shown)


def _cut_short(kind: FlatFormat, shown: str, start: int) -> DataError:
    what = f"the {kind.name} record that begins here is cut short: it has no line '//' at its end"
    return DataError(what, file=shown, line=start, fix=_AGAIN)


def _parse(lines: list[str], kind: FlatFormat, shown: str, start: int) -> FlatRecord:
    reader = RowReader(shown, start)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            text = "\n".join(_flatten_locations(lines)) + "\n"
            parsed = next(kind.parser().parse_records(StringIO(text)))
        except Exception as error:  # the parser raises whatever a malformed line leads it to
            reason = str(error).splitlines() or [type(error).__name__]
            what = f"this {kind.name} record cannot be parsed: {' '.join(reason)[:160]}"
            raise reader.fault(what, f"repair the record, or {_AGAIN}") from None
    name = next((n for n in (parsed.id, parsed.name) if n and n.strip(".")), "")
    if not name or name == "<unknown id>":
        raise reader.fault("has no accession and no name", "name the record in its first line")
    reader = reader._replace(record=name)
    try:
        sequence = bytes(parsed.seq or b"").upper()
    except UndefinedSequenceError:
        sequence = b""
    if not sequence:
        what = f"this {kind.name} record has no sequence (only annotation, or a CONTIG line)"
        raise reader.fault(what, "download it with its full sequence, or give a FASTA")
    declared = re.search(r"\s([0-9]+) (?:bp|BP)\b", lines[0])
    if declared and int(declared[1]) != len(sequence):
        what = f"declares {int(declared[1]):,} bases and has {len(sequence):,}: is it cut short?"
        raise reader.fault(what, _AGAIN)
    if any(found and not found[1].isascii() for found in map(_LOCATION.match, lines)):
        raise reader.fault("a feature has a location that is not plain ASCII", "correct it")
    broken = next((f.type for f in parsed.features if f.location is None), None)
    if broken is not None:
        raise reader.fault(f"a {broken} feature has a location that cannot be read", "correct it")
    warned = list(dict.fromkeys(" ".join(str(w.message).split()) for w in caught))
    if any("too short to contain a feature" in said for said in warned):
        raise reader.fault("a feature has no location", "complete or remove it")
    for said in warned:
        log.warning("%s, line %d (record %s): %s", shown, start, name, said[:160])
    return FlatRecord(name, sequence, start, parsed)


def _flatten_locations(lines: Sequence[str]) -> list[str]:
    """The lines with each location as one list, since Biopython reads lists in lists wrong.

    complement(join(1..4,complement(6..9))) is join(6..9,complement(1..4)).
    """
    made: list[str] = []
    is_open = False
    for line in lines:
        if is_open:  # a location goes on in the next line
            made[-1] += line[2:].strip()
        else:
            made.append(line)
        head = _NAMED.match(made[-1])
        is_open = head is not None and made[-1].count("(") > made[-1].count(")")
        if head is not None and not is_open and "(" in made[-1]:
            text = "".join(made[-1][head.end() :].split())
            parts = _list_parts(text)
            operator = "order" if "order(" in text else "join"
            made[-1] = head[0] + (f"{operator}({','.join(parts)})" if len(parts) > 1 else parts[0])
    return made


def _list_parts(text: str) -> list[str]:
    """The parts of a location in the order of reading, each by itself."""
    found = _NESTED.fullmatch(text)
    if found is None:
        return [text]
    parts, depth, start = list[str](), 0, 0
    for at, letter in enumerate(f"{found[2]},"):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts += _list_parts(found[2][start:at])
            start = at + 1
    if found[1] != "complement":
        return parts
    turned = (_NESTED.fullmatch(part) for part in reversed(parts))
    return [part[2] if part else f"complement({one})"
            for part, one in zip(turned, reversed(parts), strict=True)]  # fmt: skip
