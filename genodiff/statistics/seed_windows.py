"""Figures per base of models with several training seeds, over seeds and windows together.

    nats[s, w]   the nats of the model with seed s on window w, all on the same windows
    size[w]      bases (or bytes) of window w
    R_s          sum_w nats[s, w] / sum_w size[w]

Windows are taken as `interval.py` takes them: blocks of consecutive windows, left out one at a
time. That gives the covariance of all R_s at once, and `statistics/seeds.py` joins it with
what the seeds do. All is in nats; `.scaled(BITS)` makes it bits.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from genodiff.statistics.comparisons import JudgedDifference, judge_differences
from genodiff.statistics.interval import BITS, Floats, count_blocks
from genodiff.statistics.seeds import (
    JointEstimate,
    estimate_difference,
    estimate_mean,
    estimate_one,
)


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
