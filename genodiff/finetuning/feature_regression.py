"""Linear rules on features of sequences: what a support vector machine or a regression comes to.

    scores = features @ coef + intercept
    link   identity (values) | sigmoid (one answer each) | binary | softmax | one-against-rest

The support vector machine is scikit-learn's linear one. Its scores become probabilities by Platt's
sigmoid, fitted on the validation part, and the sigmoid is folded into the coefficients. A rule is
arrays alone, so that it is kept without a pickle.

Source of the sigmoid: Platt, 1999, Advances in Large Margin Classifiers, pages 61-74.

K-mers by where they stand, for tasks whose sequences are anchored (at a start site, say).

A sequence is divided into bins of so many bases from its start, and a k-mer belongs to the bin of
its first base. One bin per base gives the features of a position weight matrix and of its
dinucleotides; wide bins allow a motif to shift.
"""

import warnings
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse  # type: ignore[import-untyped]
from scipy.special import expit, softmax  # type: ignore[import-untyped]
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC
from torch import Tensor

from genodiff.alphabet import LETTER_CODES
from genodiff.finetuning.gapped_kmers import gapped_features
from genodiff.finetuning.kmer_regression import kmer_features
from genodiff.tasks.examples import Examples
from genodiff.words import pack_words


def position_features(
    sequences: list[bytes], *, length: int, spots: tuple[tuple[int, int], ...],
    whole: tuple[int, ...] = (),
) -> Any:  # fmt: skip
    """(n, features), sparse: counts of k-mers by bin for each (k, width) of `spots`.

    Sequences are read to `length`. `whole` adds the k-mers of these k without their position, as
    `kmer_features` of the given strand counts them.
    """
    cut = [sequence[:length] for sequence in sequences]
    codes = LETTER_CODES[np.frombuffer(b"\n".join(cut) + b"\n", np.uint8)]
    lengths = np.array([len(s) + 1 for s in cut])
    owner = np.repeat(np.arange(len(cut)), lengths)
    place = np.arange(len(codes)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    blocks = [
        _counts(codes, owner, place, len(cut), k, width, count_bins(length, k, width))
        for k, width in spots
    ]
    if whole:
        blocks.append(kmer_features(cut, both_strands=False, ks=whole))
    return sparse.hstack(blocks, format="csr", dtype=np.float64)


def count_bins(length: int, k: int, width: int) -> int:
    """Bins of `width` bases in which a k-mer of a sequence of `length` may begin."""
    return max(1, -(-max(1, length - k + 1) // width))


def _counts(
    codes: NDArray[np.uint8], owner: NDArray[np.int64], place: NDArray[np.int64],
    n: int, k: int, width: int, bins: int,
) -> Any:  # fmt: skip
    number, whole = pack_words(codes, k)
    at = np.flatnonzero(whole)
    column = place[at] // width * 4**k + number[at]
    return sparse.csr_matrix((np.ones(len(at)), (owner[at], column)), shape=(n, bins * 4**k))


Floats = NDArray[np.float64]
Link = Literal["identity", "sigmoid", "binary", "softmax", "one-against-rest"]

FEATURES: dict[str, Callable[..., Any]] = {
    "kmers": kmer_features,
    "gapped": gapped_features,
    "position": position_features,
}
"""The features of sequences by name; each reads a row by itself."""

SURE = 20.0
"""The score of a class that is the only one in train."""


class LinearRule(NamedTuple):
    """Coefficients (features, outputs), intercepts (outputs,), and what the scores become."""

    coef: Floats
    intercept: Floats
    link: Link

    def scores(self, x: Any) -> Floats:
        """(n, outputs) raw scores of sparse features."""
        return np.asarray(x @ self.coef, np.float64) + self.intercept

    def predict(self, x: Any) -> Floats:
        """Predictions as `metrics` reads them."""
        scores = self.scores(x)
        if self.link == "identity":
            return scores[:, 0]
        if self.link == "softmax":
            return np.asarray(softmax(scores, axis=1), np.float64)
        yes = np.asarray(expit(scores), np.float64)
        if self.link == "binary":
            return np.concatenate([1 - yes, yes], axis=1)
        if self.link == "one-against-rest":
            return yes / np.maximum(yes.sum(axis=1, keepdims=True), 1e-300)
        return yes


class FeaturePredictor:
    """A fitted rule with its features, as a function of examples."""

    form: ClassVar[Literal["features"]] = "features"

    def __init__(
        self, features: str, given: dict[str, Any], max_length: int, rule: LinearRule
    ) -> None:
        self.features, self.given = features, given
        self.max_length, self.rule = max_length, rule

    def __call__(self, examples: Examples) -> Floats:
        """Predictions as `metrics` reads them."""
        return self.predict(examples.sequences)

    def predict(self, sequences: list[bytes]) -> Floats:
        """The same for sequences; each is read by itself."""
        return self.rule.predict(
            compute_features(self.features, self.given, sequences, self.max_length)
        )

    @property
    def longest(self) -> int:
        """Bases that are read of a sequence."""
        return self.max_length

    def tensors(self) -> dict[str, Tensor]:
        """The rule, as tensors to be saved."""
        return {
            name: torch.from_numpy(np.ascontiguousarray(getattr(self.rule, name)))
            for name in ("coef", "intercept")
        }

    def about(self) -> dict[str, Any]:
        """What is saved beside the tensors."""
        return {
            "features": self.features,
            "given": self.given,
            "max_length": self.max_length,
            "link": self.rule.link,
        }

    @classmethod
    def of(cls, about: dict[str, Any], tensors: dict[str, Tensor]) -> Self:
        """The predictor that `about` and `tensors` describe."""
        rule = LinearRule(tensors["coef"].numpy(), tensors["intercept"].numpy(), about["link"])
        return cls(about["features"], about["given"], about["max_length"], rule)


def compute_features(
    name: str, given: dict[str, Any], sequences: list[bytes], max_length: int
) -> Any:
    """(n, features), sparse, of sequences cut to `max_length`."""
    return FEATURES[name]([sequence[:max_length] for sequence in sequences], **given)


def fit_logistic(
    kind: str, n_out: int, x: Any, labels: NDArray[Any], strength: float
) -> LinearRule:
    """A regularised regression: logistic for classes and answers, ridge for values."""
    if kind == "regression":
        return _fit_ridge(x, labels, strength)

    def fit(answers: NDArray[Any]) -> tuple[Floats, Floats]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LogisticRegression(C=strength, tol=1e-3, max_iter=200).fit(x, answers)
        return model.coef_.T, model.intercept_

    if kind == "multiclass":
        return _spread(*fit(labels), np.unique(labels), n_out) if len(np.unique(labels)) > 1 else (
            LinearRule(np.zeros((x.shape[1], n_out)), SURE * np.eye(n_out)[labels[0]], "softmax")
        )  # fmt: skip
    return _each(kind, x.shape[1], labels, fit)


def fit_machine(
    kind: str, n_out: int, x: Any, labels: NDArray[Any], strength: float,
    valid: tuple[Any, NDArray[Any]],
) -> LinearRule:  # fmt: skip
    """A linear support vector machine whose scores are calibrated on `valid`: (features, labels).

    Several classes are learnt one against the rest. Values are learnt by ridge regression.
    """
    if kind == "regression":
        return _fit_ridge(x, labels, strength)
    columns = np.eye(n_out, dtype=np.int64)[labels] if kind == "multiclass" else labels
    judged = np.eye(n_out, dtype=np.int64)[valid[1]] if kind == "multiclass" else valid[1]
    judges = iter(judged.T if judged.ndim > 1 else [judged])

    def fit(answers: NDArray[Any]) -> tuple[Floats, Floats]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LinearSVC(C=strength, dual=True, random_state=1, max_iter=300, tol=1e-3)
            model.fit(x, answers)
        slope, shift = _calibrate(model.decision_function(valid[0]), next(judges))
        return slope * model.coef_.T, slope * model.intercept_ + shift

    return _each(kind, x.shape[1], columns, fit, skip=lambda: next(judges))


def _fit_ridge(x: Any, labels: NDArray[Any], strength: float) -> LinearRule:
    mean = float(labels.mean())
    model = Ridge(alpha=1 / strength, solver="sparse_cg", tol=1e-4).fit(
        x.astype(np.float64), labels - mean
    )
    return LinearRule(model.coef_[:, None], np.array([model.intercept_ + mean]), "identity")


def _each(
    kind: str, n_features: int, columns: NDArray[Any],
    fit: Callable[[NDArray[Any]], tuple[Floats, Floats]],
    skip: Callable[[], Any] = lambda: None,
) -> LinearRule:  # fmt: skip
    """A rule per column of answers; an answer that never changes needs no fit."""
    link: Link = {"binary": "binary", "multilabel": "sigmoid"}.get(kind, "one-against-rest")  # type: ignore[assignment]
    coefs, intercepts = [], []
    for answers in columns.T if columns.ndim > 1 else [columns]:
        if len(np.unique(answers)) > 1:
            coef, intercept = fit(answers)
        else:
            skip()
            sign = SURE if answers[0] else -SURE
            coef, intercept = np.zeros((n_features, 1)), np.array([sign])
        coefs.append(coef)
        intercepts.append(intercept)
    return LinearRule(np.concatenate(coefs, axis=1), np.concatenate(intercepts), link)


def _spread(coef: Floats, intercept: Floats, classes: NDArray[Any], n_out: int) -> LinearRule:
    """The rule of all classes from that of the classes that train has."""
    if len(classes) == 2:  # scikit-learn gives one column: the score of the second class
        coef = np.concatenate([np.zeros_like(coef), coef], axis=1)
        intercept = np.concatenate([[0.0], intercept])
    whole, at = np.zeros((coef.shape[0], n_out)), np.full(n_out, -SURE)
    whole[:, classes], at[classes] = coef, intercept
    return LinearRule(whole, at, "softmax")


def _calibrate(scores: Floats, answers: NDArray[Any]) -> tuple[float, float]:
    """Slope and shift of Platt's sigmoid; 1 and 0 where validation has one answer alone."""
    if len(np.unique(answers)) < 2:
        return 1.0, 0.0
    model = LogisticRegression(C=1e3).fit(scores[:, None], answers)
    return float(model.coef_[0, 0]), float(model.intercept_[0])
