"""A frozen probe: scikit-learn's regression on the mean features of a network that is not trained.

Logistic regression for classes and for each yes/no answer, ridge regression for values, on
standardised embeddings. The strength of the regularisation is the one that is best on the
validation part (the weakest of equals). There is no test part here.
"""

from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from genodiff.errors import DataError
from genodiff.finetuning.batches import EncodedPart, split_passes
from genodiff.finetuning.head import Classifier
from genodiff.finetuning.regressions import read_regressions, regression_tensors
from genodiff.tasks.metrics import Floats, align_columns, measure, pick_best

_ITERATIONS = 2000


class FittedProbe(NamedTuple):
    """A fitted probe: the chosen strength, its validation metric, and the fitted models."""

    c: float
    valid: float
    tried: dict[str, float]
    scaler: StandardScaler
    models: list[Any]
    n_out: int

    def predict(self, kind: str, embeddings: Floats) -> Floats:
        """Predictions as `metrics` reads them."""
        return _predict(kind, self.models, self.scaler.transform(embeddings), self.n_out)

    def tensors(self) -> dict[str, Tensor]:
        """What is kept of it."""
        scaler = {"scaler.mean": self.scaler.mean_, "scaler.scale": self.scaler.scale_}
        return regression_tensors(self.models) | {
            name: torch.from_numpy(np.asarray(array, np.float64)) for name, array in scaler.items()
        }

    @classmethod
    def of(cls, n_out: int, tensors: dict[str, Tensor]) -> Self:
        """The probe that `tensors` describe; nothing is known of its fit."""
        scaler = StandardScaler()
        scaler.mean_ = tensors["scaler.mean"].numpy()
        scaler.scale_ = tensors["scaler.scale"].numpy()
        scaler.var_, scaler.n_features_in_ = scaler.scale_**2, len(scaler.mean_)
        return cls(0.0, 0.0, {}, scaler, read_regressions(tensors), n_out)


@torch.no_grad()
def compute_embeddings(classifier: Classifier, part: EncodedPart) -> Floats:
    """The embedding of every example, (n, D), in order."""
    device = classifier.weight.device
    order = np.argsort(-part.lengths, kind="stable")
    out = np.empty((part.n, classifier.weight.shape[1]))
    classifier.eval()
    for some in split_passes(part.lengths[order], device.type, 2 if classifier.paired else 1):
        rows = order[some]
        x0, lengths = part.collate(rows)
        out[rows] = classifier.embedding(x0.to(device), lengths.to(device)).double().cpu().numpy()
    return out


def fit_probe(
    train: Floats, train_labels: NDArray[Any], valid: Floats, valid_labels: NDArray[Any], *,
    kind: str, metric: str, n_out: int,
    strengths: tuple[float, ...],
) -> FittedProbe:  # fmt: skip
    """The probe whose strength is best on the validation part.

    Raises `DataError` where the train part has a single class.
    """
    scaler = StandardScaler().fit(train)
    x, y = scaler.transform(train), scaler.transform(valid)
    fitted = {c: _fit(kind, x, train_labels, c) for c in sorted(strengths, reverse=True)}
    values = {
        c: measure(metric, kind, valid_labels, _predict(kind, models, y, n_out))
        for c, models in fitted.items()
    }
    best, c = pick_best(metric, ((value, c) for c, value in values.items()))
    return FittedProbe(
        c, best, {f"{c:g}": value for c, value in values.items()}, scaler, fitted[c], n_out
    )


def _fit(kind: str, x: Floats, labels: NDArray[Any], c: float) -> list[Any]:
    if kind == "regression":
        return [Ridge(alpha=1 / c).fit(x, labels)]
    columns = labels.T if kind == "multilabel" else [labels]
    models: list[Any] = []
    for column in columns:
        there = np.unique(column)
        if len(there) == 1 and kind != "multilabel":
            raise DataError("the train part has a single class", fix="give examples of every class")
        models.append(
            there[0]
            if len(there) == 1
            else LogisticRegression(C=c, max_iter=_ITERATIONS).fit(x, column)
        )
    return models


def _predict(kind: str, models: list[Any], x: Floats, n_out: int) -> Floats:
    if kind == "regression":
        return np.asarray(models[0].predict(x), np.float64)
    if kind == "multilabel":
        yes = [
            m.predict_proba(x)[:, 1] if hasattr(m, "predict_proba") else np.full(len(x), float(m))
            for m in models
        ]
        return np.stack(yes, 1)
    return align_columns(models[0].classes_, models[0].predict_proba(x), n_out)
