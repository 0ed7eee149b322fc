"""Data, evaluation, pages and fine-tuning from Python: the values that the verbs print. Errors come
before heavy libraries.
"""

import json
from pathlib import Path
from typing import Any

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
from tests.texts import VERSES, write_rows


def test_recipes_are_the_rows_that_the_command_line_prints(capsys):
    for domain in ("text", "dna"):
        rows = genodiff.list_recipes(domain)
        _, out, _ = command(capsys, "data", "list", "--domain", domain, "--json")
        assert json.loads(json.dumps(rows)) == [json.loads(line) for line in out.splitlines()]
    present = {row["name"]: row["present"] for row in rows}
    assert (present["toy"], present["hg38"]) == (True, False)
    _, out, _ = command(capsys, "data", "list")
    places = {line.split()[0]: line[21:30].strip() for line in out.splitlines()}
    assert (places["toy"], places["hg38"], places["pubmed"]) == ("built in", "to fetch", "yours")


def test_data_that_are_generated_have_no_files_and_others_are_not_fetched_offline():
    assert genodiff.fetch_data("toy") == []
    with pytest.raises(DataError, match="--offline forbids"):
        genodiff.fetch_data("hg38", offline=True)
    with pytest.raises(UsageError, match="no recipe 'hg83'"):
        genodiff.fetch_data("hg83")


def test_a_store_says_what_the_command_line_prints(capsys, tmp_path):
    path = tmp_path / "one.fa"
    path.write_text(">one\n" + "ACGTTGCA" * 500 + "\n")
    built = genodiff.build_store(path, seq_len=50)
    words = ("data", "build", path, "--seq-len", 50, "-q")
    assert built.row == json.loads(command(capsys, *words, "--json")[1])
    assert built.path == Path(built.row["store"])
    assert built.path.is_dir()
    assert sum(split["bases"] for split in built.row["splits"].values()) == 4000
    lines = [f"{split:<6} {said}" for split, said in built.summaries.items()]
    assert command(capsys, *words)[1].splitlines() == [*lines, f"store  {built.path}"]
    with pytest.raises(DataError, match="give --seq-len 4000 or less"):
        genodiff.build_store(path, seq_len=5000)


def test_a_store_of_text_counts_bytes_and_copies(tmp_path, capsys):
    built = genodiff.build_store(write_rows(tmp_path), domain="text", seq_len=16)
    assert built.row["tokenizer"] == "bytes"
    assert built.row["duplicates_of_train"] == {"valid": 0, "test": 0}
    assert built.summaries["train"].startswith(f"{built.row['splits']['train']['windows']:,} ")
    words = ("data", "build", tmp_path / "rows.jsonl", "--domain", "text", "--seq-len", 16, "-q")
    assert json.loads(command(capsys, *words, "--json")[1]) == built.row
    code, out, _ = command(capsys, "data", "check", tmp_path / "rows.jsonl", "--domain", "text")
    assert (code, "sound" in out) == (0, True)


def test_documents_of_a_recipe_are_counted_with_their_copies(tmp_path):
    (tmp_path / "ptb.train.txt").write_text(f"{VERSES[0]}\n{VERSES[1]}\n{VERSES[1]}\n")
    (tmp_path / "ptb.test.txt").write_text(f"{VERSES[0]}\nother\n")
    found = genodiff.check_documents("ptb", text=tmp_path)
    counts = {
        row["name"]: (row["documents"], row["repeated"], row["in_train"]) for row in found.rows
    }
    assert counts == {"train": (3, 1, 0), "test": (2, 0, 1)}
    assert found.n_files == 2
    own = genodiff.check_documents(tmp_path)
    assert sum(row["documents"] for row in own.rows) == 2
    with pytest.raises(DataError, match="every split is shorter than --seq-len 100000"):
        genodiff.check_documents(tmp_path, seq_len=100_000)
    with pytest.raises(UsageError, match="'hg38' is a recipe of DNA"):
        genodiff.check_documents("hg38")


def test_an_evaluation_is_what_the_command_line_prints(run, capsys):
    found = genodiff.evaluate(run, max_windows=4, baselines=False, keep=False, device="cpu")
    assert not (run / "eval.json").exists()
    words = ("eval", "--model", run, "--max-windows", 4, "--no-baselines", "--threads", 1)
    shown = json.loads(command(capsys, *words, "--json")[1])
    timed = ("seconds", "created")
    assert found | dict.fromkeys(timed) == shown | dict.fromkeys(timed)
    assert set(json.loads((run / "eval.json").read_text())) == {"test"}


def test_a_loaded_model_is_evaluated_too(run):
    model = genodiff.load(run, device="cpu")
    found = genodiff.evaluate(model, max_windows=4, baselines=False, keep=False)
    assert found["checkpoint"] == model.digest
    plan = genodiff.evaluate(model, plan=True)
    assert (plan["windows"], plan["domain"]) == (10, "dna")


def test_a_page_is_written_where_it_is_asked(run, tmp_path):
    assert genodiff.report(run, out=tmp_path / "page.html") == tmp_path / "page.html"
    assert genodiff.report(run) == run / "report.html"
    (run / "report.html").write_text('<meta name="generator" content="genodiff 0.0.1">')
    assert genodiff.report(run) == run / "report.html", "a page of an older version is replaced"
    (tmp_path / "mine.html").write_text("mine")
    with pytest.raises(UsageError, match="genodiff did not write it"):
        genodiff.report(run, out=tmp_path / "mine.html")


def test_an_evaluation_that_is_stopped_keeps_what_was_there_and_says_so(run, monkeypatch, capsys):
    command(capsys, "eval", run, "--max-windows", 4, "--no-baselines", "--threads", 1)
    before = (run / "eval.json").read_bytes()

    def stopped(*given: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("genodiff.evaluation.dna_evaluation.measure_bound", stopped)
    code, out, err = command(capsys, "eval", run, "--threads", 1)
    assert (code, out) == (130, "")
    assert "stopped by Ctrl-C" in err
    assert "eval.json keeps finished evaluations only" in err
    assert (run / "eval.json").read_bytes() == before
    assert not list(run.glob("*.tmp*"))


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
