"""report.html: one offline page from whatever a run folder holds, with hostile content inert."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthetic_run import CONFIG, DIGEST, evaluation, fasta, make_run, metrics, parts

from genodiff.alphabet import DNA
from genodiff.errors import CheckpointError
from genodiff.reports import html
from genodiff.reports.comparison import compare_sequences
from genodiff.reports.folder import read_folder

EVIL = "<script>alert(1)</script>"
PART_FILES = sorted(set(parts()) - {"config.yaml"})


class Page:
    """A page read strictly, as XML: every element is closed, and in order."""

    def __init__(self, text: str) -> None:
        text = re.sub(r"^<!doctype html>|(?<=<style>).*?(?=</style>)", "", text, flags=re.S | re.I)
        closed = re.sub(r"<(meta|br|hr|img|input|link)\b([^>]*)(?<!/)>", r"<\1\2/>", text)
        root = ET.fromstring(closed)
        self.tags = [one.tag for one in root.iter()]
        self.attributes = [pair for one in root.iter() for pair in one.items()]
        self.ids = [value for key, value in self.attributes if key == "id"]
        self.targets = [value for key, value in self.attributes if key == "href"]
        self.targets += re.findall(r"url\(([^)]*)\)", " ".join(v for _, v in self.attributes))
        self.text = "".join(root.itertext())


def random_sets(n: int, length: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [np.array(DNA.targets, np.uint8)[rng.integers(0, 4, length)] for _ in range(n)]


@pytest.fixture(scope="module")
def comparison():
    return compare_sequences(
        random_sets(6, 300, 1), random_sets(16, 300, 2), random_sets(8, 300, 3),
        markov_name="Markov 7",
        source_bits=lambda s: 1.5, copied=lambda s: 0.25,
    )  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory, comparison):
    """The page of a run that has every part, with a comparison."""
    run = make_run(tmp_path_factory.mktemp("whole") / "run")
    return html.render_page(read_folder(run), comparison)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The same without a comparison."""
    return draw(tmp_path_factory.mktemp("plain") / "run")


def draw(folder: Path, **changed: str | None) -> str:
    """The page of a run folder of which some parts are others."""
    return html.render_page(read_folder(make_run(folder, **changed)))


def read(folder: Path, **changed: str | None) -> str:
    """The text of such a page, which must be well-formed."""
    return Page(draw(folder, **changed)).text


def scores(**named: dict[str, object]) -> str:
    return json.dumps({name.replace("_", " "): one for name, one in named.items()})


def test_the_whole_page_is_well_formed_and_points_only_into_itself(whole):
    page = Page(whole)
    assert len(page.ids) == len(set(page.ids))
    assert all(target.startswith("#") and target[1:] in page.ids for target in page.targets)
    assert page.tags.count("svg") == 11, "7 figures, the 4 wide ones also drawn for phones"
    assert len(whole.encode()) < 2_000_000


def test_nothing_in_the_page_could_be_fetched(whole):
    assert "://" not in whole
    assert not re.search(r"@import|<link|<script|<iframe|<img|src=|javascript:", whole)
    assert not [v for _, v in Page(whole).attributes if "data:" in v]
    assert "default-src 'none'" in whole


def test_the_headline_says_the_bound_its_interval_and_the_three_lines(plain):
    text, lines = Page(plain).text, ("1.993", "1.618", "1.214")
    for said in ("1.372", "1.352 to 1.392", "80%", *lines, "perplexity at most 2.588"):
        assert said in text, said


def other() -> dict[str, object]:
    """An evaluation of another genome."""
    own = {"fasta": "/data/ecoli.fa", "fingerprint": "e" * 64, "windows": 50, "windows_total": 974}
    return evaluation(2.037, source=None) | own


OWN = json.dumps({"data": {"fingerprint": "a" * 64}})


def test_the_figure_of_another_genome_is_never_the_headline(tmp_path):
    scored = json.dumps({"test of ecoli.fa": other()})
    page = draw(tmp_path / "run", eval_json=scored, provenance_json=OWN)
    text = Page(page).text
    assert "The run's own test split has not been evaluated" in text
    assert "genodiff eval run" in text
    assert 'class="headline"' not in page
    table = text.split("On other data", 1)[1]
    assert "test of ecoli.fa" in table
    assert "≤ 2.037" in table


def test_a_note_stands_with_the_evaluation_that_it_is_of(tmp_path):
    scored = json.dumps(
        {"test": evaluation(1.9, None) | {"fingerprint": "a" * 64}, "test of ecoli.fa": other()}
    )
    folder = read_folder(make_run(tmp_path / "run", eval_json=scored, provenance_json=OWN))
    assert folder.headline == "test"
    head, table = Page(html.render_page(folder)).text.split("On other data", 1)
    assert "Only 50 of 974" not in head
    assert "Only 50 of 974" in table
    assert "1.900" in head


