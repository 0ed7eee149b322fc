"""What training makes small at each base, with unknown bases left out.

    cross-entropy    Σ w_y (−ln p_y) / Σ w_y over known bases, w a weight of each class
    poisson          the mean of exp(s) − v s over known values v; s is the logarithm of a rate
    mse              the mean of (s − v)² over known values

A batch without a known base costs 0, and has no gradient.
"""

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from genodiff.annotation.gene_grammar import UNKNOWN


def class_cost(
    scores: Float[Tensor, "B L C"],
    labels: Int[Tensor, "B L"],
    weights: Float[Tensor, " C"] | None = None,
) -> Float[Tensor, ""]:
    """The cross-entropy of known bases."""
    known = labels != UNKNOWN
    found = labels[known].long()
    total = F.cross_entropy(scores[known], found, weight=weights, reduction="sum")
    if weights is None:
        return total / known.sum().clamp(min=1)
    return total / weights[found].sum().clamp(min=torch.finfo(total.dtype).tiny)


def poisson_cost(
    scores: Float[Tensor, "B L T"], values: Float[Tensor, "B L T"]
) -> Float[Tensor, ""]:
    """The Poisson likelihood of known values, without its constant."""
    known = values.isfinite()
    each = scores[known].exp() - values[known] * scores[known]
    return each.sum() / known.sum().clamp(min=1)


def square_cost(
    scores: Float[Tensor, "B L T"], values: Float[Tensor, "B L T"]
) -> Float[Tensor, ""]:
    """The mean square of known values' gaps."""
    known = values.isfinite()
    return (scores[known] - values[known]).square().sum() / known.sum().clamp(min=1)


VALUE_COSTS: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "poisson": (poisson_cost, torch.exp),
    "mse": (square_cost, lambda scores: scores),
}
"""Of each: the cost, and the values that scores mean."""


def balance_classes(counts: NDArray[np.int64], power: float) -> NDArray[np.float32]:
    """Weights n_c^−power of classes, whose mean over bases is 1; 0 for one that does not occur.

    Power 0 weighs bases alike, 1 classes alike.

    >>> balance_classes(np.array([8, 2, 0]), 1.0).tolist()
    [0.625, 2.5, 0.0]
    """
    weights = np.zeros(len(counts))
    there = counts > 0
    weights[there] = counts[there].astype(np.float64) ** -power
    return np.asarray(weights * counts.sum() / (weights @ counts), np.float32)
