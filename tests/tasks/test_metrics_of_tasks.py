"""Metrics agree with scikit-learn, and intervals with what brute force gives."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn import metrics as sk

from genodiff.errors import DataError
from genodiff.tasks import metrics


def draw(n: int, classes: int, seed: int, skill: float = 0.4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, n)
    scores = rng.random((n, classes)) + skill * (truth[:, None] == np.arange(classes))
    return truth, scores / scores.sum(1, keepdims=True)


def draw_answers() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, (50, 3)).astype(np.uint8)
    return truth, np.clip(truth * 0.5 + rng.random((50, 3)) * 0.6, 0, 1)


TWO, THREE, ANSWERS = draw(301, 2, 3), draw(301, 3, 3), draw_answers()
DRAWN = np.random.default_rng(1).normal(size=(2, 40))
VALUES = DRAWN[0], DRAWN.sum(0)


def decided(call, given, **how):
    return call(given[0], given[1].argmax(1), **how)


@pytest.mark.parametrize(
    ("name", "kind", "given", "wanted"),
    [
        *(
            (name, kind, given, decided(call, given, **how))
            for kind, given, average in (("binary", TWO, "binary"), ("multiclass", THREE, "macro"))
            for name, call, how in (
                ("accuracy", sk.accuracy_score, {}), ("mcc", sk.matthews_corrcoef, {}),
                ("f1", sk.f1_score, {"average": average}),
                ("f1_macro", sk.f1_score, {"average": "macro"}),
            )
        ),
        ("auroc", "binary", TWO, sk.roc_auc_score(TWO[0], TWO[1][:, 1])),
        ("auprc", "binary", TWO, sk.average_precision_score(TWO[0], TWO[1][:, 1])),
        ("auroc", "multiclass", THREE, sk.roc_auc_score(*THREE, multi_class="ovr")),
        ("f1", "multilabel", ANSWERS, sk.f1_score(ANSWERS[0], ANSWERS[1] >= 0.5, average="macro")),
        ("accuracy", "multilabel", ANSWERS, (ANSWERS[0] == (ANSWERS[1] >= 0.5)).mean()),
        ("r2", "regression", VALUES, sk.r2_score(*VALUES)),
        ("pearson", "regression", VALUES, np.corrcoef(*VALUES)[0, 1]),
        ("spearman", "regression", (VALUES[0], VALUES[1] ** 3), spearmanr(*VALUES).statistic),
    ],
)  # fmt: skip
def test_metrics_are_those_of_scikit_learn_and_scipy(name, kind, given, wanted):
    assert metrics.measure(name, kind, *given) == pytest.approx(wanted, abs=1e-12)


def test_a_class_that_never_occurs_keeps_its_place():
    truth, predicted = np.array([0, 2, 2, 0]), np.eye(3)[[0, 2, 0, 0]]
    table = metrics.count_confusions(truth, predicted.argmax(1), 3).tolist()
    assert table == [[2, 0, 0], [0, 0, 0], [1, 0, 1]]
    assert metrics.measure("f1_macro", "multiclass", truth, predicted) == pytest.approx(
        sk.f1_score(truth, predicted.argmax(1), average="macro")
    )


def test_undefined_metrics_say_so():
    one = np.array([1, 1, 1])
    assert np.isnan(metrics.measure("auroc", "binary", one, np.full((3, 2), 0.5)))
    assert metrics.measure("mcc", "binary", one, np.eye(2)[[1, 1, 1]]) == 0
    assert metrics.measure("pearson", "regression", np.arange(3.0), np.ones(3)) == 0
    with pytest.raises(DataError, match="pearson"):
        metrics.measure("pearson", "binary", one, np.eye(2)[[1, 1, 1]])


@pytest.mark.few(1)
@pytest.mark.parametrize("metric", ["mcc", "f1"])
def test_the_interval_of_counts_is_that_of_resampled_examples(metric):
    truth, first = draw(150, 2, 6)
    seeds = [first, draw(150, 2, 7)[1]]
    found = metrics.measure_spread(metric, "binary", truth, seeds, resamples=4000)
    rng = np.random.default_rng(0)
    draws = (rng.integers(150, size=150) for _ in range(600))
    slow = [
        np.mean([metrics.measure(metric, "binary", truth[i], p[i]) for p in seeds]) for i in draws
    ]
    assert found.ci95 is not None
    np.testing.assert_allclose(found.ci95, np.quantile(slow, [0.025, 0.975]), atol=0.02)
    each = [metrics.measure(metric, "binary", truth, p) for p in seeds]
    assert (found.mean, found.range) == pytest.approx((np.mean(each), np.ptp(each)))


@pytest.mark.slow
def test_the_interval_of_a_ranking_holds_its_value():
    truth, predicted = draw(120, 2, 8)
    found = metrics.measure_spread("auroc", "binary", truth, [predicted])
    assert found.ci95[0] < found.mean < found.ci95[1]
    assert metrics.measure_spread("auroc", "binary", truth, [predicted]) == found


def test_calibration_counts_every_example_once():
    truth, predicted = draw(500, 2, 9)
    found = metrics.measure_calibration(truth, predicted)
    assert sum(found["count"]) == 500
    gaps = np.abs(np.subtract(found["accuracy"], found["confidence"]))
    assert found["ece"] == pytest.approx(gaps @ found["count"] / 500)
    sure = metrics.measure_calibration(
        np.array([0, 0, 1, 1]), np.array([[1, 0], [0, 1], [0, 1], [1, 0.0]])
    )
    assert sure["ece"] == pytest.approx(0.5)


def test_groups_of_lengths_hold_every_example_once():
    lengths = np.random.default_rng(2).integers(50, 500, 333)
    groups = metrics.measure_by_length(lengths, lambda index: float(lengths[index].mean()))
    assert sum(g["n"] for g in groups) == 333
    assert len(groups) == 6
    assert all(g["from"] <= g["value"] <= g["to"] for g in groups)
    assert metrics.measure_by_length(np.full(10, 7), lambda index: float(len(index))) == [
        {"from": 7, "to": 7, "n": 10, "value": 10.0}
    ]
