"""Where windows of a genome stand in a memory: the loci that they must not read.

A contig of a genome is the memory's own where it has the same bases (`known_contigs.py`). A window
of such a contig leaves its own locus out, with its length on either side, on both strands.
"""

from typing import Any

from genodiff.data.store import Store
from genodiff.errors import UsageError
from genodiff.memory.index_files import identify_memory
from genodiff.memory.memory import NOWHERE
from genodiff.memory.text import MOST_WINDOW
from genodiff.runs.known_contigs import LetterSource
from genodiff.runs.model import TrainedModel
from genodiff.runs.training_memory import (
    TrainMemory,
    leave_out_locus,
    open_train_memory,
)

Place = tuple[str, int, int]
"""A contig, and start and end of a window on it (0-based, half-open)."""


class OwnLoci:
    """A memory, and the contigs of a genome that it knows; each is looked up when it is asked for.

    `genome` None: nothing is known of where windows are from, and nothing is left out.
    """

    def __init__(self, found: TrainMemory, genome: LetterSource | None) -> None:
        self.memory, self.told, self.found = found.memory, found.told, found
        self._known, self._genome = found.contigs, genome
        self._names: dict[str, str | None] = {}

    def leave_out(self, place: Place | None) -> tuple[int, int]:
        """The interval of the memory's text that the window at `place` must not read.

        Of a window that goes round an origin that is all of its contig.
        """
        if place is None or self._genome is None:
            return NOWHERE
        contig, start, end = place
        if end > self._genome.contigs[contig]:
            start, end = 0, self._genome.contigs[contig]
        name = self.find_name(contig)
        return NOWHERE if name is None else leave_out_locus(self.memory, name, start, end)

    def find_name(self, contig: str) -> str | None:
        """The name that a contig of the genome has in the memory; None where it is not there."""
        if contig not in self._names:
            assert self._genome is not None
            self._names[contig] = self._known.find(self._genome, contig)
        return self._names[contig]


def open_loci(
    model: TrainedModel,
    genome: LetterSource | None,
    memory: str | None,
    *,
    longest: int | None = None,
    store: Store | None = None,
    offline: bool = False,
) -> OwnLoci | None:
    """The memory of a model's training genome beside a genome whose windows are read.

    `memory` is "on", "off", or None: on where the network was trained with one. `longest` is that
    of a window, in bases; None is the trained length. `store` is looked at first for the training
    genome. Raises `UsageError` for windows that are too long and networks that are not masked;
    `DataError` and `CheckpointError` where the training genome is not to be had.
    """
    if memory not in (None, "on", "off"):
        raise UsageError(f"no memory '{memory}'", fix="give on or off")
    if memory == "off" or (memory is None and not model.recalls):
        return None
    if model.objective.kind != "masked":
        what = f"--memory on is for masked networks, and this is {model.objective.name}"
        raise UsageError(what, fix="leave it out")
    longest = longest or model.config.data.seq_len
    if longest > MOST_WINDOW:
        what = f"--memory on takes windows of at most {MOST_WINDOW:,} bases, not {longest:,}"
        raise UsageError(what, fix="give smaller windows, or --memory off")
    named = getattr(genome, "path", None)
    return OwnLoci(open_train_memory(model, store, named=named, offline=offline), genome)


def name_memory(loci: OwnLoci | None) -> dict[str, Any]:
    """What a request and its sidecar say of the memory of a training genome; empty without one."""
    return {} if loci is None else {"memory": identify_memory(loci.told)}
