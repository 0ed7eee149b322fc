"""Pictures of maps, tracks and logos: no label is cut, and every form shows the same shapes.

Letters stand where the heights say, and the page of tracks holds what was read.
"""

import base64
import io
import itertools
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import numpy as np
import pytest
from matplotlib.image import imread
from matplotlib.textpath import TextPath

from genodiff.io.genes import Gene
from genodiff.maps.map_regions import MapRegion, PairMap, SaturationMap
from genodiff.maps.track_values import BaseTracks
from genodiff.reports import logo
from genodiff.reports.gene_rows import arrange_genes, draw_genes, draw_region_genes
from genodiff.reports.logo import list_logo_shapes
from genodiff.reports.map_page import DEPENDENCIES, ISM
from genodiff.reports.paint import read_outline, render_picture
from genodiff.reports.shapes import GLYPHS, Box, Line, PlacedText, Shape, write_svg
from genodiff.reports.track_page import (
    find_limits,
    list_track_picture,
    render_track_page,
    split_columns,
)

TOLD = {
    "model": "runs/x", "checkpoint": "0123456789ab", "score": "log p(base)", "unit": "nats",
    "context": 64, "evaluations": 8,
}  # fmt: skip
GENES = [
    Gene("chrI", 499_805, 499_830, -1, "A long name of a gene", ((499_805, 499_830),)),
    Gene("chrI", 499_829, 600_000, 1, "AT THE VERY EDGE"),
]
LETTERS = "ACGTN" * 8
REGION = MapRegion("chrI", 499_800, 499_840, "chrI:499801-499840", LETTERS)
Form = list[Shape]


def tracks() -> BaseTracks:
    p = np.random.default_rng(0).dirichlet(np.full(4, 50.0), len(LETTERS)).astype(np.float32)
    p[4::5] = np.nan
    return BaseTracks("chrI", 499_800, LETTERS, p)


def saturation() -> SaturationMap:
    return SaturationMap(REGION, 0.163 * np.random.default_rng(1).normal(size=(4, 40)))


def pairs() -> PairMap:
    made = np.random.default_rng(2)
    change = made.normal(size=(40, 4, 40)).astype(np.float32)
    p = made.dirichlet(np.full(4, 9.0), 40).T
    return PairMap(REGION, change, np.zeros((40, 4, 40), np.int8), p, (0, 9))


def pictures() -> dict[str, str]:
    drawn = {
        "ism": ISM.list_picture([saturation()], TOLD, [GENES]),
        "dependencies": DEPENDENCIES.list_picture([pairs()], TOLD, [GENES]),
        "tracks": list_track_picture(tracks(), TOLD, GENES),
    }
    found = {name: write_svg(*one[:1], "x", one[1], alone=True) for name, one in drawn.items()}
    p = np.full((18, 4), 0.163)
    found["logo"] = write_svg(list_logo_shapes(p, first=248_956_405, unit="mean effect"), "x", "t")
    found["ism page"] = ISM.render_page([saturation()], TOLD, [GENES])
    found["dependencies page"] = DEPENDENCIES.render_page([pairs()], TOLD, [GENES])
    return {name: re.search(r"<svg.*</svg>", text, re.S)[0] for name, text in found.items()}  # type: ignore[index]


PICTURES = pictures()


def text_boxes(svg: ET.Element) -> Iterator[tuple[str, float, float, float, float]]:
    """Each text with its left, top, right and bottom, from the outlines of its letters."""
    for one in svg.iter():
        if not one.tag.endswith("text"):
            continue
        text = one.text or ""
        size = float(re.search(r"font-size: ([\d.]+)px", one.attrib["style"])[1])  # type: ignore[index]
        box = TextPath((0, 0), text, size=size).get_extents()
        before = {"start": 0, "middle": 0.5, "end": 1}[one.attrib["text-anchor"]] * box.width
        place = one.attrib.get("transform", "")
        if turned := re.fullmatch(r"translate\((\S+) (\S+)\) rotate\(-90\)", place):
            x, y = float(turned[1]), float(turned[2])
            yield text, x - box.y1, y - box.width + before, x - box.y0, y + before
        else:
            x, y = float(one.attrib["x"]), float(one.attrib["y"])
            yield text, x - before, y - box.y1, x - before + box.width, y - box.y0


