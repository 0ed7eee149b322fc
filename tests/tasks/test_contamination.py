"""What pretraining saw of a test part: against plain Python sets, and the known shares of the
benchmarks. What cannot be known is never 0.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest

from benchmarks.finetune.human_pieces import write_pieces
from genodiff.data.dna_store import build_dna_store
from genodiff.data.recipe import make_user_recipe
from genodiff.io.target import cache_dir
from genodiff.runs.model import collect_tensors, load_model
from genodiff.runs.sealed_files import sha256_tensors
from genodiff.tasks.contamination import (
    Contamination,
    describe_contamination,
    measure_contamination,
)
from genodiff.tasks.task import load_task
from tests.folders import SHARED
from tests.tasks.naive_shares import share_in, turn
from tests.tiny_run import genome_text, write_run


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
