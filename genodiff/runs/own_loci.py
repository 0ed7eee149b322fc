"""Where windows of a genome stand in a memory: the loci that they must not read.

A contig of a genome is the memory's own where it has the same bases (`known_contigs.py`). A window
of such a contig leaves its own locus out, with its length on either side, on both strands.
"""

from genodiff.memory.memory import NOWHERE
from genodiff.runs.known_contigs import LetterSource
from genodiff.runs.training_memory import TrainMemory, leave_out_locus

Place = tuple[str, int, int]
"""A contig, and start and end of a window on it (0-based, half-open)."""


class OwnLoci:
    """A memory, and the contigs of a genome that it knows; each is looked up when it is asked for.

    `genome` None: nothing is known of where windows are from, and nothing is left out.
    """

    def __init__(self, found: TrainMemory, genome: LetterSource | None) -> None:
        self.memory, self.told = found.memory, found.told
        self._known, self._genome = found.contigs, genome
        self._names: dict[str, str | None] = {}

    def leave_out(self, place: Place | None) -> tuple[int, int]:
        """The interval of the memory's text that the window at `place` must not read."""
        if place is None or self._genome is None:
            return NOWHERE
        contig, start, end = place
        name = self.find_name(contig)
        return NOWHERE if name is None else leave_out_locus(self.memory, name, start, end)

    def find_name(self, contig: str) -> str | None:
        """The name that a contig of the genome has in the memory; None where it is not there."""
        if contig not in self._names:
            assert self._genome is not None
            self._names[contig] = self._known.find(self._genome, contig)
        return self._names[contig]
