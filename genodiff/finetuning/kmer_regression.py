"""Logistic (values: ridge) regression on GC content and the counts of 3- and 6-mers.

The strength of the regularisation, and whether a k-mer and its reverse complement count as one, are
chosen on the validation part. Fitted regressions are kept as tensors, so that no pickle is written:

model0.coef, model0.intercept    of the first regression
model0.classes                   the numbers of its classes; without it, it gives values
model0.constant                  the one class that its train part had, in place of a regression
"""

import re
import warnings
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse  # type: ignore[import-untyped]
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from torch import Tensor

from genodiff.alphabet import LETTER_CODES
from genodiff.errors import CheckpointError
from genodiff.finetuning.baselines import BaselineData, measure_error
from genodiff.finetuning.fit import SavedPredictor
from genodiff.finetuning.text_baselines import STRENGTHS
from genodiff.tasks.examples import Examples
from genodiff.tasks.metrics import Floats, align_columns
from genodiff.words import pack_words, turn_words

_KS = (3, 6)
N_FEATURES = 1 + sum(4**k for k in _KS)
"""GC content, and a count for each k-mer."""


def kmer_features(sequences: list[bytes], *, both_strands: bool, ks: tuple[int, ...] = _KS) -> Any:
    """(n, features), sparse: the share of G and C, and square roots of k-mer counts for each k.

    The roots are scaled to length 1 for each k. With `both_strands` a k-mer and its reverse
    complement are counted as one.
    """
    codes = LETTER_CODES[np.frombuffer(b"\n".join(sequences) + b"\n", np.uint8)]
    ends = np.cumsum([len(s) + 1 for s in sequences])
    owner = np.searchsorted(ends, np.arange(len(codes)), side="right")
    strong = np.bincount(owner, (codes == 1) | (codes == 2), len(sequences))
    known = np.maximum(1, np.bincount(owner, codes < 4, len(sequences)))
    return sparse.hstack(
        [
            sparse.csr_matrix((strong / known)[:, None]),
            *(_counts(codes, owner, len(ends), k, both_strands) for k in ks),
        ]
    ).tocsr()


def _counts(
    codes: NDArray[np.uint8], owner: NDArray[np.int64], n: int, k: int, both_strands: bool
) -> Any:
    number, whole = pack_words(codes, k)
    if both_strands:
        words = np.arange(4**k)
        number = np.minimum(words, turn_words(words))[number]
    at = np.flatnonzero(whole)
    counts = sparse.csr_matrix((np.ones(len(at)), (owner[at], number[at])), shape=(n, 4**k))
    counts.sum_duplicates()
    total = np.asarray(counts.sum(axis=1)).ravel()
    counts.data = np.sqrt(counts.data / np.repeat(np.maximum(total, 1), np.diff(counts.indptr)))
    return counts


class KmerPredictor(SavedPredictor):
    """A fitted regression."""

    form = "kmer-lr"

    def __init__(
        self, kind: str, n_out: int, max_length: int, both_strands: bool, models: list[Any]
    ) -> None:
        self.kind, self.n_out, self.longest = kind, n_out, max_length
        self.both_strands, self.models = both_strands, models

    def __call__(self, examples: Examples) -> Floats:
        return self.predict(examples.sequences, 1)

    def predict(self, sequences: list[bytes], rows: int) -> Floats:
        x = _features(sequences, self.longest, self.both_strands)
        return _linear_predict(self.kind, self.models, x, self.n_out)

    def tensors(self) -> dict[str, Tensor]:
        return regression_tensors(self.models)

    def about(self) -> dict[str, Any]:
        return {
            "kind": self.kind, "n_out": self.n_out, "max_length": self.longest,
            "both_strands": self.both_strands,
        }  # fmt: skip

    @classmethod
    def of(cls, about: dict[str, Any], tensors: dict[str, Tensor]) -> Self:
        """The predictor that `about` and `tensors` describe."""
        return cls(**about, models=read_regressions(tensors))


def fit_kmers(given: BaselineData) -> KmerPredictor:
    """The regression with the least error on the validation part, the first of equals."""
    kind, most, n_out = given.task.kind, given.task.max_length, given.n_out

    def tried() -> Iterator[tuple[float, KmerPredictor]]:
        for both in (False, True):
            parts = given.train, given.valid
            x, y = (_features(part.sequences, most, both) for part in parts)
            for strength in STRENGTHS:
                models = _linear(kind, x, given.train.labels, strength)
                predicted = _linear_predict(kind, models, y, n_out)
                found = KmerPredictor(kind, n_out, most, both, models)
                yield measure_error(kind, given.valid.labels, predicted), found

    return min(tried(), key=lambda found: found[0])[1]


def _features(sequences: list[bytes], cap: int, both_strands: bool) -> Any:
    return kmer_features([sequence[:cap] for sequence in sequences], both_strands=both_strands)


def _linear(kind: str, x: Any, labels: NDArray[Any], strength: float) -> list[Any]:
    if kind == "regression":
        return [Ridge(alpha=1 / strength).fit(x, labels)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        columns = list(labels.T) if kind == "multilabel" else [labels]
        return [
            LogisticRegression(C=strength, tol=1e-3, max_iter=100).fit(x,
            y) if len(np.unique(y)) > 1 else int(y[0]) for y in columns
        ]  # fmt: skip


def _linear_predict(kind: str, models: list[Any], x: Any, n_out: int) -> Floats:
    if kind == "regression":
        return np.asarray(models[0].predict(x), np.float64)
    found = [
        align_columns(np.array([m]), np.ones((x.shape[0], 1)), max(2, n_out)) if isinstance(m,
        int)
        else align_columns(m.classes_, m.predict_proba(x), 2 if kind == "multilabel" else n_out)
        for m in models
    ]  # fmt: skip
    return np.stack([p[:, 1] for p in found], axis=1) if kind == "multilabel" else found[0]


def regression_tensors(models: list[Any]) -> dict[str, Tensor]:
    """The tensors of fitted regressions; a number stands for a class that is always given."""
    found: dict[str, NDArray[Any]] = {}
    for i, model in enumerate(models):
        if not hasattr(model, "coef_"):
            found[f"model{i}.constant"] = np.array([int(model)], np.int64)
            continue
        found[f"model{i}.coef"] = np.atleast_2d(np.asarray(model.coef_, np.float64))
        found[f"model{i}.intercept"] = np.atleast_1d(np.asarray(model.intercept_, np.float64))
        if hasattr(model, "classes_"):
            found[f"model{i}.classes"] = np.asarray(model.classes_, np.int64)
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in found.items()}


def read_regressions(tensors: dict[str, Tensor]) -> list[Any]:
    """The regressions that `regression_tensors` wrote. Raises `CheckpointError` where one lacks."""
    named = (re.match(r"model([0-9]+)\.", name) for name in tensors)
    numbers = sorted({int(match[1]) for match in named if match})
    if numbers != list(range(len(numbers))) or not numbers:
        raise CheckpointError("holds no whole regression", fix="use an undamaged folder")
    found: list[Any] = []
    for i in numbers:
        if f"model{i}.constant" in tensors:
            found.append(int(tensors[f"model{i}.constant"][0]))
            continue
        coef, intercept = (tensors[f"model{i}.{name}"].numpy() for name in ("coef", "intercept"))
        classes = tensors.get(f"model{i}.classes")
        model = Ridge() if classes is None else LogisticRegression()
        if classes is not None:
            model.classes_ = classes.numpy()
        model.coef_ = coef[0] if classes is None else coef
        model.intercept_, model.n_features_in_ = intercept, coef.shape[1]
        found.append(model)
    return found
