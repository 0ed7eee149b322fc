"""An interval for a mean over training seeds that were all measured on the same test units.

Units are test examples, their clusters, or blocks of windows. Both the seeds and the units are
samples, so both make a figure uncertain. The method is the one that radiology uses for readers
(here: seeds) who see the same cases (here: units): Obuchowski & Rockette 1995, Hillis 2007.

    theta_s    the figure of seed s on all units, s = 1..S
    MS         the variance of theta_s over the seeds
    C          the mean covariance of theta_s and theta_s' (s != s') that the choice of units makes
    Var(mean)  = MS / S + max(C, 0)

It holds because E[MS] = var(seeds) + var(units) - C. The covariance comes from resampling the
units, with the same units for every seed and both models: a bootstrap of examples
(`tasks/paired_bootstrap.py`) or a jackknife over blocks of windows (`statistics/interval.py`).
The quantile of the interval is Cochran's (1964): those of Student's t for MS / S (S - 1 degrees of
freedom) and for C (those of the units), weighted by the two variances. Satterthwaite's formula
covers 90 to 93 % for two or three seeds. A percentile bootstrap that also resamples the seeds is
too narrow: the mean of 5 seeds drawn from 5 has 4/5 of the variance, and no heavy tails.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit  # type: ignore[import-untyped]

Floats = NDArray[np.float64]

TOO_FEW = "too few"
"""What stands in the place of an interval of fewer units than it takes."""
ONE_SEED, NO_VARIATION, UNDEFINED = "one seed", "no variation", "undefined"

LEAST_UNITS = 5
"""Of fewer test units, blocks of windows say, no interval is told: it would be of no use."""
_LEAST = 1e-15  # p values are not told below this


class JointEstimate(NamedTuple):
    """A mean over seeds, or a difference of two, and how sure it is.

    `parts` are its variances and their degrees of freedom, of seeds and of units; empty where there
    is no interval, and `why_none` then says why.
    """

    value: float
    parts: tuple[tuple[float, float], ...]
    seeds: int
    why_none: str = ""

    @property
    def se(self) -> float | None:
        """The standard error."""
        return math.sqrt(sum(part for part, _ in self.parts)) if self.parts else None

    @property
    def ci95(self) -> tuple[float, float] | None:
        """The 95 % interval."""
        if not self.parts:
            return None
        reach = self._reach(0.05)
        return self.value - reach, self.value + reach

    @property
    def p(self) -> float | None:
        """The two-sided p value of the hypothesis that the true value is 0."""
        return self._two_sided(abs(self.value)) if self.parts else None

    def test_equivalence(self, margin: float) -> float | None:
        """The p value of two one-sided tests (TOST) that the true value is beyond ±`margin`."""
        if not self.parts:
            return None
        inside = margin - abs(self.value)
        half = self._two_sided(abs(inside)) / 2
        return half if inside > 0 else 1 - half

    def scaled(self, by: float) -> "JointEstimate":
        """The same in another unit (`by` > 0)."""
        parts = tuple((part * by * by, df) for part, df in self.parts)
        return self._replace(value=self.value * by, parts=parts)

    def _reach(self, level: float) -> float:
        """Half the width of the interval that misses with probability `level`."""
        variance = sum(part for part, _ in self.parts)
        quantile = -sum(part * stdtrit(df, level / 2) for part, df in self.parts) / variance
        return float(quantile * math.sqrt(variance))

    def _two_sided(self, distance: float) -> float:
        """The level whose interval reaches just so far."""
        if self._reach(_LEAST) <= distance:
            return _LEAST
        low, high = math.log(_LEAST), 0.0
        while high - low > 1e-12:
            middle = (low + high) / 2
            low, high = (
                (middle, high) if self._reach(math.exp(middle)) > distance else (low, middle)
            )
        return math.exp(high)


def estimate_mean(values: Floats, cov: Floats, df_units: float) -> JointEstimate:
    """The mean of `values` (S,) over seeds.

    `cov` (S, S) is their covariance over the choice of units, and `df_units` its degrees of
    freedom: units less one. There is no interval for one seed, for fewer than `LEAST_UNITS` units
    and where nothing varies.
    """
    n = len(values)
    return _combine(float(np.mean(values)), [_spread_of_seeds(values)], _shared(cov), df_units, n)


def estimate_difference(
    a: Floats, b: Floats, cov: Floats, df_units: float, *, paired: bool
) -> JointEstimate:
    """The mean of `a` (S,) over its seeds minus that of `b` (T,).

    `cov` (S + T, S + T) is the covariance of all of them, `a` first. `paired` seeds are the same
    ones in the same order, and their differences are what varies over seeds.
    """
    value = float(np.mean(a) - np.mean(b))
    n = len(a)
    if paired:
        contrast = np.concatenate([np.eye(n), -np.eye(n)], 1)
        shared = _shared(contrast @ cov @ contrast.T)
        return _combine(value, [_spread_of_seeds(a - b)], shared, df_units, n)
    shared = _shared(cov[:n, :n]) + _shared(cov[n:, n:]) - 2 * float(np.mean(cov[:n, n:]))
    spreads = [_spread_of_seeds(a), _spread_of_seeds(b)]
    return _combine(value, spreads, shared, df_units, min(n, len(b)))


def estimate_one(value: float, variance: float, df_units: float, seeds: int = 1) -> JointEstimate:
    """A figure of fixed fits over the choice of units alone: nothing of what seeds do."""
    return _combine(value, [], variance, df_units, seeds)


def _spread_of_seeds(values: Floats) -> tuple[float, float]:
    """(the variance of the mean over seeds, its degrees of freedom); 0 of them for one seed."""
    n = len(values)
    return (float(np.var(values, ddof=1)) / n, n - 1) if n > 1 else (math.nan, 0)


def _shared(cov: Floats) -> float:
    """The mean covariance of two different seeds."""
    n = len(cov)
    return float((cov.sum() - np.trace(cov)) / (n * (n - 1))) if n > 1 else float(cov[0, 0])


def _combine(
    value: float, spreads: list[tuple[float, float]], shared: float, df_units: float, seeds: int
) -> JointEstimate:
    why = ""
    if not math.isfinite(value):
        why = UNDEFINED
    elif any(df == 0 for _, df in spreads):
        why = ONE_SEED
    elif df_units < LEAST_UNITS - 1:
        why = f"{TOO_FEW} test units"
    if why:
        return JointEstimate(value, (), seeds, why)
    parts = [(max(shared, 0.0), float(df_units))]
    if (of_seeds := sum(part for part, _ in spreads)) > 0:  # two of them as Welch adds them
        parts.append((of_seeds, of_seeds**2 / sum(part**2 / df for part, df in spreads)))
    variance = sum(part for part, _ in parts)
    if not (math.isfinite(variance) and variance > 1e-18 * max(1.0, value * value)):
        return JointEstimate(value, (), seeds, NO_VARIATION)
    return JointEstimate(value, tuple(parts), seeds)
