"""Metrics agree with scikit-learn, those of resamples with those of the repeated examples, and
intervals with what brute force gives; intervals over seeds and examples cover, with clusters too; a
table's claims are wrong in 5 % of tables at most.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import binom, spearmanr
from sklearn import metrics as sk

from genodiff.errors import DataError
from genodiff.statistics.comparisons import judge_differences
from genodiff.tasks import metrics
from genodiff.tasks.metrics import measure, measure_spread
from genodiff.tasks.paired_bootstrap import ModelPredictions, measure_weighted, resample_scores


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


Floats = NDArray[np.float64]
CASES = [
    *(("binary", m) for m in ("accuracy", "f1", "f1_macro", "mcc", "auroc", "auprc")),
    *(("multiclass", m) for m in ("accuracy", "f1_macro", "mcc", "auroc", "auprc")),
    *(("multilabel", m) for m in ("accuracy", "f1", "mcc", "auroc", "auprc")),
    *(("regression", m) for m in ("pearson", "spearman", "r2", "mse")),
]


def draw_task(kind: str, rng: np.random.Generator, n: int = 60) -> tuple[NDArray[Any], Floats]:
    """Truth and predictions with ties."""
    if kind == "regression":
        truth = rng.integers(0, 9, n).astype(float)
        return truth, np.round(truth + rng.normal(0, 3, n))
    if kind == "multilabel":
        truth = rng.integers(0, 2, (n, 3))
        return truth, np.round(np.clip(truth + rng.normal(0, 0.7, (n, 3)), 0, 1), 1)
    classes = 2 if kind == "binary" else 3
    truth = rng.integers(0, classes, n)
    scores = np.round(np.eye(classes)[truth] + rng.normal(0, 0.8, (n, classes)), 1)
    return truth, np.exp(scores) / np.exp(scores).sum(1, keepdims=True)


@pytest.mark.parametrize(("kind", "metric"), CASES)
def test_a_weighted_metric_is_that_of_the_repeated_examples(kind, metric):
    rng = np.random.default_rng(3)
    truth, predicted = draw_task(kind, rng)
    weights = np.stack([np.bincount(rng.integers(60, size=60), minlength=60) for _ in range(5)], 1)
    found = measure_weighted(metric, kind, truth, predicted, weights.astype(float))
    for drawn, value in zip(weights.T, found, strict=True):
        again = np.repeat(np.arange(60), drawn)
        assert value == pytest.approx(measure(metric, kind, truth[again], predicted[again]))


@pytest.mark.few(2)
@pytest.mark.parametrize(("kind", "metric"), CASES)
def test_the_interval_over_examples_is_that_of_the_bootstrap(kind, metric):
    rng = np.random.default_rng(4)
    truth, predicted = draw_task(kind, rng, 400)
    one = ModelPredictions((1,), [predicted])
    found = resample_scores(metric, kind, truth, {"a": one}, draws=1000).estimate_fixed("a")
    known = measure_spread(metric, kind, truth, [predicted], resamples=1000)
    assert found.value == pytest.approx(known.mean)
    assert found.ci95 is not None
    width = known.ci95[1] - known.ci95[0]
    assert found.ci95 == pytest.approx(known.ci95, abs=0.15 * width)


def test_copies_are_one_test_and_not_several():
    rng = np.random.default_rng(5)
    truth, first = draw_task("binary", rng, 200)
    second = np.roll(first, 1, 0)
    models = {"a": ModelPredictions((1, 2), [first, second])}
    alone = resample_scores("mcc", "binary", truth, models)
    copied = {"a": ModelPredictions((1, 2), [np.repeat(p, 5, 0) for p in (first, second)])}
    truth5, clusters = np.repeat(truth, 5), np.repeat(np.arange(200), 5)
    with_clusters = resample_scores("mcc", "binary", truth5, copied, clusters=clusters)
    np.testing.assert_allclose(with_clusters.cov, alone.cov, rtol=1e-9)
    assert with_clusters.df == alone.df == 199
    blind = resample_scores("mcc", "binary", truth5, copied)
    np.testing.assert_allclose(blind.cov, alone.cov / 5, rtol=0.15)


def test_the_same_seed_gives_the_same_bits_and_a_model_has_no_difference_to_itself():
    truth, predicted = draw_task("binary", np.random.default_rng(6))
    one = ModelPredictions((1, 2), [predicted, predicted[:, ::-1]])
    first, again = (resample_scores("auroc", "binary", truth, {"a": one, "b": one}) for _ in "12")
    assert np.array_equal(first.cov, again.cov)
    assert first.compare("a", "b").value == 0
    assert first.compare("a", "b").why_none == "no variation"


def test_one_seed_one_example_and_one_class_have_no_interval():
    truth, predicted = draw_task("binary", np.random.default_rng(7))
    one, two = ModelPredictions((1,), [predicted]), ModelPredictions((1, 2), [predicted] * 2)
    found = resample_scores("accuracy", "binary", truth, {"a": one, "b": two})
    assert found.estimate("a").why_none == "one seed"
    assert found.estimate_fixed("a").ci95 is not None
    assert found.compare("b", "a").why_none == "one seed"
    lone = {"b": ModelPredictions((1, 2), [predicted[:1]] * 2)}
    assert resample_scores("accuracy", "binary", truth[:1], lone).estimate("b").ci95 is None
    one_class = resample_scores("auroc", "binary", np.zeros(60, int), {"b": two})
    assert one_class.estimate("b").why_none == "undefined"
    in_one = resample_scores("mcc", "binary", truth, {"b": two}, clusters=np.zeros(60, int))
    assert in_one.estimate("b").why_none == "too few test units"


def draw_world(
    rng: np.random.Generator, accuracies: list[float], seeds: int, seed_sd: float, cluster: int
) -> tuple[NDArray[np.int64], dict[str, ModelPredictions], NDArray[np.int64]]:
    """(truth, predictions of each model, clusters) of 400 examples, `cluster` copies of each.

    A model with seed s is right about example i where skill + seed + difficulty + taste + noise >
    0, all normal, so that its true accuracy is known.
    """
    groups, sd = 400 // cluster, (seed_sd**2 + 0.8**2 + 0.3**2 + 0.5**2) ** 0.5
    of = np.repeat(np.arange(groups), cluster)
    truth = rng.integers(0, 2, groups)[of]
    difficulty = rng.normal(0, 0.8, groups)
    models = {}
    for name, accuracy in zip("abcdefgh", accuracies, strict=False):
        base = ndtri(accuracy) * sd + difficulty + rng.normal(0, 0.3, groups)
        of_seeds = rng.normal(0, seed_sd, (seeds, 1))
        right = (base + of_seeds + rng.normal(0, 0.5, (seeds, groups)) > 0)[:, of]
        said = np.where(right, truth, 1 - truth)
        models[name] = ModelPredictions(tuple(range(1, seeds + 1)), [np.eye(2)[s] for s in said])
    return truth, models, of


WORLDS = [
    (seeds, sd, cluster) for seeds in (3, 5) for sd in (0.0, 0.05, 0.25) for cluster in (1, 4)
]


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "seed_sd", "cluster"), WORLDS)
def test_intervals_over_seeds_and_examples_cover(seeds, seed_sd, cluster):
    rng = np.random.default_rng([seeds, round(1000 * seed_sd), cluster])
    worlds, gap, own = 300, 0, 0
    for _ in range(worlds):
        truth, models, clusters = draw_world(rng, [0.82, 0.78], seeds, seed_sd, cluster)
        found = resample_scores("accuracy", "binary", truth, models, clusters=clusters, draws=300)
        low, high = found.compare("a", "b").ci95 or (1.0, 0.0)
        gap += low <= 0.04 <= high
        low, high = found.estimate("a").ci95 or (1.0, 0.0)
        own += low <= 0.82 <= high
    slack = 2 * (0.95 * 0.05 / worlds) ** 0.5  # the sampling error of so many worlds
    assert 0.93 - slack <= gap / worlds <= 0.97 + slack
    assert 0.93 - slack <= own / worlds <= 0.97 + slack


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["mcc", pytest.param("auroc", marks=pytest.mark.long)])
def test_holm_keeps_the_error_of_a_table_of_ten_comparisons(metric):
    rng, worlds = np.random.default_rng(11), 250
    wrong = plain = 0
    for _ in range(worlds):
        truth, models, clusters = draw_world(rng, [0.8] * 5, 4, 0.05, 2)
        found = resample_scores(metric, "binary", truth, models, clusters=clusters, draws=300)
        names = list(models)
        pairs = [(a, b, found.compare(a, b)) for i, a in enumerate(names) for b in names[:i]]
        judged = judge_differences(pairs)
        wrong += any(gap.is_different for gap in judged)
        plain += any((gap.estimate.p or 1) < 0.05 for gap in judged)
    assert wrong / worlds <= binom.ppf(0.99, worlds, 0.05) / worlds
    assert plain > wrong
