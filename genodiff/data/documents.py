"""Documents: the texts in a file, one after another, whatever the file's format, in memory for one
document at most.

A whole file that is one document is read in pieces, so that it may be of any size. Text is kept as
it stands (see `genodiff.io.text_file`), but for what the detokeniser changes; a blank document
is passed over.
"""

import csv
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl

from genodiff.data.text_recipe import DETOKENIZERS, ROWS, TextRecipe, strip_compression
from genodiff.errors import DataError
from genodiff.io.tables import ParquetTable
from genodiff.io.text_file import read_json_texts, read_text_pieces

MOST_CHARACTERS = 1 << 28
"""Of a document that is no whole file: beyond, it is taken for a damaged file."""

_TITLE = re.compile(r" = [^=].* = $")


class Piece(NamedTuple):
    """Some text of a document, the last of it or not."""

    text: str
    last: bool


def read_pieces(recipe: TextRecipe, path: Path) -> Iterator[Piece]:
    """The documents of a file. Raises `DataError` naming the file, and the line if there is one."""
    clean = DETOKENIZERS[recipe.detokenizer] if recipe.detokenizer else None
    name = strip_compression(path).lower()
    if name.endswith(ROWS):
        texts = _rows(recipe, path, name)
    elif recipe.documents != "file" or clean is not None:
        texts = _SPLITTERS[recipe.documents](path)
    else:
        yield from _file(path)
        return
    for text in texts:
        text = clean(text) if clean is not None else text
        if text.strip():
            yield Piece(text, True)


def _file(path: Path) -> Iterator[Piece]:
    held: str | None = None
    blank = True
    for text in read_text_pieces(path):
        if held:
            yield Piece(held, False)
        held, blank = text, blank and not text.strip()
    if not blank:
        yield Piece(held or "", True)


def _whole(path: Path) -> Iterator[str]:
    yield "".join(read_text_pieces(path))


def _lines(path: Path) -> Iterator[str]:
    """Lines between line feeds, without a carriage return. U+2028 and U+0085 are text."""
    rest, number = "", 1
    for text in read_text_pieces(path):
        *whole, rest = (rest + text).split("\n")
        for line in whole:
            yield line.removesuffix("\r")
            number += 1
        if len(rest) > MOST_CHARACTERS:
            what = f"has a line of more than {MOST_CHARACTERS:,} characters"
            raise DataError(what, file=path, line=number, fix="break its lines")
    if rest:
        yield rest


def _groups(path: Path, begins: Callable[[str], bool], keep: bool) -> Iterator[str]:
    """Lines joined until one that begins the next document, which keeps that line if `keep`."""
    held: list[str] = []
    size = 0
    for number, line in enumerate(_lines(path), 1):
        size += len(line)
        if size > MOST_CHARACTERS:
            what = f"has a document of more than {MOST_CHARACTERS:,} characters"
            raise DataError(what, file=path, line=number, fix="split it")
        if begins(line):
            yield "\n".join(held)
            held, size = [line] if keep else [], len(line)
        else:
            held.append(line)
    yield "\n".join(held)


_SPLITTERS: dict[str, Callable[[Path], Iterator[str]]] = {
    "file": _whole,
    "line": _lines,
    "paragraph": lambda path: _groups(path, lambda line: not line.strip(), keep=False),
    "wiki": lambda path: _groups(path, lambda line: bool(_TITLE.match(line)), keep=True),
}


def _rows(recipe: TextRecipe, path: Path, name: str) -> Iterator[str]:
    if name.endswith(".parquet"):
        return _parquet(path, recipe.fields)
    if name.endswith((".csv", ".tsv")):
        return _table(recipe, path, "\t" if name.endswith(".tsv") else ",")
    return read_json_texts(path, recipe.fields)


def _table(recipe: TextRecipe, path: Path, separator: str) -> Iterator[str]:
    reader = csv.reader((line + "\n" for line in _lines(path)), delimiter=separator, strict=True)
    columns = list(recipe.columns)
    wanted: list[int] | None = None
    try:
        for row in reader:
            if wanted is None:
                header = columns or row
                missing = [f for f in recipe.fields if f not in header]
                if missing:
                    what = f"has no column '{missing[0]}' (its first line: {', '.join(row)[:80]})"
                    fix = "name the columns in the first line, or use a recipe with 'columns'"
                    raise DataError(what, file=path, line=1, fix=fix)
                wanted = [header.index(f) for f in recipe.fields]
                if not columns:
                    continue
            if len(row) <= max(wanted):
                what = f"has {len(row)} fields, and more than {max(wanted)} are needed"
                fix = "quote fields that hold the separator"
                raise DataError(what, file=path, line=reader.line_num, fix=fix)
            yield " ".join(row[i] for i in wanted)
    except csv.Error as fault:
        what = f"is no sound table ({fault})"
        raise DataError(what, file=path, line=reader.line_num, fix="correct its quotes") from None


def _parquet(path: Path, fields: tuple[str, ...]) -> Iterator[str]:
    table = ParquetTable(path)
    missing = [f for f in fields if table.schema.get(f) != pl.String]
    if missing:
        what = f"has no column '{missing[0]}' of text (columns: {', '.join(table.schema)[:80]})"
        raise DataError(what, file=path, fix="give a file with a column 'text'")
    for number, row in table.read_rows(fields):
        if None in row:
            fix = "leave the row out"
            raise DataError("a text is missing (null)", file=path, record=f"row {number}", fix=fix)
        yield " ".join(row)
