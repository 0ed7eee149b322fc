"""Pages, cards and hubs are for others: no folder and no user of the machine stands in them. On a
phone, as far as no browser is needed, figures scale, and wide things have boxes.
"""

import json
import re
from pathlib import Path

import pytest
import yaml
from synthetic_run import CONFIG, make_run
from test_benchmark_report import write_sweep
from test_report_page import Page, random_sets
from tiny_run import write_run

from genodiff.hub.export import export_model
from genodiff.io.file_kinds import hide_all_folders, hide_folders
from genodiff.reports import html
from genodiff.reports.benchmark import Dot, draw_dots, write_benchmark
from genodiff.reports.chart import NARROW, WIDE
from genodiff.reports.comparison import compare_sequences
from genodiff.reports.folder import read_folder
from genodiff.studies.compare_request import CompareRequest
from genodiff.studies.comparison_page import ComparisonFigure, ComparisonTable, write_comparison

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
    sets = (random_sets(n, 300, n) for n in (6, 16, 8))
    return html.render_page(read_folder(make_secret_run(folder)), compare_sequences(*sets))


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
    table, page = (path.read_text() for path in write_benchmark(folder)["files"])
    for text in (table, page):
        assert "genodiff finetune table --train a.csv" in text
    assert SECRET not in table
    return page


def names(folder: Path) -> str:
    runs = [make_run(folder / SECRET / name) for name in ("run", "a/run", "b/c")]
    found = CompareRequest(runs).names
    assert found == [f"{SECRET}/run", "a/run", "c"]
    return ", ".join(found[1:])


def comparison(folder: Path) -> str:
    """Every other page is rendered by the same function."""
    svg = draw_dots("bits", [Dot("a", 1.9, (1.8, 2.0), (), "model")])
    table = ComparisonTable("Bits", ["", "bits"], [["a", "1.9"]])
    notes, figure = [f"of /home/{SECRET}/g.fa"], ComparisonFigure("P", svg, "c")
    write_comparison(folder, "a, b", notes, [table], [figure], {})
    assert SECRET not in (folder / "table.md").read_text()
    return (folder / "compare.html").read_text()


@pytest.mark.few(3)
@pytest.mark.parametrize("draw", [report, bare_report, sweep, names, comparison])
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


@pytest.fixture(scope="module", params=[report, sweep, comparison])
def page(request, tmp_path_factory):
    return request.param(tmp_path_factory.mktemp("page"))


def test_every_figure_scales(page):
    figures = re.findall(r"<svg[^>]*>", page)
    assert figures
    for tag in figures:
        assert "viewBox=" in tag
        assert not re.search(r'\s(width|height)="', tag)
    assert ".plot svg { display: block; width: 100%; height: auto; }" in page
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page


def test_a_wide_figure_has_a_twin_for_phones_unless_it_scrolls(page):
    widths = [float(w) for w in re.findall(r'<svg[^>]*viewBox="\S+ \S+ ([0-9.]+) ', page)]
    long = len(re.findall(r'class="plot long"', page))
    wide = sum(w > 1.1 * NARROW for w in widths) - long
    assert wide == page.count('<div class="narrow">') == page.count('<div class="wide">') > 0
    assert max(widths) <= WIDE + 1


def test_every_table_of_figures_scrolls_in_its_own_box(page):
    body = page.split("</style>", 1)[1]
    for match in re.finditer("<table", body):
        before = body[: match.start()]
        boxed = before.endswith(('<div class="scroll">', '<div class="scroll" tabindex="0">'))
        # Facts of provenance break their long words instead.
        assert boxed or before.rfind('<div class="facts">') > before.rfind("</section>")


def test_nothing_in_the_style_is_wider_than_a_phone_outside_a_box_that_scrolls(page):
    style = page.split("<style>", 1)[1].split("</style>", 1)[0]
    for rule, size in re.findall(r"([^{}]+)\{[^{}]*\bmin-width: ([0-9.]+)rem", style):
        if rule.strip().startswith("@media"):
            continue
        assert float(size) * 16 <= 350 or ".plot.long" in rule
    assert "@media (max-width: 40rem)" in style
    assert "prefers-color-scheme: dark" in style
    Page(page.rsplit("<!--", 1)[0])
