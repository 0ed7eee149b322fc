"""The part of a bound's estimate that only tells how much of a window happened to be masked.

A window with n tokens of which k are masked gives y = (n / k) S_k, an estimate of its bound with
mean n C_k / k given k. C_k / k falls or rises steeply with k, so y scatters much more over windows
than the bound does. With a curve c(r) close to C_k / k at the masked share r = k / n,

    y - n (c(r) - mean of c)        mean of c = (1 / n) sum over k = 1..n of c(k / n)

has the same mean for every c, because k is uniform on 1..n: c is a control variate whose mean is
known. What is left scatters as the bounds themselves and the choice of masked positions do.

The curve is a polynomial fitted to the draws. For the draws of each of five parts it is fitted to
the other four, so that it has not seen what it is taken from. With few draws it has a low degree,
or is left out: an interval is then too wide rather than too narrow.
"""

import numpy as np
from numpy.typing import NDArray

ENOUGH = 60
"""Draws from which on the curve follows any slope that is met."""

_DEGREES = ((ENOUGH, 4), (20, 2), (12, 1))  # (draws from which on, degree of the curve)
_FOLDS = 5

Floats = NDArray[np.float64]


def count_draws(tokens: Floats, repeats: int, shared: NDArray[np.int64] | None) -> int:
    """How many counts of masks were drawn for windows of `tokens` (2, windows)."""
    counts = tokens.sum(0) > 0
    return repeats * (int(counts.sum()) if shared is None else len(np.unique(shared[counts])))


def remove_curve(
    nats: Floats, tokens: Floats, rate: Floats, shared: NDArray[np.int64] | None = None
) -> Floats:
    """`nats` (2, repeats, windows) less what the masked shares `rate` (repeats, windows) explain.

    `tokens` (2, windows) are upper case and soft-masked; a row of no tokens stays 0. `shared`
    (windows,) numbers what had its masks counted together.
    """
    draws, mine = count_draws(tokens, len(rate), shared), tokens.sum(0)
    degree = next((degree for least, degree in _DEGREES if draws >= least), 0)
    if not degree:
        return nats
    n = np.broadcast_to(mine, rate.shape)
    drawn = (n > 0) & (rate > 0)
    number = np.arange(rate.size).reshape(rate.shape)
    counted = n
    if shared is not None:
        number = shared + (int(shared.max()) + 1) * np.arange(len(rate))[:, None]
        counted = np.broadcast_to(np.bincount(shared, mine)[shared], rate.shape)
    y, root = nats.sum(0)[drawn] / n[drawn], np.sqrt(n[drawn])
    columns = _powers(rate[drawn], degree) - _mean_powers(counted[drawn], degree)
    fold = np.unique(number[drawn], return_inverse=True)[1] % _FOLDS
    explained = np.zeros(rate.shape)
    curve = np.zeros(len(y))
    weighted = root[:, None] * np.column_stack([np.ones(len(y)), columns])
    for part in range(_FOLDS):
        held, others = fold == part, fold != part
        fitted = np.linalg.lstsq(weighted[others], (root * y)[others], rcond=None)[0]
        curve[held] = columns[held] @ fitted[1:]
    explained[drawn] = curve
    result: Floats = nats - tokens[:, None] * explained
    return result


def _powers(rate: Floats, degree: int) -> Floats:
    return rate[:, None] ** np.arange(1, degree + 1)


def _mean_powers(n: Floats, degree: int) -> Floats:
    """(draws, degree): the means of (k / n)^p over k = 1..n, for p = 1..degree."""
    sizes, of = np.unique(n.round().astype(np.int64), return_inverse=True)
    means = [_powers(np.arange(1, size + 1) / size, degree).mean(0) for size in sizes.tolist()]
    found: Floats = np.stack(means)[of]
    return found
