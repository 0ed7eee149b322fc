"""Pairwise alignments of a genome with others, from PAF, UCSC chain or MAF, streamed.

Each format is read into `AlignedPair`s: two loci and the ungapped blocks between them. Coordinates
are 0-based and half-open. Those of a locus on strand `-` count from the other end of its sequence,
as in MAF and chain files. The order of the file decides nothing: a reader sorts the blocks.

A file claims bases (rows of MAF, mismatches of `cs`) or that two bases are equal (`cs`, and `=` and
`X` of `cg`). The claims are kept with the line, so that a reader who has the sequences can name the
first that is wrong.
"""

import re
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import LETTER_CODES
from genodiff.errors import DataError, printable
from genodiff.io.input_file import name_input
from genodiff.io.text_lines import read_text_lines
from genodiff.registry import Registry

UNKNOWN = 4
"""The code of a base of which a file claims nothing."""

Blocks = NDArray[np.int64]
Lines = Iterator[tuple[int, str]]


class AlignedLocus(NamedTuple):
    """An interval of a sequence of `size` bases, on the sequence's `strand` (0 forward, 1 `-`)."""

    name: str
    size: int
    start: int
    end: int
    strand: int


class AlignedPair(NamedTuple):
    """Two loci, `blocks` (N, 3): start in each and length; and what the file claims of the bases.

    `bases` (2, columns): the codes of both in the blocks, 4 where nothing is claimed; `equal`
    (columns,): 1 where a column is claimed to hold equal bases, 0 different ones, 2 nothing.
    `rows`: how many sequences the block has in the file. `whole`: the codes of the second locus
    without its gaps, where the file has them.
    """

    line: int
    top: AlignedLocus
    low: AlignedLocus
    blocks: Blocks
    bases: NDArray[np.uint8] | None = None
    equal: NDArray[np.uint8] | None = None
    rows: int = 2
    whole: NDArray[np.uint8] | None = None

    def exchange(self) -> "AlignedPair":
        """The same pair with the other sequence first."""
        bases = None if self.bases is None else self.bases[::-1]
        blocks = self.blocks[:, [1, 0, 2]]
        return self._replace(top=self.low, low=self.top, blocks=blocks, bases=bases)


class AlignmentFormat(NamedTuple):
    """A format: how its first line of content looks, and its reader of (numbered lines, name)."""

    begins: re.Pattern[str]
    read: Callable[[Lines, str], Iterator[AlignedPair]]


ALIGNMENT_FORMATS: Registry[AlignmentFormat] = Registry(
    "alignment format", package="genodiff.io.alignment_formats"
)


def find_alignment_format(path: str | Path) -> str | None:
    """The name of the format of an alignment; None for any other file."""
    try:
        return _open(path)[0]
    except DataError:
        return None


def read_alignments(path: str | Path) -> Iterator[AlignedPair]:
    """The pairs of an alignment file. Raises `DataError` naming the line that is wrong."""
    shown = name_input(path)
    name, lines = _open(path)
    if name is None:
        what = f"is no alignment that can be read ({', '.join(ALIGNMENT_FORMATS)})"
        fix = "give PAF with cg or cs (minimap2 -c), a UCSC chain, or MAF (of TAF: taffy view -m)"
        raise DataError(what, file=shown, fix=fix)
    found = False
    for pair in ALIGNMENT_FORMATS[name].read(lines, shown):
        found = True
        yield pair
    if not found:
        raise DataError("holds no alignment", file=shown, fix="give a file with aligned sequences")


def _open(path: str | Path) -> tuple[str | None, Lines]:
    lines, head = read_text_lines(path, "an alignment"), []
    for number, text in lines:
        head.append((number, text))
        if text.strip() and (text[0] != "#" or text.startswith("##maf")):
            for name, one in ALIGNMENT_FORMATS.items():
                if one.begins.match(text):
                    return name, chain(head, lines)
            break
    return None, lines


def encode_letters(text: str) -> NDArray[np.uint8]:
    """The codes of letters, 4 for any that is not A, C, G or T in either case."""
    return LETTER_CODES[np.frombuffer(text.encode("ascii", "replace"), np.uint8)]


def refuse_alignment(what: str, shown: str, line: int) -> DataError:
    """The error for a line of an alignment."""
    return DataError(what, file=shown, line=line, fix="make the alignment again")


def read_numbers(fields: list[str], shown: str, line: int) -> list[int]:
    """Fields as numbers that are not negative. Raises `DataError`."""
    for one in fields:
        if not (one.isascii() and one.isdecimal() and len(one) < 16):
            what = f"'{printable(one, 20)}' is no position or length"
            raise refuse_alignment(what, shown, line)
    return [int(one) for one in fields]


def read_strand(text: str, shown: str, line: int) -> int:
    """0 for +, 1 for -. Raises `DataError`."""
    if text not in ("+", "-"):
        raise refuse_alignment(f"'{printable(text, 20)}' is no strand", shown, line)
    return "+-".index(text)


def check_locus(locus: AlignedLocus, shown: str, line: int) -> AlignedLocus:
    """`locus`, if it lies within its sequence. Raises `DataError`."""
    if not locus.start <= locus.end <= locus.size:
        what = f"{locus.start:,}-{locus.end:,} is not within {locus.name} ({locus.size:,} bases)"
        raise refuse_alignment(what, shown, line)
    return locus
