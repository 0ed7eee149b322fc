"""Drawing block after block: a network that keeps the states of what it has read of each record.

Blocks are filled by the samplers of a masked network. What has been filled is read once, into
states whose size does not depend on the length, so a record of any length is drawn in memory that
stays. Close draws are decided in double precision on one record alone, as anywhere
(`diffusion/sampler.py`); its states in double precision are made when first asked for.
"""

import copy
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genodiff.backbones.blocks import BlockPast
from genodiff.backbones.caduceus import Caduceus
from genodiff.generate.samples import Ids
from genodiff.runs.model import TrainedModel


def plan_blocks(gaps: NDArray[np.bool_], size: int) -> list[tuple[int, int]]:
    """The blocks (start, end) up to the last gap: those before it are read, or filled."""
    last = int(np.flatnonzero(gaps)[-1]) + 1 if gaps.any() else 0
    return [(start, min(start + size, len(gaps))) for start in range(0, last, size)]


class ExactCopy:
    """The network in float64, copied when the first close draw asks for it."""

    def __init__(self, network: Caduceus) -> None:
        self._network = network
        self._exact: Caduceus | None = None

    def get(self) -> Caduceus:
        """The copy."""
        if self._exact is None:
            self._exact = copy.deepcopy(self._network).double()
        return self._exact


class RecordBlocks:
    """The next blocks of a group of records: denoisers of them, and what is kept of those before.

    `ids` are the records, filled in place, and `done` how many blocks of each are there already.
    Block after block: `take` chooses the records that have one more, `denoiser` and `refine` read
    it, and `keep` goes on.
    """

    def __init__(
        self,
        model: TrainedModel,
        exact: ExactCopy,
        ids: Sequence[Ids],
        tick: Callable[[int], None] | None,
        done: Sequence[int],
    ) -> None:
        assert isinstance(model.backbone, Caduceus)
        self._past = BlockPast(model.backbone, len(ids))
        self._size, self._pad = model.objective.block, model.alphabet.pad_id  # type: ignore[attr-defined]
        self._ids, self._exact, self._tick = ids, exact, tick
        self._alone: dict[int, BlockPast] = {}
        self._device = model.backbone.embedding.device
        for turn in range(max(done, default=0)):
            self.take([i for i, n in enumerate(done) if n > turn], turn * self._size)
            self.keep(self._rows.tolist())

    def take(self, rows: Sequence[int], start: int) -> None:
        """The records whose next block, from `start` on, is drawn."""
        self._rows, self._start = torch.tensor(rows, device=self._device), start

    def denoiser(self, rows: Tensor) -> Callable[..., Tensor]:
        """(xt, sigma) → logits of the next block of these of the records that were taken."""

        def logits(xt: Tensor, sigma: Tensor | None = None) -> Tensor:
            if self._tick is not None:
                self._tick(len(xt))
            return self._past.read(xt, self._rows[rows], self._measure(xt))

        return logits

    def refine(self, rows: Tensor) -> Callable[..., Tensor]:
        """As `denoiser`, in double precision, each record alone."""

        def logits(xt: Tensor, sigma: Tensor | None = None) -> Tensor:
            lengths, found = self._measure(xt), []
            for i, row in enumerate(self._rows[rows].tolist()):
                own = None if lengths is None else lengths[i : i + 1]
                found.append(self._catch_up(row).read(xt[i : i + 1], None, own))
            return torch.cat(found)

        return logits

    @torch.inference_mode()
    def keep(self, rows: Sequence[int]) -> None:
        """Read the block that was filled of these records, which have a further one."""
        if not rows:
            return
        here = slice(self._start, self._start + self._size)
        x = np.stack([self._ids[i][here] for i in rows]).astype(np.int64)
        some = None if len(rows) == len(self._ids) else torch.tensor(rows, device=self._device)
        self._past.add(torch.from_numpy(x).to(self._device), some)

    def _measure(self, xt: Tensor) -> Tensor | None:
        """The rows' lengths without padding; None where there is none."""
        at = torch.arange(1, xt.shape[1] + 1, device=xt.device)
        lengths = ((xt != self._pad) * at).amax(1)
        return lengths if bool((lengths < xt.shape[1]).any()) else None

    def _catch_up(self, row: int) -> BlockPast:
        """The record's states in double precision, where the others stand."""
        if row not in self._alone:
            self._alone[row] = BlockPast(self._exact.get(), 1)
        alone = self._alone[row]
        while alone.length < self._start:
            start = alone.length
            x = self._ids[row][None, start : start + self._size].astype(np.int64)
            alone.add(torch.from_numpy(x).to(self._device))
        return alone


class ByRows:
    """A denoiser that is asked for rows of its batch before it is called (`sampler.of_rows`)."""

    def __init__(self, of_rows: Callable[[Tensor], Callable[..., Tensor]]) -> None:
        self.of_rows = of_rows

    def __call__(self, xt: Tensor, sigma: Tensor | None = None) -> Tensor:
        return self.of_rows(torch.arange(len(xt), device=xt.device))(xt, sigma)
