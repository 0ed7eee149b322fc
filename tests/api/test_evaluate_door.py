"""`genodiff.evaluate`, `report`, `compare` from Python; their errors come early."""

import json
from typing import Any

import pytest

import genodiff
from genodiff.errors import UsageError
from tests.commands import command


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
