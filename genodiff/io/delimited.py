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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from genodiff.errors import DataError, format_count
from genodiff.io.file_kinds import find_format
from genodiff.io.input_file import name_input
from genodiff.io.text_lines import RowReader, read_text_lines

log = logging.getLogger("genodiff")

Line = tuple[int, str]
"""Number, from 1, and text of a line."""

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
    shown = name_input(path)
    lines = _read_lines(path, quoted)
    said, header, first = _find_header(lines, shown)
    _refuse_page(header, shown)
    split = _split_quoted if quoted else _split_plain
    separator = said or (usual if fixed else _choose_separator(path, header, usual, split, shown))
    names = _split(split, header, separator, shown)
    _check_names(names, header, shown)
    shift = 0 if first is None else _find_shift(path, header, first, separator, split, len(names))
    if shift > 0:
        names = ["", *names]
    ahead = iter([] if first is None else [first])
    rows = _rows(shown, ahead, lines, names, separator, split, cut=shift < 0)
    return OpenTable(shown, names, header[0], separator, rows)


def split_rows(rows: list[Line], shown: str) -> list[tuple[int, list[str]]]:
    """The fields of rows that need no line of names, such as BED: by tabs where all have one.

    Else by the separator that gives all of them the same number of fields, two or more.
    """
    if rows:
        _refuse_page(rows[0], shown)
    separator = "\t"
    if not all("\t" in text for _, text in rows):
        for other in ("\t", ",", ";", " "):
            widths = {len(_split_quoted(text, other)) for _, text in rows}
            if len(widths) == 1 and max(widths) > 1:
                separator = other
                break
    return [(number, _split(_split_quoted, (number, text), separator, shown))
            for number, text in rows]  # fmt: skip


def _find_header(lines: Iterator[Line], shown: str) -> tuple[str | None, Line, Line | None]:
    """The separator that the file names itself (`sep=;`), the line of names, and the next line."""
    said: str | None = None
    held: Line | None = None
    for number, text in lines:
        if not text.strip() or text.startswith("##"):
            continue
        if said is None and held is None and (found := _SAID.fullmatch(text.strip())):
            said = found[1]
        elif text.startswith("#"):
            held = number, text[1:]
        elif held is not None and _count_most(held[1]) == _count_most(text) > 1:
            return said, held, (number, text)
        else:
            after = next(((n, t) for n, t in lines if t.strip()), None)
            return said, (number, text), after
    if held is None:
        fix = "give a line of column names and a row for each record"
        raise DataError("is empty: no header line", file=shown, fix=fix)
    return said, held, None


def _count_most(text: str) -> int:
    return max(len(_split_quoted(text, separator)) for separator in SEPARATORS)


def _refuse_page(header: Line, shown: str) -> None:
    """Raises `DataError` for a web page, a rich text or JSON in place of a table."""
    start = header[1].strip()
    known = find_format(start.encode(), "table") if start.startswith(("<", "{", "[")) else None
    if known is not None:
        what, fix = f"no table: this is {known[0]}", known[1] or "give a table"
        raise DataError(what, file=shown, line=header[0], fix=fix)


_Split = Callable[[str, str], list[str]]


def _split_quoted(text: str, separator: str) -> list[str]:
    """The fields of a line; a line with wrong quotes is one field, which `_split` tells."""
    if '"' in text:
        try:
            return [field.strip() for field in _parse(text, separator)]
        except csv.Error:
            return [text]
    return _split_plain(text, separator)


def _split_plain(text: str, separator: str) -> list[str]:
    fields = [field.strip() for field in text.split(separator)]
    return [field for field in fields if field] if separator == " " else fields


def _parse(text: str, separator: str) -> list[str]:
    rows = csv.reader(io.StringIO(text), delimiter=separator, strict=True, skipinitialspace=True)
    return next(rows, [])


