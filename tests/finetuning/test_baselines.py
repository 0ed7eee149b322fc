"""Baselines: what they are, that they learn what is there to learn, and that they see no label of
the test part.
"""

from collections import Counter

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.tree import DecisionTreeClassifier

from genodiff.alphabet import reverse_complement
from genodiff.errors import DataError, UsageError
from genodiff.finetuning.baselines import fit_baseline, list_allowed_baselines
from genodiff.finetuning.cnn import Cnn, encode_letters, fit_cnn
from genodiff.finetuning.count_regression import kmer_features
from genodiff.finetuning.fit import Predict
from genodiff.finetuning.model_spec import ModelSpec
from genodiff.finetuning.model_words import list_baselines
from genodiff.finetuning.protocol import FitSettings
from genodiff.finetuning.scored_unit import run_unit
from genodiff.finetuning.unit import Unit
from genodiff.tasks.audit import predict_by_length, predict_by_lookup
from genodiff.tasks.examples import Coordinates, Examples
from genodiff.tasks.metrics import measure
from genodiff.tasks.suite import Task
from genodiff.tasks.task import TaskData
from tests.labelled_files import random_dna

MOTIF = "TATAAACC"


def motif_examples(n: int, kind: str = "binary", seed: int = 1) -> tuple[Task, Examples]:
    """Half of the sequences hold a motif; what is to be told depends on it and, for some kinds, on
    the length.
    """
    sequences, labels = [], np.arange(n) % 2
    for i, s in enumerate(random_dna(n, 60, seed)):
        sequence = s[:20] + (MOTIF if labels[i] else s[20:28]) + s[28 : 50 + i % 10]
        sequences.append(sequence.encode())
    classes = {
        "binary": ("no", "yes"),
        "multiclass": ("a", "b", "c"),
        "multilabel": ("m", "long", "never"),
        "regression": (),
    }[kind]
    if kind == "multiclass":
        labels = labels + (np.arange(n) % 4 == 1)
    elif kind == "multilabel":
        labels = np.stack([labels, np.arange(n) % 10 > 4, np.zeros(n)], axis=1).astype(np.uint8)
    elif kind == "regression":
        labels = labels * 10.0 + 3
    task = Task(suite="own", name="motif", kind=kind, classes=classes, max_length=60)  # type: ignore[arg-type]
    return task, Examples(sequences, labels, [str(i) for i in range(n)])


@pytest.fixture(autouse=True)
def one_epoch(monkeypatch):
    monkeypatch.setattr("genodiff.finetuning.cnn.EPOCHS", 1)


def fit_on(name: str, task: Task, data: Examples, n: int, seed: int = 1) -> Predict:
    """Fitted on the first `n` examples, with the others for validation."""
    rows = np.arange(data.n)
    return fit_baseline(name, task, data.take(rows[:n]), data.take(rows[n:]), seed)


@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel", "regression"])
@pytest.mark.parametrize("name", ["majority", "length-tree", "kmer-lr", "cnn"])
def test_every_baseline_answers_every_kind_of_task_in_its_shape(name, kind):
    task, data = motif_examples(40, kind)
    found = fit_on(name, task, data, 30)(data.take(np.arange(30, 40)))
    assert found.shape == ((10,) if kind == "regression" else (10, len(task.classes)))
    assert found.dtype == np.float64
    assert np.isfinite(found).all()
    if kind in ("binary", "multiclass"):
        assert np.allclose(found.sum(axis=1), 1)
    if kind != "regression":
        assert found.min() >= 0
        assert found.max() <= 1


@pytest.mark.parametrize("name", ["kmer-lr", "cnn"])
def test_what_reads_the_sequence_finds_the_motif(name, monkeypatch):
    monkeypatch.setattr("genodiff.finetuning.cnn.EPOCHS", 5)
    test = motif_examples(200, seed=5)[1]
    predict = fit_on(name, *motif_examples(500), 440)
    assert measure("accuracy", "binary", test.labels, predict(test)) > 0.9


