"""Windows of sequences in memory, for figures of sequences that no store holds.

Each sequence is cut into windows of `seq_len` from its start; the last may be shorter. Nothing is
left out, so short sequences and tails count.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import DNA, SOFT
from genodiff.data.dna_windows import DnaWindows
from genodiff.data.tiling import IntervalTiling
from genodiff.data.windows import Windows
from genodiff.io.fasta import Record


class HeldSequences:
    """What a `Store` offers to windows, of sequences in memory: ids, one after another."""

    def __init__(self, records: Sequence[Record]) -> None:
        """Raises `DataError` for a letter that is no DNA."""
        self.names = tuple(record.name for record in records)
        self.lengths = np.array([len(record.sequence) for record in records], np.int64)
        self.offsets = np.concatenate(([0], np.cumsum(self.lengths)))
        parts = [
            DNA.encode(r.sequence) | np.where(DNA.soft_mask(r.sequence), SOFT, 0).astype(np.uint8)
            for r in records
        ]
        self.flat: NDArray[Any] = np.concatenate([*parts, np.zeros(0, np.uint8)])


class SequenceWindows(Windows):
    """All windows of sequences in memory."""

    pad_id = DNA.pad_id
    tokens = DnaWindows.tokens

    def __init__(self, records: Sequence[Record], seq_len: int) -> None:
        """Raises `DataError` for a letter that is no DNA."""
        held = HeldSequences(records)
        super().__init__(held, "test", seq_len)  # type: ignore[arg-type]
        whole, rest = held.lengths // seq_len, held.lengths % seq_len
        # Each sequence is two intervals: its whole windows, then its shorter tail.
        start = np.stack([held.offsets[:-1], held.offsets[:-1] + whole * seq_len], 1).ravel()
        count = np.stack([whole, (rest > 0).astype(np.int64)], 1).ravel()
        length = np.stack([np.full_like(rest, seq_len), rest], 1).ravel()
        start, count, length = start[count > 0], count[count > 0], length[count > 0]
        first = np.concatenate(([0], np.cumsum(count)))
        kept = np.array([[0, first[-1]]], np.int64)
        self._tiling = IntervalTiling(first, start, length, kept, seq_len)
        self.dropped = {}

    def tiling(self, phase: int) -> IntervalTiling:
        """The same at every phase."""
        return self._tiling

    def summary(self) -> str:
        return f"{len(self):,} windows of at most {self.seq_len} bases"
