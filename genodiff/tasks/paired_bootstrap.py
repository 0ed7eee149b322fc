"""How sure metrics of a task's models are, over training seeds and test examples together.

Test examples are resampled, 10,000 times where decisions are counted. A resample is the same for
every model and seed, so differences are paired by example. Near-duplicates among the test examples
are one cluster, which is drawn as a whole (Field & Welsh 2007): two copies of a sequence are not
two tests. The resamples give the covariance of all (model, seed), and `statistics/seeds.py` joins
it with what the seeds do.

Metrics of many resamples at once: each example stands as often as a resample drew it.

    weights[i, r]    how often resample r drew example i, (n, R)

`measure` of the repeated examples is the definition; `tests/tasks/test_metrics_of_tasks.py` holds
both to each other. Here a metric of ranks is sorted once, and every resample is a sum over the
sorted weights.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.counter import Purpose, generator
from genodiff.errors import DataError
from genodiff.statistics.seeds import (
    JointEstimate,
    estimate_difference,
    estimate_mean,
    estimate_one,
)
from genodiff.tasks.metrics import DECISIONS, Floats, decide, measure, measure_margins


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


DRAWS, FEWER_DRAWS = 10_000, 1000
"""Resamples for metrics of counts, and for those that need each resample's ranks."""

_STREAM = 1  # stream 0 of this purpose is `measure_spread`'s
_CELLS = 1 << 22  # numbers of a chunk of resamples

Numbers = NDArray[np.int64]


class ModelPredictions(NamedTuple):
    """One model's predictions of a test part, one for each training seed."""

    seeds: tuple[int, ...]
    predicted: Sequence[Floats]


class ResampledScores(NamedTuple):
    """Values of several models and seeds on one test part, and how they vary over its examples.

    `cov` is the covariance of all values, in order; `models` gives where each model's seeds stand.
    """

    values: Floats
    cov: Floats
    df: float
    models: dict[str, tuple[slice, tuple[int, ...]]]

    def estimate(self, name: str) -> JointEstimate:
        """The mean of a model over seeds, with its interval over seeds and examples."""
        at, _ = self.models[name]
        return estimate_mean(self.values[at], self.cov[at, at], self.df)

    def estimate_fixed(self, name: str) -> JointEstimate:
        """As `estimate`, over examples alone: of these very fits, not of other seeds."""
        at, seeds = self.models[name]
        values, cov = self.values[at], self.cov[at, at]
        return estimate_one(float(values.mean()), float(cov.mean()), self.df, len(seeds))

    def compare(self, a: str, b: str) -> JointEstimate:
        """The mean of `a` minus that of `b`, with its interval over seeds and examples.

        It is paired by examples, and by seeds where both models have the same ones.
        """
        (here, ours), (there, theirs) = self.models[a], self.models[b]
        rows = np.r_[here, there]
        cov = self.cov[np.ix_(rows, rows)]
        one, other = self.values[here], self.values[there]
        return estimate_difference(one, other, cov, self.df, paired=ours == theirs)


def resample_scores(
    metric: str,
    kind: str,
    truth: NDArray[Any],
    models: dict[str, ModelPredictions],
    *,
    clusters: Numbers | None = None,
    draws: int | None = None,
    seed: int = 1,
) -> ResampledScores:
    """The values of all models and seeds, and their covariance over the choice of examples.

    All predictions are of the same examples, with labels `truth` (n,). `clusters` (n,) numbers what
    is drawn as one; by default each example. Where more than half of the resamples leave the metric
    undefined, there are no intervals.
    """
    where: dict[str, tuple[slice, tuple[int, ...]]] = {}
    stacked: list[Floats] = []
    for name, of in models.items():
        where[name] = (slice(len(stacked), len(stacked) + len(of.predicted)), of.seeds)
        stacked += of.predicted
    values = np.array([measure(metric, kind, truth, p) for p in stacked])
    number = np.arange(len(truth)) if clusters is None else clusters
    number = np.unique(number, return_inverse=True)[1]
    sizes = np.bincount(number)
    df = float(len(truth) ** 2 / np.square(sizes).sum() - 1) if len(truth) else 0.0
    cov = np.zeros((len(values), len(values)))
    if len(sizes) < 2 or not np.isfinite(values).all():
        return ResampledScores(values, cov, 0.0, where)
    counted = metric in DECISIONS and kind != "multilabel"
    wanted = draws or (DRAWS if counted else FEWER_DRAWS)
    each = []
    if counted:
        table, n = _count_classes(kind, truth, stacked, number), stacked[0].shape[-1]
        for drawn in _draw_clusters(number, wanted, seed, len(table)):
            counts = (table.T @ drawn.astype(np.float32)).astype(np.float64)
            parts = counts.reshape(-1, n, counts.shape[1]).transpose(0, 2, 1)
            pairs = zip(parts[1::2], parts[2::2], strict=True)
            each.append([measure_margins(metric, own, parts[0], said) for own, said in pairs])
    else:
        for drawn in _draw_clusters(number, wanted, seed, len(truth)):
            weights = drawn.astype(np.float64)[number]
            each.append([measure_weighted(metric, kind, truth, p, weights) for p in stacked])
    found = np.concatenate(each, 1)
    found = found[:, np.isfinite(found).all(0)]
    if found.shape[1] < wanted / 2:
        return ResampledScores(values, cov, 0.0, where)
    groups = len(sizes)
    return ResampledScores(values, np.atleast_2d(np.cov(found)) * groups / (groups - 1), df, where)


def _draw_clusters(number: Numbers, draws: int, seed: int, width: int) -> Iterator[Numbers]:
    """How often each cluster was drawn, (clusters, some of the draws) at a time: with replacement.

    `number` (n,) is each example's cluster; chunks have `width` numbers a draw.
    """
    draw = generator(seed, Purpose.BOOTSTRAP, _STREAM)
    n, step = int(number.max()) + 1, max(1, _CELLS // max(width, 1))
    for first in range(0, draws, step):
        rows = min(step, draws - first)
        drawn = draw.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).T


def _count_classes(
    kind: str, truth: NDArray[Any], stacked: list[Floats], number: Numbers
) -> NDArray[np.float32]:
    """Counts of classes in each cluster: true, then right and said of each model and seed."""
    n = stacked[0].shape[-1]
    true = np.eye(n, dtype=np.float32)[truth.astype(int)]
    said = [np.eye(n, dtype=np.float32)[decide(kind, p)] for p in stacked]
    of_examples = np.concatenate([true, *(x for s in said for x in (true * s, s))], 1)
    table = np.zeros((number.max() + 1, of_examples.shape[1]), np.float32)
    np.add.at(table, number, of_examples)
    return table
