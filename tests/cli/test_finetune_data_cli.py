"""`genodiff finetune list|check|audit` as a user meets them."""

import json
from functools import partial

import pytest

from tests import labelled_files as labelled
from tests.commands import command


@pytest.fixture
def finetune(capsys):
    """(exit code, stdout, stderr) of `genodiff finetune WORDS`."""
    return partial(command, capsys, "finetune")


def test_a_sound_folder_is_accepted_and_nothing_is_written(finetune, tmp_path):
    folder = labelled.write_folder(tmp_path / "gb")
    before = sorted(tmp_path.rglob("*"))
    code, out, err = finetune("check", folder)
    assert code == 0
    said = "sound; classes negative, positive; train 6 + 6; test 6 + 6; 30 to 30 bases"
    assert said in out
    assert err == ""
    assert sorted(tmp_path.rglob("*")) == before


def test_leaks_conflicts_and_long_sequences_are_warned_of_with_their_counts(finetune, tmp_path):
    folder = labelled.write_folder(tmp_path / "gb")
    (folder / "test/positive/0.txt").write_text((folder / "train/negative/0.txt").read_text())
    (folder / "train/positive/1.txt").write_text("ACGT" * 20)
    (folder / "train/positive/2.txt").write_text("n" * 20)
    code, out, err = finetune("check", folder, "--json", "--max-length", "40")
    assert code == 0
    found = json.loads(out)
    text = "\n".join(found["warnings"])
    assert "leak between train and test: 1 test sequences that train has too, of 12" in text
    assert "conflicting labels: 1 sequences" in text
    assert "1 sequences of the train part are N only" in text
    assert "1 of 12 train sequences (8.3%) are longer than 40 and are cut" in text
    assert found["counts"]["train"] == {"negative": 6, "positive": 6}
    assert all(f"genodiff: warning: {folder}" in line for line in err.splitlines())


def test_one_table_is_checked_with_a_share_that_tests_and_without_rows_that_lack_a_value(
    finetune, tmp_path, caplog
):
    lines = [f"{s};0,{i + 1}" for i, s in enumerate(labelled.random_dna(20, 40))]
    (tmp_path / "one.csv").write_text("\n".join(["seq;y", *lines, f"{'ACGT' * 10};NA", ""]))
    words = ("check", tmp_path / "one.csv", "--test-share", "0.25")
    code, out, err = finetune(*words)
    assert code == 3
    assert "line 22: the label 'NA' says that a value is missing" in err
    code, out, err = finetune(*words, "--drop-missing")
    assert (code, out) == (
        0,
        f"{tmp_path / 'one.csv'}: sound; values; train 15; test 5; 40 to 40 bases\n",
    )
    assert "1 of 21 rows dropped (no label: 1; first: line 22)" in err
    code, out, err = finetune("check", tmp_path / "one.csv")
    assert code == 2
    assert "--test-share 0.2" in err


def test_suites_and_tasks_are_listed(finetune):
    assert "genomic-benchmarks     9 tasks" in finetune("list")[1]
    rows = [
        json.loads(line)
        for line in finetune("list", "genomic-benchmarks", "--json")[1].splitlines()
    ]
    assert [row["name"] for row in rows][:2] == [
        "dummy_mouse_enhancers_ensembl",
        "demo_coding_vs_intergenomic_seqs",
    ]


def test_a_table_is_audited_with_its_places(finetune, tmp_path):
    rows = labelled.random_dna(8, 30)
    for part, at in (("train", 0), ("test", 4)):
        lines = [
            f"{rows[at + i]},{i % 2},chr1,{100 * i + (5 if at else 0)},{100 * i + 30}"
            for i in range(4)
        ]
        (tmp_path / f"{part}.csv").write_text(
            "\n".join(["seq,label,chrom,start,end", *lines]) + "\n"
        )
    two = (tmp_path / "train.csv", "--test", tmp_path / "test.csv")
    found = json.loads(finetune("audit", *two, "--json")[1])
    assert found["leaks"]["overlap"]["all"] == [4, 4]
    assert found["accuracy"]["lookup_overlap"] == 1.0
    said = "overlap a train interval (100.0%: 0 100.0%, 1 100.0%)"
    assert said in finetune("audit", tmp_path)[1]
