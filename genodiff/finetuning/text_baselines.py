"""Baselines that read a text without any network.

  bow-lr       logistic regression on the words and pairs of words of a text (tf-idf, scaled to
               length 1)
  char-lr      the same on its 1 to 5 characters, inside words

Each of two sentences has its own features, and so have the words that both share, because
entailment depends on them. The strength of the regularisation is chosen on the validation
part.
"""

from typing import Any

import numpy as np
from scipy import sparse  # type: ignore[import-untyped]
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from genodiff.finetuning.baselines import BaselineData
from genodiff.finetuning.fit import Predict
from genodiff.tasks.layouts.glue import TAB
from genodiff.tasks.metrics import Floats, align_columns, measure, pick_best

STRENGTHS = (0.1, 1.0, 10.0, 100.0)
"""Inverse strengths of regularisation that are tried on the validation part."""

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
    task, train, valid, n_out = given.task, given.train, given.valid, given.n_out
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


def _probabilities(model: LogisticRegression, x: Any, n_out: int) -> Floats:
    return align_columns(model.classes_, model.predict_proba(x), n_out)
