"""bigWig files written together, block by block: one value a base, none where it is not known."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import MachineError
from genodiff.io.file_names import find_plain_path
from genodiff.io.value_tracks import import_bigwig

SUFFIX = ".bw"
_VALUES = 1 << 9  # of a block of a bigWig: closing one holds 100,000 blocks at a time

Add = Callable[[str, str, int, NDArray[np.float32]], None]
"""Adds (name, contig, start, values) behind what the file of that name has; NaN is no value."""


def sort_contigs(contigs: Mapping[str, int]) -> list[str]:
    """The names in the order of their bytes, as a bigWig's index needs them."""
    return sorted(contigs, key=str.encode)


@contextmanager
def write_bigwigs(folder: Path, names: Iterable[str], contigs: Mapping[str, int]) -> Iterator[Add]:
    """NAME.bw for each of `names`, with all contigs in the header.

    Raises `MachineError` where pyBigWig is missing or a file cannot be written.
    """
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
            files[name].addHeader(header)
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
