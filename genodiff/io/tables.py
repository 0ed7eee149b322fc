"""Tables of any format: text with separators (`delimited`) or parquet, and their usual columns."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from genodiff.errors import DataError
from genodiff.io import atomic
from genodiff.io.delimited import OpenTable, read_delimited
from genodiff.io.file_kinds import find_plain_path
from genodiff.io.input_file import ROWS, check_parquet, is_planning, note_cut

PARQUET = ".parquet"
ENDINGS = {".csv": ",", ".tsv": "\t", ".txt": "\t", ".tab": "\t"}
"""The separator that a file's ending promises; the file itself decides (`delimited`)."""
_PART = 4096  # rows of a parquet file at a time


def find_ending(path: str | Path) -> str:
    """Return the ending of a file's name, in lower case, without that of its compression."""
    return Path(Path(path).name.lower().removesuffix(".gz").removesuffix(".bgz")).suffix


def open_table(path: str | Path, *, literal: bool = False) -> OpenTable:
    """Open a text table or a parquet file, as its ending says; cells are text without outer blanks.

    With `literal` no other separator is tried than the ending's, and quotation marks in a TSV are
    ordinary characters. Raises `DataError` with the line.
    """
    ending = find_ending(path)
    if ending == PARQUET:
        table = ParquetTable(path)
        return OpenTable(str(path), list(table.schema), 1, "", table.read_text())
    usual = ENDINGS.get(ending, ",")
    return read_delimited(path, usual, quoted=not literal or usual == ",", fixed=literal)


def find_usual(
    names: Sequence[str], usual: Sequence[str], file: str | None = None, line: int | None = None
) -> str | None:
    """Return the column with a usual name (lower case), whatever its capitals and a leading #.

    The first of `usual` wins, so two tables with the same columns in another order agree.
    Raises `DataError` for two that differ in capitals alone.
    """
    known: dict[str, list[str]] = {}
    for name in names:
        known.setdefault(name.removeprefix("#").strip().lower(), []).append(name)
    found = next((known[name] for name in usual if name in known), [])
    if len(found) > 1:
        what = f"the columns {' and '.join(map(repr, found))} differ in capitals only"
        raise DataError(what, file=file, line=line, fix="rename the one that is not meant")
    return found[0] if found else None


class ParquetTable:
    """The columns of a parquet file and its rows, in parts. Raises `DataError` for damage."""

    def __init__(self, path: str | Path) -> None:
        check_parquet(path)
        self._path = path
        with self._reading():
            self._frame = pl.scan_parquet(find_plain_path(path))
            self.schema = self._frame.collect_schema()
            self.height = int(self._frame.select(pl.len()).collect().item())

    def collect(self, most: int) -> pl.DataFrame:
        """All of it; in a plan, the first `most` rows."""
        with self._reading():
            return self._frame.head(most if is_planning() else self.height).collect()

    def read_rows(self, columns: Sequence[str]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """The number (from 1) and the cells of each row."""
        return self._read(self._frame.select(list(columns)), self.height)

    def read_text(self) -> Iterator[tuple[int, list[str]]]:
        """The number and all cells of each row, as text; a plan reads the first `ROWS` rows."""
        text, n = self._as_text()
        return ((number, list(row)) for number, row in self._read(text, n))

    def read_columns(self) -> dict[str, list[str]]:
        """All cells as `read_text` gives them, by column."""
        with self._reading():
            text = self._as_text()[0].collect()
        return {name: text[name].to_list() for name in text.columns}

    def _as_text(self) -> tuple[pl.LazyFrame, int]:
        for name, kind in self.schema.items():
            if kind.is_nested() or kind == pl.Binary:
                what = f"column '{name}' holds {kind}, not text or numbers"
                raise DataError(what, file=self._path, fix="flatten it")
        n = min(self.height, ROWS) if is_planning() else self.height
        if n < self.height:
            note_cut(str(self._path), n / self.height, f"its first {ROWS:,} rows")
        text = pl.all().cast(pl.String).fill_null("").str.strip_chars()
        return self._frame.head(n).select(text), n

    def _read(self, frame: pl.LazyFrame, n: int) -> Iterator[tuple[int, tuple[Any, ...]]]:
        for first in range(0, n, _PART):
            with self._reading():
                part = frame.slice(first, _PART).collect()
            yield from enumerate(part.iter_rows(), first + 1)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (pl.exceptions.PolarsError, OSError) as fault:
            what = f"is no whole parquet file ({str(fault).splitlines()[0][:120]})"
            raise DataError(what, file=self._path, fix="write or download it again") from None


def write_parquet(path: Path, frames: Iterable[pl.DataFrame], **options: Any) -> int:
    """Write frames, joined as a stream, as one file, atomically; return the number of rows."""
    n = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".genodiff-") as folder:
        plain = find_plain_path(folder)
        for number, frame in enumerate(frames):
            frame.write_parquet(f"{plain}/{number:08d}.parquet")
            n += frame.height
        with atomic.open_atomic(path) as file:
            pl.scan_parquet(sorted(Path(plain).iterdir())).sink_parquet(file, **options)
    return n
