"""The intervals of a genome's split as codes, read piece by piece.

Codes are A 0, C 1, G 2, T 3, anything else 4. `encode_bases` makes them of a store's bytes.
"""

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import ID_CODES, SOFT
from genodiff.data.splits import Intervals, stretch_intervals
from genodiff.data.store import Store

Codes = NDArray[np.uint8]

LETTERS = np.frombuffer(b"ACGT", np.uint8)
_CODE_OF = ID_CODES[np.arange(256) & (0xFF ^ SOFT)]


def encode_bases(ids: NDArray[np.uint8]) -> Codes:
    """The codes of DNA ids, with or without the store's soft-mask bit."""
    return _CODE_OF[ids]


class Coded:
    """A long stretch of a store's bytes that turns into codes piece by piece, as it is read."""

    def __init__(self, ids: NDArray[np.uint8]) -> None:
        self.ids = ids

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, part: slice) -> Codes:
        return encode_bases(self.ids[part])


Stretch = Codes | Coded


def split_stretches(
    store: Store, split: str, *, legacy_caduceus_tiling: bool = False
) -> list[Coded]:
    """The intervals of a split as a model saw them in training, as codes, read one by one."""
    return read_stretches(
        store, find_intervals(store, split, legacy_caduceus_tiling=legacy_caduceus_tiling)
    )


def find_intervals(store: Store, split: str, *, legacy_caduceus_tiling: bool = False) -> Intervals:
    """The intervals of a split as a model saw them in training."""
    intervals = store.intervals_of(split)
    return stretch_intervals(intervals, store.lengths) if legacy_caduceus_tiling else intervals


def read_stretches(store: Store, intervals: Intervals) -> list[Coded]:
    """Intervals of a store as codes, read one by one."""
    start = store.offsets[intervals.contig] + intervals.start
    end = store.offsets[intervals.contig] + intervals.end
    return [Coded(store.flat[a:b]) for a, b in zip(start.tolist(), end.tolist(), strict=True)]
