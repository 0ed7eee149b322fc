"""Where a score stands among those of random variants: percentile, z and PHRED.

Of n scores in a stratum, `less` are below a score s and `equal` are equal to it:

    percentile   100 (less + (equal + 1) / 2) / (n + 1)     uniform for a random variant
    z            (s − mean) / standard deviation
    PHRED        −10 log10 ((less + equal + 1) / (n + 1))    at most 10 log10(n + 1)

PHRED is that of the share of random variants which the model finds as unlikely or more so, itself
counted. No percentile says that a variant is pathogenic.

The strata of a class make groups, and each variant is in one of them. A finer stratum is a group if
it has `least` scores. What is in no such stratum is grouped by its coarsest one: with others like
it alone, not with those that have a group of their own. So the percentile of a random member is
uniform in every group, whatever the scores are. A group with fewer than `LEAST_OF_GROUP` gives no
percentile.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LEAST = 100
"""Scores that a stratum needs to be a group, where a score costs few windows."""
LEAST_OF_GROUP = 20
_BINS = 20
_POINTS = 101


class Rank(NamedTuple):
    """Where a score stands in its group of `n` scores."""

    percentile: float
    z: float | None  # None where all scores of the group are equal
    phred: float
    stratum: str
    n: int


class RandomScore(NamedTuple):
    """One random variant: the number of its draw, its strata, and its score as it is compared."""

    number: int
    strata: Sequence[str]
    value: float


class ScoreRanks:
    """The scores of the random variants of one class, in groups.

    `more` are random members of single groups, drawn because the genome has few of them.
    """

    def __init__(
        self,
        scores: Iterable[RandomScore],
        least: int = LEAST,
        more: Mapping[str, Sequence[float]] | None = None,
    ) -> None:
        held = list(scores)
        fine = Counter(stratum for one in held for stratum in one.strata[:-1])
        self._groups = {stratum for stratum, n in fine.items() if n >= least}
        values: dict[str, list[float]] = {}
        for one in held:
            group = self.find_group(one.strata)
            if group is not None:
                values.setdefault(group, []).append(one.value)
        for group, some in (more or {}).items():
            values.setdefault(group, []).extend(some)
        self._sorted = {name: np.sort(np.array(some)) for name, some in values.items()}

    def find_group(self, strata: Sequence[str]) -> str | None:
        """The group of a variant with these strata; None without any."""
        own = (stratum for stratum in strata[:-1] if stratum in self._groups)
        return next(own, strata[-1] if strata else None)

    def rank(self, strata: Sequence[str], value: float) -> Rank | None:
        """The rank of a score in its group; None where that has too few scores."""
        group = self.find_group(strata)
        if group is None or self.count(group) < LEAST_OF_GROUP:
            return None
        known = self._sorted[group]
        n, below = len(known), int(np.searchsorted(known, value, "left"))
        upto = int(np.searchsorted(known, value, "right"))
        spread = float(known.std(ddof=1))
        return Rank(
            100 * (below + (upto - below + 1) / 2) / (n + 1),
            (value - float(known.mean())) / spread if spread > 0 else None,
            -10 * math.log10((upto + 1) / (n + 1)),
            group,
            n,
        )

    def count(self, group: str) -> int:
        """How many scores a group has."""
        return len(self._sorted.get(group, ()))


def rank_held_out(scores: Sequence[RandomScore], least: int = LEAST) -> NDArray[np.float64]:
    """Percentiles of the random variants of odd number among those of even number, in order."""
    kept = ScoreRanks((one for one in scores if one.number % 2 == 0), least)
    ranks = (kept.rank(one.strata, one.value) for one in scores if one.number % 2)
    return np.array([one.percentile for one in ranks if one is not None])


def describe_calibration(scores: Sequence[RandomScore], least: int = LEAST) -> dict[str, Any]:
    """What a sidecar says of a class: its scores at each percent, and whether it is calibrated.

    `held_out` counts the percentiles of `rank_held_out` in 20 bins of equal width; `ks` is the
    largest distance of their distribution from the uniform one.
    """
    values = np.array([one.value for one in scores])
    points = np.quantile(values, np.linspace(0, 1, _POINTS)) if len(values) else np.zeros(0)
    found = np.sort(rank_held_out(scores, least)) / 100
    n = len(found)
    steps = np.arange(n + 1) / max(n, 1)
    ks = float(max(np.max(steps[1:] - found), np.max(found - steps[:-1]))) if n else None
    bins = np.histogram(found, _BINS, (0, 1))[0]
    return {
        "quantiles": [float(f"{one:.6g}") for one in points],
        "held_out": {"n": n, "ks": ks and round(ks, 6), "bins": bins.tolist()},
    }
