"""Relatives beside a genome whose windows are read: what a window must not read of each of them.

A contig that a relative's genome has base for base, such as the window's own in a strain, is known
by the hash of its bases, and the window's locus there is left out, as in the own genome's memory.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from genodiff.memory.memory import Memory
from genodiff.memory.relatives import Loci, Relatives
from genodiff.runs.own_loci import OwnLoci, Place


class KnownLoci(Protocol):
    """What reads windows with something beside a network, and what each must not read of it."""

    @property
    def memory(self) -> Memory | Relatives:
        """What `remembering` takes."""

    @property
    def told(self) -> dict[str, Any]:
        """What an output says of it."""

    def leave_out(self, place: Place | None) -> Any:
        """For `without` of `remembering`; values that are equal leave out the same."""


class RelativesLoci:
    """Relatives as a `KnownLoci`. `genomes`: for each relative, where windows stand in it."""

    def __init__(
        self, relatives: Relatives, genomes: Sequence[OwnLoci], told: dict[str, Any]
    ) -> None:
        if len(genomes) != len(relatives.genomes):
            raise ValueError(f"{len(genomes)} loci for {len(relatives.genomes)} relatives")
        self.memory, self.told, self._genomes = relatives, told, tuple(genomes)

    def leave_out(self, place: Place | None) -> Loci:
        """For each relative the interval of its text that the window at `place` must not read."""
        return tuple(genome.leave_out(place) for genome in self._genomes)
