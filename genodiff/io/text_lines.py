"""Lines of text files of any encoding, and their cells: numbers, missing values, spoilt names."""

import codecs
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from math import inf, isfinite
from pathlib import Path
from typing import NamedTuple

from genodiff.errors import DataError
from genodiff.io.diagnosis import Diagnosis
from genodiff.io.file_kinds import find_format
from genodiff.io.input_file import InputFile, cut_text, open_input
from genodiff.io.regions import find_contig, suggest_contig

_BOM = b"\xef\xbb\xbf"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
_LONGEST = 1 << 26
log = logging.getLogger("genodiff")

Line = tuple[int, str]
"""Number, from 1, and text of a line."""


def read_text_lines(path: str | Path, kind: str) -> Iterator[Line]:
    """Number (from 1) and text of every line of a file, as `split_lines` gives them."""
    with open_input(path) as source:
        yield from split_lines(source.blocks(), kind, source.shown, source)


def split_lines(
    blocks: Iterable[bytes], kind: str, shown: str, source: InputFile | None = None
) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text of every line, without its end.

    `kind` is what the file should be and `shown` its name, for messages. A line may hold tabs but
    no other control character. A plan reads the beginning of a long file, of which `source` tells
    the share. Raises `DataError` naming the line.
    """
    number, rest, first, mac, encoding, size = 1, b"", True, False, "utf-8", 0
    for block in as_utf8(blocks, shown):
        data = rest + block
        if first:
            other = find_format(data, kind)
            if other:
                what, fix = f"not {kind}: this is {other[0]}", other[1] or f"give {kind}"
                raise DataError(what, file=shown, line=1, fix=fix)
            while data.startswith(_BOM):
                data = data.removeprefix(_BOM)
            first, mac = False, b"\r" in data and b"\n" not in data and kind != "text"
        if mac:
            data = data.replace(b"\r", b"\n")
        cut = data.rfind(b"\n") + 1
        rest = data[cut:]
        if len(rest) > _LONGEST:
            what = f"a line is longer than {_LONGEST:,} bytes"
            raise DataError(what, file=shown, line=number, fix=f"give {kind}")
        if cut:
            if kind == "VCF" and encoding == "utf-8" and not _is_utf8(data[: cut - 1]):
                encoding = "latin-1"
                log.warning("%s: the text is not UTF-8; it is read as Latin-1", shown)
            lines = _decoded(data[: cut - 1], number, shown, encoding, last=False)
            if encoding == "latin-1" and not all(map(_has_plain_columns, lines)):
                _decoded(data[: cut - 1], number, shown, "utf-8", last=False)
            yield from enumerate(lines, number)
            number += len(lines)
        size += len(block)
        if cut_text(size, kind, shown, source):
            return
    if rest:
        yield number, _decoded(rest, number, shown, encoding, last=True)[0]


def as_utf8(blocks: Iterable[bytes], shown: str) -> Iterator[bytes]:
    """The bytes of a text; UTF-16 with its mark as UTF-8. Raises `DataError` where it is cut."""
    pieces = iter(blocks)
    head = next(pieces, b"")
    if not head.startswith(_UTF16) or head.startswith(_UTF32):
        yield head
        yield from pieces
        return
    decoder = codecs.getincrementaldecoder("utf-16")()
    try:
        for piece in chain([head], pieces):
            yield decoder.decode(piece).encode()
        yield decoder.decode(b"", final=True).encode()
    except UnicodeError as fault:
        what = f"the UTF-16 text is cut short or damaged ({fault})"
        raise DataError(what, file=shown, fix="save it as UTF-8") from None


def _has_plain_columns(line: str) -> bool:
    """Whether the names and alleles of a row of VCF are ASCII, whatever its notes are."""
    return line.isascii() or line[:2] == "##" or "".join(line.split("\t", 5)[:5]).isascii()


def _is_utf8(data: bytes) -> bool:
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False


def _decoded(data: bytes, number: int, shown: str, encoding: str, *, last: bool) -> list[str]:
    """The lines of `data`, whose last line has lost its end (or, with `last`, has none)."""
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as fault:
        line = number + data.count(b"\n", 0, fault.start)
        what = f"byte 0x{data[fault.start]:02X} is not UTF-8 text (Latin-1 or Windows-1252?)"
        fix = "save it as UTF-8, or convert the encoding: iconv -f WINDOWS-1252 -t UTF-8"
        raise DataError(what, file=shown, line=line, fix=fix) from None
    lines = text.split("\n")
    if "\r" in text:
        ended = len(lines) - last
        lines = [line.removesuffix("\r") for line in lines[:ended]] + lines[ended:]
    if _CONTROL.search(text.replace("\r\n", "\n").removesuffix("\r" * (not last))):
        for line, content in enumerate(lines, number):
            if control := _CONTROL.search(content):
                letter = control[0]
                name = "NUL byte" if letter == "\0" else f"control character 0x{ord(letter):02X}"
                what, fix = f"{name} (binary data?)", "remove it, or copy the file again"
                if letter == "\r":
                    what = "carriage return inside a line (classic Mac line ends)"
                    fix = "convert the line ends (mac2unix)"
                raise DataError(what, file=shown, line=line, fix=fix)
    return lines


_MISSING = {
    *("", "na", "n/a", "#n/a", "nan", "<na>", "null"),
    *("#null!", "#value!", "#ref!", "#name?", "#div/0!", "#num!"),
}
_ERROR = re.compile(r"#(?:N/A|NULL!|VALUE!|REF!|NAME\?|DIV/0!|NUM!)")
_DIGITS = re.compile("[0-9]{1,12}")  # below 2^40, so that sums fit into 64 bits
_WHOLE_FLOAT = re.compile(r"([0-9]{1,12})\.0+")
_SHORT_POWER = re.compile(r"([1-9])(?:\.([0-9]+))?e\+([0-9]{2})")
_SIGNED = re.compile("-?[0-9]+")
_POWER = re.compile(r"[0-9]+(?:[.,][0-9]+)?[eE][+-]?[0-9]+")
_THOUSANDS = re.compile(
    "[0-9]{1,3}(?:(?:,[0-9]{3})+|(?:[.][0-9]{3})+|(?:['’ \xa0\u202f][0-9]{3})+)"
)
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DATE = re.compile(rf"\d{{1,2}}-{_MONTH}(?:-\d\d(?:\d\d)?)?|{_MONTH}-\d\d")
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|nbsp|#[0-9]{1,6}|#x[0-9a-fA-F]{1,5});")
_QUOTES = "\"'‘’“”„«»`´="
_DASHES = "‐‑‒–—―−"
_PLAIN = "write the digits alone"


def is_missing(cell: str) -> bool:
    """Whether a cell says that there is no value: empty, NA, NaN, null or a spreadsheet's error."""
    return cell.strip().lower() in _MISSING


