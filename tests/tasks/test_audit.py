"""What a test part shares with train and pretraining: Genomic Benchmarks' leaks reproduced, and
every count against its obvious definition. What cannot be known is never 0.
"""

import functools
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.finetune.human_pieces import write_pieces
from genodiff.alphabet import reverse_complement
from genodiff.data.dna_store import build_dna_store
from genodiff.data.kmers import shared_kmer_fractions
from genodiff.data.recipe import make_user_recipe
from genodiff.io.target import cache_dir
from genodiff.runs.model import collect_tensors, load_model
from genodiff.runs.sealed_files import sha256_tensors
from genodiff.tasks.audit import audit, audit_lines
from genodiff.tasks.contamination import (
    Contamination,
    describe_contamination,
    measure_contamination,
)
from genodiff.tasks.examples import (
    Coordinates,
    Examples,
    Parts,
    count_equal,
    count_overlaps,
    find_overlaps,
)
from genodiff.tasks.resplit import chrom_holdout, dedup
from genodiff.tasks.suite import Task, list_task_names
from genodiff.tasks.task import TaskData, load_task
from tests.folders import SHARED
from tests.labelled_files import random_dna
from tests.tasks.naive_shares import share_in, turn
from tests.tiny_run import genome_text, write_run

PUBLISHED = {  # what a full pass over the benchmark's own tables of coordinates gave, in percent
    "human_ensembl_regulatory": {"length_tree": 91.5, "length_tree_cut": 82.7},
    "human_enhancers_ensembl": {"lookup_same": 87.8},
    "human_nontata_promoters": {"lookup_overlap": 99.7},
}
OVERLAPS = {  # test intervals that overlap a train interval, in percent
    "demo_coding_vs_intergenomic_seqs": 0.66, "demo_human_or_worm": 7.5,
    "dummy_mouse_enhancers_ensembl": 0.4,
    "human_enhancers_cohn": 0.7, "human_ocr_ensembl": 1.5, "drosophila_enhancers_stark": 26.6,
}  # fmt: skip


@functools.cache
def load_coordinates(shared: Path, name: str, split: str = "official") -> TaskData:
    return load_task("genomic-benchmarks", name, source=shared / "data/genomic_benchmarks",
                     split=split, sequences=False)  # fmt: skip


@functools.cache
def audit_official(shared: Path, name: str) -> dict[str, Any]:
    """The audit of a set with its own split."""
    return audit(load_coordinates(shared, name))


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_leaks_are_reproduced_to_a_fifth_of_a_percent(shared, name):
    found = audit_official(shared, name)
    for key, value in PUBLISHED[name].items():
        assert 100 * found["accuracy"][key] == pytest.approx(value, abs=0.2)
    if name == "human_enhancers_ensembl":  # three quarters of the test positives are in train
        same = found["leaks"]["same_place"]
        assert 100 * same["positive"][0] / same["positive"][1] == pytest.approx(75.5, abs=0.2)
        assert same["negative"][0] == 0


@pytest.mark.few(3)
@pytest.mark.parametrize("name", OVERLAPS)
def test_the_overlaps_of_the_other_sets_are_the_published_ones(shared, name):
    overlap = audit_official(shared, name)["leaks"]["overlap"]["all"]
    assert 100 * overlap[0] / overlap[1] == pytest.approx(OVERLAPS[name], abs=0.06)


def test_the_counts_of_all_nine_sets_are_the_recipes(shared):
    for name in list_task_names("genomic-benchmarks"):
        data = load_coordinates(shared, name)  # raises where its counts differ
        found = audit_official(shared, name)["counts"] if data.train.n < 30_000 else {}
        assert all(tuple(counts.values()) == data.task.counts[p] for p, counts in found.items())


@pytest.mark.parametrize("split", ["dedup", "chrom-holdout"])
def test_the_leaks_are_gone_after_a_split_that_does_not_leak(shared, split):
    found = audit(load_coordinates(shared, "human_nontata_promoters", split))
    assert found["leaks"]["overlap"]["all"][0] == 0
    assert found["accuracy"]["lookup_overlap"] <= max(0.6, found["accuracy"]["majority"] + 0.05)
    assert split in found["notes"][-1]


