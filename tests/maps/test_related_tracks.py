"""Tracks of what relatives say: in memory, as files, and from shards."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import genodiff
from genodiff.maps.track_values import MOST_STRIPS, TRACKS, list_drawn, list_kinds, name_related
from genodiff.reports.shapes import PlacedText
from genodiff.reports.track_page import list_track_picture
from tests.commands import succeed
from tests.tiny_run import differ, genome_text

NAMES = ("relatives", "agree", "differ", "relative_far", "relative_near")


@pytest.fixture(scope="module")
def relatives(tmp_path_factory):
    folder = tmp_path_factory.mktemp("related_tracks")
    (folder / "near.fa").write_text(differ(genome_text(), 0.12, 2))
    (folder / "far.fa").write_text(differ(genome_text(), 0.2, 3))
    return [folder / "near.fa", folder / "far.fa"]


@pytest.fixture(scope="module")
def model(run, relatives):
    return genodiff.load(run, relatives=relatives)


@pytest.mark.slow
def test_they_say_which_relatives_have_the_base(model, run):
    fasta = run.parent / "genome.fa"
    (tracks,) = model.tracks(fasta, region=["c1:2001-2400"])
    assert tuple(tracks.related) == NAMES
    here = genome_text().splitlines()[1].upper()[2000:2400]
    near = differ(genome_text(), 0.12, 2).splitlines()[1].upper()[2000:2400]
    same = np.array([a == b for a, b in zip(here, near, strict=True)])
    found = tracks.related["relative_near"]
    assert np.mean((found > 0) == same) > 0.97
    assert found.min() >= -1
    agree, other = tracks.related["agree"], tracks.related["differ"]
    assert agree[same].mean() > 0.8
    assert agree[~same].mean() < 0.6
    assert ((agree + other) <= 1.000001).all()
    information = tracks.related["relatives"]
    assert ((information >= 0) & (information <= 2)).all()


def test_the_chances_are_those_of_the_network_with_relatives(model, run):
    fasta = run.parent / "genome.fa"
    alone = genodiff.load(run)
    (both,), (one,) = (m.tracks(fasta, region=["c1:2001-2100"]) for m in (model, alone))
    assert one.related == {}
    own = np.array(["ACGT".index(x) for x in both.letters])
    gain = np.log(both.p / one.p)[np.arange(100), own]
    assert gain.mean() > 0.5
    np.testing.assert_allclose(both.p.sum(1), 1, atol=1e-5)


def test_n_has_no_value(model):
    tracks = model.tracks(genome_text().splitlines()[1][2000:2100] + "NN")
    for values in tracks.related.values():
        assert np.isnan(values).nonzero()[0].tolist() == [100, 101]


@pytest.mark.slow
def test_files_hold_them_and_shards_give_the_same(run, relatives, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    fasta = run.parent / "genome.fa"
    formats = [x for one in ("npz", "bigwig", "parquet", "html") for x in ("--format", one)]
    words = ["tracks", run, "--fasta", fasta, "--region", "c1:2001-2300"]
    words += ["--relatives", relatives[0], "--relatives", relatives[1], "--threads", 1, *formats]
    for more in (["--out", "whole"], ["--out", "1.npy", "--shard", "1/2"],
                 ["--out", "2.npy", "--shard", "2/2"]):  # fmt: skip
        succeed(capsys, *words, *more)
    succeed(capsys, "merge", "1.npy", "2.npy", "--out", "merged")
    with np.load("whole/tracks.npz") as whole, np.load("merged/tracks.npz") as merged:
        for name in NAMES:
            np.testing.assert_array_equal(whole[name], merged[name])
            assert Path(f"whole/{name}.bw").read_bytes() == Path(f"merged/{name}.bw").read_bytes()
        frame = pl.read_parquet("whole/tracks.parquet")
        np.testing.assert_array_equal(frame["agree"].to_numpy(), whole["agree"])
    told = json.loads(Path("whole/tracks.json").read_text())
    assert tuple(list_kinds(told["relatives"])) == (*TRACKS, *NAMES)
    database = Path("whole/trackDb.txt").read_text()
    assert all(f"bigDataUrl {name}.bw" in database for name in NAMES)
    page = Path("whole/tracks.html").read_text()
    assert '"name": "near", "limits": [-1, 1], "strip": true' in page
    near = next(one for one in told["relatives"]["genomes"] if one["name"] == "near")
    assert f"near ({near['identity']:.1%} identity)" in page


def test_a_picture_has_a_strip_for_each_relative(model, run):
    (tracks,) = model.tracks(run.parent / "genome.fa", region=["c1:2001-2040"])
    told = {"checkpoint": "x", "relatives": {"genomes": [{"name": "far"}, {"name": "near"}]}}
    shapes, _ = list_track_picture(tracks, told, [])
    words = {one.text for one in shapes if isinstance(one, PlacedText)}
    assert {"far", "near", "agree"} <= words


def test_names_are_safe_and_unique_and_strips_are_few():
    told = {"genomes": [{"name": name} for name in ("a b", "a/b", *map(str, range(30)))]}
    assert name_related(told)[3:6] == ("relative_a_b", "relative_a_b_2", "relative_0")
    assert name_related(None) == ()
    assert len(list_drawn({"relatives": told})) == 2 + MOST_STRIPS