@pytest.mark.parametrize("name", ["majority", "length-tree", "kmer-lr", "cnn"])
def test_predictions_depend_neither_on_the_company_nor_on_the_order_nor_on_test_labels(name):
    predict = fit_on(name, *motif_examples(60), 40, seed=3)
    test = motif_examples(30, seed=7)[1]
    whole = predict(test)
    assert np.allclose(predict(test.take(np.arange(30)[::-1]))[::-1], whole, atol=1e-6)
    alone = [predict(test.take(np.array([i]))) for i in range(30)]
    assert np.allclose(np.concatenate(alone), whole, atol=1e-6)
    assert np.array_equal(predict(test._replace(labels=1 - test.labels)), whole)


@pytest.mark.parametrize("name", ["kmer-lr", "cnn"])
def test_the_same_seed_gives_the_same_bits(name):
    task, data = motif_examples(60)
    found = [fit_baseline(name, task, data, data, seed)(data) for seed in (4, 4, 5)]
    assert np.array_equal(found[0], found[1])
    assert name == "kmer-lr" or not np.array_equal(found[0], found[2])


def test_kmer_features_are_the_roots_of_the_shares_of_kmers():
    sequence = b"ACGTNACGGT"
    for both in (False, True):
        found = kmer_features([b"TTTTTTTT", sequence], both_strands=both).toarray()[1]
        assert found[0] == pytest.approx(5 / 9)
        at = 1
        for k in (3, 6):
            words = [sequence[i : i + k] for i in range(len(sequence) - k + 1)]
            words = [w for w in words if b"N" not in w]
            words = [min(w, bytes(reverse_complement(w))) for w in words] if both else words  # type: ignore[arg-type]
            counts = Counter(words)
            expected = np.zeros(4**k)
            for word, n in counts.items():
                number = int("".join(str(b"ACGT".index(c)) for c in word), 4)
                expected[number] = (n / len(words)) ** 0.5
            assert np.allclose(found[at : at + 4**k], expected)
            at += 4**k


def test_the_first_convolution_is_that_of_the_embedded_letters():
    network = Cnn(80, 2, seed=1).eval()
    letters = encode_letters([b"ACGTNNACGT" * 8, b"ACG"], 80).long()
    x = network.embedding[letters].transpose(1, 2)
    for convolution, norm in zip(network.convolutions, network.norms, strict=True):
        x = F.max_pool1d(F.relu(norm(convolution(x))), 2)
    assert torch.allclose(network(letters), network.out(network.hidden(x.flatten(1))), atol=1e-5)


def test_equal_lengths_under_a_weight_grow_the_same_tree_as_single_rows():
    rng = np.random.Generator(np.random.Philox(3))
    lengths, labels = rng.integers(50, 90, 500), rng.integers(0, 3, 500)
    tree = DecisionTreeClassifier(random_state=0).fit(lengths[:, None], labels)
    test = np.arange(40, 100)
    found = predict_by_length(lengths, labels, test, 3)
    assert np.allclose(found, tree.predict_proba(test[:, None]))


def places_of(rows: list[tuple[int, int]]) -> Coordinates:
    start, end = np.array(rows).T
    return Coordinates(np.array(["chr1"] * len(rows)), start, end, np.array(["+"] * len(rows)))


def test_a_lookup_answers_with_the_class_found_there_or_else_the_class_that_is_never_found():
    places = places_of([(0, 9), (0, 9), (50, 59), (70, 79)])
    train = Examples([], np.array([1, 1, 0, 0]), list("abcd"), places)
    test = places_of([(0, 9), (5, 12), (200, 209), (52, 53)])
    assert predict_by_lookup(train, test, 2, exact=True).argmax(axis=1).tolist() == [1, 0, 0, 0]
    assert predict_by_lookup(train, test, 2, exact=False).argmax(axis=1).tolist() == [1, 1, 0, 0]
    task = Task(suite="own", name="t", max_length=9)
    assert list_allowed_baselines(task, train) == list_baselines("dna")
    predict = fit_baseline("lookup-overlap", task, train, train, 1)
    found = predict(Examples([], np.zeros(4), list("abcd"), test))
    assert np.array_equal(found, predict_by_lookup(train, test, 2, exact=False))