def is_comment(line: str) -> bool:
    """Whether a line begins with #, and not with a spreadsheet's error, such as #REF!, in a row."""
    return line.startswith("#") and _ERROR.match(line) is None


def is_bed_comment(line: str) -> bool:
    """Whether a line without blanks at its end holds no row of BED."""
    return not line or is_comment(line) or line.split(None, 1)[0] in ("track", "browser")


def read_whole(text: str) -> int | None:
    """A whole number from 0, or None; at most 12 digits.

    `1000.0` is 1000. `1e+05` is 100000 where that is shorter than its digits: so R writes whole
    numbers, and then no digit is lost. Any other power (`1.23457e+06`) may be rounded, and `1.000`
    may be a thousand: neither is read.

    >>> read_whole("1000"), read_whole("1000.0"), read_whole("1e+05"), read_whole("1.000")
    (1000, 1000, 100000, None)
    """
    if _DIGITS.fullmatch(text):
        return int(text)
    if _THOUSANDS.fullmatch(text):
        return None
    if whole := _WHOLE_FLOAT.fullmatch(text):
        return int(whole[1])
    if power := _SHORT_POWER.fullmatch(text):
        digits = power[1] + (power[2] or "")
        zeros = int(power[3]) - len(digits) + 1
        if (
            0 <= zeros <= 12 - len(digits)
            and len(text) < len(digits) + zeros
            and digits[1:][-1:] != "0"
        ):
            return int(digits + "0" * zeros)
    return None


def explain_whole(text: str) -> Diagnosis:
    """Why `read_whole` does not read a text, and the remedy."""
    if is_missing(text):
        return "says that a value is missing", "give it, or remove the row"
    if _SIGNED.fullmatch(text):
        long = "is out of range: larger than any contig is long", "correct it"
        negative = "is negative", "the first base is 0 in BED (0-based) and 1 in other formats"
        return negative if text[0] == "-" else long
    if _THOUSANDS.fullmatch(text):
        return "has thousands separators: not an integer", _PLAIN
    if _POWER.fullmatch(text):
        fix = f"{_PLAIN} (R: options(scipen = 999); a spreadsheet: format the column as a number)"
        return "is in scientific notation, which may have lost digits: not an integer", fix
    return "is not an integer", _PLAIN


