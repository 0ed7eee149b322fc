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


def test_strands_that_a_network_cannot_join_are_refused(home, capsys):
    words = own(home, "--rc", "conjoin", "--model", "scratch:caduceus-ph-tiny")
    code, out, err = command(capsys, *words)
    assert (code, out, "--rc average" in err) == (2, "", True), err