def test_a_lookup_that_finds_nothing_takes_the_class_of_those_that_stand_alone():
    places = places_of([(0, 9), (0, 9), (0, 9), (50, 59), (70, 79)])
    train, far = Examples([], np.array([1, 1, 1, 0, 0]), list("abcde"), places), [(200, 209)]
    for exact in (True, False):
        found = predict_by_lookup(train, places_of(far), 2, exact=exact)
        assert found.tolist() == [[1.0, 0.0]]


def test_kmers_are_counted_by_strand_where_the_validation_part_says_that_strands_matter():
    task, data = motif_examples(300)
    other = bytes(reverse_complement(MOTIF.encode()))  # type: ignore[arg-type]
    turned = [
        s[:20] + (MOTIF.encode() if y else other) + s[28:]
        for s, y in zip(data.sequences, data.labels, strict=True)
    ]
    data = data._replace(sequences=turned)
    rows = np.arange(300)
    predict = fit_baseline("kmer-lr", task, data.take(rows[:200]), data.take(rows[200:250]), 1)
    assert measure("accuracy", "binary", data.labels[250:], predict(data.take(rows[250:]))) > 0.9


@pytest.mark.parametrize("name", ["kmer-lr", "cnn"])
def test_what_stands_beyond_max_length_is_not_read(name):
    task, data = motif_examples(40)
    predict = fit_on(name, task.model_copy(update={"max_length": 45}), data, 30)
    longer = data._replace(sequences=[s[:45] + b"ACGTT" * 9 for s in data.sequences])
    assert np.array_equal(predict(longer), predict(data))


def test_the_network_of_the_best_epoch_is_kept(monkeypatch):
    _, data = motif_examples(130)
    seen: list[float] = []

    def worse_and_worse(labels: object, predicted: object) -> float:
        seen.append(0.0)
        return float(len(seen))

    arguments = ("binary", 2, 60, data, data.take(np.arange(10)), 1)
    first = fit_cnn(*arguments, loss=worse_and_worse)(data)
    seen.clear()
    monkeypatch.setattr("genodiff.finetuning.cnn.EPOCHS", 3)
    assert np.array_equal(fit_cnn(*arguments, loss=worse_and_worse)(data), first)
    last = fit_cnn(*arguments, loss=lambda labels, predicted: -worse_and_worse(labels, predicted))
    assert len(seen) == 6
    assert not np.array_equal(last(data), first)


def test_what_cannot_be_fitted_says_why():
    task, data = motif_examples(10)
    assert list_allowed_baselines(task, data) == list_baselines("dna", needs_places=False)
    with pytest.raises(UsageError, match="did you mean 'kmer-lr'"):
        fit_baseline("kmer", task, data, data, 1)
    with pytest.raises(DataError, match="needs coordinates"):
        fit_baseline("lookup-same", task, data, data, 1)


@pytest.mark.few(3)
@pytest.mark.parametrize(("name", "fits"), [("kmer-lr", 1), ("majority", 1), ("cnn", 3)])
@pytest.mark.parametrize("published", [True, False])
def test_what_draws_nothing_is_fitted_once_for_all_seeds_with_the_same_rows(
    name, fits, published, tmp_path, monkeypatch
):
    (task, train), made = motif_examples(120), list[int]()
    data = TaskData(task, train, motif_examples(30, seed=4)[1], "official")
    if published:
        data = data._replace(valid_index=np.arange(12))

    def count(*given: object, **more: object) -> object:
        made.append(1)
        return fit_baseline(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("genodiff.finetuning.scored_unit.fit_baseline", count)
    model = ModelSpec(name=name, kind="baseline", preset=name)
    about = dict(suite="own", task=task.name, split="official", data="d", settings=FitSettings())
    rows = [run_unit(Unit(**about, model=model, seed=s), data, tmp_path) for s in (1, 2, 3)]  # type: ignore[arg-type]
    assert len(made) == (fits if published else 3)  # without a published part, rows differ by seed
    assert [row["seed"] for row in rows] == [1, 2, 3]
    if fits == 1 and published:
        assert len({row["seconds"] for row in rows}) == 1
