"""The longest stretch of a sequence that the training genome holds base for base."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.memory.memory import Memory
from genodiff.memory.tables import KmerTable
from genodiff.memory.text import Codes, turn_codes
from genodiff.words import pack_words


class TrainMatch(NamedTuple):
    """`length` bases from place `at` of a sequence stand at `start` of `contig`, on `strand`;
    positions are 0-based.
    """

    length: int
    at: int
    contig: str
    start: int
    strand: str


def find_longest_match(
    memory: Memory, codes: Codes, drawn: NDArray[np.bool_] | None = None
) -> TrainMatch | None:
    """The longest exact match of a sequence, on either strand; None where none has k bases.

    k is that of the memory's table. With `drawn` (L,), only matches that hold a drawn base count.
    Of equal ones the first is taken, the forward strand's before. It takes 32 bytes for each pair
    of equal k-mers.
    """
    best: TrainMatch | None = None
    for strand in "+-":
        x = codes if strand == "+" else turn_codes(codes)
        open_here = np.ones(len(x), np.bool_) if drawn is None else drawn
        open_here = open_here if strand == "+" else open_here[::-1]
        at, place, length = _find_maximal(memory, x)
        before = np.concatenate(([0], np.cumsum(open_here)))
        holds = before[at + length] > before[at]
        at, place, length = at[holds], place[holds], length[holds]
        if len(at) and (best is None or length.max() > best.length):
            first = np.lexsort((place, at, -length))[0]
            n, i = int(length[first]), int(at[first])
            contig, start = memory.text.locate(int(place[first]))
            best = TrainMatch(n, i if strand == "+" else len(x) - i - n, contig, start, strand)
    return best


def _find_maximal(memory: Memory, x: Codes) -> tuple[NDArray[np.int64], ...]:
    """Every match that cannot be longer: its places in the sequence and the text, its length."""
    table = memory.table
    if not isinstance(table, KmerTable):
        raise TypeError("matches are found in a memory with a table of every place")
    words, whole = pack_words(x, table.k)
    at = np.flatnonzero(whole)
    first = table.start[words[at]].astype(np.int64)
    counts = table.start[words[at] + 1].astype(np.int64) - first
    rows = np.repeat(at, counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    place = table.at[np.repeat(first, counts) + within].astype(np.int64)
    # A match of n bases is n - k + 1 equal k-mers in a row on one diagonal.
    order = np.lexsort((rows, place - rows))
    rows, place = rows[order], place[order]
    breaks = (np.diff(rows) != 1) | (np.diff(place) != 1)
    begins = np.flatnonzero(np.append(True, breaks)) if len(rows) else np.zeros(0, np.int64)
    length = np.diff(np.append(begins, len(rows))) + table.k - 1
    return rows[begins], place[begins], length
