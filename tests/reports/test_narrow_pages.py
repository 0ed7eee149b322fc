"""Pages on a phone, as far as no browser is needed: figures scale, wide things have boxes."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from synthetic_run import make_run
from test_benchmark_report import write_sweep
from test_report_page import Page, random_sets

from genodiff.reports import html
from genodiff.reports.benchmark import Dot, draw_dots, write_benchmark
from genodiff.reports.chart import NARROW, WIDE
from genodiff.reports.comparison import compare_sequences
from genodiff.reports.folder import read_folder
from genodiff.studies.comparison_page import ComparisonFigure, ComparisonTable, write_comparison

Draw = Callable[[Path], str]


def run_page(folder: Path) -> str:
    sets = (random_sets(n, 300, n) for n in (6, 16, 8))
    return html.render_page(read_folder(make_run(folder / "run")), compare_sequences(*sets))


def sweep_page(folder: Path) -> str:
    write_sweep(folder)
    return write_benchmark(folder)[0][1].read_text()


def comparison_page(folder: Path) -> str:
    svg = draw_dots("bits", [Dot("a", 1.9, (1.8, 2.0), (), "model")])
    table = ComparisonTable("Bits", ["", "bits"], [["a", "1.9"]])
    write_comparison(folder, "a, b", ["note"], [table], [ComparisonFigure("P", svg, "c")], {})
    return (folder / "compare.html").read_text()


@pytest.fixture(scope="module", params=[run_page, sweep_page, comparison_page])
def page(request, tmp_path_factory):
    draw: Draw = request.param
    return draw(tmp_path_factory.mktemp("page"))


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
