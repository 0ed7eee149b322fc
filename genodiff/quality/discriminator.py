"""How well a classifier tells generated from real sequence, by cross-validation.

The area under the ROC curve is 0.5 where it cannot and 1 where it always can. Each sequence is
scored by a classifier that was fitted without it. Ranks are compared within a fold only, because
the scores of two classifiers have no common scale. The figure is the mean over folds. Its standard
error is DeLong's (1988) in each fold, with the folds taken as independent.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata  # type: ignore[import-untyped]
from sklearn.linear_model import LogisticRegression

from genodiff.counter import Purpose, generator
from genodiff.finetuning.cnn import fit_cnn
from genodiff.finetuning.count_regression import kmer_features
from genodiff.tasks.examples import Examples

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Scorer = Callable[[list[bytes], Ints, Ints, Ints, int], Floats]
"""(sequences, labels, rows to fit on, rows to score, seed) -> scores of the latter."""

FOLDS = 5
STRENGTH = 10.0  # of the regression: the inverse of its penalty
_MOST_ITERATIONS = 300


def score_by_kmers(
    sequences: list[bytes], labels: Ints, fitted: Ints, scored: Ints, seed: int
) -> Floats:
    """Logistic regression on GC and the counts of 3- and 6-mers; strands are told apart."""
    features = kmer_features(sequences, both_strands=False)
    model = LogisticRegression(C=STRENGTH, max_iter=_MOST_ITERATIONS)
    model.fit(features[fitted], labels[fitted])
    found: Floats = model.decision_function(features[scored])
    return found


def score_by_cnn(
    sequences: list[bytes], labels: Ints, fitted: Ints, scored: Ints, seed: int
) -> Floats:
    """The convolutional network of Genomic Benchmarks; a tenth of the rows chooses the epoch."""
    longest = max(map(len, sequences))
    order = generator(seed, Purpose.FINETUNE_SPLIT).permutation(fitted)
    held = max(1, len(order) // 10)

    def examples(rows: Ints) -> Examples:
        names = [str(i) for i in rows]
        return Examples([sequences[i] for i in rows], labels[rows], names)

    predict = fit_cnn(
        "classes", 2, longest, examples(order[held:]), examples(order[:held]), seed, loss=_log_loss
    )
    return predict(examples(scored))[:, 1]


DISCRIMINATORS: dict[str, Scorer] = {"kmers": score_by_kmers, "cnn": score_by_cnn}


def measure_auroc(
    generated: list[bytes], real: list[bytes], *, by: str = "kmers", seed: int = 1
) -> dict[str, Any] | None:
    """How well the discriminator `by` tells the two sets apart, by cross-validation.

    The area's `value`, its standard error `se` and `ci95`, the 95 % interval within [0, 1]. None
    where a set has fewer than twice as many sequences as there are folds.
    """
    if min(len(generated), len(real)) < 2 * FOLDS:
        return None
    sequences = generated + real
    draws = [generator(seed, Purpose.FINETUNE_SPLIT, i) for i in (1, 2)]
    sizes = len(generated), len(real)
    labels = np.repeat(np.array([1, 0]), sizes)
    fold = np.concatenate([g.permutation(n) for g, n in zip(draws, sizes, strict=True)]) % FOLDS
    parts = []
    for f in range(FOLDS):
        scored = np.flatnonzero(fold == f)
        scores = DISCRIMINATORS[by](sequences, labels, np.flatnonzero(fold != f), scored, seed)
        parts.append(measure_area(scores[labels[scored] == 1], scores[labels[scored] == 0]))
    value = float(np.mean([value for value, _ in parts]))
    se = math.sqrt(sum(se**2 for _, se in parts)) / FOLDS
    ends = [max(0.0, value - 1.96 * se), min(1.0, value + 1.96 * se)]
    return {"value": value, "se": se, "ci95": ends}


def measure_area(positive: Floats, negative: Floats) -> tuple[float, float]:
    """The area for the scores of positive and negative examples, with DeLong's standard error."""
    m, n = len(positive), len(negative)
    ranks = rankdata(np.concatenate([positive, negative]))
    above = (ranks[:m] - rankdata(positive)) / n  # share of negatives below each positive
    below = 1 - (ranks[m:] - rankdata(negative)) / m
    parts = [float(np.var(x, ddof=1)) / len(x) if len(x) > 1 else 0.0 for x in (above, below)]
    return float(above.mean()), math.sqrt(sum(parts))


def _log_loss(labels: NDArray[np.generic], predicted: Floats) -> float:
    chosen = predicted[np.arange(len(labels)), labels.astype(int)]
    return float(-np.log(np.maximum(chosen, 1e-9)).mean())
