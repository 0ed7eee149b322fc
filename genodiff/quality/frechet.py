"""The Frechet distance of two sets of embeddings, each taken as a normal law (FBD, FID).

    d2  =  |m1 - m2|^2 + tr(S1 + S2 - 2 (S1 S2)^(1/2))

It is never 0 of finite sets, and grows as they shrink: it is read beside that of real against other
real sequence of the same number, never by itself. Sources: Dowson and Landau 1982; Heusel et al.
2017 (FID); Stark et al. 2024 (of DNA).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.statistics.jackknife import cut_groups, measure_spread

Floats = NDArray[np.float64]


def measure_frechet(one: Floats, other: Floats) -> dict[str, Any] | None:
    """The distance d2 of rows (n, D) and (m, D), with a jackknife's standard error over groups.

    None where a set has fewer than two rows: one row has no spread.
    """
    if min(len(one), len(other)) < 2:
        return None
    parts = list(zip(cut_groups(len(one)), cut_groups(len(other)), strict=False))
    without = [
        find_frechet(np.delete(one, a, axis=0), np.delete(other, b, axis=0))
        for a, b in parts
        if len(parts) > 1
    ]
    return {
        "value": find_frechet(one, other),
        "se": measure_spread(without) if without else None,
    }


def find_frechet(one: Floats, other: Floats) -> float:
    """The distance d2 of two sets of rows; never below 0. Each has two rows or more."""
    means = [rows.mean(0) for rows in (one, other)]
    laws = [np.atleast_2d(np.cov(rows, rowvar=False)) for rows in (one, other)]
    # The eigenvalues of S1 S2 are those of the symmetric A S2 A with A the root of S1.
    values, vectors = np.linalg.eigh(laws[0])
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    both = np.linalg.eigvalsh(root @ laws[1] @ root)
    shared = np.sqrt(np.maximum(both, 0.0)).sum()
    apart = np.square(means[0] - means[1]).sum()
    return max(0.0, float(apart + np.trace(laws[0]) + np.trace(laws[1]) - 2 * shared))
