"""Tuned baselines: every kind of task, motif, place, strand, the choice and its keeping."""

import json
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from genodiff.alphabet import reverse_complement
from genodiff.errors import UsageError
from genodiff.finetuning import baselines, choosing, tuned_baselines
from genodiff.finetuning.baselines import fit_baseline, fit_predict, make_given
from genodiff.finetuning.choosing import list_choosing_seeds
from genodiff.finetuning.feature_regression import FeaturePredictor, count_bins, position_features
from genodiff.finetuning.fitted_model import load_fitted
from genodiff.finetuning.fitted_unit import fit_unit
from genodiff.finetuning.model_spec import ModelSpec
from genodiff.finetuning.model_words import list_baselines, split_words
from genodiff.finetuning.motif_cnn import MotifCnn, MotifSettings, turn
from genodiff.finetuning.protocol import FitSettings
from genodiff.finetuning.scored_unit import run_unit
from genodiff.finetuning.tuned_baselines import (
    Given,
    TunedChoice,
    choose_options,
    fit_tuned,
    list_tuned_options,
)
from genodiff.finetuning.unit import Unit
from genodiff.tasks.examples import Examples
from genodiff.tasks.metrics import measure
from genodiff.tasks.suite import Task
from genodiff.tasks.task import TaskData, seed_split
from genodiff.tasks.trivial_predictors import accuracy
from tests.finetuning.test_baselines import motif_examples
from tests.labelled_files import random_dna