@pytest.mark.few(3)
@pytest.mark.parametrize("name", PICTURES)
def test_every_label_lies_inside_its_picture(name):
    root = ET.fromstring(PICTURES[name])
    left, top, width, height = map(float, root.attrib["viewBox"].split())
    boxes = list(text_boxes(root))
    assert len(boxes) >= 5
    for text, x0, y0, x1, y1 in boxes:
        assert left <= x0 <= x1 <= left + width, text
        assert top <= y0 <= y1 <= top + height, text
    said = [box[0] for box in boxes]
    assert "499,840" in said or name in ("logo", "tracks")
    if name != "logo":
        assert "AT THE VERY EDGE →" in said


@pytest.mark.few(4)
@pytest.mark.parametrize("name", [*PICTURES, "numbers at both ends"])
def test_no_label_covers_another(name):
    svg = PICTURES.get(name)
    if svg is None:
        region = MapRegion("chrI", 499_799, 499_830, "chrI:499800-499830", LETTERS[:31])
        cut = PairMap(region, np.ones((31, 4, 31), np.float32), np.zeros((31, 4, 31), np.int8),
                      np.full((4, 31), 0.25), (0, 9))  # fmt: skip
        svg = write_svg(*DEPENDENCIES.list_picture([cut], TOLD, [[]])[:1], "x", "t", alone=True)
    boxes = [box for box in text_boxes(ET.fromstring(svg)) if box[0].strip()]
    for (one, *a), (other, *b) in itertools.combinations(boxes, 2):
        apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
        assert apart, (one, other)


def test_the_name_of_the_axis_does_not_cover_its_numbers():
    svg = write_svg(list_logo_shapes(np.full((18, 4), 0.163 / 4)), "x", "t")
    boxes = {text: box for text, *box in text_boxes(ET.fromstring(svg))}
    assert boxes["bits"][2] < boxes["0.163"][0]


def test_a_picture_by_itself_has_plain_colours_that_any_program_reads():
    svg = PICTURES["ism"]
    assert "var(" not in svg
    assert "<style" not in svg
    assert "fill: #1a7f37" in svg  # A
    assert "var(--a)" in PICTURES["ism page"]


def test_png_and_pdf_show_the_shapes_where_they_are():
    shapes: Form = [
        Box(0, 0, 100, 40, "grid"), Box(20, 10, 10, 20, "a"), PlacedText(60, 30, "$x$", 9, "ink"),
    ]  # fmt: skip
    raw = render_picture(".png", shapes, "t")
    assert raw == render_picture(".png", shapes, "t")
    pixels = imread(io.BytesIO(raw))
    assert pixels.shape[:2] == (3 * 48, 3 * 108)  # with a margin of 4 on each side
    green = np.array([0x1A, 0x7F, 0x37]) / 255
    hits = np.argwhere(np.abs(pixels[..., :3] - green).max(-1) < 0.02) / 3 - 4
    assert np.allclose(hits.min(0), (10, 20), atol=0.5)
    assert np.allclose(hits.max(0), (30, 30), atol=0.5)
    pdf = render_picture(".pdf", shapes, "t")
    assert pdf == render_picture(".pdf", shapes, "t")
    assert re.search(rb"/MediaBox \[ 0 0 81 36 \]", pdf)  # 108 × 48 pixels in points


def test_a_very_long_picture_is_made_smaller_so_that_it_can_be_shown():
    pdf = render_picture(".pdf", [Box(0, 0, 40_000, 10, "a")], "t")
    assert float(re.search(rb"/MediaBox \[ 0 0 ([\d.]+)", pdf)[1]) == 14_400  # type: ignore[index]
    png = imread(io.BytesIO(render_picture(".png", [Box(0, 0, 40_000, 10, "a")], "t")))
    assert png.shape[1] == pytest.approx(30_000, abs=1)


