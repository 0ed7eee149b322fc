"""How sure a figure per base is: a ratio of sums over windows, with a 95 % interval that neighbours
cannot shrink.

The figure is R = Σ_w y_w / Σ_w n_w: nats over bases, summed over windows in genome order. Windows
stand for the source they come from, and neighbours are alike (isochores, gene families), so what is
taken as independent is a block of consecutive windows: about √W blocks, at least 8. Leaving out one
block at a time (Quenouille's jackknife of a ratio, over Künsch's blocks) gives the standard error;
with G blocks the interval is R ± t(G − 1) · se. Of fewer than five blocks there is none.

Each window's y holds its own random masks, so the interval covers the mask draws as well as the
choice of windows. Where windows had their masks counted together, a block is made of those. Limits:
few windows that are alike over long stretches, or a rare kind of window that decides the figure,
make it too narrow; hence repeats are shown apart.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit  # type: ignore[import-untyped]

from genodiff.statistics.seeds import LEAST_UNITS

MIN_BLOCKS = 8
BITS = 1 / math.log(2)
"""Bits in a nat."""

Floats = NDArray[np.float64]


class Interval(NamedTuple):
    """A figure, its standard error and 95 % interval; both None for fewer than five windows."""

    value: float
    se: float | None
    ci95: tuple[float, float] | None

    def ends(self, least: float = -math.inf) -> list[float] | None:
        """The interval as JSON has it, none of its ends below `least`; None where there is none."""
        return None if self.ci95 is None else [max(end, least) for end in self.ci95]

    def scaled(self, by: float) -> "Interval":
        """The same in another unit (`by` > 0)."""
        return Interval(
            self.value * by,
            None if self.se is None else self.se * by,
            None if self.ci95 is None else (self.ci95[0] * by, self.ci95[1] * by),
        )


def count_blocks(n_windows: int) -> int:
    """How many blocks of consecutive windows: √W, at least 8, at most one for each window."""
    return min(n_windows, max(MIN_BLOCKS, round(n_windows**0.5)))


def ratio(
    y: Floats, n: Floats, n_blocks: int | None = None, shared: NDArray[np.int64] | None = None
) -> Interval:
    """Σ y / Σ n over windows in genome order. Windows with n = 0 say nothing and are left out.

    Windows of one number in `shared` had their masks counted together, and make one block; of fewer
    than `MIN_BLOCKS` numbers there is no interval. Raises `ValueError` where no window has n > 0.
    """
    some = n > 0
    y, n = np.asarray(y, np.float64)[some], np.asarray(n, np.float64)[some]
    if not len(n):
        raise ValueError("no window has a base")
    value = float(y.sum() / n.sum())
    if shared is None:
        groups = n_blocks or count_blocks(len(n))
        first = np.arange(groups) * len(n) // groups
    else:
        number = shared[some]
        first = np.append(0, np.flatnonzero(number[1:] != number[:-1]) + 1)
        groups = len(first)
    if groups < (LEAST_UNITS if shared is None else MIN_BLOCKS):
        return Interval(value, None, None)
    without = (y.sum() - np.add.reduceat(y, first)) / (n.sum() - np.add.reduceat(n, first))
    se = float(np.sqrt((groups - 1) / groups * np.square(without - without.mean()).sum()))
    reach = float(stdtrit(groups - 1, 0.975)) * se
    return Interval(value, se, (value - reach, value + reach))
