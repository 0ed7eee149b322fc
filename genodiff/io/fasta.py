"""FASTA, read strictly.

Reading accepts exactly what leaves no doubt: `>name description` lines and IUPAC DNA letters of
either case; LF or CRLF line ends, lines of any length, blank lines, blanks at line ends, a byte
order mark and gzip or BGZF compression change nothing. GenBank and EMBL files are told by their
first line and judged the same way, record by record. Everything else (protein, RNA, gaps, digits,
NUL, a name that stands twice, no sequence, ...) is one `DataError` with file, line and record.
Nothing is repaired silently and nothing is skipped. Protein can be spelt in IUPAC letters: a record
with more than 20 ambiguity codes that make up more than a third of it is taken for protein.

Whole blocks are judged with `bytes.translate`, and single lines only where a block has a fault.
"""

import hashlib
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import chain, groupby
from pathlib import Path
from typing import NamedTuple

from genodiff.errors import DataError
from genodiff.io.composition import IUPAC, Composition
from genodiff.io.diagnosis import Diagnosis, describe_letter, find_binary_format, guess_format
from genodiff.io.file_kinds import find_format
from genodiff.io.genbank import FlatFormat, FlatRecord, find_flat_format, parse_flat_records
from genodiff.io.input_file import InputFile, cut_records, open_input
from genodiff.io.regions import mark_circular, says_circular
from genodiff.io.text_lines import find_spoilt_name, split_lines

_PLAIN = b"ACGTNacgtn\n"
_AMBIGUOUS = b"RYSWKMBDHVryswkmbdhv"
_AMBIGUOUS_LETTER = re.compile(b"[" + _AMBIGUOUS + b"]")
_UPPER_N = bytes.maketrans(b"acgtn" + _AMBIGUOUS, b"ACGTN" + b"N" * len(_AMBIGUOUS))
_LONGEST_HEADER = 1 << 20
_LONGEST_BLANK = 1 << 20
_HEAD = 4096
_AMBIGUOUS_COUNT, _AMBIGUOUS_SHARE = 20, 1 / 3
_BOM = b"\xef\xbb\xbf"
_HEADER = ord(">")
_NOTHING = "give a DNA FASTA file with at least one record"


class Record(NamedTuple):
    """One sequence with its case kept; `line` is the line of its header, from 1."""

    name: str
    description: str
    sequence: bytes
    line: int

    @property
    def is_circular(self) -> bool:
        """Whether the header says so."""
        return says_circular(self.description)


class Digest(NamedTuple):
    """A record's length, and sha256 (hex) of its sequence in upper case, ambiguity codes as N."""

    name: str
    length: int
    sha: str
    composition: Composition
    circular: bool


class Header(NamedTuple):
    """The start of a record; `offset` is that of its first letter in the decompressed file."""

    name: str
    description: str
    line: int
    offset: int

    @property
    def is_circular(self) -> bool:
        """Whether the header says so."""
        return says_circular(self.description)


class RecordLines(NamedTuple):
    """A stretch of a record's lines, judged good; `raw` is False where blanks were cut from it."""

    data: bytes
    raw: bool

    def letters(self) -> bytes:
        """The stretch without its line ends, case kept."""
        return self.data.translate(None, b"\r\n")


def read_fasta(path: str | Path, *, extra: bytes = b"") -> Iterator[Record]:
    """The records of a FASTA file, each judged good as a whole; memory for one at a time.

    `path` may be gzip or BGZF under any name; "-" is stdin. `extra` bytes count as letters too (a
    template's `?`). A plan reads the beginning of a large file. Raises `DataError` (see the
    module); since the file is a stream, records before a fault have been given by then.
    """
    with open_input(path) as source:
        for header, letters in scan_records(source, extra):
            if cut_records(source, header.offset):
                return
            yield Record(header.name, header.description, b"".join(letters), header.line)


def read_digests(
    path: str | Path, visit: Callable[[FlatRecord], None] | None = None
) -> Iterator[Digest]:
    """Digest of every record, judged as by `read_fasta`; memory for one block only.

    `visit` is called with each record of a GenBank or EMBL file before its digest is given.
    """
    with open_input(path) as source:
        for header, letters in scan_records(source, visit=visit):
            sha, counts = hashlib.sha256(), Composition()
            for piece in letters:
                counts.add(piece)
                sha.update(piece.translate(_UPPER_N))
            yield Digest(header.name, counts.length, sha.hexdigest(), counts, header.is_circular)


def read_contig_lengths(path: str | Path) -> dict[str, int]:
    """Name → length of every record, in the file's order, judged as by `read_fasta`."""
    with open_input(path) as source:
        return {header.name: sum(map(len, letters)) for header, letters in scan_records(source)}


def check_letters(sequence: bytes, name: str, file: str | None = None) -> None:
    """Raise `DataError` unless all of `sequence` are IUPAC letters of DNA, of either case."""
    if sequence.translate(None, IUPAC):
        at = len(sequence) - len(sequence.lstrip(IUPAC))
        what, fix = describe_letter(sequence[: at + 80], at)
        raise DataError(f"base {at + 1:,}: {what}", file=file, record=name, fix=fix)