def read_number(text: str) -> float | None:
    """A finite number in plain digits and with a decimal point, or None."""
    if not text.isascii() or "_" in text:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None


def find_alike(names: Iterable[str]) -> tuple[str, str] | None:
    """Two names that differ in nothing but capitals, or None."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.casefold(), name)
        if other != name:
            return other, name
    return None


def find_hidden(text: str) -> Diagnosis | None:
    """What a text has that nobody sees or wrote, and the remedy; None where there is nothing."""
    if not text.isprintable():
        hidden = next(c for c in text if not c.isprintable())
        return f"has an invisible or control character {hidden!a}", "remove it"
    if "&" in text and (entity := _ENTITY.search(text)):
        return f"holds {entity[0]}, a code of web pages", "write the character that it stands for"
    return None


@lru_cache(1024)
def find_spoilt_name(name: str) -> Diagnosis | None:
    """What a program did to a name, and the remedy; None where it looks as a person wrote it."""
    if hidden := find_hidden(name):
        return hidden
    if name and (name[0] in _QUOTES or name[-1] == '"'):
        return "has a quotation mark or = at its edge", "remove what a program put around it"
    dash = None if name.isascii() else next((c for c in name if c in _DASHES), None)
    if dash is not None:
        return f"has the dash {dash!a}, which programs make of -", "write -"
    if _ERROR.fullmatch(name):
        return "is a spreadsheet's error", "write the name"
    if _DATE.fullmatch(name):
        return "is a date, as spreadsheets make of names such as SEPT1 or 3-1", "write the name"
    return None


class RowReader(NamedTuple):
    """Reads the cells of a row; its `DataError` names the file, the line and the record."""

    file: str | Path
    line: int | None
    record: str | None = None

    def fault(self, what: str, fix: str) -> DataError:
        """Return the error of this row, to be raised."""
        return DataError(what, file=self.file, line=self.line, record=self.record, fix=fix)

    def check_name(self, text: str, noun: str, *, cut: bool = False) -> None:
        """Raise `DataError` for a name that a program spoilt; of one that is `cut` off before ;."""
        if spoilt := find_spoilt_name(text) or (find_hidden(f"{text};") if cut else None):
            raise self.fault(f"the {noun} '{text[:60]}' {spoilt[0]}", spoilt[1])

    def check_contig(self, text: str) -> None:
        """Raise `DataError` for what is not the name of a contig."""
        if not text or text != "".join(text.split()) or text[0] == ">":
            fix = "give it, and remove blanks and '>'"
            raise self.fault(f"'{text}' is not the name of a contig", fix)
        self.check_name(text, "contig's name")

    def find_contig(self, name: str, contigs: Mapping[str, int]) -> str:
        """Return a genome's name of a contig. Raise `DataError` where it has none."""
        found = find_contig(name, contigs, str(self.file))
        if found is None:
            fix = suggest_contig(name, dict(contigs))
            raise self.fault(f"unknown contig '{name}': not in the FASTA", fix)
        return found

    def check_given(self, text: str, noun: str, fix: str = "give it, or remove the row") -> None:
        """Raise `DataError` for a text that says that a value is missing."""
        if is_missing(text):
            raise self.fault(f"the {noun} '{text}' says that a value is missing", fix)

    def read_whole(self, text: str, noun: str, fix: str = "") -> int:
        """Return a whole number from 0, as `read_whole`. Raise `DataError` for anything else."""
        value = read_whole(text)
        if value is None:
            raise self.refuse_whole(text, noun, fix)
        return value

    def refuse_whole(self, text: str, noun: str, fix: str = "") -> DataError:
        """Return the error of a text that is no whole number."""
        why, usual = explain_whole(text)
        return self.fault(f"the {noun} '{text[:40]}' {why}", fix or usual)

    def read_number(
        self, text: str, noun: str, fix: str = "correct it", least: float = -inf
    ) -> float:
        """Return a finite number from `least`. Raise `DataError` for anything else."""
        value = read_number(text)
        if value is None or value < least:
            bound = "" if least == -inf else f" from {least:g}"
            raise self.fault(f"the {noun} '{text[:60]}' is not a finite number{bound}", fix)
        return value
