"""Baselines of counts: regressions on k-mers of DNA, and on words or characters of text.

    kmer-lr    logistic (values: ridge) regression on GC content and the counts of 3- and 6-mers
    bow-lr     logistic regression on the words and pairs of words of a text (tf-idf, scaled to
               length 1)
    char-lr    the same on its 1 to 5 characters, inside words

The strength of the regularisation, and whether a k-mer and its reverse complement count as one, are
chosen on the validation part. Each of two sentences has its own features, and so have the words
that both share, because entailment depends on them. Regressions on k-mers are kept as tensors, so
that no pickle is written:

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
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from torch import Tensor

from genodiff.alphabet import LETTER_CODES
from genodiff.errors import CheckpointError
from genodiff.finetuning.baselines import BaselineData, measure_error
from genodiff.finetuning.fit import Predict, SavedPredictor
from genodiff.tasks.examples import Examples
from genodiff.tasks.layouts.glue import TAB
from genodiff.tasks.metrics import Floats, align_columns, measure, pick_best
from genodiff.words import pack_words, turn_words

STRENGTHS = (0.1, 1.0, 10.0, 100.0)
"""Inverse strengths of regularisation that are tried on the validation part."""

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
        return self.answer(_features(sequences, self.longest, self.both_strands))

    def answer(self, x: Any) -> Floats:
        """Predictions from the features of sequences."""
        if self.kind == "regression":
            return np.asarray(self.models[0].predict(x), np.float64)
        if self.kind == "multilabel":
            return np.stack([_probabilities(model, x, 2)[:, 1] for model in self.models], axis=1)
        return _probabilities(self.models[0], x, self.n_out)

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
    task = given.task
    kind, most, n_out = task.kind, task.max_length, task.n_out

    def tried() -> Iterator[tuple[float, KmerPredictor]]:
        for both in (False, True):
            parts = given.train, given.valid
            x, y = (_features(part.sequences, most, both) for part in parts)
            for strength in STRENGTHS:
                models = _fit_models(kind, x, given.train.labels, strength)
                found = KmerPredictor(kind, n_out, most, both, models)
                yield measure_error(kind, given.valid.labels, found.answer(y)), found

    return min(tried(), key=lambda found: found[0])[1]


def _features(sequences: list[bytes], cap: int, both_strands: bool) -> Any:
    return kmer_features([sequence[:cap] for sequence in sequences], both_strands=both_strands)


def _fit_models(kind: str, x: Any, labels: NDArray[Any], strength: float) -> list[Any]:
    if kind == "regression":
        return [Ridge(alpha=1 / strength).fit(x, labels)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        columns = list(labels.T) if kind == "multilabel" else [labels]
        model = LogisticRegression(C=strength, tol=1e-3, max_iter=100)
        return [clone(model).fit(x, y) if len(np.unique(y)) > 1 else int(y[0]) for y in columns]


def _probabilities(model: LogisticRegression | int, x: Any, n_out: int) -> Floats:
    if isinstance(model, int):
        return np.tile(np.eye(n_out)[model], (x.shape[0], 1))
    return align_columns(model.classes_, model.predict_proba(x), n_out)


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


SHAPES: dict[str, dict[str, Any]] = {
    "bow-lr": {
        "analyzer": "word",
        "ngram_range": (1, 2),
        "token_pattern": r"(?u)\b\w+\b|[^\w\s]",
        "sublinear_tf": True,
    },
    "char-lr": {"analyzer": "char_wb", "ngram_range": (1, 5), "sublinear_tf": True, "min_df": 2},
}


class _Features:
    """Texts to a sparse matrix: a block for each sentence, and one of what two sentences share."""

    def __init__(self, shape: dict[str, Any], train: list[bytes]) -> None:
        self.n = max(sentence.count(TAB) for sentence in train) + 1
        columns = self._columns(train)
        shape = shape | {"min_df": min(shape.get("min_df", 1), len(train))}
        self.blocks = [TfidfVectorizer(**shape).fit(texts) for texts in columns]
        whole = [" ".join(row) for row in zip(*columns, strict=True)]
        self.common = TfidfVectorizer(**shape).fit(whole)

    def of(self, sentences: list[bytes]) -> Any:
        columns = self._columns(sentences)
        found = [block.transform(texts) for block, texts in zip(self.blocks, columns, strict=True)]
        if self.n == 2:
            first, second = (self.common.transform(texts) for texts in columns)
            shared = first.minimum(second)
            left, right = (np.asarray(x.sum(1)).ravel() for x in (first, second))
            share = np.asarray(shared.sum(1)).ravel() / np.maximum(np.minimum(left, right), 1e-9)
            found += [shared, sparse.csr_matrix(share[:, None])]
        return sparse.hstack(found).tocsr()

    def _columns(self, sentences: list[bytes]) -> list[list[str]]:
        rows = [sentence.decode().split("\t") for sentence in sentences]
        return [[row[i] if i < len(row) else "" for row in rows] for i in range(self.n)]


def fit_text(given: BaselineData) -> Predict:
    """The regression of that name, its strength chosen on the validation part by the metric.

    A train part with a single class gives that class probability 1.
    """
    task, train, valid = given.task, given.train, given.valid
    n_out = task.n_out
    if len(np.unique(train.labels)) < 2:
        only = np.eye(n_out)[int(train.labels[0])]
        return lambda examples: np.tile(only, (examples.n, 1))
    features = _Features(SHAPES[given.name], train.sequences)
    x, y = features.of(train.sequences), features.of(valid.sequences)

    def tried(strength: float) -> tuple[float, LogisticRegression]:
        solver = "liblinear" if n_out == 2 else "lbfgs"
        model = LogisticRegression(C=strength, solver=solver, max_iter=300).fit(x, train.labels)
        predicted = _probabilities(model, y, n_out)
        return measure(task.metrics[0], task.kind, valid.labels, predicted), model

    _, chosen = pick_best(task.metrics[0], map(tried, STRENGTHS))
    return lambda examples: _probabilities(chosen, features.of(examples.sequences), n_out)
