"""Shards of embeddings put together: the file that one run writes, by the code that writes it."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from genodiff.embedding.embed import Array, Reading
from genodiff.embedding.embedding_files import Kept, Written, name_columns, write_kept
from genodiff.embedding.embedding_format import SEPARATORS
from genodiff.io.file_kinds import find_plain_path

_ROWS = 4096  # of a table at a time


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
    yield from _cut_rows(columns, how)


def _cut_rows(columns: dict[str, Any], how: Reading) -> Iterator[tuple[Kept, Array]]:
    numbers, unpooled = columns["embeddings"], how.pool == "none"
    columns = {name: column.tolist() for name, column in columns.items() if name != "embeddings"}
    for i, contig in enumerate(columns["contig"]):
        start, end, name, strand = (columns[key][i] for key in ("start", "end", "name", "strand"))
        place = contig, start, end, name, strand
        if unpooled:
            first, last = columns["offsets"][i : i + 2]
            yield Kept(*place, bases=last - first), numbers[first:last]
        else:
            yield Kept(*place, bases=0), numbers[i]


def _read_parquet(path: Path, how: Reading, shape: tuple[int, ...]) -> Iterator[tuple[Kept, Array]]:
    names, width = name_columns(how), shape[-1]
    scan = pl.scan_parquet(find_plain_path(path))
    total = int(scan.select(pl.len()).collect().item())
    for first in range(0, total, _ROWS):
        table = scan.slice(first, _ROWS).collect()
        for row in table.iter_rows(named=True):
            parts = [np.array(row[name], np.float32).reshape(-1, width) for name in names]
            numbers = np.stack(parts, 1)
            bases = len(numbers) if how.pool == "none" else 0
            place = (row["contig"], row["start"], row["end"], row["name"], row["strand"])
            yield Kept(*place, bases=bases), numbers.reshape(*((bases,) if bases else ()), *shape)


def _read_text(path: Path, how: Reading, shape: tuple[int, ...]) -> Iterator[tuple[Kept, Array]]:
    with open(path, newline="", encoding="utf-8") as file:
        lines = csv.reader(file, delimiter=SEPARATORS[path.suffix.lower()])
        next(lines)
        for contig, start, end, name, strand, *numbers in lines:
            kept = Kept(contig, int(start), int(end), name, strand, bases=0)
            yield kept, np.array(numbers, np.float32).reshape(shape)