def test_held_out_chromosomes_are_those_of_the_pretraining_recipe(shared):
    data = load_coordinates(shared, "human_enhancers_cohn", "chrom-holdout")
    assert set(data.test.coordinates.contig) == {"chr8", "chr13", "chr20", "chr21"}
    assert not set(data.train.coordinates.contig) & set(data.test.coordinates.contig)


intervals = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]), st.integers(0, 30), st.integers(1, 9), st.integers(0, 2)
    ),
    max_size=12,
)


def places_of(rows: list[tuple[str, int, int, int]]) -> tuple[Coordinates, np.ndarray]:
    contig, start, length, label = zip(*rows, strict=True) if rows else ((), (), (), ())
    first, size = np.array(start, np.int64), np.array(length, np.int64)
    strand = np.full(len(rows), "", np.str_)
    places = Coordinates(np.array(contig, np.str_), first, first + size, strand)
    return places, np.array(label, np.int64)


@given(intervals, intervals)
def test_overlaps_and_same_places_are_counted_as_by_looking_at_every_pair(query, target):
    (q, _), (t, labels) = places_of(query), places_of(target)
    overlap, same = np.zeros((len(query), 3), int), np.zeros((len(query), 3), int)
    for i, (contig, start, length, _) in enumerate(query):
        for other, begin, size, label in target:
            overlap[i, label] += contig == other and start < begin + size and begin < start + length
            same[i, label] += (contig, start, length) == (other, begin, size)
    assert np.array_equal(count_overlaps(q, t, labels, 3), overlap)
    assert np.array_equal(count_equal(q, t, labels, 3), same)
    assert np.array_equal(find_overlaps(q, t), overlap.sum(axis=1) > 0)


@given(
    st.lists(st.text("ACGTN", min_size=1, max_size=70), min_size=1, max_size=4),
    st.integers(0, 40),
    st.booleans(),
)
def test_shared_kmers_are_those_of_sets_of_canonical_kmers(texts, cut, turned):
    target = [*texts, *random_dna(2, 60)]
    piece = target[-1][cut:] + target[-2][:cut]
    query = [turn(piece) if turned else piece, target[0], "ACGT"]
    found = shared_kmer_fractions(*([s.encode() for s in some] for some in (query, target)))
    assert np.allclose(found, share_in(query, target), equal_nan=True)


def test_a_slice_of_the_kmers_gives_about_the_same_shares(monkeypatch):
    target = [s.encode() for s in random_dna(40, 2000)]
    others = random_dna(40, 1000, seed=9)
    query = [s[:1000] + other.encode() for s, other in zip(target, others, strict=True)]
    whole = shared_kmer_fractions(query, target)
    monkeypatch.setattr("genodiff.data.kmers._LARGE", 0)
    sliced = shared_kmer_fractions(query, target)
    assert not np.array_equal(whole, sliced)
    assert np.abs(sliced - whole).max() < 0.2
    assert abs(sliced.mean() - whole.mean()) < 0.02


def own_data() -> TaskData:
    a, b, c, d, e = (s.encode() for s in random_dna(5, 60))
    turned = bytes(reverse_complement(b))  # type: ignore[arg-type]
    train = Examples([a, b, c, c, d], np.array([0, 1, 0, 0, 1]), list("12345"))
    test = Examples([a, turned, d, e], np.array([0, 1, 0, 1]), list("6789"))
    return TaskData(Task(suite="own", name="t", max_length=50), train, test, "official",
                    valid_index=np.array([3, 4]))  # fmt: skip


def test_duplicates_reverse_complements_repeats_and_conflicts_are_counted_per_class():
    found = audit(own_data())
    assert found["leaks"]["same"] == {"all": [2, 4], "negative": [2, 2], "positive": [0, 2]}
    turned = {"all": [1, 4], "negative": [0, 2], "positive": [1, 2]}
    assert found["leaks"]["reverse_complement"] == turned
    assert found["repeats"] == {"train": 1, "test": 0}
    assert found["conflicts"] == 1
    assert found["leaks"]["overlap"] is None
    text = "\n".join(audit_lines(found))
    assert "2 test sequences that train has too (50.0%: negative 100.0%, positive 0.0%)" in text
    assert "want of coordinates" in text


