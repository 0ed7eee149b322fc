"""Embeddings as files, written as they come: memory holds one batch of them and the windows' names.

    .npz      embeddings (windows, ...) float32; contig, start, end, name, strand; unpooled:
              (bases, ...) and offsets (windows + 1)
    .parquet  a row for each window: contig, start, end, name, strand, and a list of numbers for
              each strand that was read and each layer
    .csv      a row for each window, after a line of names: contig, start, end, name, strand, and a
              column for each number, embedding_0 and on; pooled windows only; .tsv has tabs

The strand of a window is - where its letters are the reverse complement of contig[start:end].

Beside each stands OUT.json: where it comes from, and what its axes mean.
"""

import csv
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from genodiff.embedding.embed import Array, Reading, Window
from genodiff.embedding.request import SEPARATORS, find_embedding_format
from genodiff.errors import DataError
from genodiff.io import atomic
from genodiff.io.tables import ParquetTable, write_parquet
from genodiff.io.target import write_error

_PLACE = ("contig", "start", "end", "name", "strand")
_PART = 64 << 20  # bytes of numbers held before they are written
_COPY = 1 << 22


class Written(NamedTuple):
    """What was written."""

    windows: int
    bases: int
    shape: tuple[int, ...]


class Kept(NamedTuple):
    """What a file says of a window; `bases` is less than `end - start` for a spliced feature."""

    contig: str
    start: int
    end: int
    name: str
    strand: str
    bases: int

    @classmethod
    def of(cls, window: Window) -> "Kept":
        """What is said of a window that was read."""
        return cls(*window[:4], window.strand, len(window.letters))


class _Source(NamedTuple):
    """What a writer is given. `windows` are those of the `rows` that have been read."""

    rows: Iterator[Array]
    windows: list[Kept]
    shape: tuple[int, ...]
    how: Reading

    @property
    def unpooled(self) -> bool:
        return self.how.pool == "none"


def write_kept(
    path: Path, found: Iterable[tuple[Kept, Array]], how: Reading, shape: tuple[int, ...]
) -> Written:
    """Write all of `found`, whole or not at all; `shape` is that of one row.

    Raises `MachineError`, `DataError`.
    """
    writers = {".npz": _write_npz, ".parquet": _write_parquet}
    writer = writers.get(find_embedding_format(path), _write_text)
    rows = iter(found)
    first = next(rows, None)
    if first is None:
        raise DataError("no window to embed", fix="give a FASTA with at least one base")
    windows: list[Kept] = []

    def note() -> Iterator[Array]:
        for window, array in chain([first], rows):
            windows.append(window)
            yield array

    written = writer(path, _Source(note(), windows, shape, how))
    return Written(len(windows), sum(w.bases for w in windows), written)


def _columns(source: _Source) -> dict[str, Any]:
    windows = source.windows
    kinds = (np.str_, np.int64, np.int64, np.str_, np.str_)
    columns: dict[str, Any] = {
        name: np.array([getattr(w, name) for w in windows], dtype=kind)
        for name, kind in zip(_PLACE, kinds, strict=True)
    }
    if source.unpooled:
        columns["offsets"] = np.cumsum([0, *(w.bases for w in windows)], dtype=np.int64)
    return columns


