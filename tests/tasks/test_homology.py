"""The split by homology: what is alike stays together, told by a checker of plain Python sets."""

import numpy as np
import pytest
from numpy.typing import NDArray

from genodiff.alphabet import reverse_complement
from genodiff.errors import DataError, UsageError
from genodiff.tasks import homology
from genodiff.tasks.examples import Coordinates, Examples, Parts
from genodiff.tasks.homology import find_clusters, list_test_clusters, number_clusters
from genodiff.tasks.resplit import FITTED, chrom_holdout, split_by_homology
from genodiff.tasks.suite import Task
from genodiff.tasks.task import TaskData, seed_split, subsample_train
from tests.labelled_files import load_own
from tests.tasks.naive_shares import share_in, spell, turn


def find_nearest(query: list[bytes], train: list[bytes]) -> float:
    """Return the largest share of a query's 24-mers that train has."""
    shares = share_in([s.decode() for s in query], [s.decode() for s in train])
    return float(np.nanmax(shares))


def connect_naively(sequences: list[bytes], threshold: float) -> list[int]:
    """Clusters by comparing every pair of sets."""
    sets = [{min(w, turn(w)) for w in spell(s.decode())} for s in sequences]
    label = list(range(len(sets)))
    for i, one in enumerate(sets):
        for j in range(i):
            least = min(len(one), len(sets[j]))
            if least and len(one & sets[j]) >= threshold * least:
                old, new = label[i], label[j]
                label = [new if x == old else x for x in label]
    return np.unique(label, return_inverse=True)[1].tolist()


def as_groups(label: NDArray[np.int64] | list[int]) -> set[frozenset[int]]:
    of: dict[int, set[int]] = {}
    for i, cluster in enumerate(label):
        of.setdefault(int(cluster), set()).add(i)
    return {frozenset(members) for members in of.values()}


def draw_families(seed: int, families: int = 12, copies: int = 5) -> list[bytes]:
    """Sequences of families: parts of one parent, on both strands, with substitutions and an N."""
    rng = np.random.default_rng(seed)
    letters, found = np.frombuffer(b"ACGT", np.uint8), []
    for _ in range(families):
        parent = letters[rng.integers(0, 4, 300)]
        for _ in range(int(rng.integers(1, copies + 1))):
            start = int(rng.integers(0, 120))
            child = parent[start : start + int(rng.integers(60, 180))].copy()
            for at in rng.integers(0, len(child), int(rng.integers(0, 4))):
                child[at] = letters[rng.integers(0, 4)]
            if rng.random() < 0.2:
                child[int(rng.integers(0, len(child)))] = ord("N")
            text = child.tobytes()
            found.append(turn(text.decode()).encode() if rng.random() < 0.5 else text)
    found += [b"ACGT", b"N" * 40]  # no 24-mer
    return [found[i] for i in rng.permutation(len(found))]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("threshold", [0.2, 0.5, 1.0])
def test_clusters_are_what_alike_pairs_connect(seed, threshold):
    sequences = draw_families(seed)
    found = find_clusters(sequences, threshold)
    assert as_groups(found.of) == as_groups(connect_naively(sequences, threshold))


@pytest.mark.parametrize("seed", range(3))
def test_clusters_of_large_sets_hold_only_alike_pairs_and_nearly_all_of_them(seed, monkeypatch):
    monkeypatch.setattr(homology, "_LARGE", 10)
    monkeypatch.setattr(homology, "_MANY", 2)
    monkeypatch.setattr(homology, "_CHUNK", 50)
    sequences = draw_families(seed, families=30, copies=8)
    found, wanted = find_clusters(sequences).of, connect_naively(sequences, 0.5)
    groups = as_groups(wanted)
    assert all(any(part <= whole for whole in groups) for part in as_groups(found))
    assert len(as_groups(found)) <= len(groups) + 0.25 * len(sequences)


def make_examples(sequences: list[bytes]) -> Examples:
    labels = np.arange(len(sequences)) % 2
    return Examples(sequences, labels, [str(i) for i in range(len(sequences))])


def make_parts(sequences: list[bytes], n_test: int) -> Parts:
    whole = make_examples(sequences)
    rows = np.arange(len(sequences))
    return Parts(whole.take(rows[n_test:]), whole.take(rows[:n_test]))


def as_task(parts: Parts) -> TaskData:
    task = Task(suite="s", name="t", max_length=1000)
    return TaskData(task, parts.train, parts.test, "homology", groups=parts.groups)


@pytest.fixture(params=[False, True], ids=["all pairs", "large"])
def size(request, monkeypatch):
    """Of a large set hardly a pair is found: the tied clusters must do it alone."""
    if request.param:
        monkeypatch.setattr(homology, "_LARGE", 10)
        monkeypatch.setattr(homology, "_MANY", 2)


def test_no_test_or_validation_row_shares_half_of_its_kmers_with_what_is_fitted(size):
    sequences = draw_families(3, families=60)
    before = make_parts(sequences, 40)
    assert find_nearest(before.test.sequences, before.train.sequences) >= 0.5
    parts = split_by_homology(before)
    assert find_nearest(parts.test.sequences, parts.train.sequences) < 0.5
    assert parts.train.n + parts.test.n == len(sequences)
    assert 20 <= parts.test.n <= 60
    drawn = set()
    for seed in range(1, 6):
        train, valid = seed_split(as_task(parts), seed)
        assert sorted([*train, *valid]) == list(range(parts.train.n))
        fitted, held = parts.train.take(train), parts.train.take(valid)
        assert find_nearest(held.sequences, fitted.sequences) < 0.5
        drawn.add(tuple(valid.tolist()))
    assert len(drawn) > 1


