"""Standard errors by leaving out groups of sequences, and intervals of shares and means."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.statistics.seeds import LEAST_UNITS

Floats = NDArray[np.float64]
GROUPS = 20


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
