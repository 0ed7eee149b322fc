"""`genodiff.finetune` and the looks at labelled data: the values that the verbs print."""

import json
from pathlib import Path

import pytest

import genodiff
from genodiff.errors import DataError, UsageError
from genodiff.finetuning.estimate import format_estimate
from genodiff.finetuning.scored_unit import read_predictions
from genodiff.reports.sweep_results import format_summary
from genodiff.studies.audit_request import AuditRequest, SuiteListRequest
from genodiff.studies.sweep_request import SweepReportRequest
from genodiff.tasks.audit import list_warnings
from tests.commands import command, succeed
from tests.finetuning.motif_task import write_tables


@pytest.fixture
def home(tmp_path):
    return write_tables(tmp_path)


def test_own_data_are_fitted_reported_and_predicted(home):
    given = {"test": home / "test.csv", "model": "kmer-lr", "seeds": 2, "out": home / "out"}
    found = genodiff.finetune(home / "train.csv", **given)  # type: ignore[arg-type]
    assert [(row["model"], row["seed"]) for row in found["rows"]] == [
        ("kmer-lr", 1),
        ("kmer-lr", 2),
    ]
    assert [Path(p).name for p in found["files"]] == ["RESULTS.md", "report.html"]
    assert format_summary(found["rows"])[0].startswith("train, split own")
    before = (home / "out" / "RESULTS.md").read_bytes()
    assert SweepReportRequest(home / "out").answer()[0].read_bytes() == before
    frame = genodiff.predict(found["out"], ["ACGTACGTACGTACGTACGT"], ensemble=True)
    assert frame.columns == ["name", "prediction", "p_0", "p_1", "spread"]  # type: ignore[union-attr]


@pytest.mark.slow
def test_ensembles_of_seeds_are_lines_of_the_table_and_of_json(home, capsys):
    given = f"--test {home}/test.csv --model cnn --model kmer-lr --seeds 2 --out {home}/seeds"
    words = ["finetune", "table", "--train", home / "train.csv", *given.split(), "--quiet"]
    out = succeed(capsys, *words, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [(r["model"], r["seed"], r.get("ensemble")) for r in rows] == [
        ("cnn", 1, None), ("cnn", 2, None), ("kmer-lr", 1, None), ("kmer-lr", 2, None),
        ("cnn", None, 2),
    ]  # fmt: skip
    (_, _, _, _, both) = rows
    assert both["keys"] == [r["key"] for r in rows[:2]]
    kept = [read_predictions(home / "seeds" / "units" / key) for key in both["keys"]]
    mean = (kept[0][0] + kept[1][0]) / 2
    assert both["value"] == float((mean.argmax(1) == kept[0][1]).mean())
    assert both["ci95"][0] <= both["value"] <= both["ci95"][1]
    shown = command(capsys, *words)[1].splitlines()
    (line,) = [x for x in shown if "cnn, ensemble" in x]
    assert line.split()[2:] == [f"{both['value']:.4f}", "(2", "seeds", "averaged)"]


def test_a_plan_counts_the_choice_of_heads_and_writes_nothing(home, monkeypatch):
    monkeypatch.setattr("genodiff.finetuning.estimate.FEW", 1)  # heads are tried, on few rows
    given = {"test": home / "test.csv", "model": "scratch:caduceus-ps-tiny", "out": home / "out"}
    found = genodiff.finetune(home / "train.csv", plan=True, **given)
    assert found["units"] == 5
    row = found["rows"][0]
    assert row["parameters"] > 80_000
    assert 0 < row["choice_seconds"] < row["seconds"]
    row["seconds"], row["choice_seconds"] = 70.0, 60.0
    line = next(one for one in format_estimate(found) if "steps" in one)
    assert "10 s each and 5 min for the choice of heads and settings, 6 min in all" in line
    assert not (home / "out").exists()


def test_data_are_looked_at(home):
    found = AuditRequest(home / "train.csv", test=home / "test.csv").answer()
    assert found["counts"]["train"] == {"0": 12, "1": 12}
    assert list_warnings(found) == ["the labels make a binary task: 0, 1"]
    suites = {row["suite"]: row for row in SuiteListRequest().answer()}
    assert suites["gue"]["tasks"] == len(SuiteListRequest("gue").answer()) == 28
    with pytest.raises(UsageError, match="which of its tasks"):
        AuditRequest("gue").answer()
    with pytest.raises(DataError, match=r"no results\.jsonl"):
        SweepReportRequest(home).answer()
