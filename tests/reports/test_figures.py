"""Figures: inline SVG with words for screen readers, colours of the page, and no trace of where it
was made.
"""

import math
import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genodiff.reports import figures
from genodiff.reports.chart import Axis, Trace, draw_chart, list_ticks, make_rows, spread_labels
from genodiff.reports.figures import BitsLine, Series

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
    steps, valid = list(range(1, 50)), [(20, 1.8, 0.02), (40, 1.6, math.nan)]
    loss = [2.0 - s / 100 for s in steps]
    runs = [Series(s.role, s.name, [0.5, 0.3, 0.2, 0.0]) for s in SETS]
    js = [Series(s.role, s.name, [0.1, 0.2]) for s in SETS]
    words = [Series(s.role, s.name, [0.6, 0.4]) for s in SETS]
    return {
        "number_line": figures.draw_number_line([*LINES, MODEL], 0.75, "base"),
        "curves": figures.draw_curves(steps, loss, valid, LINES, MODEL),
        "mask_rate": figures.draw_mask_rate_curve([0.25, 0.75], [1, 1.8], [0.01, 0.02], 1.4, LINES),
        "trinucleotides": figures.draw_trinucleotides(["AAA", "AAC"], words),
        "distances": figures.draw_distances([1, 2], js),
        "gc": figures.gc_histogram(SETS),
        "homopolymers": figures.draw_homopolymers(runs),
    }


DRAWN = drawn()


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_names_itself_and_takes_its_colours_and_fonts_from_the_page(name):
    root = ET.fromstring(f"<div>{DRAWN[name]}</div>")
    svgs = list(root.iter("svg"))
    assert len(svgs) in (1, 2), "for pages, and for phones"
    for svg in svgs:
        assert set(svg.attrib) == {"viewBox", "role", "aria-label"}
        assert svg.attrib["aria-label"]
        assert "".join(svg.itertext()).strip(), "text stays text"
    assert len(DRAWN[name]) < 60_000
    assert not re.search(r"font-family|#[0-9a-f]{6}\b|xmlns|id=|metadata|://", DRAWN[name])
    assert "var(--" in DRAWN[name]


@pytest.mark.parametrize("closed", [-0.5, 0.0, 0.2, 0.75, 1.0, 1.3])
def test_the_number_line_draws_all_values_and_any_share_of_the_gap(closed):
    model = BitsLine("model", "this model", 1.99 - 0.79 * closed)
    text = figures.draw_number_line([*LINES, model], closed, "base")
    assert f"{closed:.0%} of the gap closed" in text
    for said in ("uniform  2.000", "order 0  1.990", "source  1.200", f"model  {model.bits:.3f}"):
        assert f"{said}<" in text, said


def test_words_stand_in_the_order_of_their_frequency_in_real_sequence():
    sets = [Series("real", "real", [0.1, 0.6, 0.3]), Series("samples", "samples", [0.5, 0.2, 0.3])]
    labels = re.findall(r">([ACGT]{3})<", figures.draw_trinucleotides(["AAA", "AAC", "AAG"], sets))
    assert labels == 2 * ["AAC", "AAG", "AAA"]


def test_names_from_outside_are_escaped_in_a_figure():
    text = figures.draw_number_line(
        [BitsLine("model", "<script>&$x^2$", 1.5), *LINES], None, "base"
    )
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
    moved = spread_labels(places, sizes)
    assert (np.diff([moved[i] for i in order]) >= needed * 0.98).all()
    if (np.diff([places[i] for i in order]) >= needed).all():
        assert moved == pytest.approx(places)


def test_thesmooth_of_a_line_is_the_line():
    y = np.arange(20.0)
    assert figures.smooth(y, 3)[5:15] == pytest.approx(y[5:15])
    assert figures.smooth(y, 0) == pytest.approx(y)


@given(st.floats(-1e6, 1e6), st.floats(1e-4, 1e6), st.integers(2, 12))
def test_ticks_are_few_and_inside(low, span, most):
    ticks = list_ticks(low, low + span, most)
    assert len(ticks) <= most + 1
    assert all(low - 1e-6 * span <= tick <= low + span * (1 + 1e-6) for tick in ticks)


def test_no_label_of_a_chart_lies_outside_and_coordinates_are_rounded():
    for name, text in DRAWN.items():
        for svg in ET.fromstring(f"<div>{text}</div>").iter("svg"):
            left, top, width, height = map(float, svg.attrib["viewBox"].split())
            for one in svg.iter("text"):
                if "x" in one.attrib:
                    assert left <= float(one.attrib["x"]) <= left + width, (name, one.text)
                    assert top <= float(one.attrib["y"]) <= top + height, (name, one.text)
        assert not re.search(r"points=\"[^\"]*\.\d{3,}", text)


def test_a_chart_of_nothing_is_drawn():
    assert draw_chart([], Axis("x"), make_rows([]), 200)
    assert draw_chart([Trace([1], [math.nan])], Axis("x"), Axis("y"), 200)
