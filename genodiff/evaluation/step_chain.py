"""The law of the masks that a chain of T sampling steps evaluates, token by token.

A chain begins with 1 - alpha(1) of the tokens masked. Step i = T .. 1 sees k masks and reveals
each with chance r(i). Weigh each evaluation by the tokens that it reveals: then the bound is

    NELBO_T = (1 - alpha(1)) E[(n / k) C_k] + n alpha(1) ln K,      k = 1 + Binomial(n - 1, m(i)),
    m(i) = 1 - alpha(i/T), m(0) = 0,                     i with chance (m(i) - m(i-1)) / m(T)

since k Binomial(k; n, m) = n m Binomial(k - 1; n - 1, m) and r(i) m(i) = m(i) - m(i-1). One token
is revealed at i, and each of the others is masked there by its own coin. As T grows, k becomes
uniform on 1 .. n, and NELBO_T becomes the bound of infinitely many steps. The last term is what the
tokens cost that are still visible at t = 1: they come from a uniform prior over the K targets.

Source: Sahoo et al. 2024, arXiv 2406.07524, equation 8.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrik, gammaln  # type: ignore[import-untyped]

from genodiff.diffusion.schedule import Schedule

_AT_A_TIME = 1 << 22
_POWERS = ((1,), (0, 1), (0, 1, 1), (0, 1, 3, 1), (0, 1, 7, 6, 1))
"""Stirling numbers: B^j = sum over s of _POWERS[j][s] B (B - 1) .. (B - s + 1)."""
MOST_POWERS = len(_POWERS) - 1

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


class StepChain(NamedTuple):
    """A chain of T steps."""

    masked: Floats  # (T,) m(1) .. m(T): the chance to be masked before the step
    share: Floats  # (T,) of the tokens masked at t = 1, those that the step reveals; sums to 1

    @property
    def steps(self) -> int:
        """How many steps the chain has."""
        return len(self.masked)

    @property
    def hidden(self) -> float:
        """1 - alpha(1), the share of tokens that the chain reveals."""
        return float(self.masked[-1])


def make_chain(schedule: Schedule, steps: int) -> StepChain:
    """The chain of `steps` equal steps; step 1 reveals whatever is left."""
    grid = torch.arange(steps + 1, dtype=torch.float64) / steps
    masked = schedule.masked(grid).clamp(max=1).numpy().copy()
    masked[0] = 0.0
    return StepChain(masked[1:], np.diff(masked) / masked[-1])


def count_density(chain: StepChain, n: Counts, k: Counts) -> Floats:
    """n times the chance of k masks of n, 1 <= k <= n: 1 where k is as likely as a uniform one."""
    pairs, where = np.unique(np.stack([n.ravel(), k.ravel()]), axis=1, return_inverse=True)
    out = np.empty(pairs.shape[1])
    rows = max(1, _AT_A_TIME // chain.steps)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_in, log_out = np.log(chain.masked), np.log1p(-chain.masked)
        for first in range(0, len(out), rows):
            others, hidden = pairs[:, first : first + rows, None] - 1
            chosen = gammaln(others + 1) - gammaln(hidden + 1) - gammaln(others - hidden + 1)
            rest = np.where(others == hidden, 0.0, (others - hidden) * log_out)
            chance = np.exp(chosen + hidden * log_in + rest)
            out[first : first + rows] = (others[:, 0] + 1) * (chance @ chain.share)
    found: Floats = out[where.reshape(-1)].reshape(k.shape)
    return found


def mean_powers(chain: StepChain, n: Counts, degree: int) -> Floats:
    """(windows, degree + 1): the means of (k / n)^p for p = 0 .. degree, degree <= 4."""
    sizes, of = np.unique(n, return_inverse=True)
    others = sizes[:, None].astype(np.float64) - 1
    falling = [np.ones((len(sizes), chain.steps))]
    for s in range(degree):
        falling.append(falling[-1] * (others - s) * chain.masked)
    plain = [
        sum(c * f for c, f in zip(_POWERS[j], falling, strict=False)) for j in range(degree + 1)
    ]
    means = []
    for p in range(degree + 1):  # (1 + B)^p, B binomial
        moment = sum(math.comb(p, j) * plain[j] for j in range(p + 1))
        means.append((moment @ chain.share) / sizes.astype(np.float64) ** p)
    found: Floats = np.stack(means, 1)[of.reshape(-1)]
    return found


def draw_counts(chains: Sequence[StepChain], n: Counts, t: Floats) -> Counts:
    """Counts of masks by the law of the chains, each as often as another; `t` in (0, 1].

    t says first the chain, then the step, then the count, so times that are spread evenly give
    counts that are. 0 where n is 0.
    """
    place = np.clip(t, 1e-300, 1) * len(chains)
    number = np.clip(np.ceil(place).astype(int) - 1, 0, len(chains) - 1)
    within = place - number
    k = np.zeros(n.shape, np.int64)
    for chosen, chain in enumerate(chains):
        mine = (number == chosen) & (n > 0)
        ends = np.cumsum(chain.share)
        step = np.minimum(np.searchsorted(ends, within[mine]), chain.steps - 1)
        left = (within[mine] - (ends - chain.share)[step]) / chain.share[step]
        k[mine] = 1 + _quantile(left.clip(0, 1), n[mine] - 1, chain.masked[step])
    return k


def _quantile(u: Floats, n: Counts, p: Floats) -> Counts:
    """The smallest count whose cumulative Binomial(n, p) reaches u."""
    sure = (p >= 1) | (u >= 1) | (n == 0)
    safe_n, safe_p = np.where(sure, 1, n), np.where(sure, 0.5, p)
    rough = np.ceil(bdtrik(np.where(sure, 0.5, u), safe_n, safe_p))
    rough = np.nan_to_num(rough, nan=0.0).clip(0, safe_n)
    lower = (rough - 1).clip(0)
    found = np.where(bdtr(lower, safe_n, safe_p) >= u, lower, rough)
    return np.where(sure, n, found).astype(np.int64)
