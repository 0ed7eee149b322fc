"""Logos as SVG: letters where the heights say, and nowhere else."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from genodiff.reports.logo import find_limits, find_step, list_logo_shapes
from genodiff.reports.shapes import write_svg


def letters_of(svg: str) -> list[tuple[str, float, float, float]]:
    """Letter, left, top and height of each letter, in pixels."""
    found = []
    for use in ET.fromstring(svg).iter("use"):
        form = r"translate\((\S+) (\S+)\) scale\(\S+ (\S+)\)"
        x, top, scale = map(float, re.fullmatch(form, use.attrib["transform"]).groups())
        found.append((use.attrib["href"][-1], x, top, 100 * scale))
    return found


def draw(heights: object, first: int = 1, *, name: str = "x", title: str = "a logo") -> str:
    shapes = list_logo_shapes(np.array(heights, float), first=first, height=100.0, column=10.0)
    return write_svg(shapes, name, title)


def test_letters_are_stacked_with_the_largest_on_top_and_heights_add_up():
    found = letters_of(draw([[0.5, 0.25, 1.0, 0.25], [2.0, 0, 0, 0]]))
    assert [one[0] for one in found] == ["C", "T", "A", "G", "A"]
    assert [one[3] for one in found] == pytest.approx([12.5, 12.5, 25, 50, 100], abs=0.01)
    bottoms = [top + size for _, _, top, size in found]
    assert bottoms[0] == pytest.approx(106, abs=0.02)  # the zero line
    assert bottoms[1:4] == pytest.approx([one[2] for one in found[:3]], abs=0.02)
    assert found[4][1] - found[0][1] == pytest.approx(10)


def test_letters_below_zero_hang_from_the_axis():
    svg = draw([[-1.0, 0.5, -0.5, 0.0]])
    found = {letter: (top, size) for letter, _, top, size in letters_of(svg)}
    zero = 6 + 100 * 0.5 / 2
    assert found["C"] == pytest.approx((6, 25))
    assert found["G"] == pytest.approx((zero, 25), abs=0.02)
    assert found["A"] == pytest.approx((zero + 25, 50), abs=0.02)
    assert "T" not in found
    assert find_limits(np.array([[-1.0, 0.5, -0.5, 0.0]])) == (-1.5, 0.5)


def test_missing_heights_draw_no_letter_and_an_empty_logo_has_a_scale():
    assert letters_of(draw([[np.nan] * 4, [0.0] * 4])) == []
    assert find_limits(np.full((2, 4), np.nan)) == (0, 1)


def test_the_axis_counts_from_the_first_column():
    svg = draw(np.ones((30, 4)), first=998)
    numbers = [one.text for one in ET.fromstring(svg).iter("text")]
    assert numbers[3:] == ["1,000", "1,005", "1,010", "1,015", "1,020", "1,025"]
    assert [find_step(50, 12, 3), find_step(50, 2, 9), find_step(50, 40, 3)] == [5, 50, 1]


def test_names_are_unique_in_a_page_and_titles_are_escaped():
    svg = draw([[1, 0, 0, 0]], name="alt", title='5 > 3 & "x"')
    assert ET.fromstring(svg).attrib["aria-label"] == '5 > 3 & "x"'
    assert set(re.findall(r'id="([^"]+)"', svg)) == {"alt-A"}
    assert "http" not in svg


@pytest.mark.parametrize("heights", [np.ones(4), np.ones((2, 3))])
def test_other_shapes_are_refused(heights):
    with pytest.raises(ValueError, match="shape"):
        draw(heights)