def test_letters_of_a_logo_fill_their_box():
    for text in GLYPHS.values():
        box = read_outline(text).get_extents()
        assert (box.x0, box.y0, box.x1, box.y1) == pytest.approx((0, 0, 100, 100), abs=0.6)


def test_a_page_of_one_region_names_it_once_and_a_named_region_keeps_its_name():
    page = ISM.render_page([saturation()], TOLD, [[]])
    body = re.sub(r"<svg.*?</svg>|<script.*?</script>", "", page.split("<body>")[1], flags=re.S)
    assert body.count("chrI:") == 1
    assert "chrI:499,801-499,840" in body
    named = SaturationMap(REGION._replace(name="promoter"), saturation().score)
    two = ISM.render_page([named, saturation()], TOLD, [[], []])
    assert "<h2>promoter, chrI:499,801-499,840</h2>" in two
    assert "<h2>chrI:499,801-499,840</h2>" in two


GENE = Gene("c", 110, 150, -1, "X", ((110, 120), (140, 150)), ((112, 120),))


def test_genes_stand_where_their_bases_are():
    shapes = draw_genes([GENE], 100, 200, 2.0, top=0)
    boxes = [(one.x, one.x + one.width, one.height) for one in shapes if isinstance(one, Box)]
    assert boxes == [(20, 40, 5), (80, 100, 5), (24, 40, 9)]
    line = next(one for one in shapes if isinstance(one, Line))
    assert [x for x, _ in line.points] == [20, 100]
    assert next(one.text for one in shapes if isinstance(one, PlacedText)) == "X ←"
    arrows = [one.points for one in shapes if isinstance(one, Line) and len(one.points) == 3]
    assert arrows
    assert all(tip[0] < tail[0] for tail, tip, _ in arrows)  # to the left
    cut = draw_genes([GENE], 145, 200, 2.0, top=0)
    assert [(one.x, one.x + one.width) for one in cut if isinstance(one, Box)] == [(0, 10)]


def test_genes_below_a_region_of_the_other_strand_run_the_other_way():
    region = MapRegion("c", 100, 200, "r", "A" * 100, "-")
    shapes = draw_region_genes([GENE], region, 2.0, 0)
    # base 110 is the 90th from the right end: its right edge is at (200 - 110) · 2
    boxes = [(one.x, one.x + one.width) for one in shapes if isinstance(one, Box)]
    assert boxes == [(100, 120), (160, 180), (160, 176)]
    assert PlacedText(100, 9, "X →", 9, "ink", "start") in shapes


def test_genes_that_would_touch_stand_below_one_another_and_too_many_are_counted():
    def make(start: int, end: int) -> Gene:
        return Gene("c", start, end, 0, "g")

    rows, hidden = arrange_genes([make(0, 50), make(40, 90), make(70, 90)], 0, 100, 10.0)
    assert [[one.start for one in row] for row in rows] == [[0, 70], [40]]
    assert hidden == 0
    many = [make(0, 50)] * 15
    assert arrange_genes(many, 0, 100, 10.0)[1] == 3
    shapes = draw_genes(many, 0, 100, 10.0, 0)
    assert PlacedText(0, 12 * 24 + 9, "and 3 more", anchor="start") in shapes


def test_scales_of_tracks_are_those_of_the_values_within_0_and_2_bits():
    p = np.array([[0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 0, 0], [np.nan] * 4], np.float32)
    limits = find_limits(BaseTracks("c", 0, "ACN", p))
    assert limits == {"information": (0, 1), "entropy": (1, 2), "surprisal": (0, 3)}
    sure = find_limits(BaseTracks("c", 0, "A", np.array([[1, 0, 0, 0]], np.float32)))
    assert sure["information"] == (0, 2)
    assert sure["entropy"] == (0, 2)
    flat = find_limits(BaseTracks("c", 0, "A", np.full((1, 4), 0.25, np.float32)))
    assert flat["information"] == (0, 0.05)
    assert flat["entropy"] == (1.95, 2)


