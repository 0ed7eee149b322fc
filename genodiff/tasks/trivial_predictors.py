"""Predictors that read no sequence: the commonest class, the length, the interval in the genome.

What they reach is what a benchmark gives away. A network that does not beat them has not been shown
to read DNA.
"""

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from genodiff.tasks.examples import Coordinates, Examples
from genodiff.tasks.metrics import align_columns
from genodiff.tasks.overlap import count_equal, count_overlaps


def predict_by_length(
    train: NDArray[np.int64], labels: NDArray[np.int64], test: NDArray[np.int64], n_classes: int
) -> NDArray[np.float64]:
    """(n_test, classes): a decision tree that sees nothing but the lengths of the sequences."""
    # Equal rows are put together under a weight: the same tree, many times faster.
    rows, weight = np.unique(np.stack([train, labels], axis=1), axis=0, return_counts=True)
    tree = DecisionTreeClassifier(random_state=0).fit(rows[:, :1], rows[:, 1], sample_weight=weight)
    return align_columns(tree.classes_, tree.predict_proba(test[:, None]), n_classes)


def predict_by_lookup(
    train: Examples, test: Coordinates, n_classes: int, *, exact: bool
) -> NDArray[np.float64]:
    """(n_test, classes): classes of the train intervals that a test interval equals or overlaps.

    `exact` asks for equal intervals. Where there is none, the classes of the train intervals that
    meet no other train interval: a class whose members are found again is then ruled out by not
    being found. Uses no label of the test part.
    """
    assert train.coordinates is not None
    count = count_equal if exact else count_overlaps
    labels = train.labels
    among = count(train.coordinates, train.coordinates, labels, n_classes)
    among[np.arange(train.n), labels] -= 1
    alone = labels[among.sum(axis=1) == 0]
    absent = np.bincount(alone if len(alone) else labels, minlength=n_classes)
    found = count(test, train.coordinates, labels, n_classes)
    scores = np.where(found.sum(axis=1, keepdims=True) > 0, found, absent).astype(np.float64)
    return scores / scores.sum(axis=1, keepdims=True)


def accuracy(scores: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """The share of examples whose highest score is their label; the first class wins a tie."""
    return float((scores.argmax(axis=1) == labels).mean())
