"""Metrics of predictions, by their names in `task.Metric`, and how sure they are.

Predictions are probabilities (n, classes), probabilities of yes (n, classes) for several yes/no
answers, or values (n,). A class's number is its place in the task's `classes`; nothing here depends
on a listing or on which labels happen to occur.

The interval is the percentile bootstrap over test examples, of the mean over seeds: every seed's
model is scored on the same resample. Metrics of decisions depend on the counts of (truth, decisions
of all seeds) alone, so a resample is one draw of those counts from a multinomial, which is the same
law as drawing n examples with replacement. It covers the choice of test examples; what seeds do is
shown beside it, as max − min.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats  # type: ignore[import-untyped]
from sklearn import metrics as sk

from genodiff.counter import Purpose, generator
from genodiff.errors import DataError

Floats = NDArray[np.float64]
T = TypeVar("T")

RESAMPLES = 1000
DECISIONS = ("accuracy", "f1", "f1_macro", "mcc")
"""Metrics of the most probable class; the others read the probabilities or values themselves."""

HIGHER = {"mse": False}
"""Whether more is better, where it is not."""

RANGES = {
    **dict.fromkeys(("accuracy", "f1", "f1_macro", "auroc", "auprc"), (0.0, 1.0)),
    **dict.fromkeys(("mcc", "pearson", "spearman"), (-1.0, 1.0)),
    "r2": (-math.inf, 1.0),
    "mse": (0.0, math.inf),
}
"""The values that a metric can have."""


class Spread(NamedTuple):
    """A metric over seeds: the mean, max − min, and the interval of the mean over test examples.

    The interval is None where it is not defined.
    """

    mean: float
    range: float
    ci95: tuple[float, float] | None
    seeds: int


def decide(kind: str, predicted: Floats) -> NDArray[np.int64]:
    """The decisions in `predicted`: the most probable class, the first of equals.

    For yes/no answers, yes where its probability is at least 1/2.
    """
    if kind == "multilabel":
        return (predicted >= 0.5).astype(np.int64)
    return predicted.argmax(-1)


def is_better(metric: str, a: float, b: float) -> bool:
    """Whether `a` is strictly better than `b`."""
    return a > b if HIGHER.get(metric, True) else a < b


def pick_best(metric: str, tried: Iterable[tuple[float, T]]) -> tuple[float, T]:
    """The pair (value, what has it) whose value is best, the first of equals."""
    return (max if HIGHER.get(metric, True) else min)(tried, key=lambda pair: pair[0])


def align_columns(classes: NDArray[Any], found: Floats, n_classes: int) -> Floats:
    """`found` with each column at its class's number, (n, n_classes).

    A class that train lacks has probability 0.
    """
    scores = np.zeros((len(found), n_classes))
    scores[:, classes.astype(int)] = found
    return scores


def measure(metric: str, kind: str, truth: NDArray[Any], predicted: Floats) -> float:
    """One metric. Raises `DataError` for a metric that such a task does not have.

    f1 is that of class 1 for binary tasks, otherwise the mean over classes (as f1_macro); auroc and
    auprc of more than two classes are means over one-against-rest. A metric that the data leave
    undefined is 0 (mcc, f1) or NaN (auroc, r2, correlation).
    """
    if kind == "regression":
        return _of_values(metric, truth.astype(np.float64), predicted)
    n_classes = predicted.shape[-1]
    if metric in DECISIONS:
        return _of_decisions(metric, kind, truth, decide(kind, predicted), n_classes)
    found = {"auroc": sk.roc_auc_score, "auprc": sk.average_precision_score}.get(metric)
    if found is None:
        what = f"metric {metric} is none of a {kind} task"
        raise DataError(what, fix=f"choose one of {', '.join((*DECISIONS, 'auroc', 'auprc'))}")
    yes = truth
    if kind != "multilabel":
        yes = (truth[:, None] == np.arange(n_classes)).astype(np.int64)
    if kind == "binary":
        yes, predicted = yes[:, 1:], predicted[:, 1:]
    each = [
        float(found(y, p)) if 0 < y.sum() < len(y) else np.nan
        for y, p in zip(yes.T, predicted.T, strict=True)
    ]
    return float(np.mean(each))


def _of_values(metric: str, truth: Floats, predicted: Floats) -> float:
    if metric == "mse":
        return float(sk.mean_squared_error(truth, predicted))
    if len(truth) < 2 or np.ptp(truth) == 0:
        return float("nan")
    if metric == "r2":
        return float(sk.r2_score(truth, predicted))
    if metric not in ("pearson", "spearman"):
        what = f"metric {metric} is none of a regression task"
        raise DataError(what, fix="choose one of pearson, spearman, r2, mse")
    if np.ptp(predicted) == 0:
        return 0.0
    correlate = stats.pearsonr if metric == "pearson" else stats.spearmanr
    return float(correlate(truth, predicted).statistic)


def _of_decisions(
    metric: str, kind: str, truth: NDArray[Any], decided: NDArray[np.int64], n_classes: int
) -> float:
    if kind == "multilabel":
        if metric == "accuracy":
            return float((truth == decided).mean())
        pairs = zip(truth.T, decided.T, strict=True)
        tables = np.stack([count_confusions(t, d, 2) for t, d in pairs])
        return float(np.mean(_of_tables("f1" if metric.startswith("f1") else metric, tables)))
    return float(_of_tables(metric, count_confusions(truth, decided, n_classes)[None])[0])


def count_confusions(
    truth: NDArray[Any], decided: NDArray[np.int64], n_classes: int
) -> NDArray[np.int64]:
    """How many examples of class i (rows) are taken for class j (columns)."""
    return sk.confusion_matrix(truth, decided, labels=np.arange(n_classes)).astype(np.int64)


def _of_tables(metric: str, tables: NDArray[Any]) -> Floats:
    """Metrics of stacked tables (S, classes, classes), by scikit-learn's definitions."""
    t = tables.astype(np.float64)
    return measure_margins(metric, np.diagonal(t, axis1=1, axis2=2), t.sum(2), t.sum(1))