def test_the_fullest_evaluation_of_the_own_test_is_the_headline(tmp_path):
    look = evaluation(1.930) | {"windows": 20, "windows_total": 391, "markov_bits": {}}
    scored = scores(valid=evaluation() | {"split": "valid"}, look=look, test=look)
    assert read_folder(make_run(tmp_path / "a", eval_json=scored)).evaluation is not None
    whole = json.dumps({"test, 20 of 391 windows": look, "test": evaluation()})
    folder = read_folder(make_run(tmp_path / "b", eval_json=whole))
    assert folder.headline == "test"
    head, table = Page(html.render_page(folder)).text.split("Other evaluations", 1)
    assert "1.372" in head
    assert "20 of 391" in table


BARE, RECALLED = (evaluation(bits, source=None) for bits in (1.6, 1.2))
GAP = {"bits": -0.5, "ci95": [-0.7, -0.3]}
"""Of a line of 1.1 bits minus a model of 1.6."""
RECALLED |= {"memory": {"fingerprint": "f"}, "windows": 64}
RECALLED["without_memory"] = {"bits": 1.6, "minus_model_bits": {"bits": 0.4, "ci95": [0.3, 0.5]}}
SOFT = {"trained_weight": 0.1, "scored_weight": 1}
SENTENCES: list[tuple[dict[str, dict[str, Any]], str, str]] = [
    ({"test": evaluation() | {"figure": "exact"}}, "perplexity 2.588", "at most"),
    ({"test": BARE},
     "0.018 bits below Markov 7 (1.618 bits): k-mer counts of the train split, both strands",
     "gap closed"),
    ({"test": BARE | {"adaptive_mixture": {"bits": 1.1, "minus_model_bits": GAP}}},
     "It is 0.500 bits above the adaptive mixture (1.100 bits; paired 95 % interval 0.300 to "
     "0.700): contexts and copies of the train split, and of the split that is scored",
     "k-mer counts of the train split"),
    ({"test": BARE, "test with memory": RECALLED},
     "With retrieval from its training genome it has at most 1.200 bits, alone 1.600 on the same "
     "masks (64 windows): retrieval gains 0.400, 95 % interval 0.300 to 0.500.", "gap closed"),
    ({"test": evaluation() | {"soft_mask": SOFT | {"bases": 512}}},
     "weigh 0.1 in training and 1 in this", "Only"),
    ({"test": evaluation() | {"soft_mask": SOFT | {"bases": 0}}}, "No soft-masked", "Only"),
]  # fmt: skip


@pytest.mark.parametrize(("scored", "said", "not_at_the_top"), SENTENCES, ids=range(len(SENTENCES)))
def test_figures_are_called_what_they_are(tmp_path, scored, said, not_at_the_top):
    text = read(tmp_path / "run", eval_json=json.dumps(scored))
    assert said in text
    assert not_at_the_top not in text.split("Training", 2)[1]


def test_every_figure_has_a_caption_and_words_for_a_screen_reader(whole):
    page = Page(whole)
    assert page.tags.count("figure") == page.tags.count("figcaption") == 7
    roles = [value for key, value in page.attributes if key == "role"]
    assert roles.count("img") == page.tags.count("svg")
    labels = [value for key, value in page.attributes if key == "aria-label"]
    assert (
        "Bits per base: uniform 2.000, order 0 1.993, Markov 7 1.618, this model 1.372, "
        "source 1.214" in labels
    )


def test_the_same_run_gives_the_same_bytes(tmp_path, comparison, whole):
    assert html.render_page(read_folder(make_run(tmp_path / "run")), comparison) == whole


@pytest.mark.parametrize("missing", PART_FILES)
def test_a_run_without_one_part_still_has_its_page(tmp_path, missing):
    told = {"eval.json": "genodiff eval", "samples.fa": "genodiff sample"}
    told["metrics.csv"] = "genodiff train toy"
    text = read(tmp_path / "run", **{missing.replace(".", "_"): None})
    assert told.get(missing, "Configuration") in text


def test_a_run_that_has_only_begun_names_every_command_that_goes_on(tmp_path):
    nothing: dict[str, str | None] = {name.replace(".", "_"): None for name in PART_FILES}
    text = read(tmp_path / "a run", **nothing)
    for command in ("train toy --out", "eval", "sample --checkpoint", "report"):
        assert f"genodiff {command}" in text
    assert "genodiff eval 'a run'" in text, "a path with a space is quoted as a shell takes it"


