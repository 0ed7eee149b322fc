"""Several runs on one page: what stands in it, and what is refused."""

import json
from pathlib import Path

import pytest
from synthetic_run import CONFIG, evaluation, make_run, metrics, parts

import genodiff
from genodiff.errors import CheckpointError, UsageError
from genodiff.reports.folder import read_folder
from genodiff.reports.runs_page import list_differences, name_runs, read_curve, render_runs


def with_data(fingerprint: str) -> str:
    found = json.loads(parts()["provenance.json"])
    return json.dumps(found | {"data": {"fingerprint": fingerprint}})


def test_every_run_has_a_row_a_curve_and_its_interval(tmp_path):
    one = make_run(tmp_path / "one")
    two = make_run(tmp_path / "two", eval_json=json.dumps({"test": evaluation(1.5)}))
    page = genodiff.report(one, two)
    assert page == tmp_path / "report-one-two.html"
    text = page.read_text()
    for cell in ("1.3720", "1.5000", "1.4800 to 1.5200"):
        assert cell in text
    assert text.count('<tr><th scope="row">') == 2
    assert "last validation: one 1.374, two 1.374" in text
    assert "http" not in text.replace("http-equiv", "")


def test_the_same_runs_give_the_same_bytes_and_a_strangers_file_is_kept(tmp_path):
    runs = [make_run(tmp_path / name) for name in ("one", "two")]
    first = genodiff.report(*runs).read_bytes()
    assert genodiff.report(*runs).read_bytes() == first
    own = tmp_path / "own.html"
    own.write_text("mine")
    with pytest.raises(UsageError):
        genodiff.report(*runs, out=own)
    assert own.read_text() == "mine"


def test_places_on_the_axis_are_tokens_or_seconds(tmp_path):
    run = read_folder(make_run(tmp_path / "one"))
    tokens, time = read_curve("one", run, "tokens"), read_curve("one", run, "time")
    assert tokens.at[-1] == 300 * 8192
    assert time.at[-1] == 60
    assert [place for place, *_ in tokens.valid] == [100 * 8192, 200 * 8192, 300 * 8192]
    assert tokens.valid[-1][1:] == time.valid[-1][1:]


def test_settings_that_differ_are_listed_and_no_others(tmp_path):
    changed = CONFIG.replace("d_model: 64", "d_model: 32") + "  lr: 0.01\n"
    make_run(tmp_path / "one")
    make_run(tmp_path / "two", config_yaml=changed)
    runs = [read_folder(tmp_path / name) for name in ("one", "two")]
    assert list_differences([run.config for run in runs]) == [
        ("backbone.d_model", ["64", "32"]), ("train.lr", ["", "0.01"]),
    ]  # fmt: skip


def test_figures_of_other_bases_are_told(tmp_path):
    other = evaluation() | {"fingerprint": "b"}
    make_run(tmp_path / "one", provenance_json=with_data("a"))
    make_run(tmp_path / "two", provenance_json=with_data("b"),
             eval_json=json.dumps({"test": other}))  # fmt: skip
    text = render_runs([read_folder(tmp_path / name) for name in ("one", "two")])
    assert "trained on different data or splits" in text
    make_run(tmp_path / "three", provenance_json=with_data("a"))
    alike = render_runs([read_folder(tmp_path / name) for name in ("one", "three")])
    assert "different data" not in alike


def test_a_run_that_has_only_begun_has_its_row(tmp_path):
    make_run(tmp_path / "one")
    make_run(tmp_path / "two", metrics_csv=None, eval_json=None, provenance_json=None)
    text = render_runs([read_folder(tmp_path / name) for name in ("one", "two")])
    assert "last validation: one 1.374" in text
    begun = make_run(tmp_path / "begun", metrics_csv=metrics(3), eval_json=None)
    assert read_curve("begun", read_folder(begun), "tokens").valid == []


def test_names_are_told_apart_by_the_folders_above():
    found = name_runs([Path("/a/x/seed1"), Path("/a/y/seed1"), Path("/a/y/seed2")])
    assert found == ["x/seed1", "y/seed1", "seed2"]


def test_what_cannot_stand_side_by_side_is_refused(tmp_path):
    one, two = make_run(tmp_path / "one"), make_run(tmp_path / "two")
    text = make_run(tmp_path / "text", config_yaml=f"domain: text\n{CONFIG}")
    with pytest.raises(UsageError, match="given twice"):
        genodiff.report(one, two, one)
    with pytest.raises(UsageError, match="is a run of text"):
        genodiff.report(one, text)
    with pytest.raises(UsageError, match="--samples is for the page of one run"):
        genodiff.report(one, two, samples=one / "samples.fa")
    with pytest.raises(CheckpointError):
        genodiff.report(one, tmp_path / "absent")
    assert not list(tmp_path.glob("*.html"))