def _write_npz(path: Path, source: _Source) -> tuple[int, ...]:
    """The numbers go to a nameless file first, since an .npy begins with how many there will be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=path.parent) as spool:
        n = 0
        for row in source.rows:
            try:
                spool.write(row.tobytes())
            except OSError as fault:
                raise write_error(path, fault) from None
            n += row.shape[0] if source.unpooled else 1
        full = (n, *source.shape)
        with (
            atomic.open_atomic(path) as file,
            zipfile.ZipFile(file, "w", allowZip64=True) as archive,
        ):
            with archive.open(_member("embeddings"), "w", force_zip64=True) as member:
                np.lib.format.write_array_header_2_0(
                    member, {"descr": "<f4", "fortran_order": False, "shape": full}
                )
                spool.seek(0)
                shutil.copyfileobj(spool, member, _COPY)
            for name, column in _columns(source).items():
                with archive.open(_member(name), "w") as member:
                    np.lib.format.write_array(member, column, allow_pickle=False)  # type: ignore[arg-type]
    return full


def _member(name: str) -> zipfile.ZipInfo:
    """A member without the time of day: the same embeddings are the same bytes."""
    return zipfile.ZipInfo(f"{name}.npy")


def _write_parquet(path: Path, source: _Source) -> tuple[int, ...]:
    def make_frames() -> Iterator[pl.DataFrame]:
        held: list[Array] = []
        size = 0
        for row in source.rows:
            held.append(row)
            size += row.nbytes
            if size >= _PART:
                yield _part(held, source.windows[-len(held) :], source)
                held, size = [], 0
        if held:
            yield _part(held, source.windows[-len(held) :], source)

    n = write_parquet(path, make_frames())
    return (sum(w.bases for w in source.windows) if source.unpooled else n, *source.shape)


def name_columns(how: Reading) -> list[str]:
    """A column for each (strand, layer), in the order of the axes."""
    strands = ["forward", "reverse"] if how.strand == "both" else [""]
    layers = [f"layer{layer}" for layer in how.layers] if len(how.layers) > 1 else [""]
    return [
        "_".join(part for part in ("embedding", strand, layer) if part)
        for strand in strands
        for layer in layers
    ]


def _part(held: list[Array], windows: list[Kept], source: _Source) -> pl.DataFrame:
    names, width = name_columns(source.how), source.shape[-1]
    table = pl.DataFrame({name: [getattr(w, name) for w in windows] for name in _PLACE})
    vector, rows = pl.Array(pl.Float32, width), [row.reshape(-1, len(names), width) for row in held]
    for i, name in enumerate(names):
        if source.unpooled:
            column = pl.Series(name, [row[:, i].tolist() for row in rows], dtype=pl.List(vector))
        else:
            column = pl.Series(name, np.concatenate(rows)[:, i], dtype=vector)
        table = table.with_columns(column)
    return table


def _write_text(path: Path, source: _Source) -> tuple[int, ...]:
    """Lines as they come; the shortest digits that give the same float32 back."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names, n, rest = name_columns(source.how), 0, iter(source.rows)
    most = max(1, _PART // (16 * int(np.prod(source.shape))))
    with atomic.open_atomic(path) as file:
        while batch := list(islice(rest, most)):
            table = _part(batch, source.windows[n:], source)
            for name in names:
                fields = [f"{name}_{i}" for i in range(source.shape[-1])]
                table = table.with_columns(pl.col(name).arr.to_struct(fields)).unnest(name)
            separator = SEPARATORS[path.suffix.lower()]
            file.write(table.write_csv(include_header=n == 0, separator=separator).encode())
            n += len(batch)
    return (n, *source.shape)


def join_embeddings(
    out: Path, shards: Sequence[str | Path], told: dict[str, Any], kind: str
) -> Written:
    """Write the rows of all shards, which stand in order; `told` is the sidecar of one of them.

    Memory holds the numbers of one shard.
    """
    how = Reading(tuple(told["layers"]), told["pool"], told["strand"])
    shape = tuple(told["shape"][1:])
    readers = {"npz": _read_npz, "parquet": _read_parquet}
    read = readers.get(kind, _read_text)
    rows = (row for shard in shards for row in read(Path(shard), how, shape))
    return write_kept(out, rows, how, shape)


def _read_npz(path: Path, how: Reading, shape: tuple[int, ...]) -> Iterator[tuple[Kept, Array]]:
    with np.load(path, allow_pickle=False) as held:
        columns = {name: held[name] for name in held.files}
    numbers, ends = columns["embeddings"], columns.get("offsets", [])
    for i, place in enumerate(zip(*(columns[name].tolist() for name in _PLACE), strict=True)):
        if how.pool == "none":
            yield Kept._make((*place, int(ends[i + 1] - ends[i]))), numbers[ends[i] : ends[i + 1]]
        else:
            yield Kept._make((*place, 0)), numbers[i]


def _read_parquet(path: Path, how: Reading, shape: tuple[int, ...]) -> Iterator[tuple[Kept, Array]]:
    names, width = name_columns(how), shape[-1]
    for _, row in ParquetTable(path).read_rows([*_PLACE, *names]):
        vectors = row[len(_PLACE) :]
        numbers = np.stack([np.array(one, np.float32).reshape(-1, width) for one in vectors], 1)
        axis = (len(numbers),) if how.pool == "none" else ()
        kept = Kept._make((*row[: len(_PLACE)], sum(axis)))
        yield kept, numbers.reshape(*axis, *shape)


def _read_text(path: Path, how: Reading, shape: tuple[int, ...]) -> Iterator[tuple[Kept, Array]]:
    with open(path, newline="", encoding="utf-8") as file:
        lines = csv.reader(file, delimiter=SEPARATORS[path.suffix.lower()])
        next(lines)
        for contig, start, end, name, strand, *numbers in lines:
            kept = Kept(contig, int(start), int(end), name, strand, bases=0)
            yield kept, np.array(numbers, np.float32).reshape(shape)
