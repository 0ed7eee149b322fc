"""Baselines in the same table as the networks, on the same seeds and splits.

Each is a piece of `model_words.BASELINES`, which names its function here.

Predictions are probabilities (n, classes), probabilities of yes (n, classes) for several answers,
or values (n,).
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeRegressor

from genodiff.errors import DataError
from genodiff.finetuning.cnn import fit_cnn
from genodiff.finetuning.fit import Predict
from genodiff.finetuning.model_words import BASELINES, list_baselines
from genodiff.jobs.request import find_named
from genodiff.tasks.audit import predict_by_length, predict_by_lookup
from genodiff.tasks.examples import Examples
from genodiff.tasks.metrics import Floats
from genodiff.tasks.suite import Task


class BaselineData(NamedTuple):
    """What the baseline called `name` is fitted on."""

    name: str
    task: Task
    train: Examples
    valid: Examples
    seed: int

    @property
    def n_out(self) -> int:
        """How many numbers a prediction has."""
        return self.task.n_out


def fit_baseline(name: str, task: Task, train: Examples, valid: Examples, seed: int) -> Predict:
    """A baseline fitted on `train`, its choices made on `valid`, as a function of examples.

    Sequences are cut to the task's `max_length` as they are for networks; lengths and places are
    not. Raises `UsageError` for an unknown name, `DataError` where a baseline needs coordinates or
    classes that the data do not have.
    """
    fit = BASELINES[name].fit
    if not train.n:
        raise DataError(f"task {task.name}: no train example", fix="give some")
    given = BaselineData(name, task, train, valid, seed)
    predict: Predict = (find_named(fit) if isinstance(fit, str) else fit)(given)
    return predict


def list_allowed_baselines(task: Task, train: Examples) -> tuple[str, ...]:
    """The baselines that these data allow: lookups need classes and coordinates."""
    can_look_up = train.coordinates is not None and task.kind in ("binary", "multiclass")
    return list_baselines(task.domain, **({} if can_look_up else {"needs_places": False}))


def fit_majority(given: BaselineData) -> Predict:
    """The shares of the classes in train; of values, their mean."""
    shares = np.atleast_1d(_one_hot(given.train.labels, given).mean(axis=0))
    if given.task.kind == "regression":
        return lambda examples: np.full(examples.n, shares[0])
    return lambda examples: np.tile(shares, (examples.n, 1))


def _one_hot(labels: NDArray[Any], given: BaselineData) -> Floats:
    if given.task.kind in ("regression", "multilabel"):
        return labels.astype(np.float64)
    return (labels[:, None] == np.arange(given.n_out)).astype(np.float64)


def fit_length_tree(given: BaselineData) -> Predict:
    """A decision tree on the length alone."""
    if given.task.kind in ("binary", "multiclass"):
        return lambda examples: predict_by_length(
            given.train.lengths, given.train.labels, examples.lengths, given.n_out
        )
    # Equal lengths are put together under a weight: the same tree as on single rows, many times
    # faster.
    lengths, group = np.unique(given.train.lengths, return_inverse=True)
    weight = np.bincount(group).astype(np.float64)
    answers = _one_hot(given.train.labels, given)
    answers = answers[:, None] if answers.ndim == 1 else answers
    mean = np.stack([np.bincount(group, column) for column in answers.T], axis=1) / weight[:, None]
    tree = DecisionTreeRegressor(random_state=0).fit(lengths[:, None], mean, sample_weight=weight)
    shape = (-1,) if given.task.kind == "regression" else (-1, given.n_out)
    return lambda examples: np.reshape(tree.predict(examples.lengths[:, None]), shape)


def measure_error(kind: str, labels: NDArray[Any], predicted: Floats) -> float:
    """What is minimised on the validation part: the share of errors, then the log loss.

    For values it is the squared error.
    """
    if kind == "regression":
        return float(np.square(labels - predicted).mean())
    if kind == "multilabel":
        right = np.where(labels > 0, predicted, 1 - predicted)
        errors = (right < 0.5).mean()
    else:
        right = predicted[np.arange(len(labels)), labels]
        errors = (predicted.argmax(axis=1) != labels).mean()
    return float(errors + 1e-6 * -np.log(np.maximum(right, 1e-12)).mean())


def fit_network(given: BaselineData) -> Predict:
    """The benchmark's own convolutional network."""
    task, loss = given.task, partial(measure_error, given.task.kind)
    parts = given.train, given.valid
    return fit_cnn(task.kind, task.n_out, task.max_length, *parts, given.seed, loss=loss)


def fit_lookup(given: BaselineData) -> Predict:
    """The labels of train intervals: of the same one, or of those that share a base."""
    if given.task.kind not in ("binary", "multiclass"):
        kind = f"this is a {given.task.kind} task"
        raise DataError(f"task {given.task.name}: a lookup answers with classes, and {kind}")
    what = f"task {given.task.name}: a lookup needs coordinates, which these data lack"
    if given.train.coordinates is None:
        raise DataError(what, fix="leave it out")
    exact = given.name == "lookup-same"

    def predict(examples: Examples) -> Floats:
        if examples.coordinates is None:
            raise DataError(what, fix="leave it out")
        return predict_by_lookup(given.train, examples.coordinates, given.n_out, exact=exact)

    return predict
