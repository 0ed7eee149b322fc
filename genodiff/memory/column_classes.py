"""How much likelier the slow classes make each column of a row than the others do.

The chain of `columns.py` runs along the columns that were called (`column_rates.py`). With told_k
the probability of state k given all columns around one but not it, and e_k its likelihood under k,

    lod = log Σ_slow told_k e_k / Σ_slow told_k  -  log Σ_other told_k e_k / Σ_other told_k

in nats. A class is slow where its mean rate over a codon is below half of the neutral rate. Slow
genes change at third codon positions as others do. Where the columns around say which position it
is, such a column is worth nothing, for or against.

A row is read in blocks, each with the columns on either side that tell it anything; so the lods do
not depend on the number of threads. In C where there is a library.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.kernels.library import call, is_loaded
from genodiff.memory.column_rates import Columns, observe_columns
from genodiff.memory.columns import ColumnNumbers, States, list_states, run_chain
from genodiff.memory.evidence import Floats

BLOCK, AROUND = 3072, 510
"""Columns of a block, and those that are read on either side: multiples of a codon."""
_CHUNK = 4096


class ColumnClasses:
    """The classes of `numbers`, some of them slow beside the rate `neutral`, and what they say of
    distinct `columns` (U, 1 + G).
    """

    def __init__(self, numbers: ColumnNumbers, neutral: float, columns: Columns) -> None:
        self.states: States = list_states(numbers)
        self.slow = find_slow_classes(numbers, neutral)[self.states.of]
        mixtures, place = np.unique(
            self.states.weights.reshape(-1, len(numbers.rate)), axis=0, return_inverse=True
        )
        self.place = place.reshape(3, -1).astype(np.int64)
        """(3, K): the column of `likely` that each state has at each codon position."""
        parts = [
            observe_columns(columns[first : first + _CHUNK], numbers) @ mixtures.T
            for first in range(0, len(columns), _CHUNK)
        ]
        self.likely = np.concatenate([np.zeros((0, len(mixtures))), *parts])

    def compare(self, ids: NDArray[np.int32]) -> Floats:
        """(n,): the lod of each column of a row; `ids` are rows of `columns`, below 0 gaps."""
        if not is_loaded():
            return self.compare_slowly(ids)
        lods = np.empty(len(ids))
        arrays: dict[str, NDArray[Any]] = {
            "of": self.place, "ids": ids, "likely": self.likely, "share": self.states.share,
            "leave": self.states.leave, "toward": self.states.toward,
            "slow": self.slow.astype(np.float64), "lods": lods,
        }  # fmt: skip
        n, (k, m) = len(ids), (len(self.slow), self.likely.shape[1])
        call("classes", arrays, backward=False, n=n, K=k, M=m, block=BLOCK, around=AROUND)
        return lods

    def compare_slowly(self, ids: NDArray[np.int32]) -> Floats:
        """Compute `compare` in NumPy: the definition."""
        lods = np.full(len(ids), np.nan)
        edges = [-1, *np.flatnonzero(ids < 0).tolist(), len(ids)]
        for low in range(0, len(ids), BLOCK):
            high = min(low + BLOCK, len(ids))
            first, end = max(low - AROUND, 0), min(high + AROUND, len(ids))
            cuts = sorted({first - 1, end, *(one for one in edges if first <= one < end)})
            for before, after in pairwise(cuts):
                at = np.arange(before + 1, after)
                if not len(at):
                    continue
                found, mine = self._compare(ids[at], at % 3), (low <= at) & (at < high)
                lods[at[mine]] = found[mine]
        return lods

    def _compare(self, ids: NDArray[np.int32], phase: NDArray[np.int64]) -> Floats:
        seen = np.take_along_axis(self.likely[ids], self.place[phase], 1)
        told = run_chain(seen[None], self.states.share, self.states.steps).told[0]
        with np.errstate(invalid="ignore"):  # where no class is slow there is no lod
            slow, other = (
                np.log((told * seen)[:, one].sum(1) / told[:, one].sum(1))
                for one in (self.slow, ~self.slow)
            )
            return np.asarray(slow - other)


def find_slow_classes(numbers: ColumnNumbers, neutral: float) -> NDArray[np.bool_]:
    """(C + D,): which classes are slow: never all of them, and the slowest where none would be."""
    rate = np.array(numbers.rate)
    plain = [float(np.array(one) @ rate) for one in numbers.plain]
    means = np.array([*plain, *(float((np.array(one) @ rate).mean()) for one in numbers.coding)])
    slow = (means < neutral / 2) & (means < means.max())
    return slow if slow.any() else (means == means.min()) & (means < means.max())
