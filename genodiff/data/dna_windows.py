"""Windows of DNA: the intervals of a split, tiled, without windows of mostly N."""

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import DNA, SOFT
from genodiff.data.dna_store import DnaStore
from genodiff.data.recipe import Recipe
from genodiff.data.tiling import TiledWindows
from genodiff.data.windows import Ints, Tokens
from genodiff.errors import DataError

log = logging.getLogger("genodiff")

_IDS = np.arange(256, dtype=np.uint8) & ~np.uint8(SOFT)
_IS_TARGET = np.isin(_IDS, DNA.targets)


class DnaWindows(TiledWindows):
    """All windows of one split of a genome."""

    pad_id = DNA.pad_id
    units = "bases"

    def __init__(
        self,
        store: DnaStore,
        recipe: Recipe,
        split: str,
        seq_len: int,
        *,
        stride: int | None = None,
        max_n_fraction: float | None = None,
        legacy_caduceus_tiling: bool = False,
    ) -> None:
        """Raises `UsageError` for impossible sizes, `DataError` where no window is usable."""
        self._bed = recipe.bed
        super().__init__(
            store,
            split,
            seq_len,
            stride=stride,
            max_n_fraction=recipe.max_n_fraction if max_n_fraction is None else max_n_fraction,
            legacy_caduceus_tiling=legacy_caduceus_tiling,
        )
        if not len(self.tiling(0)):
            self._refuse_empty()
        log.info("%s: %s", split, self.summary())

    def tokens(self, data: NDArray[Any], length: Ints) -> Tokens:
        """See `Windows.tokens`; A, C, G and T may be masked."""
        return Tokens(_IDS[data].astype(np.int64), _IS_TARGET[data], data >= SOFT, None)

    def summary(self) -> str:
        """One line: how many windows there are and what was left out."""
        words = {
            "windows_too_much_n": f"windows with more than {self.max_n_fraction:.0%} N",
            "intervals_too_short": f"intervals shorter than {self.shortest} bases",
            "tail_bases": "bases at the intervals' ends",
        }
        listed = ", ".join(
            f"{self.dropped[k]:,} {word}" for k, word in words.items() if self.dropped[k]
        )
        return f"{len(self):,} windows of {self.seq_len} bases" + (
            f"; left out: {listed}" if listed else ""
        )

    def _refuse_short(self) -> None:
        origin, longest = self.store.source.path, int(np.argmax(self.store.lengths))
        size = self.intervals.end - self.intervals.start
        needed = self.seq_len if self.split == "train" else min(self.shortest, self.seq_len)
        if not len(size) and self._bed is not None:
            raise DataError(
                f"has no interval of the split {self.split}",
                file=self._bed,
                fix=f"write {self.split} in some rows' 4th column",
            )
        if not len(size):
            raise DataError(
                f"the split {self.split} is empty",
                file=origin,
                fix="give more contigs, or splits with --bed",
            )
        if self.store.lengths[longest] < needed:
            scored = self.split in ("test", "all")  # by a model whose seq_len is what it is
            raise DataError(
                f"every contig is shorter than the seq_len of {self.seq_len}: "
                f"the longest, {self.store.names[longest]}, has "
                f"{self.store.lengths[longest]} bases",
                file=origin,
                fix="score short sequences in Python: genodiff.load(RUN).bits(FILE)"
                if scored
                else f"give --seq-len {self.store.lengths[longest]} or less",
            )
        if size.max() < needed:
            raise DataError(
                f"every interval of the split {self.split} is shorter than the seq_len of "
                f"{self.seq_len}: "
                f"the longest has {size.max()} bases",
                file=origin,
                fix=f"give --seq-len {size.max() * (1 if self.split == 'train' else 8)} or "
                f"less, or splits with --bed",
            )

    def _refuse_empty(self) -> None:
        contigs = np.unique(self.intervals.contig)
        raise DataError(
            f"no usable window in the split {self.split}: each of the "
            f"{self.tiling(0).dropped:,} windows of {self.seq_len} bases has more than "
            f"{self.max_n_fraction:.0%} N",
            file=self.store.source.path,
            record=self.store.names[int(contigs[0])] if len(contigs) == 1 else None,
            fix="give a file with more known sequence, or a smaller --seq-len",
        )
