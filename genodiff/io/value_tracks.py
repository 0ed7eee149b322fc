"""Values at the bases of a genome: bigWig (through pyBigWig), bedGraph and wiggle, read strictly.

A base that a file says nothing of is NaN. A bedGraph is BED with the value in the fourth column. A
bigWig is known by its first bytes and a wiggle by its first line, not by their names.

bigWig files written together, block by block: one value a base, none where it is not known.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import DataError, MachineError
from genodiff.io.bed import parse_bed_lines
from genodiff.io.diagnosis import BIGBED, BIGWIG
from genodiff.io.file_kinds import find_plain_path
from genodiff.io.input_file import name_input, open_input
from genodiff.io.regions import find_contig, refuse_contigs, warn_of_contigs
from genodiff.io.text_lines import RowReader, is_bed_comment, read_number, read_whole, split_lines

_STEPS = ("fixedStep", "variableStep")

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

    Raises `DataError` for a faulty row, two values at a base, and no value on `contigs`.
    """
    shown = name_input(path)
    with open_input(path) as source:
        blocks = source.blocks()
        head = next(blocks, b"")
        if head.startswith(BIGBED):
            raise DataError("is bigBed: intervals without values", file=shown, fix="give bigWig")
        is_bigwig = head.startswith(BIGWIG)
        if not is_bigwig:
            lines = split_lines(chain([head], blocks), "bigWig, bedGraph or wiggle", shown)
            above = next((one for one in lines if not is_bed_comment(one[1].strip())), None)
            lines = chain([] if above is None else [above], lines)
            is_wiggle = above is not None and above[1].split()[0] in _STEPS
            read = _read_wiggle if is_wiggle else _read_bedgraph
            found = read(lines, path, contigs)
    if is_bigwig:
        found = _read_bigwig(path, contigs)
    if not any(np.isfinite(values).any() for values in found.values()):
        what = "has no value on the genome's contigs: an empty track"
        raise DataError(what, file=shown, fix="give a track with values, or leave it out")
    return found


def open_bigwig(path: str | Path, contigs: Mapping[str, int]) -> tuple[Any, dict[str, str]]:
    """A bigWig, and its name of each of the `contigs`. Raises `DataError` for another genome's."""
    shown = name_input(path)
    with name_faults(path):
        file = import_bigwig().open(find_plain_path(path))
        lengths: dict[str, int] = file.chroms()
    means = {name: find_contig(name, contigs, shown) for name in lengths}
    called = {found: name for name, found in means.items() if found is not None}
    for known, name in called.items():
        if lengths[name] != contigs[known]:
            what = f"{known} has {lengths[name]:,} bases, and {contigs[known]:,} in the FASTA"
            raise DataError(what, file=shown, fix="give the genome that it was made for")
    if lengths and not called:
        raise refuse_contigs(next(iter(lengths)), contigs, shown)
    return file, called


@contextmanager
def name_faults(path: str | Path) -> Iterator[None]:
    """Make what pyBigWig raises a `DataError` with the file's name."""
    try:
        yield
    except RuntimeError as fault:
        what = f"cannot be read as bigWig: {fault}"
        raise DataError(what, file=name_input(path), fix="copy or make the file again") from None


def _read_bigwig(path: str | Path, contigs: Mapping[str, int]) -> Track:
    file, called = open_bigwig(path, contigs)
    warn_of_contigs(file.chroms(), contigs, name_input(path))
    with file, name_faults(path):
        return {
            name: np.asarray(file.values(called[name], 0, n, numpy=True), np.float32)
            for name, n in contigs.items()
            if name in called
        }


def _read_bedgraph(
    lines: Iterator[tuple[int, str]], path: str | Path, contigs: Mapping[str, int]
) -> Track:
    found: Track = {}
    shown = name_input(path)
    for row, fields in parse_bed_lines(path, lines, dict(contigs)):
        contig, start, end = row[:3]
        reader = RowReader(shown, row[-1])
        if len(fields) != 4:
            what = f"has {len(fields)} columns; bedGraph has 4"
            raise reader.fault(what, "give CONTIG, START, END and VALUE, separated by tabs")
        value = reader.read_number(fields[3], "value", "correct it, or remove the row")
        if contig not in found:
            found[contig] = np.full(contigs[contig], np.nan, np.float32)
        _put(found[contig], contig, start, end, value, reader)
    return found


