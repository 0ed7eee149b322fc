"""What a plan reads: the beginning of a large file, from which the rest is forecast by its size.

While a block of `planning` runs, nothing is written for later: a genome without an index is held
in memory as far as `genome_head` goes, and of variants the first `VARIANTS` are read.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from pathlib import Path

from genodiff.io.input_file import InputFile, open_input

GENOME_BYTES = 1 << 25
"""Read of a genome that has no index or store, as it lies on the disk."""
VARIANTS = 5_000
"""Records."""
_planning: ContextVar[bool] = ContextVar("planning", default=False)


@contextmanager
def planning(plan: bool = True) -> Iterator[None]:
    """Read as a plan does while the block runs, if this is a `plan`."""
    token = _planning.set(plan or _planning.get())
    try:
        yield
    finally:
        _planning.reset(token)


def is_planning() -> bool:
    """Whether a plan is being made."""
    return _planning.get()


def is_cut(source: InputFile) -> bool:
    """Whether a plan has read enough of a genome that goes on."""
    return is_planning() and GENOME_BYTES <= source.size < source.stat.st_size


def count_lines(path: str | Path) -> int:
    """About how many lines a text file has, by its first blocks and its size."""
    with open_input(path) as source:
        newlines = sum(block.count(b"\n") for block in islice(source.blocks(), 2))
        return round(newlines * source.stat.st_size / max(1, source.size))
