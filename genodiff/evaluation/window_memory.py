"""The memory of the training genome beside the windows that an evaluation scores.

Of a window that overlaps the train split its own locus is left out (`runs/training_memory.py`).
"""

from typing import NamedTuple

from torch import Tensor

from genodiff.data.loader import Batch
from genodiff.data.windows import Windows
from genodiff.diffusion.masked import Denoiser
from genodiff.evaluation.eval_data import EvalData
from genodiff.evaluation.eval_options import EvalOptions
from genodiff.memory.remembering import remembering
from genodiff.runs.known_contigs import StoreLetters
from genodiff.runs.trained_model import TrainedModel
from genodiff.runs.training_memory import OwnLoci, open_loci, search_everywhere


class WindowMemory(NamedTuple):
    """A memory, and which windows of a store read it."""

    loci: OwnLoci
    windows: Windows

    def of(self, windows: Windows) -> "WindowMemory":
        """The same memory for other windows of the store."""
        return self._replace(windows=windows)

    def wrap(self, denoiser: Denoiser, batch: Batch) -> Denoiser:
        """`denoiser` with the memory, for the windows of this batch."""
        rows = (batch.index % len(self.windows)).tolist()
        return remembering(
            denoiser, self.loci.memory, without=[self.leave_out(row) for row in rows]
        )

    def leave_out(self, row: int) -> tuple[int, int]:
        """The interval of the memory's text that a window must not read: its own locus."""
        contig = self.windows.store.names[int(self.windows.contig_index[row])]
        start = int(self.windows.start[row])
        return self.loci.leave_out((contig, start, start + int(self.windows.length[row])))


class RepeatedDenoiser:
    """A denoiser whose answers can be had once more, in their order, without asking it again."""

    def __init__(self, denoiser: Denoiser) -> None:
        self._denoiser, self._answers = denoiser, list[Tensor]()

    def __call__(self, *given: Tensor) -> Tensor:
        self._answers.append(self._denoiser(*given))
        return self._answers[-1]

    def repeat(self, *_: Tensor) -> Tensor:
        """The next answer again."""
        return self._answers.pop(0)


def open_window_memory(
    model: TrainedModel, options: EvalOptions, data: EvalData
) -> WindowMemory | None:
    """The memory of what a model was trained on, for windows that are scored; None without one.

    A network that was trained with a memory has it unless the options say "off".

    Raises `UsageError` for a network or windows that it cannot serve, `DataError` and
    `CheckpointError` where the training genome is not to be had.
    """
    if not model.asks_memory(options.memory):
        return None
    options.check_memory(True)
    letters, longest = StoreLetters(data.store), data.windows.seq_len
    loci = open_loci(
        model, letters, "on", longest=longest, store=data.store, offline=options.offline
    )
    if loci is None:
        return None
    if options.memory == "exhaustive":
        loci = OwnLoci(search_everywhere(loci.found), letters)
    return WindowMemory(loci, data.windows)
