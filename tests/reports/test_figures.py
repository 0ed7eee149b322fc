"""Figures: inline SVG with words for screen readers, colours of the page, and no trace of where it
was made.
"""

import math
import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genodiff.reports import figures, sample_figures, svg
from genodiff.reports.figures import BitsLine
from genodiff.reports.sample_figures import Series

LINES = [
    BitsLine("uniform", "uniform", 2.0),
    BitsLine("composition", "order 0", 1.99),
    BitsLine("source", "source", 1.2),
]
MODEL = BitsLine("model", "this model", 1.4, 1.38, 1.42)
SETS = [
    Series("real", "real", [0.4, 0.5, 0.6]),
    Series("markov", "Markov 3", [0.5, 0.5]),
    Series("samples", "samples", [0.45]),
]


def drawn() -> dict[str, str]:
    steps = list(range(1, 50))
    runs = [Series(s.role, s.name, [0.5, 0.3, 0.2, 0.0]) for s in SETS]
    js = [(Series(s.role, s.name, [0.1, 0.2]), s.name) for s in SETS]
    words = [Series(s.role, s.name, [0.6, 0.4]) for s in SETS]
    return {
        "number_line": figures.draw_number_line([*LINES, MODEL], 0.75),
        "curves": figures.draw_curves(
            steps,
            [2.0 - s / 100 for s in steps],
            [(20, 1.8, 0.02), (40, 1.6, math.nan)],
            LINES,
            MODEL,
        ),
        "mask_rate": figures.draw_mask_rate_curve(
            [0.25, 0.75], [1.0, 1.8], [0.01, 0.02], 1.4, LINES
        ),
        "trinucleotides": sample_figures.draw_trinucleotides(["AAA", "AAC"], words),
        "distances": sample_figures.draw_distances([1, 2], js),
        "gc": sample_figures.gc_histogram(SETS),
        "homopolymers": sample_figures.draw_homopolymers(runs),
    }


DRAWN = drawn()


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_is_one_svg_that_names_itself(name):
    root = ET.fromstring(DRAWN[name])
    assert root.tag == "svg"
    assert set(root.attrib) == {"viewBox", "role", "aria-label"}
    assert root.attrib["aria-label"]
    assert len(DRAWN[name]) < 60_000


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_takes_its_colours_and_fonts_from_the_page(name):
    assert not re.search(r"font-family|#[0-9a-f]{6}\b|xmlns|<style|metadata|://", DRAWN[name])
    assert "var(--" in DRAWN[name]


@pytest.mark.parametrize("name", DRAWN)
def test_text_stays_text(name):
    assert "".join(ET.fromstring(DRAWN[name]).itertext()).strip()


def test_figures_of_one_page_share_no_identifier():
    ids = [
        e.attrib["id"]
        for figure in DRAWN.values()
        for e in ET.fromstring(figure).iter()
        if "id" in e.attrib
    ]
    assert ids
    assert len(ids) == len(set(ids))


def test_every_reference_inside_a_figure_is_kept():
    for figure in DRAWN.values():
        root = ET.fromstring(figure)
        ids = {e.attrib["id"] for e in root.iter() if "id" in e.attrib}
        used = {
            m for e in root.iter() for v in e.attrib.values() for m in re.findall(r"#([\w-]+)", v)
        }
        assert used == ids


def test_drawing_twice_gives_the_same_bytes_and_leaves_matplotlib_as_it_was():
    before = {key: matplotlib.rcParams[key] for key in svg._STYLE}
    assert drawn() == DRAWN
    assert {key: matplotlib.rcParams[key] for key in svg._STYLE} == before


def test_the_number_line_draws_all_values_and_the_share_of_the_gap():
    text = DRAWN["number_line"]
    for said in (
        "uniform",
        "2.000",
        "order 0",
        "1.990",
        "source",
        "1.200",
        "this model",
        "1.400",
        "75% of the gap closed",
    ):
        assert f">{said}<" in text, said


@pytest.mark.parametrize("closed", [-0.5, 0.0, 0.2, 1.0, 1.3])
def test_the_number_line_copes_with_any_share_of_the_gap(closed):
    model = BitsLine("model", "this model", 1.99 - 0.79 * closed)
    assert f"{closed:.0%} of the gap closed" in figures.draw_number_line([*LINES, model], closed)


def test_words_stand_in_the_order_of_their_frequency_in_real_sequence():
    sets = [Series("real", "real", [0.1, 0.6, 0.3]), Series("samples", "samples", [0.5, 0.2, 0.3])]
    labels = re.findall(
        r">([ACGT]{3})<", sample_figures.draw_trinucleotides(["AAA", "AAC", "AAG"], sets)
    )
    assert labels == ["AAC", "AAG", "AAA"]


def test_names_from_outside_are_escaped_in_a_figure():
    text = figures.draw_number_line([BitsLine("model", "<script>&$x^2$", 1.5), *LINES])
    assert "<script" not in text
    assert "&lt;script&gt;&amp;$x^2$" in text, "a dollar sign is no mathematics either"


def test_curves_without_validation_or_with_one_wild_loss_keep_their_scale():
    text = figures.draw_curves(
        list(range(100, 220)), [1.9, 1.8, 1.7] * 39 + [math.inf, 1e6, 1.8], [], LINES
    )
    labels = [float(t) for t in re.findall(r">(\d\.\d+)<", text)]
    assert max(labels) <= 2.5


def test_a_long_run_is_drawn_by_its_means():
    steps = np.arange(100_000)
    text = figures.draw_curves(steps.tolist(), (2 - steps / 2e5).tolist(), [], LINES)
    assert len(text) < 60_000


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 4), st.floats(0.01, 0.6)), min_size=1, max_size=6))
def test_labels_that_are_spread_stand_apart_in_their_order(labels):
    places, sizes = ([x[i] for x in labels] for i in range(2))
    order = sorted(range(len(places)), key=lambda i: places[i])
    needed = np.array([(sizes[a] + sizes[b]) / 2 for a, b in pairwise(order)])
    moved = figures.spread_labels(places, sizes)
    assert (np.diff([moved[i] for i in order]) >= needed * 0.98).all()
    inside = figures.spread_labels(places, sizes, -1, 5)
    assert all(
        p - s / 2 + 1e-9 >= -1 and p + s / 2 - 1e-9 <= 5 for p, s in zip(inside, sizes, strict=True)
    )
    assert (np.diff([inside[i] for i in order]) >= needed * 0.9).all()
    if (np.diff([places[i] for i in order]) >= needed).all():
        assert moved == pytest.approx(places)


def test_thesmooth_of_a_line_is_the_line():
    y = np.arange(20.0)
    assert figures.smooth(y, 3)[5:15] == pytest.approx(y[5:15])
    assert figures.smooth(y, 0) == pytest.approx(y)


def test_coordinates_are_rounded_and_groups_without_purpose_are_gone():
    places = [
        v
        for e in ET.fromstring(DRAWN["curves"]).iter()
        for k, v in e.attrib.items()
        if k in ("d", "x", "transform")
    ]
    assert places
    assert not [v for v in places if re.search(r"\.\d{3,}", v)]
    assert "<g>" not in DRAWN["curves"]
    assert svg.INK not in DRAWN["curves"]
