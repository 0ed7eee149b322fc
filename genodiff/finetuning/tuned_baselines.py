"""Baselines whose settings are chosen on the validation part.

  kmer-tuned   logistic (values: ridge) regression on k-mers of several lengths
  gkm-svm      support vector machine (values: ridge) on the gapped spectrum kernel
  pos-kmer-lr  logistic (values: ridge) regression on k-mers by position
  pos-kmer-gb  gradient boosting on k-mers by position
  cnn-tuned    a convolutional network of a chosen shape (see `motif_cnn`)

Each lists its candidates from the simplest on. They are a pure function of the task and its train
part, so that the same data are always offered the same choice.

Gradient boosting on position-specific k-mers: trees find which places decide together.

scikit-learn's histogram gradient boosting. The number of trees is chosen on the validation part,
as an epoch is: the one with the least log loss, or squared error of values. Its trees have no safe
format, so that a fit is not kept for prediction.
"""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from genodiff.errors import GenodiffError
from genodiff.finetuning.choosing import choose_candidate
from genodiff.finetuning.feature_regression import (
    FeaturePredictor,
    LinearRule,
    compute_features,
    fit_logistic,
    fit_machine,
)
from genodiff.finetuning.fit_state import WorkClock
from genodiff.finetuning.gapped_kmers import count_gap_patterns
from genodiff.finetuning.motif_cnn import MotifSettings, fit_motif_cnn
from genodiff.tasks.examples import Examples
from genodiff.tasks.metrics import align_columns, measure
from genodiff.tasks.suite import Task

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


Predict = Callable[[Examples], Floats]
Options = dict[str, Any]

MOST_ENTRIES = 90_000_000
"""Entries of a feature matrix at most; a candidate that needs more is not offered (3 GB)."""

_GAPS = ((6, 4), (7, 4), (8, 5), (10, 6))
_KMERS = ((3, 6), (1, 2, 3, 4), (2, 4, 6, 8), (5, 7))


class Given(NamedTuple):
    """What a tuned baseline is fitted on; `share` of a whole fit, `loss` is the lower the better.

    `features` remembers the last features, since neighbouring candidates have the same.
    """

    task: Task
    train: Examples
    valid: Examples
    seed: int
    loss: Callable[[NDArray[Any], Floats], float]
    share: float = 1.0
    features: dict[str, tuple[Any, Any]] = {}  # noqa: RUF012

    @property
    def n_out(self) -> int:
        return max(1, len(self.task.classes))

    @property
    def longest(self) -> int:
        return int(min(self.task.max_length, self.train.lengths.max()))

    def compute_features(self, name: str, given: Options) -> tuple[Any, Any]:
        """The features of (train, valid)."""
        key = json.dumps([name, given])
        if key not in self.features:
            self.features.clear()
            self.features[key] = (
                compute_features(name, given, self.train.sequences, self.task.max_length),
                compute_features(name, given, self.valid.sequences, self.task.max_length),
            )
        return self.features[key]


class TunedChoice(NamedTuple):
    """The options that validation chose, in words too; all trials; what choosing took, and why.

    A trial is {candidate (in words), share of a whole fit, valid (None if it failed)}.
    """

    options: Options
    chosen: str
    trials: list[dict[str, Any]]
    seconds: float
    tried: int
    offered: int
    why: str


def list_tuned_options(name: str, task: Task, train: Examples) -> list[Options]:
    """The candidates of a baseline on these data, the simplest first."""
    return _BASELINES[name].list_options(task, train)


def fit_tuned(name: str, options: Options, given: Given) -> tuple[Predict, Floats]:
    """A baseline with these options, and its predictions for the validation part."""
    return _BASELINES[name].fit(options, given)


def choose_options(name: str, given: Sequence[Given]) -> TunedChoice:
    """The options with the best mean of the task's first metric over the validation parts.

    `given` has a fit's data for each seed that chooses. Raises `GenodiffError` where no candidate
    can be fitted.
    """
    task = given[0].task
    metric = task.metrics[0]

    def evaluate(options: Options, share: float) -> tuple[float, float]:
        clock = WorkClock()
        try:
            fits = [fit_tuned(name, options, one._replace(share=share))[1] for one in given]
            values = [
                measure(metric, task.kind, one.valid.labels, predicted)
                for one, predicted in zip(given, fits, strict=True)
            ]
            value = float(np.mean(values))
        except (GenodiffError, ValueError, FloatingPointError):
            value = math.nan
        return value, clock.seconds

    candidates = list_tuned_options(name, task, given[0].train)
    choice = choose_candidate(candidates, evaluate, metric, _BASELINES[name].shares)
    for one in given:
        one.features.clear()
    options = candidates[choice.candidate]
    trials = [
        {
            "candidate": describe_options(candidates[trial.candidate]),
            "share": trial.share,
            "valid": trial.valid if math.isfinite(trial.valid) else None,
        }
        for trial in choice.trials
    ]
    return TunedChoice(
        options,
        describe_options(options),
        trials,
        sum(trial.seconds for trial in choice.trials),
        len({trial.candidate for trial in choice.trials}),
        len(candidates),
        choice.why,
    )


def describe_options(options: Options) -> str:
    """`l 10, k 6, both strands, strength 1`."""
    flat = {**options.get("features", {}), **{k: v for k, v in options.items() if k != "features"}}
    words = []
    for name, value in flat.items():
        if name == "both_strands":
            words.append("both strands" if value else "one strand")
        elif name == "spots":
            words.append("bins of " + " ".join(f"{w}({k}-mers)" for k, w in value))
        elif name == "whole":
            words += [f"all {'+'.join(map(str, value))}-mers"] if value else []
        elif name == "ks":
            words.append(f"{'+'.join(map(str, value))}-mers")
        elif name != "length":
            words.append(f"{name} {value:g}")
    return ", ".join(words)


