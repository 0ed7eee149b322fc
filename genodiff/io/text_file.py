"""Text files, read strictly: UTF-8 without NUL, or JSON lines with a string under "text".

Text is kept as it stands: no normalisation, no special tokens, line ends and control characters
included. Only a byte order mark at the start and gzip or BGZF compression are taken off.
"""

import codecs
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from genodiff.errors import DataError
from genodiff.io.diagnosis import find_binary_format
from genodiff.io.input_file import name_input, open_input
from genodiff.io.text_lines import RowReader, read_text_lines

_BOM = b"\xef\xbb\xbf"
_FIX = "save it as UTF-8 (iconv -t UTF-8)"


class TextDigest(NamedTuple):
    """A text's length in characters and in bytes of UTF-8, and the sha256 (hex) of these bytes."""

    characters: int
    length: int
    sha: str


def digest_text(path: str | Path) -> TextDigest:
    """Size and checksum of all the text in a file. Raises `DataError` with the faulty line."""
    characters = length = 0
    digest, blank = hashlib.sha256(), True
    is_jsonl = Path(path).name.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson"))
    for piece in read_json_texts(path) if is_jsonl else read_text_pieces(path):
        data = piece.encode()
        characters, length = characters + len(piece), length + len(data)
        blank = blank and not piece.strip()
        digest.update(data)
    if blank:
        what = "holds only white space: no text" if length else "is empty: no text"
        raise DataError(what, file=name_input(path), fix="give a file with text")
    return TextDigest(characters, length, digest.hexdigest())


def read_text_pieces(path: str | Path) -> Iterator[str]:
    """The text of a file, cut anywhere between characters. Raises `DataError` with the line."""
    decoder, line, done, first = codecs.getincrementaldecoder("utf-8")(), 1, 0, True
    with open_input(path) as source:
        for block in source.blocks():
            if first:
                known = find_binary_format(block[:4096])
                if known:
                    what = f"not UTF-8 text: this is {known[0]}"
                    raise DataError(what, file=source.shown, fix=known[1] or _FIX)
                block, first = block.removeprefix(_BOM), False
            pending = len(decoder.getstate()[0])
            try:
                text = decoder.decode(block)
            except UnicodeDecodeError as fault:
                bad, before = fault.object[fault.start], fault.object[: fault.start]
                offset = done - pending + fault.start
                what = f"byte 0x{bad:02X} at offset {offset:,} is not UTF-8: {fault.reason}"
                at = line + before.count(b"\n")
                raise DataError(what, file=source.shown, line=at, fix=_FIX) from None
            if "\0" in text:
                at = line + text.count("\n", 0, text.index("\0"))
                fix = "give a text file"
                raise DataError("NUL byte (binary data?)", file=source.shown, line=at, fix=fix)
            yield text
            line, done = line + text.count("\n"), done + len(block)
        if decoder.getstate()[0]:
            what = "ends in the middle of a UTF-8 character (truncated?)"
            raise DataError(what, file=source.shown, line=line, fix=_FIX)


def read_json_texts(path: str | Path, fields: Sequence[str] = ("text",)) -> Iterator[str]:
    """The `fields` of each JSON line, joined by a blank. Raises `DataError` with the line."""
    named = " and ".join(f"'{f}'" for f in fields)
    for number, line in read_text_lines(path, "JSON lines"):
        if not line.strip():
            continue
        reader = RowReader(name_input(path), number)
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as fault:
            reason = getattr(fault, "msg", "nested too deeply")
            raise reader.fault(f"not JSON: {reason}", "give one JSON object per line") from None
        parts: list[str] = [value.get(field) for field in fields] if isinstance(value, dict) else []  # type: ignore[misc]
        if not parts or not all(isinstance(part, str) for part in parts):
            there = isinstance(value, dict) and all(field in value for field in fields)
            what = f"{named} is not a string" if there else f"no object with a {named}"
            raise reader.fault(what, f'write {{"{fields[0]}": "..."}}')
        text = " ".join(parts)
        try:
            text.encode()
        except UnicodeEncodeError:
            what, fix = f"half of a surrogate pair in {named}", "escape the pair"
            raise reader.fault(what, fix) from None
        yield text
