"""What is scored and on what the lines are counted: BEDs without train rows, remembered BEDs, whole
genomes.
"""

import logging

import numpy as np
import pytest
from tiny_run import SEQ_LEN, genome_text, write_run

from genodiff.errors import DataError, UsageError
from genodiff.evaluation.eval_data import open_data
from genodiff.evaluation.evaluate import evaluate
from genodiff.evaluation.evaluation_tables import draw_dna
from genodiff.evaluation.lines import markov_lines
from genodiff.evaluation.request import EvalOptions
from genodiff.runs.feed import open_data as open_run_data
from genodiff.runs.model import load_model

SPLITS = "c1\t0\t4000\ttrain\nc2\t0\t2000\ttrain\nc3\t0\t640\tvalid\nc4\t0\t1280\ttest\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A run that was trained with a BED of its own."""
    folder = tmp_path_factory.mktemp("bed")
    (bed := folder / "genome.bed").write_text(SPLITS)
    return load_model(write_run(folder, bed=str(bed)))


@pytest.fixture
def other(tmp_path):
    rng = np.random.default_rng(3)
    rows = [f">{n}\n{''.join('ACGT'[i] for i in rng.integers(0, 4, 2000))}\n" for n in "xy"]
    (tmp_path / "other.fa").write_text("".join(rows))
    return tmp_path / "other.fa"


def test_a_bed_of_test_rows_only_is_scored(model, tmp_path, caplog):
    bed = tmp_path / "test.bed"
    bed.write_text("c4\t0\t640\ttest\n")
    assert evaluate(model, bed=str(bed), baselines=False)["tokens"] == 640
    with caplog.at_level(logging.WARNING, "genodiff"):
        found = evaluate(model, bed=str(bed))
    assert [r.message for r in caplog.records if "train rows" in r.message] == [
        "baselines are counted on the train split that the run was trained on: this BED has no "
        "train rows"
    ]
    assert found["baselines_from"] == {
        "source": model.config.fasta, "own": False, "split": "train", "bases": 6000,
    }  # fmt: skip
    windows, own = (open_data(model, EvalOptions(bed=b)) for b in (str(bed), None))
    lines = markov_lines(windows.windows, False, own.store)  # type: ignore[arg-type]
    nats = lines.fixed[3].sum() / np.log(2)
    assert found["markov_bits"]["3"] == pytest.approx(nats / found["tokens"])


def test_where_no_train_rows_are_at_hand_one_note_says_so(model, other, caplog):
    lost = model._replace(config=model.config.model_copy(update={"fasta": "/gone.fa"}))
    with caplog.at_level(logging.WARNING, "genodiff"):
        found = evaluate(lost, "all", fasta=str(other))
    assert found["markov_bits"] == {}
    assert found["baselines_from"] is None
    assert len([r for r in caplog.records if "no baselines" in r.message]) == 1


def test_training_still_needs_train_rows(model, tmp_path):
    bed = tmp_path / "test.bed"
    bed.write_text("c4\t0\t640\ttest\n")
    config = model.config.model_copy(update={"bed": str(bed)})
    with pytest.raises(DataError, match=r"test\.bed: has no interval of the split train"):
        open_run_data(config).cut("train")


def test_the_remembered_bed_is_not_applied_to_another_genome(model, other, tmp_path, caplog):
    with caplog.at_level(logging.WARNING, "genodiff"):
        found = evaluate(model, fasta=str(other), baselines=False)
    assert set(found["contigs"]) == {"x", "y"}
    assert any("genome.bed) is of another genome" in r.message for r in caplog.records)
    moved = tmp_path / "moved.fa"
    moved.write_text(genome_text())
    assert evaluate(model, fasta=str(moved), baselines=False)["tokens"] == 1280 - 5


def test_a_fault_of_the_remembered_bed_says_where_it_comes_from(model):
    config = model.config.model_copy(update={"bed": "/gone.bed"})
    with pytest.raises(DataError, match=r"/gone\.bed.*the BED that the run remembers.*--bed"):
        evaluate(model._replace(config=config))


def test_split_all_scores_every_base_of_a_genome(model, other, caplog):
    found = evaluate(model, "all", fasta=str(other))
    assert f"{other}: split without a rule" not in caplog.text  # nothing of it is split
    whole = 2 * (2000 // SEQ_LEN * SEQ_LEN)
    assert found["tokens"] == whole == 4000 - found["dropped"]["tail_bases"]
    assert found["bases_total"] == 4000
    assert found["baselines_from"]["source"] == model.config.fasta
    assert not found["baselines_from"]["own"]
    text = draw_dna(found)[0].caption
    assert "99.2% of the 4,000 bases of other.fa" in str(text)
    assert "genome.fa, which the run was trained on, 6,000 bases" in str(text)


def test_split_all_of_the_own_genome_keeps_its_name_and_its_lines(model):
    found = evaluate(model, "all")
    assert found["fingerprint"] == model.data["fingerprint"]
    assert found["baselines_from"]["own"]
    assert set(found["contigs"]) == {"c1", "c2", "c3", "c4"}


def test_another_genome_is_read_at_its_test_split_with_lines_of_its_train_split(model, other):
    found = evaluate(model, fasta=str(other))
    assert found["baselines_from"] == {
        "source": str(other), "own": True, "split": "train", "bases": 3600,
    }  # fmt: skip
    assert found["tokens"] / found["bases_total"] < 0.06


def test_all_is_a_split_of_dna_and_no_other_word_is(model):
    with pytest.raises(UsageError, match="no --split 'tset'"):
        evaluate(model, "tset")
    with pytest.raises(UsageError, match="--split all is for DNA"):
        EvalOptions(split="all").check_domain("text")
