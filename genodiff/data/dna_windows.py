"""Windows of DNA: the intervals of a split, tiled, excluding windows with too much N.

Also windows of sequences in memory, for evaluating sequences outside a store. Each sequence is cut
into windows of `seq_len` from its start; the last may be shorter. Nothing is left out, so short
sequences and tails count.
"""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import DNA, SOFT
from genodiff.data.recipe import Recipe
from genodiff.data.store import Store
from genodiff.data.windows import IntervalTiling, Ints, TiledWindows, Tokens, Windows
from genodiff.errors import DataError
from genodiff.io.fasta import Record

log = logging.getLogger("genodiff")

_IDS = np.arange(256, dtype=np.uint8) & ~np.uint8(SOFT)
_IS_TARGET = np.isin(_IDS, DNA.targets)


class DnaWindows(TiledWindows):
    """All windows of one split of a genome."""

    pad_id = DNA.pad_id
    units = "bases"

    def __init__(
        self,
        store: Store,
        recipe: Recipe,
        split: str,
        seq_len: int,
        *,
        legacy_caduceus_tiling: bool = False,
    ) -> None:
        """Raises `UsageError` for impossible sizes, `DataError` if no window is usable."""
        self._bed, legacy = recipe.bed, legacy_caduceus_tiling
        most = recipe.max_n_fraction
        super().__init__(store, split, seq_len, max_n_fraction=most, legacy_caduceus_tiling=legacy)
        if not len(self.tiling(0)):
            names = [store.names[i] for i in np.unique(self.intervals.contig)]
            what = f"no usable window in the split {split}: each of the {self.tiling(0).dropped:,} "
            what += f"windows of {seq_len} bases has more than {self.max_n_fraction:.0%} N"
            record = names[0] if len(names) == 1 else None
            fix = "give a file with more known sequence, or a smaller --seq-len"
            raise DataError(what, file=store.source.path, record=record, fix=fix)
        log.info("%s: %s", split, self.summary())

    def tokens(self, data: NDArray[Any], length: Ints) -> Tokens:
        """See `Windows.tokens`; A, C, G and T may be masked."""
        return Tokens(_IDS[data].astype(np.int64), _IS_TARGET[data], data >= SOFT, None)

    def summary(self) -> str:
        """Describe in one line the number of windows and of those left out."""
        words = {
            "windows_too_much_n": f"windows with more than {self.max_n_fraction:.0%} N",
            "intervals_too_short": f"intervals shorter than {self.shortest} bases",
            "tail_bases": "bases at the intervals' ends",
        }
        listed = ", ".join(f"{n:,} {words[k]}" for k, n in self.dropped.items() if n)
        left = f"; left out: {listed}" if listed else ""
        return f"{len(self):,} windows of {self.seq_len} bases{left}"

    def _refuse_short(self) -> None:
        origin, longest = self.store.source.path, int(np.argmax(self.store.lengths))
        size = self.intervals.end - self.intervals.start
        needed = self.seq_len if self.split == "train" else min(self.shortest, self.seq_len)
        if not len(size) and self._bed is not None:
            fix = f"write {self.split} in some rows' 4th column"
            raise DataError(f"has no interval of the split {self.split}", file=self._bed, fix=fix)
        if not len(size):
            fix = "give more contigs, or splits with --bed"
            raise DataError(f"the split {self.split} is empty", file=origin, fix=fix)
        if (most := self.store.lengths[longest]) < needed:
            what = f"every contig is shorter than the seq_len of {self.seq_len}: "
            what += f"the longest, {self.store.names[longest]}, has {most} bases"
            fix = f"give --seq-len {most} or less"
            if self.split in ("test", "all"):  # by a model whose seq_len is what it is
                fix = "score short sequences in Python: genodiff.load(RUN).bits(FILE)"
            raise DataError(what, file=origin, fix=fix)
        if (most := size.max()) < needed:
            what = f"every interval of the split {self.split} is shorter than the seq_len of "
            what += f"{self.seq_len}: the longest has {most} bases"
            fix = f"give --seq-len {most * (1 if self.split == 'train' else 8)} or less, "
            raise DataError(what, file=origin, fix=f"{fix}or splits with --bed")


class HeldSequences:
    """The part of a `Store` that windows need, for sequences in memory: concatenated ids."""

    find_contigs, bytes_of = Store.find_contigs, Store.bytes_of

    def __init__(self, records: Sequence[Record]) -> None:
        """Raises `DataError` for a letter that is not DNA."""
        self.names = tuple(record.name for record in records)
        self.lengths = np.array([len(record.sequence) for record in records], np.int64)
        self.offsets = np.concatenate(([0], np.cumsum(self.lengths)))
        texts = [record.sequence for record in records]
        parts = [DNA.encode(x) | (DNA.soft_mask(x) * np.uint8(SOFT)) for x in texts]
        self.flat: NDArray[Any] = np.concatenate([*parts, np.zeros(0, np.uint8)])


class SequenceWindows(Windows):
    """All windows of sequences in memory."""

    pad_id = DNA.pad_id
    tokens = DnaWindows.tokens

    def __init__(self, records: Sequence[Record], seq_len: int) -> None:
        """Raises `DataError` for a letter that is not DNA."""
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
        self._tiling = IntervalTiling(first, start, length, kept)
        self.dropped = {}

    def summary(self) -> str:
        return f"{len(self):,} windows of at most {self.seq_len} bases"
