"""Where a score stands among those of random variants: percentile, z and PHRED.

Of n scores in a stratum, `less` are below a score s and `equal` are equal to it:

    percentile   100 (less + (equal + 1) / 2) / (n + 1)     uniform for a random variant
    z            (s − mean) / standard deviation
    PHRED        −10 log10 ((less + equal + 1) / (n + 1))    at most 10 log10(n + 1)

PHRED is that of the share of random variants which the model finds as unlikely or more so, itself
counted. A variant is compared within its finest stratum that has `LEAST` scores. No percentile says
that a variant is pathogenic.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LEAST = 100
"""Scores that a stratum needs to be used; the class itself needs `LEAST_OF_CLASS`."""
LEAST_OF_CLASS = 20
_BINS = 20
_POINTS = 101


class Rank(NamedTuple):
    """Where a score stands in its stratum of `n` scores."""

    percentile: float
    z: float | None  # None where all scores of the stratum are equal
    phred: float
    stratum: str
    n: int


class RandomScore(NamedTuple):
    """One random variant: the number of its draw, its strata, and its score as it is compared."""

    number: int
    strata: Sequence[str]
    value: float


class ScoreRanks:
    """The scores of the random variants of one class, by stratum."""

    def __init__(self, scores: Iterable[RandomScore]) -> None:
        values: dict[str, list[float]] = {}
        for one in scores:
            for stratum in one.strata:
                values.setdefault(stratum, []).append(one.value)
        self._sorted = {name: np.sort(np.array(some)) for name, some in values.items()}

    def rank(self, strata: Sequence[str], value: float) -> Rank | None:
        """The rank of a score in the first of its `strata` that has enough; None where none has."""
        for number, name in enumerate(strata):
            known = self._sorted.get(name)
            least = LEAST if number < len(strata) - 1 else LEAST_OF_CLASS
            if known is not None and len(known) >= least:
                return _rank(known, name, value)
        return None

    def count(self, stratum: str) -> int:
        """How many scores a stratum has."""
        return len(self._sorted.get(stratum, ()))


def _rank(known: NDArray[np.float64], name: str, value: float) -> Rank:
    n, below = len(known), int(np.searchsorted(known, value, "left"))
    upto = int(np.searchsorted(known, value, "right"))
    spread = float(known.std(ddof=1))
    return Rank(
        100 * (below + (upto - below + 1) / 2) / (n + 1),
        (value - float(known.mean())) / spread if spread > 0 else None,
        -10 * math.log10((upto + 1) / (n + 1)),
        name,
        n,
    )


def rank_held_out(scores: Sequence[RandomScore]) -> NDArray[np.float64]:
    """Percentiles of the random variants of odd number among those of even number, in order."""
    kept = ScoreRanks(one for one in scores if one.number % 2 == 0)
    ranks = (kept.rank(one.strata, one.value) for one in scores if one.number % 2)
    return np.array([one.percentile for one in ranks if one is not None])


def describe_calibration(scores: Sequence[RandomScore]) -> dict[str, Any]:
    """What a sidecar says of a class: its scores at each percent, and whether it is calibrated.

    `held_out` counts the percentiles of `rank_held_out` in 20 bins of equal width; `ks` is the
    largest distance of their distribution from the uniform one.
    """
    values = np.array([one.value for one in scores])
    points = np.quantile(values, np.linspace(0, 1, _POINTS)) if len(values) else np.zeros(0)
    found = np.sort(rank_held_out(scores)) / 100
    n = len(found)
    steps = np.arange(n + 1) / max(n, 1)
    ks = float(max(np.max(steps[1:] - found), np.max(found - steps[:-1]))) if n else None
    bins = np.histogram(found, _BINS, (0, 1))[0]
    return {
        "quantiles": [float(f"{one:.6g}") for one in points],
        "held_out": {"n": n, "ks": ks and round(ks, 6), "bins": bins.tolist()},
    }
