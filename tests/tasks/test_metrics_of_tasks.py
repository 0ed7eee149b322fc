"""Metrics agree with scikit-learn, and intervals with what brute force gives."""

import numpy as np
import pytest
from sklearn import metrics as sk

from genodiff.errors import DataError
from genodiff.tasks import metrics


def draw(n: int, classes: int, seed: int, skill: float = 0.4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, n)
    scores = rng.random((n, classes)) + skill * (truth[:, None] == np.arange(classes))
    return truth, scores / scores.sum(1, keepdims=True)


@pytest.mark.parametrize("classes", [2, 3])
def test_metrics_of_decisions_are_those_of_scikit_learn(classes):
    truth, predicted = draw(301, classes, 3)
    said, kind = predicted.argmax(1), "binary" if classes == 2 else "multiclass"
    average = "binary" if classes == 2 else "macro"
    wanted = {
        "accuracy": sk.accuracy_score(truth, said), "mcc": sk.matthews_corrcoef(truth, said),
        "f1": sk.f1_score(truth, said, average=average), "f1_macro": sk.f1_score(truth, said,
        average="macro"),
    }  # fmt: skip
    for name, value in wanted.items():
        assert metrics.measure(name, kind, truth, predicted) == pytest.approx(value, abs=1e-12)


def test_rankings_are_those_of_scikit_learn():
    truth, predicted = draw(200, 2, 4)
    assert metrics.measure("auroc", "binary", truth, predicted) == pytest.approx(
        sk.roc_auc_score(truth, predicted[:, 1])
    )
    assert metrics.measure("auprc", "binary", truth, predicted) == pytest.approx(
        sk.average_precision_score(truth, predicted[:, 1])
    )
    truth, predicted = draw(200, 3, 5)
    found = metrics.measure("auroc", "multiclass", truth, predicted)
    assert found == pytest.approx(sk.roc_auc_score(truth, predicted, multi_class="ovr"))


def test_a_class_that_never_occurs_keeps_its_place():
    truth, predicted = np.array([0, 2, 2, 0]), np.eye(3)[[0, 2, 0, 0]]
    assert metrics.count_confusions(truth, predicted.argmax(1), 3).tolist() == [
        [2, 0, 0],
        [0, 0, 0],
        [1, 0, 1],
    ]
    assert metrics.measure("f1_macro", "multiclass", truth, predicted) == pytest.approx(
        sk.f1_score(truth, predicted.argmax(1), average="macro")
    )


def test_metrics_of_several_answers_and_of_values():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, (50, 3)).astype(np.uint8)
    predicted = np.clip(truth * 0.5 + rng.random((50, 3)) * 0.6, 0, 1)
    said = predicted >= 0.5
    assert metrics.measure("f1", "multilabel", truth, predicted) == pytest.approx(
        sk.f1_score(truth, said, average="macro")
    )
    assert metrics.measure("accuracy", "multilabel", truth, predicted) == pytest.approx(
        (truth == said).mean()
    )
    values = rng.normal(size=40)
    near = values + rng.normal(size=40)
    assert metrics.measure("r2", "regression", values, near) == pytest.approx(
        sk.r2_score(values, near)
    )
    assert metrics.measure("pearson", "regression", values, near) == pytest.approx(
        np.corrcoef(values, near)[0, 1]
    )
    assert metrics.measure("spearman", "regression", values, near**3) == pytest.approx(
        metrics.measure("spearman", "regression", values, near)
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
    slow = [
        np.mean([metrics.measure(metric, "binary", truth[i], p[i]) for p in seeds])
        for i in (rng.integers(150, size=150) for _ in range(600))
    ]  # fmt: skip
    assert found.ci95 is not None
    np.testing.assert_allclose(found.ci95, np.quantile(slow, [0.025, 0.975]), atol=0.02)
    assert found.mean == pytest.approx(
        np.mean([metrics.measure(metric, "binary", truth, p) for p in seeds])
    )
    assert found.range == pytest.approx(
        abs(np.diff([metrics.measure(metric, "binary", truth, p) for p in seeds])[0])
    )


def test_the_interval_of_a_ranking_holds_its_value():
    truth, predicted = draw(120, 2, 8)
    found = metrics.measure_spread("auroc", "binary", truth, [predicted])
    assert found.ci95[0] < found.mean < found.ci95[1]
    assert metrics.measure_spread("auroc", "binary", truth, [predicted]) == found


def test_calibration_counts_every_example_once():
    truth, predicted = draw(500, 2, 9)
    found = metrics.measure_calibration(truth, predicted)
    assert sum(found["count"]) == 500
    weighted = (
        sum(
            n * abs(a - c)
            for n, a, c in zip(found["count"], found["accuracy"], found["confidence"], strict=True)
        )
        / 500
    )
    assert found["ece"] == pytest.approx(weighted)
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