def test_dedup_takes_from_train_what_test_has_on_either_strand_and_moves_the_validation_rows():
    data = own_data()
    found = dedup(Parts(data.train, data.test, (), data.valid_index))
    assert found.train.names == ["3", "4"]
    assert found.test.names == data.test.names
    assert found.valid_index.tolist() == [1]


def test_regions_that_are_no_contigs_are_held_out_by_their_names():
    contig = np.array([f"ENST{i:05d}" for i in range(2000)] + ["chr1"] * 10 + ["chr8"] * 5, np.str_)
    start = np.arange(len(contig))
    coordinates = Coordinates(contig, start, start + 1, np.array(["+"] * len(contig)))
    whole = Examples([], np.arange(len(contig)) % 2, [str(i) for i in start], coordinates)
    halves = Parts(whole.take(start % 2 == 0), whole.take(start % 2 == 1))
    found = chrom_holdout(halves, frozenset({"chr8"}))
    assert found.train.coordinates is not None
    assert 0.1 < found.test.n / len(contig) < 0.15
    assert "chr8" in found.test.coordinates.contig
    assert "chr1" not in found.test.coordinates.contig


def train_parts(text: str) -> list[str]:
    """The train split of a genome without a rule: all but the last two twentieths of a contig."""
    contigs = ["".join(r.split("\n")[1:]).upper() for r in text.split(">")[1:]]
    return [c[: len(c) - 2 * (len(c) // 20)] for c in contigs]


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "cache"))
    return load_model(write_run(tmp_path))


def draw_tests(parts: list[str], seed: int = 3) -> list[str]:
    """Whole, turned, half and barely copied sequences, one with N, and some of none."""
    rng = np.random.default_rng(seed)

    def random(n: int) -> str:
        return "".join("ACGT"[i] for i in rng.integers(0, 4, n))

    found = []
    for i, copied in enumerate([100, 100, 60, 62, 30, 24, 23, 0, 80]):
        part = parts[i % len(parts)]
        start = int(rng.integers(0, 600))
        text = part[start : start + copied] + random(100 - copied)
        found.append(turn(text) if i % 2 else text)
    edge = parts[0][-50:] + random(50)  # the end of train: bases behind it are of no train
    return [*found, edge, found[0][:40] + "N" + found[0][41:], "ACGT", "N" * 50]


def test_the_shares_are_those_of_plain_sets_of_words(model):
    train = train_parts(genome_text())
    tests = draw_tests(train)
    found = measure_contamination(model, [t.encode() for t in tests])
    assert found.shares.tolist() == pytest.approx(share_in(tests, train), nan_ok=True)
    told = found.to_json()
    shares = np.array(share_in(tests, train))
    counts = (shares > 0).sum(), (shares >= 0.5).sum(), (shares >= 1).sum()
    assert list(told.values()) == [*counts, len(tests)]
    assert 0 < told["all"] < told["half"] < told["some"] < told["of"]


def test_what_only_validation_or_test_of_the_run_has_was_not_seen(model):
    contig = genome_text().split("\n")[3].upper()  # c2, whose last tenth does not train
    found = measure_contamination(model, [contig[-300:-100].encode()])
    assert found.to_json() == {"some": 0, "half": 0, "all": 0, "of": 1}


def test_a_measurement_outlives_the_data_and_what_is_not_known_is_said(model, tmp_path):
    tests = [t.encode() for t in draw_tests(train_parts(genome_text()))]
    before = measure_contamination(model, tests)
    (tmp_path / "genome.fa").unlink()
    again = measure_contamination(model, tests[:4])
    assert again.shares is not None  # the store is enough
    shutil.rmtree(cache_dir() / "stores")
    np.testing.assert_equal(measure_contamination(model, tests).shares, before.shares)
    gone = measure_contamination(model, tests[:3])
    assert gone.shares is None
    assert "not on this machine" in gone.reason
    assert "genome.fa" in gone.reason
    assert "not known" in describe_contamination("m", gone.to_json())


def test_a_changed_genome_is_not_taken_for_the_one_that_was_trained_on(model, tmp_path):
    shutil.rmtree(cache_dir() / "stores")
    (tmp_path / "genome.fa").write_text(genome_text(seed=2))
    found = measure_contamination(model, [b"ACGT" * 20])
    assert found.shares is None
    assert "has changed" in found.reason


def test_the_data_of_the_weights_that_a_run_began_from_count_too(model, tmp_path):
    other = tmp_path / "other.fa"
    other.write_text(genome_text(seed=9))
    store = build_dna_store(make_user_recipe(other).model_copy(update={"name": "own"}), other)
    digest = sha256_tensors(collect_tensors(model.backbone))
    begun = {"init": str(tmp_path / "run"), "init_sha256": digest, "fasta": str(other)}
    later = model._replace(config=model.config.model_copy(update=begun), data=store.identity())
    first, second = (train_parts(genome_text(seed))[1][:100].encode() for seed in (1, 9))
    found = measure_contamination(later, [first, second])
    assert found.to_json()["all"] == 2
    assert measure_contamination(model, [first, second]).to_json()["all"] == 1
    changed = later.config.model_copy(update={"init_sha256": "0" * 64})
    lost = measure_contamination(later._replace(config=changed), [first])
    assert lost.shares is None
    assert "others today" in lost.reason
    gone = later.config.model_copy(update={"init": str(tmp_path / "nowhere")})
    lost = measure_contamination(later._replace(config=gone), [first])
    assert lost.shares is None
    assert "nowhere" in lost.reason


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/x/caduceus-ps_seqlen-131k_d_model-256_n_layer-16", ", trained on hg38 by their authors"),
        ("/x/mine", ": their training data are not recorded"),
    ],
)
def test_published_weights_are_known_by_name_only(model, path, said):
    published = model._replace(data={"source": {"path": path, "config": {}}, "fingerprint": "f"})
    found = measure_contamination(published, [b"ACGT" * 20])
    assert found == Contamination(None, f"published weights{said}")
    assert said in describe_contamination("m", found.to_json())


