"""The numbers of a memory, fitted to windows of the valid split.

The cost is that of the bound: bits of a hidden base, averaged over the hidden places of a window
and then over windows, under w0 · p + copy. Coordinate descent: each number is multiplied by the
factors of a round for as long as that lowers the cost. Nothing else is fitted, and nothing of the
test split is read.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import DataError
from genodiff.memory.memory import Memory
from genodiff.memory.numbers import MemoryNumbers
from genodiff.memory.tables import Floats
from genodiff.memory.text import NONE, Codes

ROUNDS = ((4.0, 0.25), (1.6, 0.625), (1.25, 0.8))
"""Factors that are tried, a pair in each round."""
_LEAST_CHANCE = 1e-12
_LEAST_GAIN = 1e-6
_LOOSER = 6.0


Numbers = TypeVar("Numbers", bound=MemoryNumbers)


class FittedNumbers(NamedTuple):
    """The numbers, and the bits of a base before, with the numbers at first, and in the end."""

    numbers: MemoryNumbers
    alone: float
    before: float
    after: float


def measure_bits(chances: Floats, windows: Codes, clean: Codes) -> NDArray[np.float64]:
    """(B,): bits of a hidden base of each window; `chances` (B, L, 4). NaN where none is hidden."""
    of_truth = np.take_along_axis(chances, np.minimum(clean, 3)[..., None].astype(np.int64), -1)
    bits = -np.log2(np.maximum(of_truth[..., 0], _LEAST_CHANCE))
    scored = (windows == NONE) & (clean < NONE)
    with np.errstate(invalid="ignore"):
        return np.asarray((bits * scored).sum(1) / scored.sum(1))


def fit_numbers(
    memory: Memory,
    windows: Codes,
    clean: Codes,
    chances: Floats,
    *,
    weights: Floats | None = None,
    rounds: Sequence[tuple[float, float]] = ROUNDS,
    tell: Callable[[str], None] | None = None,
) -> FittedNumbers:
    """The numbers under which the hidden bases of `windows` (B, L) cost least.

    `clean` (B, L): what stands there. `chances` (B, L, 4): what the denoiser says alone. `weights`
    (B,): what each window counts, where some kinds were drawn more often than they are. `tell`
    hears of each number that is tried. Raises `DataError` where no base is masked.
    """
    alone = measure_bits(chances, windows, clean)
    some = np.isfinite(alone)
    if not some.any():
        raise DataError("no base is masked", fix="give windows with masked bases")
    counts = np.where(some, 1.0 if weights is None else weights, 0.0)
    counts /= counts.sum()
    total = float((counts * np.where(some, alone, 0)).sum())
    # Windows that resemble nothing cost the same whatever the numbers are.
    effort = memory.effort
    loose = type(effort)(effort.scored, effort.most, effort.wild, effort.least_odds - _LOOSER)
    found = memory.with_effort(loose).find_all(windows)
    matters = some & np.array([len(a) + len(b) > 0 for a, b in found])
    codes, truth, said = windows[matters], clean[matters], chances[matters]

    def cost(numbers: MemoryNumbers) -> float:
        recalled = memory.with_numbers(numbers).recall(codes)
        mixed = recalled.background[..., None] * said + recalled.copy
        gain = measure_bits(mixed, codes, truth) - alone[matters]
        return total + float((counts[matters] * gain).sum())

    best, before = memory.numbers, cost(memory.numbers)
    least = before
    changes = list(_list_changes(len(best.share)))
    for turn, factors in enumerate(rounds, 1):
        for done, change in enumerate(changes):
            if tell is not None:
                where = f"round {turn} of {len(rounds)}, number {done + 1} of {len(changes)}"
                tell(f"{least:.4f} bits per base · {where}: {_name(change)}")
            scale = partial(_change, change)
            best, least = descend(best, least, factors, scale, cost, _LEAST_GAIN)
    return FittedNumbers(best, total, before, least)


def descend(
    best: Numbers, least: float, factors: Sequence[float],
    change: Callable[[Numbers, float], Numbers | None], cost: Callable[[Numbers], float],
    gain: float = 0.0,
) -> tuple[Numbers, float]:  # fmt: skip
    """Change numbers by one of `factors` for as long as the `cost` falls by more than `gain` from
    `least`; None: they cannot be changed so.
    """
    for factor in factors:
        improved = False
        while (tried := change(best, factor)) is not None:
            value = cost(tried)
            if value >= least - gain:
                break
            best, least, improved = tried, value, True
        if improved:
            break
    return best, least


def _list_changes(classes: int) -> Iterator[tuple[str, int]]:
    yield from (("copies", 0), ("start", 0), ("end", 0), ("shift", 0))
    yield from (("divergence", e) for e in range(classes))
    yield from (("share", e) for e in range(classes) if classes > 1)


def _name(change: tuple[str, int]) -> str:
    name, place = change
    return f"{name} of class {place + 1}" if name in ("divergence", "share") else name


def _change(change: tuple[str, int], numbers: MemoryNumbers, factor: float) -> MemoryNumbers | None:
    """`numbers` with one of them multiplied, or None where that is out of range."""
    name, place = change
    value = getattr(numbers, name)
    if isinstance(value, tuple):
        changed = [x * factor if i == place else x for i, x in enumerate(value)]
        total = sum(changed) if name == "share" else 1.0
        new: object = tuple(x / total for x in changed)
    else:
        new = value * factor
    try:
        return MemoryNumbers(**{**numbers.model_dump(), name: new})
    except ValueError:
        return None