TUNED = list_baselines("dna", is_tuned=True)


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Two candidates of each, few trees, few epochs."""

    def first(listed: object) -> object:
        return lambda task, train: listed(task, train)[:2]  # type: ignore[operator]

    def few(listed: object) -> object:
        return lambda task, train: [o | {"epochs": 6, "filters": 32} for o in listed(task, train)]  # type: ignore[operator]

    found = dict(tuned_baselines._BASELINES)
    found["cnn-tuned"] = found["cnn-tuned"]._replace(
        list_options=few(found["cnn-tuned"].list_options)  # type: ignore[arg-type]
    )
    found = {
        name: one._replace(list_options=first(one.list_options))  # type: ignore[arg-type]
        for name, one in found.items()
    }
    monkeypatch.setattr(tuned_baselines, "_BASELINES", found)
    monkeypatch.setattr("genodiff.finetuning.tuned_baselines.TREES", 8)


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel", "regression"])
@pytest.mark.parametrize("name", TUNED)
def test_every_tuned_baseline_answers_every_kind_of_task_in_its_shape(name, kind):
    task, data = motif_examples(40, kind)
    task = task.model_copy(update={"metrics": ("mse",)} if kind == "regression" else {})
    half = np.arange(40) < 30
    found = fit_predict(name, task, data.take(half), data.take(~half), data.take(~half), 1)
    assert found.shape == ((10,) if kind == "regression" else (10, len(task.classes)))
    assert found.dtype == np.float64
    assert np.isfinite(found).all()
    if kind in ("binary", "multiclass"):
        assert np.allclose(found.sum(axis=1), 1)
    if kind != "regression":
        assert found.min() >= 0
        assert found.max() <= 1


@pytest.mark.few(2)
@pytest.mark.parametrize("name", TUNED)
def test_they_find_the_motif_and_see_no_label_of_the_test_part(name):
    task, data = motif_examples(500)
    _, test = motif_examples(200, seed=5)
    rows = np.arange(500)
    predict = fit_baseline(name, task, data.take(rows[:440]), data.take(rows[440:]), 1)
    found = predict(test)
    assert accuracy(found, test.labels) > 0.9
    assert np.array_equal(predict(test._replace(labels=1 - test.labels)), found)
    assert np.allclose(predict(test.take(rows[:200][::-1]))[::-1], found, atol=1e-6)


@pytest.mark.parametrize("name", ["pos-kmer-lr", "pos-kmer-gb"])
def test_position_kmers_tell_where_a_motif_stands_and_plain_ones_cannot(name):
    def part(n: int, seed: int) -> Examples:
        labels = np.arange(n) % 2
        sequences = []
        for label, s in zip(labels, random_dna(n, 60, seed), strict=True):
            here, there = ("TATAAAGG", s[40:48]) if label else (s[10:18], "TATAAAGG")
            sequences.append((s[:10] + here + s[18:40] + there + s[48:]).encode())
        return Examples(sequences, labels, [str(i) for i in range(n)])

    task = Task(suite="own", name="place", max_length=60)
    train, valid, test = part(300, 1), part(60, 2), part(200, 3)
    assert accuracy(fit_predict(name, task, train, valid, test, 1), test.labels) > 0.9
    assert accuracy(fit_predict("kmer-tuned", task, train, valid, test, 1), test.labels) < 0.7


def test_position_features_count_words_by_bin():
    found = position_features([b"ACGTAC", b"ANG"], length=6, spots=((2, 2),)).toarray()
    word = {
        w: int("".join("0123"["ACGT".index(c)] for c in w), 4) for w in ("AC", "CG", "GT", "TA")
    }
    expected = np.zeros((2, count_bins(6, 2, 2) * 16))
    for place, w in enumerate(("AC", "CG", "GT", "TA", "AC")):
        expected[0, place // 2 * 16 + word[w]] += 1
    assert np.array_equal(found, expected)


def test_a_network_of_both_strands_scores_them_alike_and_turning_twice_is_nothing():
    sequences = [s.encode() for s in random_dna(6, 40, 2)]
    from_letters = "ACGTN"
    letters = torch.tensor([[from_letters.index(c) for c in s.decode()] for s in sequences])
    other = torch.tensor(
        [
            [from_letters.index(c) for c in bytes(reverse_complement(s)).decode()]  # type: ignore[arg-type]
            for s in sequences
        ]
    )
    assert torch.equal(turn(letters), other)
    assert torch.equal(turn(other), letters)
    for both in (True, False):
        network = MotifCnn(MotifSettings(filters=8, stretches=2, both_strands=both), 2, 1).eval()
        assert torch.allclose(network.score(letters), network.score(other), atol=1e-6) == both


def unit_of(name: str, seed: int, task: Task) -> Unit:
    return Unit(
        suite="own", task=task.name, split="official", data="d", seed=seed, settings=FitSettings(),
        model=ModelSpec(name=name, kind="baseline", preset=name),
    )  # fmt: skip


def task_data(kind: str = "binary") -> TaskData:
    task, data = motif_examples(120, kind)
    return TaskData(task, data, motif_examples(30, kind, seed=4)[1], "official")


def test_settings_are_chosen_once_on_seed_1_and_frozen_for_the_others(tmp_path, monkeypatch):
    data, seen = task_data(), []
    monkeypatch.setattr(choosing, "FEW", 12)

    def choose(name: str, given: Sequence[Given]) -> TunedChoice:
        (one,) = given
        seen.append((name, one.seed, set(one.valid.names)))
        return choose_options(name, given)

    monkeypatch.setattr(baselines, "choose_options", choose)
    rows = [run_unit(unit_of("gkm-svm", s, data.task), data, tmp_path) for s in (3, 1, 2)]
    assert len(seen) == 1
    assert seen[0][:2] == ("gkm-svm", 1)
    assert len({json.dumps(row["choices"]) for row in rows}) == 1
    (choice,) = rows[0]["choices"]
    assert choice["tried"] == choice["offered"] == len(choice["trials"]) == 2
    assert choice["chosen"] in [trial["candidate"] for trial in choice["trials"]]
    assert rows[1]["choice_seconds"] == choice["seconds"] > 0
    assert all(row["parameters"] > 100 for row in rows)
    (kept,) = (tmp_path / "choices").glob("*.json")
    assert json.loads(kept.read_text())["choice"] == choice


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])
@pytest.mark.parametrize("name", [name for name in TUNED if name != "pos-kmer-gb"])
def test_a_kept_fit_predicts_what_the_fit_predicted(name, kind, tmp_path):
    data = task_data(kind)
    if kind == "regression":
        data = data._replace(task=data.task.model_copy(update={"metrics": ("mse",)}))
    unit = unit_of(name, 1, data.task)
    run_unit(unit, data, tmp_path)
    kept = load_fitted(unit.folder(tmp_path))
    found = kept.score(data.test.sequences)
    expected = fit_unit(unit, data, tmp_path).predict(data.test)
    assert np.allclose(found, expected, atol=1e-6)
    if name != "cnn-tuned":
        alone = np.concatenate([kept.score([s]) for s in data.test.sequences])
        assert np.array_equal(alone, found)


@pytest.mark.parametrize(("name", "fits"), [("kmer-lr", 1), ("majority", 1), ("cnn", 3)])
@pytest.mark.parametrize("published", [True, False])
def test_what_draws_nothing_is_fitted_once_for_all_seeds_with_the_same_rows(
    name, fits, published, tmp_path, monkeypatch
):
    data, made = task_data("binary"), list[int]()
    if published:
        data = data._replace(valid_index=np.arange(12))

    def count(*given: object, **more: object) -> object:
        made.append(1)
        return fit_baseline(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("genodiff.finetuning.fitted_unit.fit_baseline", count)
    rows = [run_unit(unit_of(name, seed, data.task), data, tmp_path) for seed in (1, 2, 3)]
    assert len(made) == (fits if published else 3)  # without a published part, rows differ by seed
    assert [row["seed"] for row in rows] == [1, 2, 3]
    if fits == 1 and published:
        assert len({row["seconds"] for row in rows}) == 1


def test_more_seeds_choose_where_a_seed_has_few_validation_examples(tmp_path):
    data = task_data()  # 12 of 120 validate
    row = run_unit(unit_of("gkm-svm", 1, data.task), data, tmp_path)
    (choice,) = row["choices"]
    assert (choice["by"], choice["n_valid"]) == ("validation of seeds 1 to 5", 60)
    first = choice["trials"][0]
    (options, *_) = list_tuned_options("gkm-svm", data.task, data.train)
    found = []
    for seed in range(1, 6):
        train, valid = (data.train.take(rows) for rows in seed_split(data, seed))
        _, said = fit_tuned("gkm-svm", options, make_given(data.task, train, valid, seed))
        found.append(measure(data.task.metrics[0], data.task.kind, valid.labels, said))
    assert first["valid"] == pytest.approx(np.mean(found))
    published = data._replace(valid_index=np.arange(12))
    assert list(list_choosing_seeds(published, 1)) == [1]
    assert list(list_choosing_seeds(data._replace(train=motif_examples(1_000)[1]), 1)) == [1]


def test_the_words_name_plain_and_tuned_baselines_apart():
    names = list_baselines("dna")
    assert set(TUNED) == set(tuned_baselines._BASELINES)
    plain = list(list_baselines("dna", is_tuned=False))
    assert [w for _, w in split_words(["baselines"], names)] == plain
    assert [w for _, w in split_words(["tuned-baselines"], names)] == list(TUNED)
    with pytest.raises(UsageError, match="no tuned-baselines for such data"):
        split_words(["tuned-baselines"], list_baselines("text"))


def test_a_rule_survives_its_tensors():
    task, data = motif_examples(60)
    rows = np.arange(60)
    rule = fit_baseline("pos-kmer-lr", task, data.take(rows[:40]), data.take(rows[40:]), 1)
    assert isinstance(rule, FeaturePredictor)
    again = FeaturePredictor.of(json.loads(json.dumps(rule.about())), rule.tensors())
    assert np.array_equal(again(data), rule(data))
