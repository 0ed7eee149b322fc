"""How sure metrics of a task's models are, over training seeds and test examples together.

Test examples are resampled, 10,000 times where decisions are counted. A resample is the same for
every model and seed, so differences are paired by example. Near-duplicates among the test examples
are one cluster, which is drawn as a whole (Field & Welsh 2007): two copies of a sequence are not
two tests. The resamples give the covariance of all (model, seed), and `statistics/seeds.py` joins
it with what the seeds do.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.counter import Purpose, generator
from genodiff.statistics.seeds import (
    JointEstimate,
    estimate_difference,
    estimate_mean,
    estimate_one,
)
from genodiff.tasks.metrics import DECISIONS, Floats, decide, measure, measure_margins
from genodiff.tasks.weighted_metrics import measure_weighted

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
    found = (_by_counts if counted else _by_ranks)(
        _Question(metric, kind, truth, stacked, number), _Draw(len(sizes), wanted, seed)
    )
    found = found[:, np.isfinite(found).all(0)]
    if found.shape[1] < wanted / 2:
        return ResampledScores(values, cov, 0.0, where)
    groups = len(sizes)
    return ResampledScores(values, np.atleast_2d(np.cov(found)) * groups / (groups - 1), df, where)


class _Question(NamedTuple):
    """What is measured of a resample."""

    metric: str
    kind: str
    truth: NDArray[Any]
    predicted: list[Floats]
    number: Numbers  # (n,) of each example's cluster


class _Draw(NamedTuple):
    """Resamples of clusters with replacement."""

    n_clusters: int
    draws: int
    seed: int

    def chunks(self, width: int) -> Any:
        """How often each cluster was drawn, (clusters, some of the draws) at a time."""
        draw = generator(self.seed, Purpose.BOOTSTRAP, _STREAM)
        n, step = self.n_clusters, max(1, _CELLS // max(width, 1))
        for first in range(0, self.draws, step):
            rows = min(step, self.draws - first)
            drawn = draw.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
            counts = np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n)
            yield counts.T


def _by_counts(asked: _Question, draw: _Draw) -> Floats:
    """Metrics of decisions, (models and seeds, draws): counts of classes in each cluster decide."""
    n = asked.predicted[0].shape[-1]
    true = np.eye(n, dtype=np.float32)[asked.truth.astype(int)]
    said = [np.eye(n, dtype=np.float32)[decide(asked.kind, p)] for p in asked.predicted]
    of_examples = np.concatenate([true, *(x for s in said for x in (true * s, s))], 1)
    table = np.zeros((draw.n_clusters, of_examples.shape[1]), np.float32)
    np.add.at(table, asked.number, of_examples)
    found = []
    for drawn in draw.chunks(draw.n_clusters):
        counts = (table.T @ drawn.astype(np.float32)).astype(np.float64)
        parts = counts.reshape(-1, n, counts.shape[1]).transpose(0, 2, 1)
        each = zip(parts[1::2], parts[2::2], strict=True)
        found.append([measure_margins(asked.metric, own, parts[0], all_) for own, all_ in each])
    return np.concatenate(found, 1)


def _by_ranks(asked: _Question, draw: _Draw) -> Floats:
    """Other metrics, (models and seeds, draws)."""
    found = []
    for drawn in draw.chunks(len(asked.truth)):
        weights = drawn.astype(np.float64)[asked.number]
        found.append(
            [
                measure_weighted(asked.metric, asked.kind, asked.truth, predicted, weights)
                for predicted in asked.predicted
            ]
        )
    return np.concatenate(found, 1)
