"""Parquet tables of sequences, as Hugging Face `datasets` reads and writes them.

In: a column `sequence` (or `seq`, `text`, `dna`), and one that names each row: `name`, `id` or
`contig`, else rows are called row1, row2, ... With `genome`, `contig`, `start` and `end`, as
written here, a row is called GENOME/CONTIG:START-END.

Out: a folder of SPLIT-00000.parquet, ... with a row for each window: genome, species, contig,
start, end (0-based, half-open) and sequence. `datasets.load_dataset("parquet",
data_files={"train": "FOLDER/train-*.parquet"})` reads it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from genodiff.alphabet import DNA, SOFT
from genodiff.data.dna_store import Content, make_encoding_table
from genodiff.data.dna_windows import DnaWindows
from genodiff.errors import DataError
from genodiff.io import atomic
from genodiff.io.fasta import check_letters
from genodiff.io.input_file import InputFile
from genodiff.io.tables import PARQUET, ParquetTable

_SEQUENCE = ("sequence", "seq", "text", "dna")
_NAME = ("name", "id", "contig")
_PLACE = ("genome", "contig", "start", "end")
BASES = 1 << 26
"""Bases in a file that is written."""


def read_parquet_contents(path: Path, source: InputFile) -> Iterator[Content]:
    """The rows of a table as contigs, hashed on the way. Raises `DataError` naming the row."""
    for _ in source.blocks():
        pass  # its hash; polars reads the file by itself
    parquet = ParquetTable(path)
    columns = parquet.schema.names()
    sequence = next((name for name in _SEQUENCE if name in columns), None)
    if sequence is None:
        what = f"has no column 'sequence' (it has {', '.join(columns[:8])})"
        raise DataError(what, file=path, fix="call the column of DNA 'sequence'")
    label = next((name for name in _NAME if name in columns), None)
    placed = set(_PLACE) <= set(columns)
    wanted = list(dict.fromkeys([sequence, *(_PLACE if placed else [label] if label else [])]))
    table, seen = make_encoding_table(), set[str]()
    for row, cells in parquet.read_rows(wanted):
        values = dict(zip(wanted, cells, strict=True))
        name = _name_row(values, label, placed, row)
        letters = values[sequence]
        if not isinstance(letters, str) or not letters:
            raise DataError(f"row {row} has no sequence", file=path, fix="leave the row out")
        if name in seen:
            what = f"row {row} is called {name[:80]}, as one before it"
            raise DataError(what, file=path, fix="name each row differently")
        seen.add(name)
        data = letters.encode("ascii", "replace")
        check_letters(data, name, str(path))
        yield name
        exact = len(data.translate(None, b"ACGTNacgtn"))
        yield np.frombuffer(data.translate(table), np.uint8), exact


def _name_row(values: dict[str, Any], label: str | None, placed: bool, row: int) -> str:
    if placed:
        return f"{values['genome']}/{values['contig']}:{values['start']}-{values['end']}"
    words = [] if label is None or values[label] is None else str(values[label]).split()
    return words[0] if words else f"row{row}"


def write_windows(windows: DnaWindows, genomes: list[dict[str, Any]], folder: Path) -> int:
    """Write the windows of a split as tables, SPLIT-00000.parquet, ...; how many rows there are.

    Soft-masked bases are in lower case. Memory for `BASES` at a time. Raises `MachineError`.
    """
    letters = np.zeros(256, np.uint8)
    for letter in "ACGTN":
        at = int(DNA.encode(letter)[0])
        letters[at], letters[at | SOFT] = ord(letter), ord(letter.lower())
    starts, lengths = windows.flat_start, windows.length
    per_file = max(1, BASES // windows.seq_len)
    species = {g["name"]: g["species"] for g in genomes}
    for number, first in enumerate(range(0, len(windows), per_file)):
        rows = slice(first, first + per_file)
        data = letters[windows.gather(starts[rows], lengths[rows], 0)]
        names = [windows.store.names[c] for c in windows.contig_index[rows]]
        genome = [name.partition("/")[0] for name in names]
        begin, size = windows.start[rows], lengths[rows]
        frame = pl.DataFrame(
            {
                "genome": genome,
                "species": [species[g] for g in genome],
                "contig": [name.partition("/")[2] for name in names],
                "start": begin,
                "end": begin + size,
                "sequence": [
                    row[:n].tobytes().decode("ascii")
                    for row, n in zip(data, size.tolist(), strict=True)
                ],
            }
        )
        with atomic.open_atomic(folder / f"{windows.split}-{number:05d}{PARQUET}") as out:
            frame.write_parquet(out)
    return len(windows)
