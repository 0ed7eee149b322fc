"""The data that samples are compared with: the run's own, held out, never fetched."""

from pathlib import Path

import numpy as np
import pytest
from synthetic_run import CONFIG, make_run

from genodiff.alphabet import DNA, reverse_complement
from genodiff.data.dna_store import build_dna_store
from genodiff.data.recipe import load_recipe
from genodiff.data.toy import ToySource
from genodiff.reports import html
from genodiff.reports.folder import read_folder
from genodiff.reports.html import measure_source_bits, open_reference


def write(folder: Path, **changed: str) -> str:
    """The report of a run of which some parts are others."""
    return html.write_report(make_run(folder / "run", **changed)).read_text(encoding="utf-8")


def test_a_toy_run_is_compared_with_held_out_toy_sequence_and_judged_by_its_source(tmp_path):
    folder = read_folder(make_run(tmp_path / "run"))
    found, note = open_reference(folder)
    assert note == ""
    comparison = found.comparison(folder)
    assert comparison.markov_name == "Markov 7", "the order that scored best in eval.json"
    assert comparison.card.samples.n == 6
    assert set(comparison.card.real.lengths) == {300}
    rows = dict(comparison.extra)
    samples, markov, real = (float(x) for x in rows["bits per base by the source"])
    assert real < markov < samples, (
        "random letters are the least like the source, its own text the most"
    )
    assert [split for split, _ in found.windows()] == ["train", "valid", "test"]
    assert "256 windows of 256 bases" in dict(found.windows())["test"]


def test_the_comparison_is_the_same_every_time(tmp_path):
    folder = read_folder(make_run(tmp_path / "run"))
    first, second = (open_reference(folder)[0] for _ in range(2))
    assert first.comparison(folder) == second.comparison(folder)


def test_the_report_of_a_toy_run_carries_the_comparison_and_the_windows(tmp_path):
    text = write(tmp_path)
    for said in ("bits per base by the source", "Markov 7", "256 windows of 256 bases"):
        assert said in text, said
    assert "other real sequence (floor)" in text


def test_data_that_is_not_here_is_told_and_never_fetched(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "socket.socket.connect", lambda *_: pytest.fail("the report touched the network")
    )
    text = write(tmp_path, config_yaml=CONFIG.replace("recipe: toy", "recipe: sacCer3"))
    assert "The samples are not compared with real sequence, which is not available" in text
    assert "--fasta" in text


def test_a_file_that_is_gone_is_told(tmp_path):
    gone = CONFIG.replace("recipe: toy", f"recipe: own\nfasta: {tmp_path}/gone.fa")
    text = write(tmp_path, config_yaml=gone)
    assert "which is not available" in text
    assert "gone.fa" in text


def test_samples_longer_than_any_held_out_interval_still_have_their_page(tmp_path):
    long = ">a\n" + "ACGT" * 17_000 + "\n>b\n" + "AACC" * 17_000 + "\n"
    assert "68,000" in write(tmp_path, samples_fa=long)


def test_copies_of_the_train_split_are_found_on_either_strand(tmp_path):
    store = build_dna_store(load_recipe("toy"), None, offline=True)
    genome = "".join(
        f">{c}\n{DNA.decode(np.asarray(store.ids(c))[:20_000])}\n" for c in ("toy1", "toy2")
    )
    (tmp_path / "own.fa").write_text(genome)
    copy = reverse_complement(DNA.decode(np.asarray(store.ids("toy1"))[1000:1300]))
    other = DNA.decode(np.random.default_rng(1).choice(np.array(DNA.targets, np.uint8), 300))
    config = CONFIG.replace("recipe: toy", f"recipe: own\nfasta: {tmp_path}/own.fa")
    folder = read_folder(
        make_run(tmp_path / "run", config_yaml=config, samples_fa=f">a\n{copy}\n>b\n{other}\n")
    )
    found, _ = open_reference(folder)
    comparison = found.comparison(folder)
    assert dict(comparison.extra)["bases in 24‑mers of train"][0] == "50.0%"
    assert "bits per base by the source" not in dict(comparison.extra)


def test_sets_of_unequal_lengths_are_scored_base_by_base():
    toy = ToySource()
    parts = [toy.sample(200, 5, 0), toy.sample(50, 5, 1)]
    nats = sum(float(toy.log_likelihood(p)) for p in parts)
    assert measure_source_bits(parts) == pytest.approx(-nats / 250 / np.log(2))
