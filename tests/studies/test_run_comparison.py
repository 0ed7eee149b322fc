"""Finished runs side by side: the same bases, the same masks, differences in pairs."""

import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_run import genome_text, write_run

import genodiff
from genodiff.data.loader import EvalBatches
from genodiff.errors import CheckpointError, UsageError
from genodiff.evaluation.bound import measure_bound
from genodiff.evaluation.eval_data import open_data
from genodiff.evaluation.request import EvalOptions
from genodiff.runs.model import load_model
from genodiff.runs.resolve import resolve_config
from genodiff.statistics.comparisons import adjust_holm
from genodiff.statistics.interval import ratio
from genodiff.training.run import train
from tests.commands import command, succeed


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three untrained runs on one genome: a and b alike, c of half the length."""
    folder = tmp_path_factory.mktemp("runs")
    for seed, (name, length) in enumerate((("a", 64), ("b", 64), ("c", 40)), 1):
        write_run(folder, name, seed=seed, data={"seq_len": length})
    return folder


def compare(runs: Path, out: Path, *names: str, **options: Any) -> dict[str, Any]:
    return genodiff.compare([runs / name for name in names], out=out, device="cpu", **options)


def test_two_runs_meet_the_same_windows_and_masks(runs, tmp_path):
    found = compare(runs, tmp_path / "out", "a", "b", repeats=2)
    nats = {}
    for name in "ab":
        model = load_model(runs / name)
        windows = open_data(model).windows
        bound = measure_bound(model.objective, model.backbone, EvalBatches(windows, 4, 1, 2))
        nats[name], tokens = bound.nats.sum(0).mean(0), bound.tokens.sum(0)
    gap = ratio(nats["b"] - nats["a"], tokens).scaled(1 / math.log(2))
    assert found["rows"][1]["minus"]["bits"] == pytest.approx(gap.value, abs=1e-6)
    assert found["rows"][1]["minus"]["ci95"] == pytest.approx(gap.ci95, abs=1e-6)
    assert found["rows"][0]["minus"] is None
    assert found["pairs"][0]["bits"] == pytest.approx(-gap.value, abs=1e-6)
    own = genodiff.evaluate(runs / "a", repeats=2, baselines=False, keep=False, device="cpu")
    assert found["rows"][0]["bits"] == pytest.approx(own["bits_per_base"], abs=1e-6)
    assert found["tokens"] == own["tokens"]


def test_runs_of_other_lengths_read_the_same_bases(runs, tmp_path):
    found = compare(runs, tmp_path / "out", "c", "a")
    assert found["tokens"] == compare(runs, tmp_path / "other", "a", "b")["tokens"]
    assert any("read 40 and 64 bases at a time" in note for note in found["notes"])
    windows = open_data(load_model(runs / "a"), EvalOptions()).windows
    pieces, owner = windows.pieces(40)
    for w in range(len(windows)):
        rows = np.flatnonzero(owner == w)
        spans = zip(pieces.flat_start[rows], pieces.length[rows], strict=True)
        places = [np.arange(s, s + n) for s, n in spans]
        start = windows.flat_start[w]
        assert np.array_equal(np.concatenate(places), np.arange(start, start + windows.length[w]))
    some = np.array([5, 2])
    assert np.array_equal(pieces.take(some).flat_start, pieces.flat_start[some])
    assert len(pieces.take(some)) == 2


def test_three_runs_are_judged_together(runs, tmp_path):
    found = compare(runs, tmp_path, "a", "b", "c")
    assert ["".join((pair["a"], pair["b"])) for pair in found["pairs"]] == ["ab", "ac", "bc"]
    p = [pair["p"] for pair in found["pairs"]]
    assert [pair["p_holm"] for pair in found["pairs"]] == adjust_holm(p)
    for pair in found["pairs"]:
        words = "ahead" if pair["bits"] < 0 else "behind"
        assert pair["verdict"] == (words if pair["p_holm"] < 0.05 else "cannot be told apart")
    table = (tmp_path / "table.md").read_text()
    assert "Holm's correction is over all 3 comparisons" in table
    assert table.count("| a | ") == 3


def test_what_a_run_saw_of_the_scored_bases_is_told_by_the_bases(runs, tmp_path):
    """Its genome is the other's, packed and with other names; it trained on all of c1.

    Scored are windows of 64 in the last twentieths: four of c1, whose five N lie behind them, three
    of c2, two of c3 and one of c4, with five N in each of the three: 640 - 15.
    """
    text, bed = genome_text().replace(">c", ">chr"), tmp_path / "all.bed"
    (tmp_path / "packed.fa.gz").write_bytes(gzip.compress(text.encode()))
    bed.write_text("chr1\t0\t6000\ttrain\nchr2\t0\t4000\tvalid\n")
    packed = str(tmp_path / "packed.fa.gz")
    write_run(tmp_path, "leaky", seed=4, fasta=packed, bed=str(bed))
    paths = [runs / "a", tmp_path / "leaky"]
    found = genodiff.compare(paths, out=tmp_path / "out", device="cpu")
    note = "leaky was trained on packed.fa.gz: 256 of 625 scored bases were in its train split"
    assert found["notes"] == [note]
    assert note in (tmp_path / "out" / "table.md").read_text()


def test_the_same_comparison_again_only_reads(runs, tmp_path, monkeypatch):
    first = compare(runs, tmp_path, "a", "b")
    monkeypatch.setattr("genodiff.studies.run_comparison.score_windows", None)
    assert compare(runs, tmp_path, "a", "b") == first
    kept = json.loads((tmp_path / "results.json").read_text())
    assert kept["rows"] == json.loads(json.dumps(first["rows"]))


def test_the_page_and_the_table_show_the_paired_difference(runs, tmp_path, capsys):
    words = ("compare", runs / "a", runs / "b", "--against", "b", "-o", tmp_path, "--threads", 1)
    out = succeed(capsys, *words)
    page = (tmp_path / "compare.html").read_text()
    assert "minus b" in out
    assert (tmp_path / "table.md").read_text().startswith(out.strip())
    assert "<!--" not in out
    assert "<svg" in page
    assert "viewBox" in page
    out = succeed(capsys, *words, "--json")
    assert json.loads(out)["against"] == "b"
    out = succeed(capsys, *words, "--plan")
    assert "tokens in 10 windows" in out


def test_a_run_that_is_not_compared_is_no_measure(runs, monkeypatch, capsys):
    monkeypatch.chdir(runs)
    code, _, err = command(capsys, "compare", "a", "b", "--against", "d")
    assert (code, "no run 'd'; give one of a, b" in err) == (2, True)


def test_text_of_other_tokens_is_refused_and_of_the_same_is_compared(text_runs, tmp_path, runs):
    found = compare(text_runs, tmp_path, "x", "y", max_windows=4)
    assert found["unit"] == "byte"
    assert len(found["rows"]) == 2
    with pytest.raises(UsageError, match="reads other windows than x"):
        compare(text_runs, tmp_path, "x", "z")
    with pytest.raises(UsageError, match="z is a run of text"):
        genodiff.compare([runs / "a", text_runs / "z"], out=tmp_path, device="cpu")
    with pytest.raises(CheckpointError):
        genodiff.compare([runs / "a", tmp_path], out=tmp_path / "o", device="cpu")


@pytest.fixture(scope="module")
def text_runs(tmp_path_factory):
    """Two runs of text that read the same windows, and one of other windows."""
    folder = tmp_path_factory.mktemp("texts")
    song = folder / "song.txt"
    song.write_text("\n\n".join(f"line {i}: to be or not to be {i * i}" for i in range(120)))
    small = {"d_model": 16, "n_layer": 1, "d_state": 4, "batch_size": 2, "max_steps": 1}
    small |= {"preset": "caduceus-ph-tiny", "validate_windows": 2}
    small |= {"recipe": "own", "domain": "text", "text": str(song)}
    for name, seed, length in (("x", 1, 64), ("y", 2, 64), ("z", 3, 32)):
        train(resolve_config({"seed": seed, "seq_len": length} | small), folder / name)
    return folder