def scan_fasta(
    source: InputFile, extra: bytes = b"", visit: Callable[[FlatRecord], None] | None = None
) -> Iterator[Header | RecordLines]:
    """The file as headers and good stretches of sequence. Raises `DataError` at the first fault."""
    return _Scanner(source, extra, visit).events()


def scan_records(
    source: InputFile, extra: bytes = b"", visit: Callable[[FlatRecord], None] | None = None
) -> Iterator[tuple[Header, Iterator[bytes]]]:
    """Each header with its letters in pieces, as a stream: take these before the next header."""
    last = Header("", "", 0, 0)

    def find_header(event: Header | RecordLines) -> Header:
        nonlocal last
        last = event if isinstance(event, Header) else last
        return last

    for header, events in groupby(scan_fasta(source, extra, visit), find_header):
        yield header, (one.letters() for one in events if isinstance(one, RecordLines))


class _Scanner:
    """The state of a reader: line, column, the open record and what it has so far."""

    def __init__(
        self, source: InputFile, extra: bytes, visit: Callable[[FlatRecord], None] | None
    ) -> None:
        self.source, self.visit = source, visit
        self.plain, self.letters_known = _PLAIN + extra, IUPAC + extra
        self.head = b""  # for a diagnosis
        self.line = self.opened = 1  # of the next byte, and of the open record's header
        self.column = 0  # bytes of that line already judged
        self.offset = 0  # of the next byte, decompressed
        self.record: Header | None = None
        self.starts: list[int] = []  # of a converted file: the line where each record begins
        self.seen: dict[str, int] = {}  # name → line of its header
        self.letters = self.ambiguous = self.first_ambiguous = 0  # of the open record
        self.total = 0

    def events(self) -> Iterator[Header | RecordLines]:
        """What the module's `scan_fasta` gives."""
        rest = b""
        for block in self._blocks():
            rest = yield from self._judge(rest + block if rest else block, last=False)
        yield from self._judge(rest, last=True)
        self._finish_record(last=True)

    def _blocks(self) -> Iterator[bytes]:
        blocks = self.source.blocks()
        for block in blocks:
            self.head += block
            if len(self.head) >= _HEAD:
                break
        start = self.head
        self.head = self.head[:_HEAD]
        flat = find_flat_format(start)
        if flat is not None:
            yield from self._convert(flat, chain([start], blocks))
            return
        if start.startswith(_BOM):
            self.offset = len(_BOM)
        yield start[self.offset :]
        yield from blocks

    def _convert(self, flat: FlatFormat, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Each record of a GenBank or EMBL file as FASTA, to be judged like any other."""
        self.source.format = flat.name
        lines = split_lines(blocks, flat.name, self.source.shown)
        for record in parse_flat_records(lines, flat, self.source.shown):
            self.starts.append(record.line)
            header = f">{record.name} {mark_circular(record.parsed)}".replace("\n", " ")
            yield header.encode() + b"\n" + record.sequence + b"\n"
            if self.visit is not None:  # by now the sequence is judged good
                self.visit(record)

    def _line_in_file(self, line: int) -> int:
        """`line`, which of a converted record is that of its beginning."""
        return self.starts[(line - 1) // 2] if self.starts else line

    def _judge(self, data: bytes, *, last: bool) -> Generator[Header | RecordLines, None, bytes]:
        """Events of `data`; returns the tail that can only be judged together with what follows."""
        at = 0
        while at < len(data):
            if self.column == 0 and data[at] == _HEADER:
                end = data.find(b"\n", at)
                if end < 0:
                    if len(data) - at > _LONGEST_HEADER:
                        what = f"header longer than {_LONGEST_HEADER:,} bytes (binary data?)"
                        raise self._fault(what, "give a FASTA file", record=None)
                    if not last:
                        return data[at:]
                    end = len(data)
                self.offset += end + 1 - at
                yield self._header(data[at + 1 : end])
                at = end + 1
                continue
            end = data.find(b"\n>", at)
            stretch = data[at : end + 1] if end >= 0 else data[at:]
            if end < 0 and not last:
                # Blanks and a carriage return are harmless at a line's end only: wait for more.
                held = len(stretch)
                stretch = stretch.rstrip(b" \t\r")
                if held - len(stretch) > _LONGEST_BLANK:
                    what = f"more than {_LONGEST_BLANK:,} blanks in a row"
                    raise self._fault(what, "remove them")
            at += len(stretch)
            if stretch and self.record is None:
                self._preamble(stretch)
            elif stretch:
                yield self._judge_lines(stretch, last=last and end < 0)
            if end < 0:
                return data[at:]
        return b""

    def _judge_lines(self, data: bytes, *, last: bool) -> RecordLines:
        newlines, size, raw, returns = data.count(b"\n"), len(data), True, 0
        strange = data.translate(None, self.plain)
        if strange:
            bad = strange.translate(None, _AMBIGUOUS)
            returns = len(bad)
            if len(strange) > returns and not self.ambiguous:
                found = _AMBIGUOUS_LETTER.search(data)
                self.first_ambiguous = self.line + data.count(b"\n", 0, found and found.start())
            self.ambiguous += len(strange) - returns
            if bad.count(b"\r") != returns or data.count(b"\r\n") != returns:
                data, raw, returns = self._cut_blanks(data, last=last), False, 0
        self.letters += len(data) - newlines - returns
        self._advance(size, newlines, data)
        return RecordLines(data, raw)

    def _advance(self, size: int, newlines: int, data: bytes) -> None:
        self.offset += size
        self.line += newlines
        self.column = len(data) - data.rfind(b"\n") - 1 if newlines else self.column + len(data)

    def _cut_blanks(self, data: bytes, *, last: bool) -> bytes:
        """The lines without blanks and carriage returns at their ends. Raises `DataError`."""
        lines = data.split(b"\n")
        for i, line in enumerate(lines):
            body = line[:-1] if line.endswith(b"\r") and i < len(lines) - 1 else line
            lines[i] = body = body.rstrip(b" \t")
            if body.translate(None, self.letters_known):
                at = len(body) - len(body.lstrip(self.letters_known))
                what, fix = describe_letter(line, at)
                column = at + 1 + (self.column if i == 0 else 0)
                place = "base" if self.starts else "column"
                raise self._fault(f"{place} {column:,}: {what}", fix, line=self.line + i)
        return b"\n".join(lines)

    def _preamble(self, data: bytes) -> None:
        """What stands before the first header may only be blank."""
        if data.strip(b" \t\r\n"):
            at = len(data) - len(data.lstrip(b" \t\r\n"))
            self.line += data.count(b"\n", 0, at)
            line = data[data.rfind(b"\n", 0, at) + 1 :].split(b"\n", 1)[0]
            found = line[:40].decode("utf-8", "backslashreplace")
            what = f"no FASTA header: expected a line that starts with '>', found '{found}'"
            fix = "put a line '>name' above the sequence"
            if line.lstrip().startswith(b">"):
                known: Diagnosis | None = describe_letter(line, 0)
            else:
                known = find_format(self.head, "FASTA") or guess_format(self.head)
            if known:
                what, fix = f"{what}; this is {known[0]}", known[1] or _NOTHING
            raise self._fault(what, fix)
        self._advance(len(data), data.count(b"\n"), data)

    def _header(self, raw: bytes) -> Header:
        self._finish_record(last=False)
        raw = raw.removesuffix(b"\r")
        if b"\x00" in raw:
            known = find_binary_format(self.head)
            what = "NUL byte in a header" + (f"; this is {known[0]}" if known else "")
            raise self._fault(what, known[1] if known and known[1] else _NOTHING, record=None)
        if b"\r" in raw:
            what, fix = describe_letter(b"\r", 0)
            raise self._fault(f"{what} in a header", fix, record=None)
        words = raw.split(None, 1)
        if not words:
            what = "header without a name after '>'"
            raise self._fault(what, "give the record a name", record=None)
        try:
            name = words[0].decode()
        except UnicodeDecodeError:
            shown = words[0].decode("utf-8", "backslashreplace")
            what = f"the record's name {shown[:80]!r} is not UTF-8"
            fix = "convert the file: iconv -f LATIN1 -t UTF-8"
            raise self._fault(what, fix, record=None) from None
        if spoilt := find_spoilt_name(name):
            raise self._fault("the record's name " + spoilt[0], spoilt[1], record=name)
        if name in self.seen:
            what = f"duplicate name: it stands more than once (first at line {self.seen[name]})"
            raise self._fault(what, "rename or remove one of the records", record=name)
        self.seen[name] = self._line_in_file(self.line)
        description = words[1].decode("utf-8", "surrogateescape").strip() if len(words) > 1 else ""
        self.record = Header(name, description, self.seen[name], self.offset)
        self.opened = self.line
        self.line += 1
        return self.record

    def _finish_record(self, *, last: bool) -> None:
        if self.record is None:
            if last:
                only = "holds no record, only blank lines"
                what = only if self.source.size else "is empty (0 bytes, no sequence)"
                raise DataError(what, file=self.source.shown, fix=_NOTHING)
            return
        if self.ambiguous > _AMBIGUOUS_COUNT and self.ambiguous > self.letters * _AMBIGUOUS_SHARE:
            some = f"{self.ambiguous:,} of {self.letters:,} letters"
            what = f"{some} are ambiguity codes: is this protein, not DNA?"
            fix = "give DNA (write unknown bases as N)"
            raise self._fault(what, fix, line=self.first_ambiguous)
        self.total += self.letters
        if last and not self.letters:
            every = "no sequence: all records are empty"
            what = "the last record is empty (no sequence)" if self.total else every
            raise self._fault(f"{what}; the file may be cut short", _NOTHING, line=self.opened)
        self.letters = self.ambiguous = self.column = 0

    def _fault(
        self, what: str, fix: str, *, line: int | None = None, record: str | None = ""
    ) -> DataError:
        name = self.record.name if record == "" and self.record else record or None
        at = self._line_in_file(line or self.line)
        return DataError(what, fix=fix, file=self.source.shown, line=at, record=name)
