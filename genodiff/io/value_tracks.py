"""Values at the bases of a genome: bigWig (through pyBigWig) and bedGraph, read strictly.

A base that a file says nothing of is NaN. A bedGraph is BED with the value in the fourth column. A
bigWig is known by its first bytes, not by its name.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import DataError, MachineError
from genodiff.io.bed import parse_bed_lines
from genodiff.io.cells import read_number
from genodiff.io.file_names import find_plain_path
from genodiff.io.input_file import name_input, open_input
from genodiff.io.regions import refuse_contigs
from genodiff.io.text_lines import split_lines

_BIGWIG = (b"\x26\xfc\x8f\x88", b"\x88\x8f\xfc\x26")
_BIGBED = (b"\xeb\xf2\x89\x87", b"\x87\x89\xf2\xeb")

Track = dict[str, NDArray[np.float32]]
"""Values by contig, one for each base."""


def import_bigwig() -> Any:
    """pyBigWig. Raises `MachineError` where it is missing."""
    try:
        import pyBigWig
    except ImportError:
        fix = "pip install 'genodiff[tracks]', or use bedGraph (--format bedgraph)"
        raise MachineError("bigWig needs the package pyBigWig", fix=fix) from None
    return pyBigWig


def read_values(path: str | Path, contigs: Mapping[str, int]) -> Track:
    """The values of a file on the `contigs` (name → length) that it has; NaN where it has none.

    Raises `DataError` for a faulty row, two values at a base, contigs of another genome, and for a
    file without a value on `contigs`.
    """
    shown = name_input(path)
    with open_input(path) as source:
        blocks = source.blocks()
        head = next(blocks, b"")
        if head[:4] in _BIGBED:
            raise DataError("is bigBed: intervals without values", file=shown, fix="give bigWig")
        is_bigwig = head[:4] in _BIGWIG
        if not is_bigwig:
            lines = split_lines(_chain(head, blocks), "bigWig or bedGraph", shown)
            found = _read_bedgraph(lines, path, contigs)
    if is_bigwig:
        found = _read_bigwig(path, contigs)
    if not any(np.isfinite(values).any() for values in found.values()):
        what = "has no value on the genome's contigs: an empty track"
        raise DataError(what, file=shown, fix="give a track with values, or leave it out")
    return found


def _chain(head: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield from blocks


def _read_bigwig(path: str | Path, contigs: Mapping[str, int]) -> Track:
    shown = name_input(path)
    try:
        file = import_bigwig().open(find_plain_path(path))
        with file:
            lengths: dict[str, int] = file.chroms()
            for name in (known := lengths.keys() & contigs.keys()):
                if lengths[name] != contigs[name]:
                    what = f"{name} has {lengths[name]:,} bases, and {contigs[name]:,} in the FASTA"
                    raise DataError(what, file=shown, fix="give the genome that it was made for")
            if lengths and not known:
                raise refuse_contigs(next(iter(lengths)), contigs, shown)
            return {
                name: np.asarray(file.values(name, 0, contigs[name], numpy=True), np.float32)
                for name in contigs
                if name in known
            }
    except RuntimeError as fault:
        what = f"cannot be read as bigWig: {fault}"
        raise DataError(what, file=shown, fix="copy or make the file again") from None


def _read_bedgraph(
    lines: Iterator[tuple[int, str]], path: str | Path, contigs: Mapping[str, int]
) -> Track:
    found: Track = {}
    for row, fields in parse_bed_lines(path, lines, dict(contigs)):
        contig, start, end, line = row[0], row[1], row[2], row[-1]

        def fault(what: str, fix: str, line: int = line) -> DataError:
            return DataError(what, file=name_input(path), line=line, fix=fix)

        if len(fields) != 4:
            what = f"has {len(fields)} columns; bedGraph has 4"
            raise fault(what, "give CONTIG, START, END and VALUE, separated by tabs")
        value = read_number(fields[3])
        if value is None:
            raise fault(f"'{fields[3]}' is no value", "write a finite number, or remove the row")
        if contig not in found:
            found[contig] = np.full(contigs[contig], np.nan, np.float32)
        inside = found[contig][start:end]
        if np.isfinite(inside).any():
            at = start + int(np.flatnonzero(np.isfinite(inside))[0])
            what = f"base {at} of {contig} (0-based) has two values"
            raise fault(what, "keep one of the rows that lie on one another")
        inside[:] = value
    return found
