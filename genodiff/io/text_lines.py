"""Lines of a user's text file: no control characters, LF or CRLF ends, gzip or BGZF.

The text is UTF-8, or UTF-16 that begins with a byte order mark, as spreadsheets write it. A file
whose first block has CR and no LF has the line ends of the classic Mac. VCF whose text is not UTF-8
is read as Latin-1, with a warning, where only its notes have letters beyond ASCII.
"""

import codecs
import logging
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from genodiff.errors import DataError
from genodiff.io.file_kinds import find_format
from genodiff.io.input_file import open_input

_BOM = b"\xef\xbb\xbf"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
_LONGEST = 1 << 26
log = logging.getLogger("genodiff")


def read_text_lines(path: str | Path, kind: str) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text of every line of a file, as `split_lines` gives them."""
    with open_input(path) as source:
        yield from split_lines(source.blocks(), kind, source.shown)


def split_lines(blocks: Iterable[bytes], kind: str, shown: str) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text of every line, without its end.

    `kind` is what the file should be and `shown` its name, for messages. A line may hold tabs but
    no other control character. Raises `DataError` naming the line.
    """
    number, rest, first, mac, encoding = 1, b"", True, False, "utf-8"
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
    if rest:
        yield number, _decoded(rest, number, shown, encoding, last=True)[0]


def as_utf8(blocks: Iterable[bytes], shown: str) -> Iterator[bytes]:
    """The bytes of a text in any pieces; UTF-16 with a byte order mark is made UTF-8.

    Raises `DataError` where it is cut in the middle of a letter.
    """
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
            control = _CONTROL.search(content)
            if control and control[0] == "\r":
                what, fix = (
                    "carriage return inside a line (classic Mac line ends)",
                    "convert the line ends (mac2unix)",
                )
                raise DataError(what, file=shown, line=line, fix=fix)
            if control:
                letter = control[0]
                name = "NUL byte" if letter == "\0" else f"control character 0x{ord(letter):02X}"
                what, fix = f"{name} (binary data?)", "remove it, or copy the file again"
                raise DataError(what, file=shown, line=line, fix=fix)
    return lines
