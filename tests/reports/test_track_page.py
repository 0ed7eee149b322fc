"""The page of tracks: what it holds is what was read, and it asks the network for nothing."""

import base64
import json
import re

import numpy as np

from genodiff.maps.track_values import BaseTracks
from genodiff.reports.track_page import render_track_page

TOLD = {
    "model": "runs/<x>", "checkpoint": "0123456789ab", "context": 64, "every": 8,
    "company": {"sites": 64, "nats": (0.1, 0.2), "bits": (0.01, 0.2)},
}  # fmt: skip


def make(contig: str, start: int, letters: str) -> BaseTracks:
    p = np.random.default_rng(start).dirichlet(np.ones(4), len(letters)).astype(np.float32)
    p[[letter == "N" for letter in letters]] = np.nan
    return BaseTracks(contig, start, letters, p)


def read_data(page: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found
    return json.loads(found[1])  # type: ignore[no-any-return]


def test_the_page_holds_the_chances_of_every_region():
    regions = [make("chr1", 41, "ACGTN"), make("</script>", 0, "GG")]
    page = render_track_page(regions, TOLD)
    data = read_data(page)
    for one, told in zip(regions, data["regions"], strict=True):  # type: ignore[call-overload]
        place = (one.contig, one.start + 1, one.letters)
        assert (told["contig"], told["start"], told["letters"]) == place
        p = np.frombuffer(base64.b64decode(told["p"]), "<f4").reshape(-1, 4)
        assert np.array_equal(p, one.p, equal_nan=True)
    assert set(data["glyphs"]) == set("ACGT")  # type: ignore[call-overload]
    assert "2 regions" in page
    assert 'value="1"' in page
    assert "chr1:42-46" in page
    assert "6 read" in page
    assert "every 8 bases at once" in page
    assert "0.01 bits in the middle and 0.2 at most" in page


def test_the_page_asks_the_network_for_nothing_and_escapes_names():
    page = render_track_page([make("chr1", 0, "ACGT")], TOLD | {"every": None, "company": None})
    assert not re.search("https?:", page)
    assert "default-src 'none'" in page
    assert not re.search(r"<(link|img|iframe)\b", page)
    assert "<td>&lt;x&gt; (0123456789ab)</td>" in page
    assert '<select id="region"' not in page
    one, other = (render_track_page([make("chr1", 0, "ACGT")], TOLD) for _ in range(2))
    assert one == other