def _split(split: _Split, line: Line, separator: str, shown: str) -> list[str]:
    """The fields of a line. Raises `DataError` for quotes that do not close."""
    number, text = line
    if split is _split_quoted and '"' in text:
        try:
            _parse(text, separator)
        except csv.Error as fault:
            kind = {",": "CSV", "\t": "TSV"}.get(separator, f"separated by {SEPARATORS[separator]}")
            what = f"not {kind}: {fault}"
            raise DataError(what, file=shown, line=number, fix="correct the quotes") from None
    return split(text, separator)


def _choose_separator(path: str | Path, header: Line, usual: str, split: _Split, shown: str) -> str:
    """The separator that fits the whole file, of those that the line of names has."""
    widths = {s: len(split(header[1], s)) for s in SEPARATORS}
    possible = [s for s, width in widths.items() if width > 1]
    if len(possible) < 2:
        return possible[0] if possible else usual
    fitting = set(possible)
    for _, text in _lines_after(path, header[0], split):
        fitting = {s for s in fitting if len(split(text, s)) - widths[s] in (0, 1)}
        if not fitting:
            break
    ranked = sorted(fitting or possible, key=lambda s: (s != usual, possible.index(s)))
    if len(fitting) > 1:
        others = " or ".join(SEPARATORS[s] for s in ranked[1:])
        log.warning("%s: read as separated by %s; %s would fit every row too",
                    shown, SEPARATORS[ranked[0]], others)  # fmt: skip
    return ranked[0]


def _lines_after(path: str | Path, number: int, split: _Split) -> Iterator[Line]:
    lines = _read_lines(path, quoted=split is _split_quoted)
    return ((n, t) for n, t in lines if n > number and t.strip() and t[0] != "#")


def _read_lines(path: str | Path, quoted: bool) -> Iterator[Line]:
    """The lines of a file, those of one row joined where a value in quotes has line breaks."""
    lines = read_text_lines(path, "a table")
    return _join_lines(lines) if quoted else lines


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


def _check_names(names: list[str], header: Line, shown: str) -> None:
    """Raises `DataError` for a name that stands twice, and for a row in place of names."""
    fault = RowReader(shown, header[0]).fault
    said = [name for name in names if name]
    if again := next((name for name in said if said.count(name) > 1), ""):
        raise fault(f"duplicate column name: '{again[:40]}'", "rename it")
    if hidden := next((name for name in names if not name.isprintable()), ""):
        what = f"the column's name {hidden[:40]!a} has an invisible character"
        raise fault(what, "remove it")
    if any(len(name) > 15 and not name.upper().strip("ACGTN") for name in names):
        raise fault("no header line: this one holds a sequence", "add a line: sequence,label")


def _find_shift(
    path: str | Path, header: Line, first: Line, separator: str, split: _Split, width: int
) -> int:
    """1 where every row has a field more than there are names: R's names of rows come first.

    -1 where that field is the last and always empty: a separator at the end of each row.
    """
    if len(split(first[1], separator)) != width + 1:
        return 0
    empty = True
    for _, text in _lines_after(path, header[0], split):
        fields = split(text, separator)
        if len(fields) != width + 1:
            return 0
        empty &= not fields[-1]
    return -1 if empty else 1


def _rows(
    shown: str, first: Iterator[Line], lines: Iterator[Line], names: list[str], separator: str,
    split: _Split, *, cut: bool,
) -> Iterator[tuple[int, list[str]]]:  # fmt: skip
    width = len(names) + cut
    empty = comments = 0
    for source in (first, lines):
        for number, text in source:
            if not text.strip():
                continue
            fields = _split(split, (number, text), separator, shown)
            if len(fields) != width and text.startswith("#"):
                comments += 1
                continue
            if not any(fields) and len(fields) == width:
                empty += 1
                continue
            fault = RowReader(shown, number).fault
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
            log.warning("%s: %s left out", shown, format_count(n, noun))
