"""Tables as text: a line of column names, then rows, whatever program wrote them.

Separated by tabs, commas, semicolons or blanks: that which gives every row as many fields as the
line of names has. Lines that begin with ## are comments, and so are those with # before the names.
Blanks around values are no part of them. A table of R may name its rows without naming that column.
A value in quotes may have line breaks. Below the names, rows whose values are all empty and comment
lines that are no row are left out, and counted in the log.
"""

import csv
import io
import logging
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from genodiff.errors import DataError, format_count
from genodiff.io.file_kinds import find_format
from genodiff.io.input_file import name_input
from genodiff.io.text_lines import Line, RowReader, read_text_lines

log = logging.getLogger("genodiff")

SEPARATORS = {"\t": "tabs", ",": "commas", ";": "semicolons", " ": "blanks"}
"""Each, and what it is called, the surest first."""
_SAID = re.compile(r'"?sep=(.)"?')
_QUOTED = re.compile(r'(^|[\t,;]) *"(?:[^"]|"")*"')
_OPEN = re.compile(r'(?:^|[\t,;]) *"')
_LONGEST = 1 << 20  # of a row in several lines


class OpenTable(NamedTuple):
    """The names of a table's columns, and the line and fields of each row, as a stream.

    `names` may be empty texts, of columns without a name; all others are different.
    """

    shown: str
    names: list[str]
    line: int
    """Where the names stand."""
    separator: str
    rows: Iterator[tuple[int, list[str]]]


def read_delimited(
    path: str | Path, usual: str, *, quoted: bool = True, fixed: bool = False
) -> OpenTable:
    """A table; `usual` is the separator that its file's name promises.

    With `fixed` no other separator is tried; without `quoted`, a quotation mark is a letter like
    any other. Raises `DataError` with the line, also for a table without names.
    """
    table = _TextTable(path, quoted)
    lines = table.read_lines()
    said, header, first = table.find_header(lines)
    table.refuse_page(header)
    separator = said or (usual if fixed else table.choose_separator(header, usual))
    names = table.split_line(header, separator)
    table.check_names(names, header)
    shift = 0 if first is None else table.find_shift(header, first, separator, len(names))
    if shift > 0:
        names = ["", *names]
    rows = chain([] if first is None else [first], lines)
    read = table.read_rows(rows, names, separator, cut=shift < 0)
    return OpenTable(table.shown, names, header[0], separator, read)


def split_rows(rows: list[Line], shown: str) -> list[tuple[int, list[str]]]:
    """The fields of rows that need no line of names, such as BED: by tabs where all have one.

    Else by the separator that gives all of them the same number of fields, two or more.
    """
    table, separator = _TextTable(shown, quoted=True), "\t"
    if rows:
        table.refuse_page(rows[0])
    if not all("\t" in text for _, text in rows):
        for other in ("\t", ",", ";", " "):
            widths = {len(table.split(text, other)) for _, text in rows}
            if len(widths) == 1 and max(widths) > 1:
                separator = other
                break
    return [(line[0], table.split_line(line, separator)) for line in rows]