def test_a_sequence_put_together_of_two_others_stays_with_train():
    rng = np.random.default_rng(0)
    letters = np.frombuffer(b"ACGT", np.uint8)
    left, right = (letters[rng.integers(0, 4, 400)].tobytes() for _ in range(2))
    both = left[:100] + right[:100]  # a third of it in each is too little for a pair
    third = letters[rng.integers(0, 4, 100)].tobytes()
    sequences = [left, right, both[:80] + third + both[120:], third * 2]
    found = find_clusters(sequences, 0.5)
    assert find_nearest([sequences[2]], [sequences[i] for i in (0, 1, 3)]) >= 0.5
    assert found.tied[2] or len(set(found.of.tolist())) < 4


def test_the_split_is_the_same_each_time_and_subsampling_keeps_the_groups():
    sequences = draw_families(5, families=40)
    first, second = (split_by_homology(make_parts(sequences, 30)) for _ in range(2))
    assert first.test.names == second.test.names
    fewer = subsample_train(as_task(first), 50)
    assert len(fewer.groups) == fewer.train.n == 50
    of = dict(zip(first.train.names, first.groups.tolist(), strict=True))
    assert [of[name] for name in fewer.train.names] == fewer.groups.tolist()


def test_sequences_that_are_all_alike_cannot_be_split():
    with pytest.raises(DataError, match="all candidates for the test part are similar"):
        split_by_homology(make_parts([b"ACGGTCA" * 20] * 10, 3))


def test_chrom_holdout_validates_on_chromosomes_that_are_not_fitted():
    n, rng = 400, np.random.default_rng(1)
    contig = np.array([f"chr{i}" for i in rng.integers(1, 21, n)])
    place = np.arange(n, dtype=np.int64) * 100
    coordinates = Coordinates(contig, place, place + 4, np.full(n, "+"))
    whole = Examples([b"ACGT"] * n, rng.integers(0, 2, n), [str(i) for i in range(n)], coordinates)
    rows = np.arange(n)
    parts = chrom_holdout(
        Parts(whole.take(rows[100:]), whole.take(rows[:100])), frozenset({"chr8", "chr9"})
    )
    chosen = set()
    for seed in (1, 2, 3):
        train, valid = seed_split(as_task(parts), seed)
        of = parts.train.coordinates
        assert not set(of.contig[train]) & set(of.contig[valid])
        assert 0.05 * parts.train.n <= len(valid) <= 0.15 * parts.train.n
        chosen.add(frozenset(of.contig[valid].tolist()))
    assert len(chosen) == 3
    assert FITTED not in parts.groups


def test_the_split_does_not_depend_on_the_order_of_the_sequences(size):
    sequences, held = draw_families(7, families=40, copies=8), []
    for order in (np.arange(len(sequences)), np.random.default_rng(0).permutation(len(sequences))):
        parts = split_by_homology(make_parts([sequences[i] for i in order], 60))
        _, valid = seed_split(as_task(parts), 1)
        held.append([sorted(x.sequences) for x in (parts.test, parts.train.take(valid))])
    assert held[0] == held[1]


def test_a_lower_threshold_holds_more_apart_and_is_part_of_the_split_s_name(tmp_path):
    sequences = draw_families(3, families=60)
    labels = ["ab"[i % 2] for i in range(len(sequences))]
    for part, rows in (("train", range(40, len(sequences))), ("test", range(40))):
        lines = [f"{sequences[i].decode()},{labels[i]}\n" for i in rows]
        (tmp_path / f"{part}.csv").write_text("sequence,label\n" + "".join(lines))
    for similarity, name in ((None, "homology"), (0.5, "homology"), (0.2, "homology 0.2")):
        data = load_own(
            tmp_path / "train.csv", tmp_path / "test.csv", split="homology", similarity=similarity
        )
        assert data.split == name
        train, valid = seed_split(data, 1)
        fitted = data.train.take(train).sequences
        for held in (data.test.sequences, data.train.take(valid).sequences):
            assert find_nearest(held, fitted) < (similarity or 0.5)


def test_a_threshold_that_cannot_be_is_refused():
    for split, similarity, said in (
        ("dedup", 0.5, "is for --split homology"), ("homology", 0.0, "not in"),
        ("homology", 1.5, "not in"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=said):
            load_own("train.csv", "test.csv", split=split, similarity=similarity)


def test_sequences_of_either_strand_and_those_that_share_half_are_clusters():
    rng = np.random.default_rng(1)
    a, b, c = ("".join(rng.choice(list("ACGT"), 200)) for _ in range(3))
    shifted = a[60:] + "".join(rng.choice(list("ACGT"), 60))
    texts = [a, b, reverse_complement(a), c, shifted, b]
    found = list_test_clusters(make_examples([str(t).encode() for t in texts]), "dna")
    assert found == [[0, 2, 4], [1, 5]]
    assert number_clusters(found, 6).tolist() == [0, 1, 0, 3, 0, 1]


def test_sentences_of_the_same_words_are_one_and_without_sequences_nothing_is_known():
    texts = [b"A  cat\tsat", b"a cat\tsat", b"a dog\tsat"]
    assert list_test_clusters(make_examples(texts), "text") == [[0, 1]]
    assert list_test_clusters(make_examples([]), "dna") is None
