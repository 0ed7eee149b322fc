"""What a plan reads: the beginning of a large file, from which the rest is forecast by its size.

While a block of `planning` runs, nothing is written for later: a genome without an index is held
in memory as far as `GenomeHead` goes, of variants the first `VARIANTS` are read, of annotation,
intervals and tables the first `TEXT_BYTES`, and of a folder of files the first `FILES`. Classes
that stand further down in a table of labels are not known to its plan.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from genodiff.io.input_file import InputFile, open_input

GENOME_BYTES = 1 << 25
"""Read of a genome that has no index or store, as it lies on the disk."""
VARIANTS = 5_000
"""Records."""
TEXT_BYTES = 1 << 23
FILES = 200
ROWS = 10_000
"""Of parquet."""
_LONG = ("a table", "BED", "GFF3", "GenBank", "EMBL", "alignment")
_planning: ContextVar[dict[str, float] | None] = ContextVar("planning", default=None)
_log = logging.getLogger("genodiff")


@contextmanager
def planning(plan: bool = True) -> Iterator[None]:
    """Read as a plan does while the block runs, if this is a `plan`."""
    token = _planning.set({} if plan else _planning.get())
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


def cut_text(size: int, kind: str, shown: str, source: InputFile | None = None) -> bool:
    """Whether a plan that has read `size` bytes of a text goes no further, which it says once.

    `source` tells the share of the file that it is. Variants are counted by their reader, and
    GenBank and EMBL are genomes, too.
    """
    cut = _planning.get()
    most = GENOME_BYTES if kind in ("GenBank", "EMBL") else TEXT_BYTES
    if cut is None or size < most or not any(name in kind for name in _LONG):
        return False
    if source is not None and source.size >= source.stat.st_size:
        return False  # this was its last block
    share = 0.0 if source is None else source.size / source.stat.st_size
    return note_cut(shown, share, f"its first {size / 1e6:.0f} MB")


def cut_records(source: InputFile, offset: int) -> bool:
    """Whether a plan goes no further than the record that is next, at byte `offset` of the text."""
    if not is_cut(source):
        return False
    read = source.size if source.compression != "none" else offset
    return note_cut(source.shown, read / source.stat.st_size, f"its first {read / 1e6:.0f} MB")


def note_cut(shown: str, share: float, what: str) -> bool:
    """Keep, and say once, that a plan reads a `share` of a text: `what`. False of no plan."""
    cut = _planning.get()
    if cut is None:
        return False
    if shown not in cut:
        _log.warning("%s: the plan reads %s", shown, what)
    cut[shown] = share
    return True


def was_cut(shown: str = "") -> bool:
    """Whether a plan has read the beginning of a text alone; without a name, of any."""
    cut = _planning.get() or {}
    return shown in cut if shown else bool(cut)


def find_share(shown: str) -> float:
    """The share of a text that has been read: below 1 where a plan has cut it."""
    return (_planning.get() or {}).get(shown) or 1.0


def count_letters(path: str | Path) -> int:
    """About how many bytes a file has, decompressed, by its beginning and its size."""
    return _extrapolate(path, len)


def count_lines(path: str | Path) -> int:
    """About how many lines a text file has, by its beginning and its size."""
    return _extrapolate(path, lambda block: block.count(b"\n"))


def _extrapolate(path: str | Path, count: Callable[[bytes], int]) -> int:
    """What `count` tells of the bytes that the first read of a file gives, for all of the file."""
    with open_input(path) as source:
        found, taken = 0, 0
        for block in source.blocks():
            taken = taken or source.size
            if source.size > taken:
                break
            found += count(block)
        return round(found * source.stat.st_size / max(1, taken))