BROKEN = ["", "{", "[]", "null", '{"test": 3}', '{"test": {"split": "test"}}', "\x00\xff" * 9,
          "[" * 10**5]  # fmt: skip


@pytest.mark.parametrize("broken", BROKEN, ids=range(len(BROKEN)))
def test_broken_parts_are_told_and_not_fatal(tmp_path, broken):
    text = read(tmp_path / "run", **{name.replace(".", "_"): broken for name in PART_FILES})
    assert "genodiff eval" in text
    assert "could not be read" in text


@pytest.mark.parametrize("name", PART_FILES)
def test_one_broken_part_takes_no_other_with_it(tmp_path, name):
    whole = read_folder(make_run(tmp_path / "whole"))
    found = read_folder(make_run(tmp_path / "run", **{name.replace(".", "_"): "{"}))
    kept = ["metrics", "evaluations", "samples", "sidecar", "provenance", "model"]
    assert sum(getattr(found, part) == getattr(whole, part) for part in kept) == len(kept) - 1
    assert len(found.troubles) == (0 if name == "metrics.csv" else 1)


def test_a_figure_that_is_no_number_is_told(tmp_path):
    curve = [{"rate_lo": EVIL}]
    wrong = scores(
        test=evaluation() | {"bits_per_base": "NaN"}, valid=evaluation() | {"curve": curve}
    )
    folder = read_folder(make_run(tmp_path / "run", eval_json=wrong))
    assert not folder.evaluations
    told = [t.split(":")[0] for t in folder.troubles]
    assert told == ["eval.json, split test", "eval.json, split valid"]


def test_hostile_names_are_shown_and_never_run(tmp_path):
    loud = {"contigs": {EVIL: {"tokens": 5}}, "regions": {EVIL: {"tokens": 5}}, "split": EVIL}
    run = make_run(
        tmp_path / EVIL.replace("/", "\u2215"),
        config_yaml=CONFIG.replace("recipe: toy", f"recipe: '{EVIL}'"),
        eval_json=scores(test=evaluation() | loud),
        samples_fa=fasta(header=EVIL).replace("genodiff_000002", "<img/src=x/onerror=alert(1)>"),
        provenance_json=json.dumps({EVIL: {EVIL: EVIL}, "command": EVIL}),
        metrics_csv=metrics().replace("seconds", EVIL),
    )
    text = html.render_page(read_folder(run), None, EVIL)
    page = Page(text)
    assert not {"script", "img"} & set(page.tags)
    assert "<script" not in text
    assert page.text.count(EVIL) >= 8


def test_letters_are_coloured_and_a_copy_of_the_text_is_the_sequence(tmp_path):
    text = draw(tmp_path / "run", samples_fa=">long\n" + "ACGTN" * 400 + "\n")
    shown = re.search(r'<div class="seq"[^>]*>(.*?)</div>', text, flags=re.S)
    assert shown
    assert re.sub(r"<[^>]*>", "", shown[1]) == "ACGTN" * 240
    assert "and 800 more bases" in text


def test_the_report_is_written_into_the_run_or_where_it_is_asked(tmp_path):
    run = make_run(tmp_path / "run")
    assert html.write_report(run) == run / "report.html"
    elsewhere = html.write_report(run, tmp_path / "other.html")
    assert elsewhere.read_bytes() == (run / "report.html").read_bytes()
    assert sorted(p.name for p in run.iterdir()) == sorted([*parts(), "report.html"])


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="is not a run folder"):
        html.write_report(tmp_path / "absent")
    with pytest.raises(CheckpointError, match=r"holds no config\.yaml"):
        html.write_report(tmp_path)


def test_a_very_long_run_makes_no_large_page(tmp_path):
    rows = metrics(2).splitlines()
    long = [rows[0], *(rows[1].replace("1,", f"{i},", 1) for i in range(1, 30_001))]
    contigs = {f"contig_{i}": {"tokens": i} for i in range(5_000)}
    many = scores(test=evaluation() | {"contigs": contigs})
    text = draw(tmp_path / "run", metrics_csv="\n".join(long) + "\n", eval_json=many)
    assert len(text) < 400_000
    assert "the 40 largest of 5000" in Page(text).text


def test_the_digest_that_parts_were_made_from_is_compared(tmp_path, plain):
    other = json.dumps({"weights_sha256": "f" * 64})
    text = draw(tmp_path / "run", model_json=other)
    assert text.count("was made from other weights") == 2
    assert "other weights" not in plain
    assert DIGEST in json.dumps(evaluation())