def _list_kmers(task: Task, train: Examples) -> list[Options]:
    return [
        {"features": {"ks": list(ks), "both_strands": both}, "strength": strength}
        for ks in _KMERS
        for both in (False, True)
        for strength in (0.1, 1.0, 10.0, 100.0)
    ]


def _list_gapped(task: Task, train: Examples) -> list[Options]:
    bases = int(train.lengths.clip(max=task.max_length).sum())
    fitting = [gap for gap in _GAPS if bases * count_gap_patterns(*gap) <= MOST_ENTRIES]
    return [
        {"features": {"l": length, "k": k, "both_strands": both}, "strength": strength}
        for length, k in fitting or _GAPS[:1]
        for both in ((False, True) if task.oriented else (True,))
        for strength in (0.1, 1.0, 10.0)
    ]


def _spots(length: int) -> list[Options]:
    """Widths of bins, from a base to a fifth of the sequence; of long sequences no single base."""
    fine: list[Options] = [
        {"spots": [[k, 1] for k in (1, 2, 3)], "whole": []},
        {"spots": [[1, 1], [2, 1], [3, 3], [4, 8]], "whole": [5]},
    ]
    wide = max(4, length // 14)
    return [
        *(fine if length <= 128 else []),
        {"spots": [[2, wide], [3, wide], [4, 2 * wide]], "whole": [5]},
        {"spots": [[3, 2 * wide], [5, 3 * wide]], "whole": [4, 6]},
    ]


def _list_positions(task: Task, train: Examples) -> list[Options]:
    length = int(min(task.max_length, train.lengths.max()))
    strengths = (0.1, 1.0, 10.0) if task.kind == "regression" else (0.01, 0.1, 1.0)
    return [
        {"features": {"length": length, **spots}, "strength": strength}
        for spots in _spots(length)
        for strength in (*strengths, *((0.001,) if task.kind == "regression" else ()))
    ]


def _list_boosted(task: Task, train: Examples) -> list[Options]:
    length = int(min(task.max_length, train.lengths.max()))
    narrow, wide = max(4, length // 14), max(10, length // 7)
    spots: list[Options] = [
        {"spots": [[1, 1], [2, narrow], [3, wide]] if length <= 128 else [[3, wide]], "whole": [4]},
        {"spots": [[2, narrow], [3, wide]], "whole": [4]},
    ]
    return [
        {"features": {"length": length, **some}, "rate": rate, "leaves": leaves}
        for some in spots
        for rate, leaves in ((0.1, 15), (0.05, 31))
    ]


def _list_networks(task: Task, train: Examples) -> list[Options]:
    both = not task.oriented
    shapes = [
        {"filters": f, "width": w, "stretches": s, "both_strands": both}
        for f, w in ((64, 13), (128, 21), (128, 13))
        for s in (1, 8)
    ]
    firm = {"dropout": 0.5, "rate": 5e-3, "epochs": 24}
    return [*shapes[:4], shapes[2] | {"rate": 5e-3}, shapes[4] | firm, shapes[5] | firm]


def _fit_linear(features: str, machine: bool) -> Callable[[Options, Given], tuple[Predict, Floats]]:
    def fit(options: Options, given: Given) -> tuple[Predict, Floats]:
        task, train, valid = given.task, given.train, given.valid
        x, judged = given.compute_features(features, options["features"])
        told = (task.kind, given.n_out, x, train.labels, options["strength"])
        rule: LinearRule = (
            fit_machine(*told, (judged, valid.labels)) if machine else fit_logistic(*told)
        )
        predictor = FeaturePredictor(features, options["features"], task.max_length, rule)
        return predictor, rule.predict(judged)

    return fit


def _fit_boosted(options: Options, given: Given) -> tuple[Predict, Floats]:
    task, features = given.task, options["features"]
    x, judged = given.compute_features("position", features)
    rule = fit_boosting(
        task.kind, given.n_out, x, given.train.labels, (judged, given.valid.labels),
        rate=options["rate"], leaves=options["leaves"], share=given.share,
    )  # fmt: skip

    def predict(examples: Examples) -> Floats:
        return rule(compute_features("position", features, examples.sequences, task.max_length))

    return predict, rule(judged)


def _fit_network(options: Options, given: Given) -> tuple[Predict, Floats]:
    predictor = fit_motif_cnn(
        given.task.kind, given.n_out, given.task.max_length, given.train, given.valid, given.seed,
        settings=MotifSettings.parse(options), loss=given.loss, share=given.share,
    )  # fmt: skip
    return predictor, predictor(given.valid)


class _Tuned(NamedTuple):
    """How a baseline lists its candidates, fits one, and at which shares of a fit they compete."""

    list_options: Callable[[Task, Examples], list[Options]]
    fit: Callable[[Options, Given], tuple[Predict, Floats]]
    shares: tuple[float, ...] = (1.0,)


_BASELINES: dict[str, _Tuned] = {
    "kmer-tuned": _Tuned(_list_kmers, _fit_linear("kmers", False)),
    "gkm-svm": _Tuned(_list_gapped, _fit_linear("gapped", True)),
    "pos-kmer-lr": _Tuned(_list_positions, _fit_linear("position", False)),
    "pos-kmer-gb": _Tuned(_list_boosted, _fit_boosted, (0.25, 1.0)),
    "cnn-tuned": _Tuned(_list_networks, _fit_network, (0.25, 1.0)),
}
