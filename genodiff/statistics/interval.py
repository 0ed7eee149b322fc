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

Of models with several training seeds, nats[s, w] are those of seed s on window w. Blocks are left
out of all seeds together, which gives the covariance of all R_s at once, and `seeds.py` joins it
with what the seeds do. All is in nats; `.scaled(BITS)` makes it bits. Of sets of sequences, groups
are left out (`jackknife`).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit  # type: ignore[import-untyped]

from genodiff.statistics.comparisons import JudgedDifference, judge_differences
from genodiff.statistics.seeds import (
    LEAST_UNITS,
    JointEstimate,
    estimate_difference,
    estimate_mean,
    estimate_one,
)

MIN_BLOCKS, GROUPS = 8, 20
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


def estimate_ratio(nats: Floats, size: Floats) -> JointEstimate:
    """The mean over seeds of nats per unit of size, with its interval over seeds and windows.

    `nats` is (seeds, windows), `size` (windows,), in genome order; windows of size 0 are left out.
    For one seed there is no such interval; `estimate_fixed_ratio` gives that of windows alone.
    Raises `ValueError` where no window has a size.
    """
    values, cov, df = _jackknife(nats, size)
    return estimate_mean(values, cov, df)


def estimate_fixed_ratio(nats: Floats, size: Floats) -> JointEstimate:
    """As `estimate_ratio`, over windows alone: of these very fits, not of other seeds."""
    values, cov, df = _jackknife(nats, size)
    return estimate_one(float(values.mean()), float(cov.mean()), df, len(values))


def estimate_ratio_difference(
    a: Floats, b: Floats, size: Floats, *, same_seeds: bool
) -> JointEstimate:
    """Nats per unit of size of `a` (seeds, windows) minus those of `b`: below 0 `a` is better.

    Both are of the same windows. With `same_seeds` row s of both is of one training seed, and
    differences are taken seed by seed. The interval covers seeds and windows.
    """
    values, cov, df = _jackknife(np.concatenate([a, b]), size)
    return estimate_difference(values[: len(a)], values[len(a) :], cov, df, paired=same_seeds)


def estimate_fixed_difference(a: Floats, b: Floats, size: Floats) -> JointEstimate:
    """As `estimate_ratio_difference`, over windows alone: of these very fits."""
    return estimate_fixed_ratio((np.mean(a, 0) - np.mean(b, 0))[None], size)


def compare_models(
    nats: Mapping[str, Floats],
    size: Floats,
    *,
    pairs: Sequence[tuple[str, str]] | None = None,
    same_seeds: bool = True,
    margin: float | None = None,
) -> list[JudgedDifference]:
    """Differences in bits per unit of size between models, judged together by Holm's correction.

    `nats` has (seeds, windows) for each model by name, all on the same windows. `pairs` are the
    comparisons of the table; by default every two models. With several seeds of both, an interval
    covers seeds and windows, and with one seed of both, windows alone. One seed against several
    has none. With `same_seeds` and equally many rows, row s is one training seed in all models.
    With a `margin` (bits) models can be found equivalent.
    """
    found = []
    for a, b in list(combinations(nats, 2)) if pairs is None else pairs:
        one, other = nats[a], nats[b]
        if len(one) == len(other) == 1:
            estimate = estimate_fixed_difference(one, other, size)
        else:
            same = same_seeds and len(one) == len(other)
            estimate = estimate_ratio_difference(one, other, size, same_seeds=same)
        found.append((a, b, estimate.scaled(BITS)))
    return judge_differences(found, margin)


def _jackknife(nats: Floats, size: Floats) -> tuple[Floats, Floats, int]:
    """(R_s (S,), their covariance (S, S), degrees of freedom), leaving out a block at a time."""
    some = size > 0
    y, n = np.asarray(nats, np.float64)[:, some], np.asarray(size, np.float64)[some]
    if not len(n):
        raise ValueError("no window has a size")
    values = y.sum(1) / n.sum()
    groups = count_blocks(len(n))
    if groups < 2:
        return values, np.zeros((len(y), len(y))), 0
    first = np.arange(groups) * len(n) // groups
    left = y.sum(1, keepdims=True) - np.add.reduceat(y, first, axis=1)
    without = left / (n.sum() - np.add.reduceat(n, first))
    gaps = without - without.mean(1, keepdims=True)
    return values, (groups - 1) / groups * gaps @ gaps.T, groups - 1


def cut_groups(n: int) -> list[slice]:
    """The rows 0..n-1 in up to `GROUPS` groups of neighbours; one where there are under 4."""
    groups = max(1, min(GROUPS, n // 2))
    edges = np.linspace(0, n, groups + 1).astype(int).tolist()
    return [slice(a, b) for a, b in pairwise(edges)]


def sum_groups(sequences: Sequence[Any], count: Callable[[Sequence[Any]], Floats]) -> Floats:
    """(groups, K): what `count` (K,) finds in each group of sequences."""
    return np.stack([count(sequences[part]) for part in cut_groups(len(sequences))])


def jackknife(
    one: Floats, other: Floats, figure: Callable[[Floats, Floats], float]
) -> dict[str, Any]:
    """`figure` of the sums of two tables of groups, (G, K) each, with a standard error.

    A group of both is left out together, so the error covers both sets.
    """
    mine, theirs = one.sum(0), other.sum(0)
    se = None
    if len(one) == len(other) >= LEAST_UNITS:
        pairs = zip(one, other, strict=True)
        se = measure_spread([figure(mine - a, theirs - b) for a, b in pairs])
    return {"value": figure(mine, theirs), "se": se}


def measure_spread(without: Sequence[float]) -> float:
    """The standard error of a figure, of its values without each group."""
    values, g = np.array(without), len(without)
    return math.sqrt((g - 1) / g * float(np.square(values - values.mean()).sum()))


def describe_share(name: str, hits: int, n: int) -> dict[str, Any]:
    """A share under `name`, and its 95 % interval (Wilson 1927) under `name`_ci95."""
    p, z = hits / n, 1.96
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return {name: p, f"{name}_ci95": [max(0.0, middle - half), min(1.0, middle + half)]}


def describe_mean(values: Floats) -> dict[str, Any]:
    """A mean with its standard error and the 95 % quantile of the values."""
    se = float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None
    return {"mean": float(values.mean()), "se": se, "p95": float(np.quantile(values, 0.95))}
