"""Several opinions of a base become one distribution: log-linear, with fitted weights.

    log p(b) = Σ_f a_f · feature_f(b) + const

Features are logarithms of what is said of each base; the weights cost least bits on places whose
base is known. The cost is convex in the weights (a conditional logit).
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from genodiff.memory.tables import Floats


def fit_weights(
    features: Floats,
    truth: NDArray[np.integer],
    counts: Floats,
    *,
    toward: Floats,
    ridge: float = 1e-4,
) -> Floats:
    """(F,): the weights under which `truth` (M,) costs least.

    `features` (M, F, 4). `counts` (M,): what each place counts. `toward` (F,): where the ridge
    draws the weights to.
    """
    share = counts / counts.sum()
    rows = np.arange(len(truth))
    true = features[rows, :, truth]

    def cost(weights: Floats) -> tuple[float, Floats]:
        logs = np.einsum("mfc,f->mc", features, weights)
        logs -= logs.max(1, keepdims=True)
        chance = np.exp(logs)
        total = chance.sum(1, keepdims=True)
        chance /= total
        off = weights - toward
        value = -share @ (logs[rows, truth] - np.log(total[:, 0])) + ridge * off @ off
        mean = np.einsum("mfc,mc->mf", features, chance)
        return float(value), -share @ (true - mean) + 2 * ridge * off

    return np.asarray(minimize(cost, toward, jac=True, method="L-BFGS-B").x)


def pool(features: Floats, weights: Floats) -> Floats:
    """(..., 4): the distribution; `features` (..., F, 4)."""
    logs = np.einsum("...fc,f->...c", features, weights)
    logs -= logs.max(-1, keepdims=True)
    chance = np.exp(logs)
    return np.asarray(chance / chance.sum(-1, keepdims=True))