class _TextTable:
    """A table that is read; where it is `quoted`, a value may stand in quotes."""

    def __init__(self, path: str | Path, quoted: bool) -> None:
        self.path, self.shown, self.quoted = path, name_input(path), quoted

    def read_lines(self) -> Iterator[Line]:
        """The lines of a file, those of one row joined where a value in quotes has line breaks."""
        lines = read_text_lines(self.path, "a table")
        return _join_lines(lines) if self.quoted else lines

    def read_below(self, header: Line) -> Iterator[str]:
        """The rows below the line of names, comments left out."""
        lines = self.read_lines()
        return (text for n, text in lines if n > header[0] and text.strip() and text[0] != "#")

    def find_header(self, lines: Iterator[Line]) -> tuple[str | None, Line, Line | None]:
        """The separator that the file names itself (`sep=;`), the line of names, the next line."""
        said: str | None = None
        held: Line | None = None
        for number, text in lines:
            if not text.strip() or text.startswith("##"):
                continue
            if said is None and held is None and (found := _SAID.fullmatch(text.strip())):
                said = found[1]
            elif text.startswith("#"):
                held = number, text[1:]
            elif held is not None and self._count_most(held[1]) == self._count_most(text) > 1:
                return said, held, (number, text)
            else:
                after = next(((n, t) for n, t in lines if t.strip()), None)
                return said, (number, text), after
        if held is None:
            fix = "give a line of column names and a row for each record"
            raise DataError("is empty: no header line", file=self.shown, fix=fix)
        return said, held, None

    def refuse_page(self, header: Line) -> None:
        """Raises `DataError` for a web page, a rich text or JSON in place of a table."""
        start = header[1].strip()
        is_other = start.startswith(("<", "{", "["))
        if is_other and (known := find_format(start.encode(), "table")):
            what, fix = f"no table: this is {known[0]}", known[1] or "give a table"
            raise DataError(what, file=self.shown, line=header[0], fix=fix)

    def split(self, text: str, separator: str) -> list[str]:
        """The fields of a line; one with wrong quotes is one field, which `split_line` tells."""
        try:
            return self._split(text, separator)
        except csv.Error:
            return [text]

    def split_line(self, line: Line, separator: str) -> list[str]:
        """The fields of a line. Raises `DataError` for quotes that do not close."""
        try:
            return self._split(line[1], separator)
        except csv.Error as fault:
            kind = {",": "CSV", "\t": "TSV"}.get(separator, f"separated by {SEPARATORS[separator]}")
            what, fix = f"not {kind}: {fault}", "correct the quotes"
            raise DataError(what, file=self.shown, line=line[0], fix=fix) from None

    def _split(self, text: str, separator: str) -> list[str]:
        if self.quoted and '"' in text:
            how: Any = {"delimiter": separator, "strict": True, "skipinitialspace": True}
            return [field.strip() for field in next(csv.reader(io.StringIO(text), **how), [])]
        fields = [field.strip() for field in text.split(separator)]
        return [field for field in fields if field] if separator == " " else fields

    def _count_most(self, text: str) -> int:
        return max(len(self.split(text, separator)) for separator in SEPARATORS)

    def choose_separator(self, header: Line, usual: str) -> str:
        """The separator that fits the whole file, of those that the line of names has."""
        widths = {s: len(self.split(header[1], s)) for s in SEPARATORS}
        possible = [s for s, width in widths.items() if width > 1]
        if len(possible) < 2:
            return possible[0] if possible else usual
        fitting = set(possible)
        for text in self.read_below(header):
            fitting = {s for s in fitting if len(self.split(text, s)) - widths[s] in (0, 1)}
            if not fitting:
                break
        ranked = sorted(fitting or possible, key=lambda s: (s != usual, possible.index(s)))
        if len(fitting) > 1:
            others = " or ".join(SEPARATORS[s] for s in ranked[1:])
            what = "%s: read as separated by %s; %s would fit every row too"
            log.warning(what, self.shown, SEPARATORS[ranked[0]], others)
        return ranked[0]

    def check_names(self, names: list[str], header: Line) -> None:
        """Raises `DataError` for a name that stands twice, and for a row in place of names."""
        fault = RowReader(self.shown, header[0]).fault
        said = [name for name in names if name]
        if again := next((name for name in said if said.count(name) > 1), ""):
            raise fault(f"duplicate column name: '{again[:40]}'", "rename it")
        if hidden := next((name for name in names if not name.isprintable()), ""):
            what = f"the column's name {hidden[:40]!a} has an invisible character"
            raise fault(what, "remove it")
        if any(len(name) > 15 and not name.upper().strip("ACGTN") for name in names):
            raise fault("no header line: this one holds a sequence", "add a line: sequence,label")

    def find_shift(self, header: Line, first: Line, separator: str, width: int) -> int:
        """1 where every row has a field more than there are names: R's names of rows come first.

        -1 where that field is the last and always empty: a separator at the end of each row.
        """
        if len(self.split(first[1], separator)) != width + 1:
            return 0
        empty = True
        for text in self.read_below(header):
            fields = self.split(text, separator)
            if len(fields) != width + 1:
                return 0
            empty &= not fields[-1]
        return -1 if empty else 1

    def read_rows(
        self, lines: Iterable[Line], names: list[str], separator: str, *, cut: bool
    ) -> Iterator[tuple[int, list[str]]]:
        """Line and fields of each row below the names; with `cut`, without the last field."""
        width = len(names) + cut
        empty = comments = 0
        for number, text in lines:
            if not text.strip():
                continue
            fields = self.split_line((number, text), separator)
            if len(fields) != width and text.startswith("#"):
                comments += 1
                continue
            if not any(fields) and len(fields) == width:
                empty += 1
                continue
            fault = RowReader(self.shown, number).fault
            if len(fields) != width:
                what = f"{len(fields)} field{'s' * (len(fields) != 1)}, but the header has {width}"
                read = f"the file is read as separated by {SEPARATORS.get(separator, separator)}"
                fix = f"correct the row (a quote or a separator too many or too few? {read})"
                raise fault(what, fix)
            if cut:
                fields.pop()
            if fields == names:
                raise fault("the line of column names stands again", "remove it")
            yield number, fields
        for n, noun in (empty, "empty row"), (comments, "comment line below the names"):
            if n:
                log.warning("%s: %s left out", self.shown, format_count(n, noun))


def _join_lines(lines: Iterator[Line]) -> Iterator[Line]:
    ahead: list[Line] = []
    while (first := ahead.pop(0) if ahead else next(lines, None)) is not None:
        number, text = first
        n, size, is_open = 0, len(text), _is_open(text)
        while is_open and size < _LONGEST:
            if n == len(ahead):
                ahead += [more] if (more := next(lines, None)) else []
            if n == len(ahead):
                break
            n, size = n + 1, size + len(ahead[n][1])
            if '"' in ahead[n - 1][1]:
                joined = "\n".join([text, *(one for _, one in ahead[:n])])
                is_open = _is_open(joined)
        if n and not is_open:
            text, ahead = joined, ahead[n:]
        yield number, text  # quotes that do not close are told by the reader of the line


def _is_open(text: str) -> bool:
    return '"' in text and _OPEN.search(_QUOTED.sub(r"\1", text)) is not None
