"""Pages, cards and hubs are for others: no folder and no user of the machine stands in them."""

import json
from pathlib import Path

import pytest
import yaml
from synthetic_run import CONFIG, make_run
from test_benchmark_report import write_sweep
from tiny_run import write_run

from genodiff.hub.export import export_model
from genodiff.io.file_kinds import hide_all_folders, hide_folders
from genodiff.reports import html
from genodiff.reports.benchmark import RESULTS, write_benchmark
from genodiff.reports.folder import read_folder
from genodiff.reports.template import render_template
from genodiff.studies.compare_request import CompareRequest

SECRET = "dr-strange"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("genodiff eval /home/me/runs/yeast", "genodiff eval yeast"),
        ("--out=/home/me/x.fa '/home/me/a b/c.fa'", "--out=x.fa 'c.fa'"),
        ("fasta: /home/me/g.fa\nbed: null", "fasta: g.fa\nbed: null"),
        ("~/runs/a ~me/b ../../me/c.fa", "a b c.fa"),
        ('["/home/me/a", "b"]', '["a", "b"]'),
        ("runs/yeast and a/c, C/G, 1 / 3, //x", "runs/yeast and a/c, C/G, 1 / 3, //x"),
        ("https://example.org/a/b", "https://example.org/a/b"),
    ],
)
def test_paths_of_a_machine_are_cut_down_to_names(text, shown):
    assert hide_folders(text) == shown
    assert hide_all_folders({"a": [text, 1, None]}) == {"a": [shown, 1, None]}


def make_secret_run(folder: Path, name: str = "run") -> Path:
    """A run of a user whose name stands in all its paths."""
    run = make_run(folder / SECRET / name)
    config = yaml.safe_load(CONFIG) | {"recipe": "own", "fasta": f"/home/{SECRET}/g.fa"}
    (run / "config.yaml").write_text(yaml.safe_dump(config))
    session = {"argv": [f"/home/{SECRET}/bin/genodiff", "train", f"/home/{SECRET}/g.fa"],
               "host": f"{SECRET}-laptop"}  # fmt: skip
    told = {"seed": 1, "data": {"source": f"/home/{SECRET}/g.fa"}, "sessions": [session]}
    (run / "provenance.json").write_text(json.dumps(told))
    return run


def report(folder: Path) -> str:
    return html.render_page(read_folder(make_secret_run(folder)))


def bare_report(folder: Path) -> str:
    """Of a run that lacks most parts: the page says what to type."""
    run = make_secret_run(folder)
    for name in ("eval.json", "samples.fa"):
        (run / name).unlink()
    text = html.render_page(read_folder(run))
    assert "genodiff eval run" in text
    return text


def sweep(folder: Path) -> str:
    write_sweep(folder)
    session = {
        "command": f"genodiff finetune table --train /home/{SECRET}/a.csv", "git": None,
        "genodiff": "0", "hardware": "x", "threads": 1, "started": "now",
    }  # fmt: skip
    (folder / "sessions.json").write_text(json.dumps({"sessions": [session]}))
    write_benchmark(folder)
    text = (folder / "report.html").read_text() + (folder / RESULTS).read_text()
    assert text.count("genodiff finetune table --train a.csv") == 2
    return text


def comparison(folder: Path) -> str:
    runs = [make_run(folder / SECRET / name) for name in ("run", "a/run", "b/c")]
    names = CompareRequest(runs).names
    assert names == [f"{SECRET}/run", "a/run", "c"]
    return ", ".join(names[1:])


def any_other(_: Path) -> str:
    """Every other page is rendered by the same function."""
    context = {"title": "t", "notes": [f"of /home/{SECRET}/g.fa"], "tables": [],
               "figures": []}  # fmt: skip
    return render_template("comparison.html.jinja", context)


@pytest.mark.few(3)
@pytest.mark.parametrize("draw", [report, bare_report, sweep, comparison, any_other])
def test_a_page_names_no_folder(draw, tmp_path):
    text = draw(tmp_path)
    assert text
    assert SECRET not in text
    assert str(tmp_path) not in text


@pytest.mark.parametrize("layout", ["safetensors", None])
def test_an_export_names_no_folder(tmp_path, layout):
    (tmp_path / SECRET).mkdir()
    run = write_run(tmp_path / SECRET)
    export_model(run, tmp_path / "out", layout=layout)
    files = [one for one in (tmp_path / "out").rglob("*") if one.is_file()]
    assert len(files) >= 3
    for one in files:
        assert SECRET.encode() not in one.read_bytes(), one.name
        assert str(tmp_path).encode() not in one.read_bytes(), one.name