def read_pieces(fasta: Path, bed: Path) -> list[str]:
    train = {line.split("\t")[0] for line in bed.read_text().splitlines() if line.endswith("train")}
    records = fasta.read_text().split(">")[1:]
    return ["".join(r.split("\n")[1:]).upper() for r in records if r.split("\n")[0] in train]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the shared data")
def test_the_shares_of_the_benchmarks_are_the_known_ones(model, tmp_path):
    """Pieces of hg38 and hg19 as pretraining, and four tasks; figures of a referee."""
    fasta, bed = write_pieces(SHARED / "data", tmp_path)
    recipe = make_user_recipe(fasta, bed).model_copy(update={"name": "own"})
    store = build_dna_store(recipe, fasta)
    config = model.config.model_copy(update={"fasta": str(fasta), "bed": str(bed)})
    pretrained = model._replace(config=config, data=store.identity())
    wanted = {
        ("genomic-benchmarks", "human_enhancers_cohn", "local"): (34.0, 2.6),
        ("genomic-benchmarks", "human_nontata_promoters", "local"): (None, 2.0),
        ("gue", "prom/prom_300_tata", "official"): (None, 1.1),
    }
    data = SHARED / "data"
    folders = {"genomic-benchmarks": data / "genomic_benchmarks", "gue": data / "nt_tasks/GUE"}
    tests = {
        (suite, task, split): load_task(
            suite, task, source=folders[suite], split=split
        ).test.sequences
        for suite, task, split in wanted
    }
    each = [s.decode() for part in tests.values() for s in part]
    naive = iter(share_in(each, read_pieces(fasta, bed)))
    for key, (some, half) in wanted.items():
        found = measure_contamination(pretrained, tests[key])
        assert found.shares.tolist() == pytest.approx([next(naive) for _ in tests[key]])
        told = found.to_json()
        for level, share in (("some", some), ("half", half)):
            if share is not None:
                assert 100 * told[level] / told["of"] == pytest.approx(share, abs=0.2)
