"""Examples that must stay together in a split: draws of whole groups."""

import numpy as np
from numpy.typing import NDArray

from genodiff.counter import Purpose, uniforms
from genodiff.errors import DataError

FITTED = -1
"""The group of examples that are never held out."""

_OVER = 1.5  # a group is passed over where more than this times the wanted number would be drawn


def draw_groups(
    groups: NDArray[np.int64], wanted: int, purpose: Purpose, seed: int, stream: int
) -> NDArray[np.bool_]:
    """Which examples are held out: those of whole groups, drawn until `wanted` are.

    `groups` (n,) is each example's. The draw is a pure function of the groups, `purpose`, `seed`
    and `stream`. Where every group is too large, the smallest is held out. Raises `DataError` where
    that would leave nothing on one side.
    """
    names, where, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    free = np.flatnonzero(names != FITTED)
    order = free[np.argsort(uniforms(seed, purpose, stream, len(free)), kind="stable")]
    held = np.zeros(len(names), bool)
    drawn = 0
    for i in order.tolist():
        if drawn >= wanted:
            break
        if drawn + sizes[i] <= _OVER * wanted:
            held[i] = True
            drawn += int(sizes[i])
    if not drawn and len(free):
        held[free[np.argmin(sizes[free])]] = True
    if not held.any() or held.all():
        raise DataError(
            "the examples cannot be split: all that may be held out are alike",
            fix="use another split, or a higher --similarity",
        )
    found: NDArray[np.bool_] = held[where]
    return found