def _put(
    values: NDArray[np.float32], contig: str, start: int, end: int, value: float, reader: RowReader
) -> None:
    inside = values[start:end]
    if np.isfinite(inside).any():
        at = start + int(np.flatnonzero(np.isfinite(inside))[0])
        what = f"base {at} of {contig} (0-based) has two values"
        raise reader.fault(what, "keep one of the rows that lie on one another")
    inside[:] = value


def _read_wiggle(
    lines: Iterator[tuple[int, str]], path: str | Path, contigs: Mapping[str, int]
) -> Track:
    found: Track = {}
    contig, start, step, span, fixed = "", 0, 0, 1, False
    shown = name_input(path)
    for line, text in lines:
        reader, words = RowReader(shown, line), text.split()
        if is_bed_comment(text.strip()):
            continue
        if words[0] in _STEPS:
            given = dict(word.partition("=")[::2] for word in words[1:])
            contig, fixed = (
                reader.find_contig(given.get("chrom", ""), contigs),
                words[0] == _STEPS[0],
            )
            least = {"start": "" if fixed else "1", "step": "1", "span": "1"}
            numbers = [read_whole(given.get(name, value)) for name, value in least.items()]
            if not all(numbers):
                what = f"'{text[:60]}' is no start of a block"
                raise reader.fault(what, "start, step, span count from 1")
            start, step, span = (one or 1 for one in numbers)
            found.setdefault(contig, np.full(contigs[contig], np.nan, np.float32))
            continue
        first = start if fixed else read_whole(words[0])
        value = read_number(words[-1])
        if len(words) != 2 - fixed or not first or value is None:
            what = f"'{text[:60]}' is no row of {_STEPS[not fixed]}"
            raise reader.fault(
                what, "give a finite number" if fixed else "give a position and a number"
            )
        if first - 1 + span > contigs[contig]:
            what = f"base {first - 1 + span} is past the end of {contig} ({contigs[contig]})"
            raise reader.fault(what, "wiggle counts from 1: correct it, or give the right FASTA")
        _put(found[contig], contig, first - 1, first - 1 + span, value, reader)
        start += step
    return found


SUFFIX = ".bw"
_VALUES = 1 << 9  # of a block of a bigWig: closing one holds 100,000 blocks at a time

_MANY = 5_000
"""Contigs above which a file has no zoom levels: each looks every contig up from the first on, and
what is seen of a scaffold needs none."""

Add = Callable[[str, str, int, NDArray[np.float32]], None]
"""Adds (name, contig, start, values) behind what the file of that name has; NaN is no value."""


def sort_contigs(contigs: Mapping[str, int]) -> list[str]:
    """The names in the order of their bytes, as a bigWig's index needs them."""
    return sorted(contigs, key=str.encode)


@contextmanager
def write_bigwigs(folder: Path, names: Iterable[str], contigs: Mapping[str, int]) -> Iterator[Add]:
    """NAME.bw for each of `names`, with all contigs in the header. Raises `MachineError`."""
    bigwig = import_bigwig()
    header = [(name, contigs[name]) for name in sort_contigs(contigs)]
    files: dict[str, Any] = {}
    plain = find_plain_path(folder)

    def add(name: str, contig: str, start: int, values: NDArray[np.float32]) -> None:
        values = np.ascontiguousarray(values, np.float32)
        for first, last in _find_runs(~np.isnan(values)):
            files[name].addEntries(contig, start + first, values=values[first:last], span=1, step=1)

    try:
        for name in names:
            files[name] = bigwig.open(f"{plain}/{name}{SUFFIX}", "w")
            files[name].addHeader(header, maxZooms=0 if len(header) > _MANY else 10)
        yield add
        while files:  # one after the other: closing takes memory, some bytes for each base
            files.popitem()[1].close()
    except RuntimeError as fault:
        what = f"a bigWig cannot be written: {fault}"
        fix = "see that the disk has room, and try again"
        raise MachineError(what, file=folder, fix=fix) from None
    finally:
        for file in files.values():
            file.close()


def _find_runs(known: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """First and last + 1 of the stretches of values, each of at most `_VALUES`."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]])))
    for first, last in edges.reshape(-1, 2).tolist():
        for start in range(first, last, _VALUES):
            yield start, min(start + _VALUES, last)
