"""Windows of a genome with labels: a scored core, and context on both sides that is read only.

    context | core | context        cores tile each interval from its start, without overlap

Every window has core + 2 · context bases. Beyond a contig's ends stands N, and no label is known
there, nor in the context, nor behind an interval's end: a labelled base is in one core. Places are
0-based and half-open.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import DNA
from genodiff.annotation.base_labels import BaseLabels
from genodiff.errors import DataError
from genodiff.io.faidx import Genome
from genodiff.runs.known_contigs import LetterSource

Span = tuple[str, int, int]
"""(contig, start, end)"""
Scored = tuple[Span, NDArray[Any]]
"""A core, and the scores of its bases."""


class BaseBatch(NamedTuple):
    """Ids (B, L) of windows, and their labels (B, L), of values (B, L, tracks)."""

    ids: NDArray[np.int64]
    labels: NDArray[Any]


class BaseWindows:
    """The windows of intervals, by number; `cores` are the bases of each that are scored."""

    def __init__(
        self,
        genome: Genome,
        labels: BaseLabels,
        intervals: Iterable[Span],
        *,
        core: int,
        context: int,
    ) -> None:
        """Windows without a known label are left out. Raises `DataError` where none is left."""
        self.genome, self.labels = genome, labels
        self.core, self.context = core, context
        self.cores = [
            span for span in tile_cores(intervals, core) if labels.known(labels.cut(*span)).any()
        ]
        if not self.cores:
            fix = "give labels of these contigs, or other intervals"
            raise DataError("no base of the intervals has a label", file=genome.path, fix=fix)

    def __len__(self) -> int:
        return len(self.cores)

    def collate(
        self, numbers: NDArray[np.integer], turned: NDArray[np.bool_] | None = None
    ) -> BaseBatch:
        """The windows of these numbers; those that are `turned` as their reverse complements."""
        pairs = []
        for row, number in enumerate(numbers.tolist()):
            contig, start, end = self.cores[number]
            place = contig, start - self.context, start + self.core + self.context
            ids, labels = read_window(self.genome, place), self.labels.cut(*place)
            labels[: self.context] = labels[self.context + end - start :] = self.labels.blank
            if turned is not None and turned[row]:
                ids, labels = DNA.rc(ids), self.labels.turn(labels)
            pairs.append((ids, labels))
        ids, labels = (np.stack(some) for some in zip(*pairs, strict=True))
        return BaseBatch(ids.astype(np.int64), labels)


def subtract(intervals: Iterable[Span], others: Iterable[Span]) -> list[Span]:
    """What of `intervals` no other has, in their order.

    >>> subtract([("chr1", 0, 9)], [("chr1", 2, 4), ("chr2", 0, 9)])
    [('chr1', 0, 2), ('chr1', 4, 9)]
    """
    taken, found = sorted(others), []
    for contig, start, end in intervals:
        for _, first, last in (one for one in taken if one[0] == contig):
            if start < min(first, end):
                found.append((contig, start, min(first, end)))
            start = max(start, last)
        if start < end:
            found.append((contig, start, end))
    return found


def join_cores(blocks: Iterable[Scored]) -> Iterator[Scored]:
    """Cores that touch as one, held in memory until they end."""
    first: Span | None = None
    end, held = 0, list[NDArray[Any]]()
    for (contig, start, last), scores in blocks:
        if first is None or (contig, start) != (first[0], end):
            if first is not None:
                yield (first[0], first[1], end), np.concatenate(held)
            first, held = (contig, start, last), []
        held.append(scores)
        end = last
    if first is not None:
        yield (first[0], first[1], end), np.concatenate(held)


def tile_cores(intervals: Iterable[Span], core: int) -> Iterator[Span]:
    """Stretches of `core` bases from the start of each interval; the last may be shorter.

    >>> list(tile_cores([("chr1", 3, 8)], 3))
    [('chr1', 3, 6), ('chr1', 6, 8)]
    """
    for contig, start, end in intervals:
        for first in range(start, end, core):
            yield contig, first, min(first + core, end)


def read_window(genome: LetterSource, place: Span) -> NDArray[np.uint8]:
    """The ids of a stretch; N beyond the contig's ends."""
    contig, start, end = place
    first, last = max(start, 0), min(end, genome.contigs[contig])
    letters = b"N" * (first - start) + genome.fetch(contig, first, last) + b"N" * (end - last)
    return DNA.encode(letters)
