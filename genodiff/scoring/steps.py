"""What sampling in T steps costs: the bound of a chain of T steps, from the same draws as the bound
of infinitely many.

    NELBO   = sum over k of C_k / k                                          one token at a time
    NELBO_T = sum over k of w(k) C_k,
    w(k) = sum over i = 1..T of r(i) Binomial(k; n, 1 - alpha(i/T))

A window whose estimate is (n / k) S_k, k uniform on 1..n, estimates NELBO_T by n w(k) S_k = k w(k)
times the former: unbiased too, and with an interval over windows. It scatters more the fewer steps
there are, since only counts near n (1 - alpha(i/T)) matter; so fewer than `FEWEST` steps are not
reported.

Source: Sahoo et al. 2024, arXiv 2406.07524, equation 8 and table 11.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import gammaln  # type: ignore[import-untyped]

from genodiff.diffusion.objective import Objective
from genodiff.diffusion.schedule import Schedule
from genodiff.scoring.interval import BITS, ratio

STEPS = (10, 20, 50, 100, 200, 500, 1000)
FEWEST = STEPS[0]
_AT_A_TIME = 1 << 22

Floats = NDArray[np.float64]


def step_weight(
    n: NDArray[np.int64], k: NDArray[np.int64], schedule: Schedule, steps: int
) -> Floats:
    """w(k) of windows with n tokens, 1 <= k <= n; needs alpha(1) = 0 to be all of the chain."""
    grid = torch.arange(steps + 1, dtype=torch.float64) / steps
    masked = schedule.masked(grid).clamp(max=1).numpy()
    reveal = 1 - masked[:-1] / masked[1:]
    reveal[0] = 1.0
    pairs, where = np.unique(np.stack([n, k]), axis=1, return_inverse=True)
    out = np.empty(pairs.shape[1])
    rows = max(1, _AT_A_TIME // steps)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_in, log_out = np.log(masked[1:]), np.log1p(-masked[1:])
        for first in range(0, len(out), rows):
            size, count = pairs[:, first : first + rows, None]
            chosen = gammaln(size + 1) - gammaln(count + 1) - gammaln(size - count + 1)
            rest = np.where(size == count, 0.0, (size - count) * log_out)
            out[first : first + rows] = (reveal * np.exp(chosen + count * log_in + rest)).sum(1)
    return out[where.reshape(-1)]


def step_bits(
    objective: Objective,
    nats: Floats,
    tokens: Floats,
    rate: Floats | None,
    size: Floats | None = None,
) -> dict[str, dict[str, Any]]:
    """{"10": {"bits", "ci95"}, ...}: NELBO_T in bits per token (or per unit of `size`), under the
    objective's schedule.

    `nats` and `rate` (repeats, windows) are estimates of the bound and their masked shares; {} for
    objectives whose bound is no cross-entropy of an exact count of masks.
    """
    if rate is None or objective.kind != "masked":
        return {}
    n = np.broadcast_to(tokens, rate.shape).round().astype(np.int64)
    k = np.rint(rate * n).astype(np.int64).clip(1)
    found = {}
    for steps in STEPS:
        factor = k * step_weight(
            np.maximum(n, 1).reshape(-1), k.reshape(-1), objective.diffusion.schedule, steps
        ).reshape(k.shape)
        figure = ratio((factor * nats).mean(0), tokens if size is None else size).scaled(BITS)
        found[str(steps)] = {"bits": figure.value, "ci95": figure.ends()}
    return found