def test_from_far_a_column_of_tracks_holds_every_base_once():
    parts = split_columns(1234, 960 / 1234)
    assert len(parts) == 960
    assert [i for part in parts for i in range(part.start, part.stop)] == list(range(1234))
    assert split_columns(3, 16.0) == [slice(0, 1), slice(1, 2), slice(2, 3)]


PAGE = {
    "model": "runs/<x>", "checkpoint": "0123456789ab", "context": 64, "every": 8,
    "company": {"sites": 64, "nats": (0.1, 0.2), "bits": (0.01, 0.2)},
}  # fmt: skip


def draw_region(contig: str, start: int, letters: str) -> BaseTracks:
    p = np.random.default_rng(start).dirichlet(np.ones(4), len(letters)).astype(np.float32)
    p[[letter == "N" for letter in letters]] = np.nan
    return BaseTracks(contig, start, letters, p)


def test_the_page_holds_the_chances_of_every_region():
    regions = [draw_region("chr1", 41, "ACGTN"), draw_region("</script>", 0, "GG")]
    page = render_track_page(regions, PAGE)
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    data = json.loads(text)
    for one, told in zip(regions, data["regions"], strict=True):
        place = (one.contig, one.start + 1, one.letters)
        assert (told["contig"], told["start"], told["letters"]) == place
        p = np.frombuffer(base64.b64decode(told["p"]), "<f4").reshape(-1, 4)
        assert np.array_equal(p, one.p, equal_nan=True)
    assert set(data["glyphs"]) == set("ACGT")
    for said in ("2 regions", 'value="1"', "chr1:42-46", "6 read", "every 8 bases at once",
                 "0.01 bits in the middle and 0.2 at most"):  # fmt: skip
        assert said in page, said


def test_the_page_asks_the_network_for_nothing_and_escapes_names():
    regions = [draw_region("chr1", 0, "ACGT")]
    page = render_track_page(regions, PAGE | {"every": None, "company": None})
    assert not re.search("https?:", page)
    assert "default-src 'none'" in page
    assert not re.search(r"<(link|img|iframe)\b", page)
    assert "<td>&lt;x&gt; (0123456789ab)</td>" in page
    assert '<select id="region"' not in page
    assert render_track_page(regions, PAGE) == render_track_page(regions, PAGE)


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
    assert logo.find_limits(np.array([[-1.0, 0.5, -0.5, 0.0]])) == (-1.5, 0.5)


def test_missing_heights_draw_no_letter_and_an_empty_logo_has_a_scale():
    assert letters_of(draw([[np.nan] * 4, [0.0] * 4])) == []
    assert logo.find_limits(np.full((2, 4), np.nan)) == (0, 1)


def test_the_axis_counts_from_the_first_column():
    svg = draw(np.ones((30, 4)), first=998)
    numbers = [one.text for one in ET.fromstring(svg).iter("text")]
    assert numbers[3:] == ["1,000", "1,005", "1,010", "1,015", "1,020", "1,025"]
    assert [logo.find_step(50, *of) for of in ((12, 3), (2, 9), (40, 3))] == [5, 50, 1]


def test_names_are_unique_in_a_page_and_titles_are_escaped():
    svg = draw([[1, 0, 0, 0]], name="alt", title='5 > 3 & "x"')
    assert ET.fromstring(svg).attrib["aria-label"] == '5 > 3 & "x"'
    assert set(re.findall(r'id="([^"]+)"', svg)) == {"alt-A"}
    assert "http" not in svg


@pytest.mark.parametrize("heights", [np.ones(4), np.ones((2, 3))])
def test_other_shapes_are_refused(heights):
    with pytest.raises(ValueError, match="shape"):
        draw(heights)
