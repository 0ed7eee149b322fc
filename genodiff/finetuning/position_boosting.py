"""Gradient boosting on position-specific k-mers: trees find which places decide together.

scikit-learn's histogram gradient boosting. The number of trees is chosen on the validation part,
as an epoch is: the one with the least log loss, or squared error of values. Its trees have no safe
format, so that a fit is not kept for prediction.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from genodiff.tasks.metrics import align_columns

Floats = NDArray[np.float64]
Rule = Callable[[Any], Floats]

TREES = 200
"""Trees at most; of several classes, for each class."""


def fit_boosting(
    kind: str, n_out: int, x: Any, labels: NDArray[Any], valid: tuple[Any, NDArray[Any]], *,
    rate: float, leaves: int, share: float = 1.0,
) -> Rule:  # fmt: skip
    """A function of sparse features: predictions as `metrics` reads them.

    `valid` is (features, labels). `share` of the trees are tried.
    """
    settings = {
        "learning_rate": rate, "max_leaf_nodes": leaves, "max_iter": max(1, round(TREES * share)),
        "early_stopping": False, "random_state": 1, "l2_regularization": 1.0, "max_features": 0.3,
    }  # fmt: skip
    dense, judged = _dense(x), _dense(valid[0])
    if kind == "regression":
        model = HistGradientBoostingRegressor(**settings).fit(dense, labels)
        best = _pick_trees(
            model.staged_predict(judged), lambda p: float(np.square(p - valid[1]).mean())
        )
        return lambda z: _stage(model.staged_predict(_dense(z)), best)
    if kind == "multilabel":
        each = [
            _fit_classes(2, dense, labels[:, i], judged, valid[1][:, i], settings)
            for i in range(labels.shape[1])
        ]
        return lambda z: np.stack([rule(_dense(z))[:, 1] for rule in each], axis=1)
    rule = _fit_classes(n_out, dense, labels, judged, valid[1], settings)
    return lambda z: rule(_dense(z))


def _fit_classes(
    n_out: int, x: NDArray[Any], labels: NDArray[Any], valid: NDArray[Any],
    truth: NDArray[Any], settings: dict[str, Any],
) -> Rule:  # fmt: skip
    classes = np.unique(labels)
    if len(classes) < 2:
        return lambda z: np.tile(np.eye(n_out)[int(classes[0])], (len(z), 1))
    model = HistGradientBoostingClassifier(**settings).fit(x, labels)

    def loss(predicted: Floats) -> float:
        whole = align_columns(classes, predicted, n_out)
        right = whole[np.arange(len(truth)), truth.astype(np.int64)]
        return float(-np.log(np.maximum(right, 1e-12)).mean())

    best = _pick_trees(model.staged_predict_proba(valid), loss)
    return lambda z: align_columns(classes, _stage(model.staged_predict_proba(z), best), n_out)


def _pick_trees(stages: Any, loss: Callable[[Floats], float]) -> int:
    """How many trees have the least loss, the fewest of equals."""
    return int(np.argmin([loss(predicted) for predicted in stages])) + 1


def _stage(stages: Any, trees: int) -> Floats:
    return np.asarray(next(p for i, p in enumerate(stages, 1) if i == trees), np.float64)


def _dense(x: Any) -> NDArray[Any]:
    return x.toarray().astype(np.float32) if hasattr(x, "toarray") else x
