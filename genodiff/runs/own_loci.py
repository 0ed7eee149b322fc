"""Where windows of a genome stand in a memory: the loci that they must not read.

A contig of a genome is the memory's own where it has the same bases, whatever the file, the name
and the case. A window of such a contig leaves its own locus out, on both strands.
"""

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from genodiff.alphabet import DNA, SOFT
from genodiff.data.store import Store
from genodiff.memory.memory import NOWHERE
from genodiff.runs.training_memory import TrainMemory, leave_out_locus

Place = tuple[str, int, int]
"""A contig, and start and end of a window on it (0-based, half-open)."""

_PIECE = 1 << 22  # bases that are compared at a time


class LetterSource(Protocol):
    """Random access to letters, as `io.faidx.Genome` gives it."""

    @property
    def contigs(self) -> Mapping[str, int]: ...

    def fetch(self, contig: str, start: int, end: int, /) -> bytes: ...


class OwnLoci:
    """A memory, and the contigs of a genome that it knows; each is compared when it is asked for.

    `genome` None: nothing is known of where windows are from, and nothing is left out.
    """

    def __init__(self, found: TrainMemory, genome: LetterSource | None) -> None:
        self.memory, self.told = found.memory, found.told
        self._store, self._genome = found.store, genome
        self._names: dict[str, str | None] = {}

    def leave_out(self, place: Place | None) -> tuple[int, int]:
        """The interval of the memory's text that the window at `place` must not read."""
        if place is None or self._genome is None:
            return NOWHERE
        contig, start, end = place
        name = self._name(contig)
        return NOWHERE if name is None else leave_out_locus(self.memory, name, start, end)

    def _name(self, contig: str) -> str | None:
        """The name that a contig of the genome has in the memory; None where it is not there."""
        if contig not in self._names:
            assert self._genome is not None
            store, length = self._store, self._genome.contigs[contig]
            alike = np.flatnonzero(store.lengths == length).tolist()
            # One of the same name first: of several with the same bases it is the right one.
            alike.sort(key=lambda i: store.names[i] != contig)
            same = (store.names[i] for i in alike if _has_bases(store, i, self._genome, contig))
            self._names[contig] = next(same, None)
        return self._names[contig]


def _has_bases(store: Store, number: int, genome: LetterSource, contig: str) -> bool:
    length, first = genome.contigs[contig], int(store.offsets[number])
    for start in range(0, length, _PIECE):
        end = min(start + _PIECE, length)
        there = store.flat[first + start : first + end] & ~np.uint8(SOFT)
        if not np.array_equal(DNA.encode(genome.fetch(contig, start, end)), there):
            return False
    return True
