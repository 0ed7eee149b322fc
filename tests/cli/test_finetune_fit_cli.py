"""`genodiff finetune SUITE|table|report`: what is asked for wrongly is named in one line, with its
exit code; a plan trains nothing.
"""

import json
from pathlib import Path

import pytest

from genodiff.finetuning.estimate import format_estimate
from tests.commands import command
from tests.finetuning.motif_task import examples


@pytest.fixture
def home(tmp_path):
    for part, n, seed in (("train", 24, 1), ("test", 12, 2)):
        some = examples(n, seed, (20, 30))
        rows = "".join(
            f"{s.decode()},{y}\n" for s, y in zip(some.sequences, some.labels, strict=True)
        )
        (tmp_path / f"{part}.csv").write_text("seq,label\n" + rows)
    return tmp_path


def own(home: Path, *more: object) -> list[object]:
    return ["finetune", "table", "--train", home / "train.csv", "--test", home / "test.csv",
            "--out", home / "out", "--threads", 1, *more]  # fmt: skip


def test_your_own_table_is_fitted_and_reported(home, capsys):
    code, out, err = command(
        capsys, *own(home, "--model", "majority", "--model", "length-tree", "--seeds", 2, "--json")
    )
    assert code == 0, err
    rows = [json.loads(line) for line in out.splitlines()]
    assert [(r["model"], r["seed"]) for r in rows] == [
        ("length-tree", 1),
        ("length-tree", 2),
        ("majority", 1),
        ("majority", 2),
    ]
    assert rows == [
        json.loads(line) for line in (home / "out" / "results.jsonl").read_text().splitlines()
    ]
    before = (home / "out" / "RESULTS.md").read_text()
    (home / "out" / "RESULTS.md").unlink()
    assert command(capsys, "finetune", "report", home / "out")[0] == 0
    assert (home / "out" / "RESULTS.md").read_text() == before


def test_a_plan_writes_nothing(home, capsys, monkeypatch):
    monkeypatch.setattr("genodiff.finetuning.estimate.FEW", 1)  # heads are tried, on few rows
    code, out, _ = command(
        capsys, *own(home, "--model", "scratch:caduceus-ps-tiny", "--plan", "--json")
    )
    assert code == 0
    found = json.loads(out)
    assert found["units"] == 5
    row = found["rows"][0]
    assert row["parameters"] > 80_000
    assert 0 < row["choice_seconds"] < row["seconds"]
    row["seconds"], row["choice_seconds"] = 70.0, 60.0
    line = next(one for one in format_estimate(found) if "steps" in one)
    assert "10 s each and 5 min for the choice of heads and settings, 6 min in all" in line
    assert not (home / "out").exists()


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["--model", "majorty"], 2, "did you mean 'majority'"),
        (["--seeds", 0], 2, "--seeds 0 is below 1"),
        (["--seeds", 1.5], 2, "not a whole number"),
        (["--lr", -1], 2, "lr"),
        (["--rc", "conjoin", "--model", "scratch:caduceus-ph-tiny"], 2, "--rc average"),
        (["--model", "no/such/run"], 4, "not there"),
        (["--label", "nosuch"], 2, "no column 'nosuch'"),
        (["--metric", "speed"], 2, "metric"),
    ],
)
def test_what_cannot_be_meant_is_one_line(home, capsys, more, code, said):
    found, out, err = command(capsys, *own(home, *more))
    assert (found, out) == (code, "")
    lines = [line for line in err.splitlines() if line.startswith("genodiff: error:")]
    assert len(lines) == 1
    assert said in lines[0]


def test_unknown_tasks_missing_data_and_foreign_folders_are_named(home, capsys):
    code, _, err = command(capsys, "finetune", "gue", "--task", "mouse/9", "--model", "majority")
    assert code == 2
    assert "no task 'mouse/9' in gue" in err
    words = ["finetune", "gue", "--task", "mouse/3", "--data", home, "--model", "majority", "--out",
             home / "o", "--offline"]  # fmt: skip
    code, _, err = command(capsys, *words)
    assert code == 3
    assert "the published data 952" in err
    code, _, err = command(capsys, "finetune", "report", home)
    assert code == 3
    assert "results.jsonl" in err
    code, _, err = command(
        capsys, "finetune", "genomic-benchmarks", "--reference", "hg38", "--model", "majority"
    )
    assert code == 2
    assert "NAME=FASTA" in err
