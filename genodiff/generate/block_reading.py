"""Drawing block after block: a network that keeps the states of what it has read of each record.

Blocks are filled by the samplers of a masked network. What has been filled is read once, into
states whose size does not depend on the length, so a record of any length is drawn in memory that
stays. A gap begins a block, whose other bases are seen: in blocks of 256 a gap of 64 has a right
flank of 192, and a longer gap has one in its last block. What is beyond the block is not seen: no
network has learnt to read it. Close draws are decided in double precision on one record alone, as
anywhere (`diffusion/sampler.py`); its states in double precision are made when first asked for.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genodiff.backbones.blocks import BlockPast
from genodiff.backbones.caduceus import Caduceus
from genodiff.runs.trained_model import TrainedModel

Ids = NDArray[np.uint8]


def plan_blocks(gaps: NDArray[np.bool_], size: int) -> list[tuple[int, int]]:
    """The blocks (start, end) that gaps are filled in; what is before each is read."""
    edges = np.flatnonzero(np.diff(gaps.astype(np.int8), prepend=0, append=0))
    return plan_blocks_of_edges(edges[0::2].tolist(), edges[1::2].tolist(), len(gaps), size)


def plan_blocks_of_edges(
    starts: Sequence[int], ends: Sequence[int], length: int, size: int
) -> list[tuple[int, int]]:
    """The blocks of gaps given by their edges, in order, apart from one another.

    Each begins where a gap does, or where the block before it has cut one that is longer. Gaps that
    are whole in it are filled together; one that it would cut begins a block itself.
    """
    plan: list[tuple[int, int]] = []
    at = 0
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        at = max(at, start)
        while at < end:
            stop = min(at + size, length)
            last = bisect_left(starts, stop) - 1
            if last > i and ends[last] > stop:
                stop = starts[last]
            plan.append((at, stop))
            at = stop
    return plan


def list_reads(rounds: Sequence[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    """The blocks in which a record is read up to its last round, none across the start of one."""
    reads: list[tuple[int, int]] = []
    at = 0
    for start, _ in rounds:
        while at < start:
            reads.append((at, min(at + size, start)))
            at = reads[-1][1]
    return reads


class RecordBlocks:
    """The next blocks of a group of records: denoisers of them, and what is kept of those before.

    `ids` are the records, filled in place in their `rounds`; `exact` gives the network in float64,
    copied when the first close draw asks for it. Block after block: `take` chooses the
    records that have one more and reads what is before it, `denoiser` and `refine` read it.
    """

    def __init__(
        self,
        model: TrainedModel,
        exact: Callable[[], Caduceus],
        ids: Sequence[Ids],
        rounds: Sequence[list[tuple[int, int]]],
        tick: Callable[[int], None] | None,
    ) -> None:
        assert isinstance(model.backbone, Caduceus)
        self._past = BlockPast(model.backbone, len(ids))
        self._pad = model.alphabet.pad_id
        self._ids, self._exact, self._tick = ids, exact, tick
        self._alone: dict[int, BlockPast] = {}
        self._device = model.backbone.embedding.device
        size = model.objective.block  # type: ignore[attr-defined]
        self._reads = [list_reads(one, size) for one in rounds]
        self._at = [0] * len(ids)  # how many of its reads a record is past

    @torch.inference_mode()
    def take(self, rows: Sequence[int], starts: Sequence[int]) -> None:
        """The records whose next blocks are drawn, and where these start."""
        self._rows = torch.tensor(rows, device=self._device)
        before = dict(zip(rows, starts, strict=True))
        while True:
            alike: dict[int, list[int]] = {}  # records by the length of what they read
            for i in rows:
                for start, end in self._reads[i][self._at[i] : self._at[i] + 1]:
                    if end <= before[i]:
                        alike.setdefault(end - start, []).append(i)
            if not alike:
                return
            for some in alike.values():
                self._read(some)

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

    def _read(self, rows: Sequence[int]) -> None:
        """Read the next blocks, of one length, of these records."""
        x = np.stack([self._ids[i][slice(*self._reads[i][self._at[i]])] for i in rows])
        for i in rows:
            self._at[i] += 1
        some = None if len(rows) == len(self._ids) else torch.tensor(rows, device=self._device)
        self._past.add(torch.from_numpy(x.astype(np.int64)).to(self._device), some)

    def _measure(self, xt: Tensor) -> Tensor | None:
        """The rows' lengths without padding; None where there is none."""
        at = torch.arange(1, xt.shape[1] + 1, device=xt.device)
        lengths = ((xt != self._pad) * at).amax(1)
        return lengths if bool((lengths < xt.shape[1]).any()) else None

    def _catch_up(self, row: int) -> BlockPast:
        """The record's states in double precision, where the others stand."""
        if row not in self._alone:
            self._alone[row] = BlockPast(self._exact(), 1)
        alone = self._alone[row]
        for start, end in self._reads[row][: self._at[row]]:
            if start >= alone.length:
                x = self._ids[row][None, start:end].astype(np.int64)
                alone.add(torch.from_numpy(x).to(self._device))
        return alone


class ByRows:
    """A denoiser that is asked for rows of its batch before it is called (`sampler.of_rows`)."""

    def __init__(self, of_rows: Callable[[Tensor], Callable[..., Tensor]]) -> None:
        self.of_rows = of_rows

    def __call__(self, xt: Tensor, sigma: Tensor | None = None) -> Tensor:
        return self.of_rows(torch.arange(len(xt), device=xt.device))(xt, sigma)