def measure_margins(metric: str, own: Floats, true: Floats, said: Floats) -> Floats:
    """Metrics of decisions from counts of each class, (S, classes): right, true, and decided."""
    n, hits = true.sum(1), own.sum(1)
    if metric == "accuracy":
        return np.asarray(hits / n)
    if metric == "mcc":
        top = hits * n - (true * said).sum(1)
        below = np.sqrt((n**2 - (said**2).sum(1)) * (n**2 - (true**2).sum(1)))
        return np.divide(top, below, out=np.zeros_like(top), where=below > 0)
    f1 = np.divide(2 * own, true + said, out=np.zeros_like(own), where=true + said > 0)
    if metric == "f1" and own.shape[1] == 2:
        return np.asarray(f1[:, 1])
    # As scikit-learn has it, a class that neither occurs nor is said has no part in the mean.
    there = true + said > 0
    return np.asarray((f1 * there).sum(1) / np.maximum(there.sum(1), 1))


def measure_spread(
    metric: str,
    kind: str,
    truth: NDArray[Any],
    seeds: Sequence[Floats],
    seed: int = 1,
    resamples: int = RESAMPLES,
) -> Spread:
    """A metric over the predictions of several seeds on the same test examples."""
    values = np.array([measure(metric, kind, truth, predicted) for predicted in seeds])
    interval = None
    if len(truth) > 1 and np.isfinite(values).all():
        draw, n = generator(seed, Purpose.BOOTSTRAP, 0), len(truth)
        if metric in DECISIONS and kind != "multilabel":
            decided, counts = np.unique(
                np.stack([truth.astype(np.int64), *(decide(kind, p) for p in seeds)], 1),
                axis=0, return_counts=True,
            )  # fmt: skip
            drawn_counts = draw.multinomial(n, counts / n, size=resamples)
            drawn = _of_counts(metric, decided, drawn_counts, seeds[0].shape[-1])
        else:  # a fifth as many draws, each measured in full
            rows = (draw.integers(n, size=n) for _ in range(max(100, resamples // 5)))
            each = ([measure(metric, kind, truth[i], p[i]) for p in seeds] for i in rows)
            drawn = np.array([float(np.mean(some)) for some in each])
        defined = np.isfinite(drawn)
        if defined.mean() > 0.5:
            low, high = np.quantile(drawn[defined], [0.025, 0.975])
            interval = (float(low), float(high))
    return Spread(float(values.mean()), float(np.ptp(values)), interval, len(seeds))


def _of_counts(
    metric: str, decided: NDArray[np.int64], drawn: NDArray[np.int64], n_classes: int
) -> Floats:
    """The mean over seeds of each resample, which drew rows of (truth, decisions) so many times."""
    total = np.zeros(len(drawn))
    for said in decided.T[1:]:
        cell = np.zeros((len(decided), n_classes * n_classes))
        cell[np.arange(len(decided)), decided[:, 0] * n_classes + said] = 1
        total += _of_tables(metric, (drawn @ cell).reshape(-1, n_classes, n_classes))
    return total / (decided.shape[1] - 1)


def measure_calibration(truth: NDArray[Any], predicted: Floats, bins: int = 10) -> dict[str, Any]:
    """Confidence against accuracy in equal-width bins, and the expected calibration error.

    Source: Guo et al., 2017.
    """
    confidence, right = predicted.max(-1), predicted.argmax(-1) == truth
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    count = np.bincount(place, minlength=bins)
    total = np.maximum(count, 1)
    mean = np.bincount(place, confidence, bins) / total
    share = np.bincount(place, right, bins) / total
    error = float((count * np.abs(mean - share)).sum() / max(1, len(truth)))
    full = count > 0
    return {
        "confidence": mean[full].tolist(),
        "accuracy": share[full].tolist(),
        "count": count[full].tolist(),
        "ece": error,
    }


def measure_by_length(
    lengths: NDArray[np.int64], of: Callable[[NDArray[np.int64]], float], groups: int = 6
) -> list[dict[str, Any]]:
    """A measure of the examples in each group of lengths.

    There are up to `groups` groups of about equal size, and one where all lengths are equal.
    """
    edges = np.unique(np.quantile(lengths, np.linspace(0, 1, groups + 1)).round().astype(np.int64))
    if len(edges) < 3:
        edges = np.array([lengths.min(), lengths.max()])
    found = []
    for i, (low, high) in enumerate(pairwise(edges)):
        last = i == len(edges) - 2
        index = np.flatnonzero((lengths >= low) & ((lengths <= high) if last else (lengths < high)))
        if len(index):
            to = int(high if last else high - 1)
            found.append({"from": int(low), "to": to, "n": len(index), "value": of(index)})
    return found
