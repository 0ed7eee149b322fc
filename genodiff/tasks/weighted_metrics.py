"""Metrics of many resamples at once: each example stands as often as a resample drew it.

    weights[i, r]    how often resample r drew example i, (n, R)

`measure` of the repeated examples is the definition; `tests/tasks/test_paired_bootstrap.py` holds
both to each other. Here a metric of ranks is sorted once, and every resample is a sum over the
sorted weights.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import DataError
from genodiff.tasks.metrics import DECISIONS, Floats, decide, measure_margins


def measure_weighted(
    metric: str, kind: str, truth: NDArray[Any], predicted: Floats, weights: Floats
) -> Floats:
    """The metric of each of R resamples, (R,); NaN where a resample leaves it undefined.

    Raises `DataError` for a metric that such a task does not have.
    """
    if kind == "regression":
        return _of_values(metric, truth.astype(np.float64), predicted, weights)
    if metric in DECISIONS:
        return _of_decisions(metric, kind, truth, predicted, weights)
    found = {"auroc": _auroc, "auprc": _auprc}.get(metric)
    if found is None:
        raise DataError(f"metric {metric} is none of a {kind} task", fix="choose another")
    n_classes = predicted.shape[-1]
    yes = truth if kind == "multilabel" else truth[:, None] == np.arange(n_classes)
    columns = range(1, n_classes) if kind == "binary" else range(n_classes)
    each = [found(yes[:, i].astype(np.float64), predicted[:, i], weights) for i in columns]
    return np.asarray(np.mean(each, 0))


def _of_decisions(
    metric: str, kind: str, truth: NDArray[Any], predicted: Floats, weights: Floats
) -> Floats:
    decided = decide(kind, predicted)
    if kind != "multilabel":
        return _of_classes(metric, truth.astype(int), decided, predicted.shape[-1], weights)
    if metric == "accuracy":
        return np.asarray((truth == decided).mean(1) @ weights / weights.sum(0))
    one = "f1" if metric.startswith("f1") else metric
    pairs = zip(truth.T.astype(int), decided.T, strict=True)
    return np.asarray(np.mean([_of_classes(one, t, d, 2, weights) for t, d in pairs], 0))


def _of_classes(
    metric: str, truth: NDArray[Any], decided: NDArray[Any], n: int, weights: Floats
) -> Floats:
    true, said = np.eye(n)[truth], np.eye(n)[decided]
    counts = np.concatenate([true * said, true, said], 1).T @ weights
    return measure_margins(metric, counts[:n].T, counts[n : 2 * n].T, counts[2 * n :].T)


def _sort(values: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The ascending order of values, and where each group of equal ones begins in it."""
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    return order, np.append(0, np.flatnonzero(ascending[1:] != ascending[:-1]) + 1)


def _auroc(yes: Floats, score: Floats, weights: Floats) -> Floats:
    """Pairs of a yes above a no, ties counting half, over all pairs."""
    order, start = _sort(score)
    drawn = weights[order]
    is_yes = yes[order, None]
    positive = np.add.reduceat(drawn * is_yes, start, 0)
    negative = np.add.reduceat(drawn, start, 0) - positive
    below = np.cumsum(negative, 0) - negative / 2
    return _divide((positive * below).sum(0), positive.sum(0) * negative.sum(0))


def _auprc(yes: Floats, score: Floats, weights: Floats) -> Floats:
    """Precision at each threshold, weighted by the recall that it adds."""
    order, start = _sort(-score)
    drawn = weights[order]
    new = np.add.reduceat(drawn * yes[order, None], start, 0)
    positive, taken = np.cumsum(new, 0), np.cumsum(np.add.reduceat(drawn, start, 0), 0)
    precision = np.divide(positive, taken, out=np.zeros_like(positive), where=taken > 0)
    found = _divide((precision * new).sum(0), new.sum(0))
    return np.where(positive[-1] < taken[-1], found, np.nan)


def _of_values(metric: str, truth: Floats, predicted: Floats, weights: Floats) -> Floats:
    n = weights.sum(0)
    if metric == "mse":
        return np.asarray(np.square(truth - predicted) @ weights / n)
    if metric == "r2":
        left = np.square(truth - predicted) @ weights
        return 1 - _divide(left, _covariance(truth, truth, weights) * n)
    if metric not in ("pearson", "spearman"):
        raise DataError(f"metric {metric} is none of a regression task", fix="choose another")
    x: Any = truth
    y: Any = predicted
    if metric == "spearman":
        x, y = _ranks(truth, weights), _ranks(predicted, weights)
    own, other = _covariance(x, x, weights), _covariance(y, y, weights)
    found = _divide(_covariance(x, y, weights), np.sqrt(own * other))
    return np.where((own > 0) & ~(other > 0), 0.0, found)


def _ranks(values: Floats, weights: Floats) -> Floats:
    """The mean rank of each value in each resample, (n, R)."""
    order, start = _sort(values)
    size = np.add.reduceat(weights[order], start, 0)
    rank = np.cumsum(size, 0) - size / 2
    group = np.empty(len(values), np.int64)
    group[order] = np.repeat(np.arange(len(start)), np.diff(np.append(start, len(values))))
    return np.asarray(rank[group])


def _covariance(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Of values (n,) or (n, R) under the weights of each resample."""
    x, y = (v[:, None] if v.ndim == 1 else v for v in (x, y))
    n = weights.sum(0)
    gap_x, gap_y = (v - (v * weights).sum(0) / n for v in (x, y))
    found = (gap_x * gap_y * weights).sum(0) / n
    noise = 1e-14 * np.maximum(np.abs(x).max(0) * np.abs(y).max(0), 1e-300)
    return np.where(np.abs(found) > noise, found, 0.0)


def _divide(top: Floats, below: Floats) -> Floats:
    return np.divide(top, below, out=np.full_like(top, np.nan), where=below > 0)
