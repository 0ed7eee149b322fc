"""What a plan reads: the beginning of a large file, from which the rest is forecast by its size.

While a block of `planning` runs, nothing is written for later: a genome without an index is held
in memory as far as `genome_head` goes, of variants the first `VARIANTS` are read, and of annotation
and intervals the first `TEXT_BYTES`. Tables of labels are read to their end: their classes, and so
what is fitted, may stand anywhere.
"""

import logging
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
TEXT_BYTES = 1 << 23
_LONG = ("BED", "GFF3", "GenBank", "EMBL", "alignment")
_planning: ContextVar[set[str] | None] = ContextVar("planning", default=None)
_log = logging.getLogger("genodiff")


@contextmanager
def planning(plan: bool = True) -> Iterator[None]:
    """Read as a plan does while the block runs, if this is a `plan`."""
    token = _planning.set(set() if plan else _planning.get())
    try:
        yield
    finally:
        _planning.reset(token)


def is_planning() -> bool:
    """Whether a plan is being made."""
    return _planning.get() is not None


def is_cut(source: InputFile) -> bool:
    """Whether a plan has read enough of a genome that goes on."""
    return is_planning() and GENOME_BYTES <= source.size < source.stat.st_size


def cut_text(size: int, kind: str, shown: str) -> bool:
    """Whether a plan that has read `size` bytes of a text goes no further, which it says once.

    Variants are counted by their reader, and GenBank and EMBL are genomes, too.
    """
    cut = _planning.get()
    most = GENOME_BYTES if kind in ("GenBank", "EMBL") else TEXT_BYTES
    if cut is None or size < most or not any(name in kind for name in _LONG):
        return False
    if shown not in cut:
        cut.add(shown)
        _log.warning("%s: the plan reads its first %.0f MB", shown, size / 1e6)
    return True


def was_cut(shown: str) -> bool:
    """Whether a plan has read the beginning of a text alone."""
    return shown in (_planning.get() or ())


def count_lines(path: str | Path) -> int:
    """About how many lines a text file has, by its first blocks and its size."""
    with open_input(path) as source:
        newlines = sum(block.count(b"\n") for block in islice(source.blocks(), 2))
        return round(newlines * source.stat.st_size / max(1, source.size))
