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
(`tasks/paired_bootstrap.py`) or a jackknife over blocks of windows (`scoring/seed_windows.py`). The
interval is Student's t, with Satterthwaite's degrees of freedom of MS / S (S - 1) and C (those of
the units). A percentile bootstrap that also resamples a handful of seeds is too narrow: the mean of
5 seeds drawn from 5 has 4/5 of the variance, and no heavy tails. `tests/statistics` measures both.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit  # type: ignore[import-untyped]

Floats = NDArray[np.float64]

ONE_SEED = "one seed"
ONE_UNIT = "too few test units"
NO_VARIATION = "no variation"
UNDEFINED = "undefined"


class JointEstimate(NamedTuple):
    """A mean over seeds, or a difference of two, with its standard error and degrees of freedom.

    `se` is None where there is no interval; `why_none` then says why.
    """

    value: float
    se: float | None
    df: float
    seeds: int
    why_none: str = ""

    @property
    def ci95(self) -> tuple[float, float] | None:
        """The 95 % interval."""
        if self.se is None:
            return None
        reach = float(stdtrit(self.df, 0.975)) * self.se
        return self.value - reach, self.value + reach

    @property
    def p(self) -> float | None:
        """The two-sided p value of the hypothesis that the true value is 0."""
        if self.se is None:
            return None
        return float(2 * stdtr(self.df, -abs(self.value) / self.se))

    def test_equivalence(self, margin: float) -> float | None:
        """The p value of two one-sided tests (TOST) that the true value is beyond ±`margin`."""
        if self.se is None:
            return None
        return float(stdtr(self.df, (abs(self.value) - margin) / self.se))

    def scaled(self, by: float) -> "JointEstimate":
        """The same in another unit (`by` > 0)."""
        return self._replace(value=self.value * by, se=None if self.se is None else self.se * by)


def estimate_mean(values: Floats, cov: Floats, df_units: float) -> JointEstimate:
    """The mean of `values` (S,) over seeds.

    `cov` (S, S) is their covariance over the choice of units, and `df_units` its degrees of
    freedom: units less one. There is no interval for one seed, for fewer than two units and where
    nothing varies.
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


def _spread_of_seeds(values: Floats) -> tuple[float, int]:
    """(the variance of the mean over seeds, its degrees of freedom); 0 of them for one seed."""
    n = len(values)
    return (float(np.var(values, ddof=1)) / n, n - 1) if n > 1 else (math.nan, 0)


def _shared(cov: Floats) -> float:
    """The mean covariance of two different seeds."""
    n = len(cov)
    return float((cov.sum() - np.trace(cov)) / (n * (n - 1))) if n > 1 else float(cov[0, 0])


def _combine(
    value: float, spreads: list[tuple[float, int]], shared: float, df_units: float, seeds: int
) -> JointEstimate:
    """The sum of the variances, with Satterthwaite's degrees of freedom."""
    why = ""
    if not math.isfinite(value):
        why = UNDEFINED
    elif any(df == 0 for _, df in spreads):
        why = ONE_SEED
    elif df_units < 1:
        why = ONE_UNIT
    if why:
        return JointEstimate(value, None, 0.0, seeds, why)
    parts = [*spreads, (max(shared, 0.0), df_units)]
    variance = sum(part for part, _ in parts)
    if not (math.isfinite(variance) and variance > 1e-18 * max(1.0, value * value)):
        return JointEstimate(value, None, 0.0, seeds, NO_VARIATION)
    df = variance**2 / sum(part**2 / df for part, df in parts)
    return JointEstimate(value, math.sqrt(variance), float(df), seeds)
